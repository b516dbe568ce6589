"""Renders chat turns as HTML: an answer's Markdown, and plain text.

No HTML of an answer gets through, nothing is loaded, and links only lead to web pages and
mail addresses. The time is proportional to the length of the text: a text that would take
longer is shown as plain text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from platform_common.plain_text import with_line_feeds, without_controls
from platform_common.validation import check_http_url, passes

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_MAIL = re.compile(r"mailto:[A-Za-z0-9._+-]{1,64}@[A-Za-z0-9.-]{1,255}")
_REL = "noopener noreferrer nofollow"
# Below the page's own two levels of headings.
_ABOVE, _LOWEST = 2, 6
_NESTING = 20
# Wide content scrolls in its own box, which must be reachable with the keyboard.
_SCROLLS = {"tabindex": "0"}
_TABLE = '<div class="scroll" tabindex="0">\n<table>\n', "</table>\n</div>\n"
# Up to this length, no known text takes a slow board more than a second or two; a person
# needs half a minute or more to read that much.
LONGEST = 64 << 10
MOST_MARKS = 16 << 10
_MARKS = re.compile(r"[\[\]()!*_~`<>|\n]")
# The delimiter row of a table: every row is filled up to its number of cells.
_BELOW_HEADS = re.compile(r"^[ \t>]*[|:-][ \t|:-]*$", re.MULTILINE)


class Renderer:
    """Renders the turns of one page, with one bound for all of them."""

    def __init__(self, most_marks: int = 3 * MOST_MARKS) -> None:
        self._left = most_marks

    def answer(self, text: str) -> Markup:
        """Render an answer; as plain text if it, or the total, is too much work."""
        marks = _marks(text)
        if len(text) > LONGEST or marks > min(MOST_MARKS, self._left):
            return plain(text)
        self._left -= marks
        return markdown(text)


def _marks(text: str) -> int:
    """Estimate the work for a text: its mark-up characters, and the cells that fill its tables."""
    columns = max((row.count("|") for row in _BELOW_HEADS.findall(text)), default=0)
    return len(_MARKS.findall(text)) + columns * text.count("\n")


def plain(text: str) -> Markup:
    """Render plain text: paragraphs and line breaks."""
    clean = without_controls(with_line_feeds(text)).strip("\n")
    paragraphs = (str(escape(part)).replace("\n", "<br>\n") for part in re.split(r"\n{2,}", clean))
    return Markup("".join(f"<p>{part}</p>\n" for part in paragraphs))  # noqa: S704 - escaped above


def markdown(text: str) -> Markup:
    """Render Markdown (CommonMark with tables and strikethrough)."""
    clean = without_controls(with_line_feeds(text))
    parser = _parser()
    tokens = parser.parse(clean)
    _harmless(tokens)
    html = parser.renderer.render(tokens, parser.options, {})
    return Markup(html)  # noqa: S704 - the library escapes all text, and knows no HTML


def _harmless(tokens: Iterable[Token]) -> None:
    """Remove from the tokens whatever does not belong on our pages."""
    ranks: list[int] = []
    for token in tokens:
        if token.type == "heading_open":
            # One level below the nearest higher-ranking heading before it.
            rank = int(token.tag[1:])
            while ranks and ranks[-1] >= rank:
                ranks.pop()
            ranks.append(rank)
        if token.type.startswith("heading_"):
            token.tag = f"h{min(_ABOVE + len(ranks), _LOWEST)}"
        # Column alignment needs a style attribute, which the Content-Security-Policy forbids.
        token.attrs.pop("style", None)
        if token.type in {"fence", "code_block"}:
            # Drop the language of the code, which would become a class.
            token.type, token.attrs = "code_block", dict(_SCROLLS)
        if token.children:
            token.children = list(_inline(token.children))


def _inline(tokens: Iterable[Token]) -> Iterator[Token]:
    """Clean the tokens within a line: pictures become links, or their text inside a link."""
    # Imported here and below: only the chat needs the library.
    from markdown_it.token import Token

    in_link = 0
    for token in tokens:
        if token.type == "link_open":
            in_link += 1
            token.attrs = {"href": token.attrs["href"], "rel": _REL}
        elif token.type == "link_close":
            in_link -= 1
        if token.type != "image":
            yield token
        elif in_link:
            yield Token("text", "", 0, content=token.content)
        else:
            link = {"href": token.attrs["src"], "rel": _REL}
            yield Token("link_open", "a", 1, attrs=link)
            yield Token("text", "", 0, content=token.content or str(token.attrs["src"]))
            yield Token("link_close", "a", -1)


def _leads_to_a_page(url: str) -> bool:
    """Whether a link may lead there: web or mail, with a host, and without a password."""
    return _MAIL.fullmatch(url) is not None or passes(check_http_url, url)


@cache
def _parser() -> MarkdownIt:
    # Loading it takes 30 ms; the bench row "from the start to the first answer of /healthz"
    # would miss.
    from markdown_it import MarkdownIt

    made = MarkdownIt(
        "commonmark", {"html": False, "xhtmlOut": False, "breaks": True, "maxNesting": _NESTING}
    )
    made.enable(["table", "strikethrough"])
    made.disable(["html_block", "html_inline"])
    made.add_render_rule("table_open", lambda *_: _TABLE[0])
    made.add_render_rule("table_close", lambda *_: _TABLE[1])
    # The method is replaced, as the library's documentation advises.
    made.validateLink = _leads_to_a_page  # type: ignore[method-assign]
    return made
