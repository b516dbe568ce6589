"""What is said in the chat, as HTML: an answer's Markdown, and plain text.

No HTML of an answer gets through, nothing is loaded from anywhere, and a link leads to a
web page or a mail address or is none. Whatever the text is, this takes time in proportion
to it: what would take longer is shown as plain text.
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
# Headings come below the page's own two.
_ABOVE, _LOWEST = 2, 6
_NESTING = 20
# What may be wide scrolls by itself, and so also for who has a keyboard alone.
_SCROLLS = {"tabindex": "0"}
_TABLE = '<div class="scroll" tabindex="0">\n<table>\n', "</table>\n</div>\n"
# Up to here no text is known that takes a slow board more than a second or two; a real
# answer of this length is read in half a minute or more.
LONGEST = 64 << 10
MOST_MARKS = 16 << 10
_MARKS = re.compile(r"[\[\]()!*_~`<>|\n]")
# What stands below the heads of a table: each row after it gets as many cells as it has.
_BELOW_HEADS = re.compile(r"^[ \t>]*[|:-][ \t|:-]*$", re.MULTILINE)


class Renderer:
    """The bodies of the turns of one page, within a bound for all of them together."""

    def __init__(self, most_marks: int = 3 * MOST_MARKS) -> None:
        self._left = most_marks

    def answer(self, text: str) -> Markup:
        """An answer; as plain text where it, or what was rendered before, is too much."""
        marks = _marks(text)
        if len(text) > LONGEST or marks > min(MOST_MARKS, self._left):
            return plain(text)
        self._left -= marks
        return markdown(text)


def _marks(text: str) -> int:
    """How much work a text may be: its marks, and the cells that its tables may be filled up to."""
    columns = max((row.count("|") for row in _BELOW_HEADS.findall(text)), default=0)
    return len(_MARKS.findall(text)) + columns * text.count("\n")


def plain(text: str) -> Markup:
    """Plain text: paragraphs, and lines as they are."""
    clean = without_controls(with_line_feeds(text)).strip("\n")
    paragraphs = (str(escape(part)).replace("\n", "<br>\n") for part in re.split(r"\n{2,}", clean))
    return Markup("".join(f"<p>{part}</p>\n" for part in paragraphs))  # noqa: S704 - escaped above


def markdown(text: str) -> Markup:
    """The HTML of a text in Markdown (CommonMark with tables and strikethrough)."""
    clean = without_controls(with_line_feeds(text))
    parser = _parser()
    tokens = parser.parse(clean)
    _harmless(tokens)
    html = parser.renderer.render(tokens, parser.options, {})
    return Markup(html)  # noqa: S704 - the library escapes all text, and knows no HTML


def _harmless(tokens: Iterable[Token]) -> None:
    """Take out of the tokens of a text what has no place on a page of ours."""
    ranks: list[int] = []
    for token in tokens:
        if token.type == "heading_open":
            # Below the headings that are above it, and no further.
            rank = int(token.tag[1:])
            while ranks and ranks[-1] >= rank:
                ranks.pop()
            ranks.append(rank)
        if token.type.startswith("heading_"):
            token.tag = f"h{min(_ABOVE + len(ranks), _LOWEST)}"
        # A table's columns would be aligned by a style, which the page's policy forbids.
        token.attrs.pop("style", None)
        if token.type in {"fence", "code_block"}:
            # Without the language of the code, which would become a class.
            token.type, token.attrs = "code_block", dict(_SCROLLS)
        if token.children:
            token.children = list(_inline(token.children))


def _inline(tokens: Iterable[Token]) -> Iterator[Token]:
    """The tokens within a line: pictures become links to them, or their words within a link."""
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
    """Whether a link may lead there: one that says where, and to whom it shows no password."""
    return _MAIL.fullmatch(url) is not None or passes(check_http_url, url)


@cache
def _parser() -> MarkdownIt:
    # Loading it takes 30 ms, by which the start would miss its row of the bench ("from the
    # start to the first answer of /healthz").
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
