"""Checkers of HTML and CSS: vnu, the checker of the W3C, and html5lib, which is faster."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import html5lib

from tests.support.environments import node_modules
from tests.support.running import run

# Messages of vnu about features that it does not know but every browser supports or ignores, and
# where they occur.
_NOT_KNOWN_YET = (
    ("CSS: Unrecognized at-rule “@view-transition”", "@view-transition {"),
    ("CSS: Parse Error.", "nsition-group(*) {"),
    ("CSS: “field-sizing”: Property “field-sizing” doesn't exist.", "field-sizing:"),
)


def parse_errors(html: str) -> list[str]:
    """The errors of a strict parser; empty for a valid page."""
    parser = html5lib.HTMLParser(strict=False)
    parser.parse(html)
    return [f"line {line}: {code} {data}" for (line, _), code, data in parser.errors]


def html_problems(pages: Mapping[str, str]) -> list[str]:
    """The errors that vnu finds in named pages, all in one run."""
    with tempfile.TemporaryDirectory() as folder:
        names = {}
        for number, (name, html) in enumerate(pages.items()):
            file = Path(folder, f"{number}.html")
            file.write_text(html, "utf-8")
            names[file.name] = name
        return [
            f"{names[message['url'].rpartition('/')[2]]}: {_line(message)}"
            for message in _messages(*map(str, sorted(Path(folder).iterdir())))
        ]


def style_problems(style: Path) -> list[str]:
    """The errors that vnu finds in a stylesheet, without features that it does not know yet."""
    return [
        _line(found)
        for found in _messages("--css", str(style))
        if not any(
            found["message"] == message and where in found["extract"]
            for message, where in _NOT_KNOWN_YET
        )
    ]


def _messages(*arguments: str) -> list[dict[str, Any]]:
    jar = node_modules("browser-tools") / "vnu-jar/build/dist/vnu.jar"
    # Its HTML rules need a large stack. The run is too short for optimising compilation to pay.
    java = ("java", "-Xss2m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-jar", jar)
    checked = run(*java, "--format", "json", "--errors-only", *arguments)
    messages: list[dict[str, Any]] = json.loads(checked.stderr)["messages"]
    return messages


def _line(message: Mapping[str, Any]) -> str:
    extract = " ".join(message.get("extract", "").split())
    return f"line {message.get('lastLine', '?')}: {message['message']} [{extract[:120]}]"
