"""Apps for the bench: the dashboard without programs behind it, and the barest Flask app."""

from __future__ import annotations

import os
from collections.abc import Sequence

from flask import Flask, Response

from platform_common.control import ControlCli
from platform_common.processes import Finished
from platform_common.sentence import Sentence
from pwa_app.app import create_app
from pwa_app.settings import PwaSettings
from pwa_app.stub import StubCli

# A page as anybody would write it: a row of a table for each thing, three values in a row.
_BARE_PAGE = """\
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


class Instant:
    """A control CLI whose answers are there already."""

    sample: Sentence | None = None

    def __init__(self) -> None:
        self._made_up = StubCli(Sentence("made up"))
        self._answers: dict[tuple[str, ...], Finished] = {}

    def run(
        self, words: Sequence[str], *, stdin: bytes = b"", limit_s: float | None = None
    ) -> Finished:
        """The same bytes for the same call."""
        key = tuple(words)
        if key not in self._answers:
            self._answers[key] = self._made_up.run(words)
        return self._answers[key]


def dashboard() -> Flask:
    """Our app, its calls answered at once."""
    cli: ControlCli = Instant()
    return create_app(PwaSettings.from_env(os.environ), cli=cli)


def bare() -> Flask:
    """`/page` of about `BARE_PAGE_BYTES`, and `/healthz`."""
    app = Flask("bare")
    count = int(os.environ["BARE_PAGE_BYTES"]) // _ROW_BYTES
    rows = [{"name": f"name {number}", "value": number, "unit": "MiB"} for number in range(count)]

    # Compiled once, as a file's would be.
    template = app.jinja_env.from_string(_BARE_PAGE)

    def page() -> str:
        return template.render(title="Bare", rows=rows)

    def healthz() -> Response:
        return Response("ok", content_type="text/plain; charset=utf-8")

    app.add_url_rule("/page", "page", page)
    app.add_url_rule("/healthz", "healthz", healthz)
    return app
