"""A pseudo-language: every text of ours is marked, accented and 40 % longer.

Text without marks was not translated; text that does not fit leaves no room for languages that are
longer than English.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from gettext import NullTranslations
from typing import Any

import msgspec
from playwright.sync_api import Page

from platform_common.message import Sentence
from platform_common.records.channel_names import channel_name
from platform_common.version import VERSION
from platform_common.web.language import SOURCE, Language
from pwa_app.dashboard.updates import CHECK
from pwa_app.overview import MODELS, OVERVIEW
from pwa_app.stub import StubCli
from pwa_app.voice.page import VOICE_CHECK, VOICE_STATUS
from tests.support.control_cli import FakeCtl

VIEWS = (*OVERVIEW, MODELS, CHECK, VOICE_STATUS, VOICE_CHECK)
_LONGER = 0.4
_ACCENTED = str.maketrans("aeioucnsyAEIOUCNSY", "áéíóúçñšýÁÉÍÓÚÇÑŠÝ")
_JOINT = re.compile("(?<=[_/])")
_WORD = re.compile(r"[^\W\d_]+")
# Placeholders for values, which have no marks, and tags.
_NO_TEXT = re.compile(r"(\{[a-z_]+\}|%\([a-z_]+\)[sd]|</?[a-z][^>]*>)")
_MARKED = re.compile("⟦[^⟦⟧]*⟧")
# Names that are not translated: of units, of the app, and of a message in the log.
_NAMES = (r"[\w@.\-]+\.service", r"\(journal task failed\)", r"\(dev-stub\)")
# The texts of a page and their elements, except text marked as another language, code, text from
# the journal, and the badge of a slice without an answer.
_TEXTS = """names => {
  const own = document.documentElement.lang;
  const skipped = e => e.closest("script, style, noscript, code, .stub")
    || (e.closest("pre") && !e.closest(".mark"))
    || (e.closest("[lang]").lang !== own);
  const found = [];
  const walker = document.createTreeWalker(document.documentElement, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const e = walker.currentNode.parentElement;
    if (!skipped(e)) found.push([walker.currentNode.data, e.outerHTML.slice(0, 120)]);
  }
  for (const e of document.querySelectorAll("*")) {
    if (e.closest("[lang]").lang !== own) continue;
    for (const name of names) {
      if (e.hasAttribute(name)) found.push([e.getAttribute(name), e.outerHTML.slice(0, 120)]);
    }
  }
  return found;
}"""
_WORDY_ATTRIBUTES = (
    *("aria-label", "title", "alt", "placeholder", "data-hide", "data-other", "data-restarted"),
    *("data-gap", "data-live", "data-paused", "data-again", "data-gone", "data-one", "data-many"),
    *("data-working", "data-writing", "data-room", "data-on0", "data-on200", "data-on401"),
)


class _Catalogue(NullTranslations):
    def gettext(self, message: str) -> str:
        return pseudo(message)

    def ngettext(self, msgid1: str, msgid2: str, n: int) -> str:
        return pseudo(super().ngettext(msgid1, msgid2, n))


class PseudoLanguage(Language):
    """The language; text from Babel is marked, too."""

    def __init__(self) -> None:
        super().__init__(SOURCE, _Catalogue())
        self.code = "en-XA"

    def money(self, usd: float) -> str:
        return _marked(super().money(usd))

    def number(self, value: float) -> str:
        return _marked(super().number(value))

    def duration(self, seconds: int) -> str:
        return _marked(super().duration(seconds))

    def moment(self, when: datetime) -> str:
        """A date and a time."""
        return _marked(super().moment(when))

    def day(self, date: str) -> str:
        """An ISO date."""
        return _marked(super().day(date))


def pseudo(text: str) -> str:
    """The text in this language; filled-in values are outside the marks."""
    parts = _NO_TEXT.split(text)
    parts[::2] = [_marked(_WORD.sub(_longer, part)) for part in parts[::2]]
    return "".join(parts)


def texts(page: Page) -> list[tuple[str, str]]:
    """The texts of the page, visible or not, with their elements."""
    found = page.evaluate(_TEXTS, list(_WORDY_ATTRIBUTES))
    lines = [(" ".join(text.split()), element) for text, element in found]
    return [line for line in lines if line[0]]


def leftovers(page: Page, known: Iterable[str]) -> list[str]:
    """The texts of the page that were not translated, except `known` values."""
    own = [page.locator(".brand").inner_text(), VERSION, *known]
    # A long value consists of several texts, between which a line may end.
    parts = {part for value in own for part in (value, *_JOINT.split(value))}
    values = sorted({" ".join(part.split()) for part in parts} - {""}, key=len, reverse=True)
    alternatives = "|".join([*_NAMES, *map(re.escape, values)])
    fine = re.compile(rf"(?:[\W\d_]|(?<![^\W\d_])(?:{alternatives})(?![^\W\d_]))*")
    return [
        f"{text!r} in {element}"
        for text, element in texts(page)
        if not fine.fullmatch(_MARKED.sub("", text).replace("{at}", "").replace("{n}", ""))
    ]


def values_of(ctl: FakeCtl) -> set[str]:
    """The answers of this control CLI, or the sample ones, and the calls."""
    answers = json.loads((ctl.folder / "answers.json").read_text())
    outputs = [answer.get("output", "") for answer in answers.values()]
    sample = StubCli(Sentence("none"))
    outputs += [sample.run(view.words).output for view in VIEWS]
    found = {" ".join(view.words) for view in VIEWS}
    found |= set(leaves(msgspec.to_builtins([view.default for view in VIEWS])))
    for output in outputs:
        try:
            found |= set(leaves(json.loads(output)))
        except ValueError:
            continue
    return found | {str(channel_name(one)) for one in found}


def leaves(value: Any) -> Iterator[str]:
    """Every text in a JSON or TOML value."""
    match value:
        case str():
            yield value
        case list():
            for one in value:
                yield from leaves(one)
        case dict():
            for one in value.values():
                yield from leaves(one)


def _longer(word: re.Match[str]) -> str:
    text = word[0].translate(_ACCENTED)
    return text + text[: math.ceil(_LONGER * len(text))].lower()


def _marked(text: str) -> str:
    return f"⟦{text}⟧" if _WORD.search(text) else text
