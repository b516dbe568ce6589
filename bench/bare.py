"""The barest Flask app that does what ours do: a page, a form, `/healthz`.

It imports nothing of ours, so that its start and its memory are those of Flask alone.
"""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

from flask import Flask, Response, redirect, request
from werkzeug import Response as Redirect

# A page as anyone would write it: a table with three values in each row.
_PAGE = """\
<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{{ title }}</title></head><body>
<h1>{{ title }}</h1>
<table>
{% for row in rows %}
<tr class="row">
<td class="name">{{ row.name }}</td><td>{{ row.value }}</td><td>{{ row.unit }}</td>
</tr>
{% endfor %}
</table></body></html>
"""
_ROW_BYTES = 78
_one_at_a_time = threading.Lock()


def bare() -> Flask:
    """`/page` of about `BARE_PAGE_BYTES`, `/form` which writes `BARE_STATE_FILE`, `/healthz`."""
    app = Flask("bare")
    count = int(os.environ.get("BARE_PAGE_BYTES", "0")) // _ROW_BYTES
    rows = [{"name": f"name {number}", "value": number, "unit": "MiB"} for number in range(count)]
    state_file = Path(os.environ.get("BARE_STATE_FILE", "state.json"))

    # Compiled once, as Flask compiles a file.
    template = app.jinja_env.from_string(_PAGE)

    def page() -> str:
        return template.render(title="Bare", rows=rows)

    def form() -> Redirect:
        answers = {name: request.form[name] for name in ("hostname", "timezone")}
        with _one_at_a_time:
            replace(state_file, json.dumps({"version": 2, "answers": answers}, indent=2).encode())
        return redirect("/page")

    def healthz() -> Response:
        return Response("ok", content_type="text/plain; charset=utf-8")

    app.add_url_rule("/page", "page", page)
    app.add_url_rule("/form", "form", form, methods=["POST"])
    app.add_url_rule("/healthz", "healthz", healthz)
    return app


def replace(path: Path, data: bytes) -> None:
    """Replace a file so that a power cut leaves the old one or the new one."""
    temporary = f"{path}.new"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(descriptor, data)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    Path(temporary).rename(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
