"""`make messages`: collects the texts of the pages and updates the catalogue of each language.

What is new in a catalogue is left empty for a person to put into that language;
what no page says any more is removed.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import DEFAULT_KEYWORDS, extract_from_file
from babel.messages.pofile import read_po, write_po

from dev.distributions import ROOT
from platform_common.web.language import LANGUAGES, SOURCE

LOCALES = ROOT / "platform_common/web/locales"
_DATA = ROOT / "platform_common/data"
# The files with texts for people, and how texts are found in them.
_SOURCES = (
    ("templates", "*.html", "jinja2.ext:babel_extract"),
    ("platform_common", "*.py", "python"),
    ("pwa_app", "*.py", "python"),
    ("wizard_app", "*.py", "python"),
)
# Names whose first argument is a text to translate.
_KEYWORDS = DEFAULT_KEYWORDS | {"Sentence": None, "Problem": None}
# A text of more than one word, not a name or the beginning of a key.
_WORDS = re.compile(r"\b[a-z]{2,} | [a-z]{2,}\b")
_OPTIONS = {"trimmed": "true", "newstyle_gettext": "true"}
_HEADER = """\
msgid ""
msgstr ""
"Content-Type: text/plain; charset=utf-8\\n"
"Content-Transfer-Encoding: 8bit\\n"
"Language: {code}\\n"
"Plural-Forms: {plurals}\\n"

"""


def collected() -> Catalog:
    """All texts of the pages."""
    catalogue = Catalog(charset="utf-8")
    for path, method in _files():
        for _, message, comments, context in extract_from_file(
            method, path, keywords=_KEYWORDS, options=_OPTIONS
        ):
            catalogue.add(message, auto_comments=comments, context=context)
    for text in _record_texts():
        if _WORDS.search(text):
            catalogue.add(text)
    return catalogue


def updated(code: str) -> bytes:
    """The catalogue of the language `code`, with only the texts in use."""
    path = LOCALES / f"{code}.po"
    with path.open("rb") as source:
        catalogue = read_po(source, locale=code)
    catalogue.update(collected(), no_fuzzy_matching=True)
    catalogue.obsolete.clear()
    written = io.BytesIO()
    # The usual header has a date and an author; line numbers would change with every edit.
    write_po(written, catalogue, width=100, omit_header=True, sort_output=True, no_location=True)
    header = _HEADER.format(code=code, plurals=catalogue.plural_forms)
    return header.encode() + written.getvalue().rstrip(b"\n") + b"\n"


def main() -> None:
    """Update every catalogue and print how many translations are missing."""
    for code in LANGUAGES:
        if code == SOURCE:
            continue
        data = updated(code)
        (LOCALES / f"{code}.po").write_bytes(data)
        catalogue = read_po(io.BytesIO(data), locale=code)
        lacking = sum(1 for message in catalogue if message.id and not message.string)
        print(f"{code}: {len(catalogue)} texts, {lacking} of them not translated yet")


def _record_texts() -> Iterator[str]:
    """What pages show of the records that we ship."""
    for provider in json.loads((_DATA / "providers.json").read_bytes())["providers"]:
        yield from (
            provider[name] for name in ("display_name", "supported_models_hint", "key_format")
        )
    for path in sorted(_DATA.glob("limits/*.json")):
        for limitation in json.loads(path.read_bytes())["limitations"]:
            yield from (limitation["reason"], limitation["unblock"])


def _files() -> Iterator[tuple[Path, str]]:
    for folder, pattern, method in _SOURCES:
        for path in sorted((ROOT / folder).rglob(pattern)):
            yield path, method


if __name__ == "__main__":
    main()
