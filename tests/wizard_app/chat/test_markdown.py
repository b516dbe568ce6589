"""Chat messages as HTML: which elements appear, and that nothing else does."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from urllib.parse import urlsplit
from xml.etree.ElementTree import Element

import html5lib
import pytest
from markupsafe import Markup

from tests.support.hostile_text import XSS
from wizard_app.chat import markdown
from wizard_app.chat.markdown import LONGEST, MOST_MARKS, Renderer, plain

_PLAIN = (
    *("p", "br", "em", "strong", "s", "code", "pre", "blockquote", "hr", "ul", "li"),
    *("table", "thead", "tbody", "tr", "th", "td", "h3", "h4", "h5", "h6"),
)
_NONE: set[str] = set()
ALLOWED = {
    **dict.fromkeys(_PLAIN, _NONE),
    "ol": {"start"},
    "a": {"href", "rel"},
    "pre": {"tabindex"},
    "div": {"class", "tabindex"},
}
REL = "noopener noreferrer nofollow"


def elements(html: str) -> Iterator[Element]:
    """Every element of a part of a page, which must be valid."""
    parser = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False)
    found = parser.parseFragment(html, container="div")
    return (one for one in found.iter() if isinstance(one.tag, str) and one is not found)


@pytest.mark.parametrize("start", range(0, len(XSS), 25))
def test_chat_04_and_http_14_an_answer_cannot_run_scripts_or_load_anything(start: int) -> None:
    assert len(set(XSS)) >= 200
    for text in XSS[start : start + 25]:
        _assert_harmless(text)


def _assert_harmless(text: str) -> None:
    around = (text, f"**{text}**", f"> {text}", f"```{text}\n{text}\n```", f"# {text}")
    for variant in (*around, f"|{text}|\n|-|"):
        for html in (str(markdown.markdown(variant)), str(plain(variant))):
            for element in elements(html):
                assert element.tag in ALLOWED, html
                assert set(element.attrib) <= ALLOWED[element.tag], html
                assert element.attrib.get("class", "scroll") == "scroll"
                if element.tag == "a":
                    assert element.attrib["rel"] == REL
                    parts = urlsplit(element.attrib["href"])
                    assert parts.scheme in ("http", "https", "mailto"), html
                    assert parts.netloc or parts.scheme == "mailto", html


def test_http_15_a_template_in_an_answer_is_text() -> None:
    assert "{{7*7}}" in markdown.markdown("{{7*7}}")
    assert "49" not in markdown.markdown("{{7*7}} {% print(7*7) %}")


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("*a* **b** ~~c~~ `d`", "<p><em>a</em> <strong>b</strong> <s>c</s> <code>d</code></p>"),
        ("one\ntwo", "<p>one<br>\ntwo</p>"),
        ("```python\n1 < 2\n```", '<pre tabindex="0"><code>1 &lt; 2\n</code></pre>'),
        ("    indented", '<pre tabindex="0"><code>indented\n</code></pre>'),
        ("> q", "<blockquote>\n<p>q</p>\n</blockquote>"),
        ("- a\n- b", "<ul>\n<li>a</li>\n<li>b</li>\n</ul>"),
        ("3. a", '<ol start="3">\n<li>a</li>\n</ol>'),
        ('[x](https://a.example "t")', f'<p><a href="https://a.example" rel="{REL}">x</a></p>'),
        ("<http://a.b>", f'<p><a href="http://a.b" rel="{REL}">http://a.b</a></p>'),
        ("<b@a.example>", f'<p><a href="mailto:b@a.example" rel="{REL}">b@a.example</a></p>'),
        ("![a cat](http://a.b/)", f'<p><a href="http://a.b/" rel="{REL}">a cat</a></p>'),
        ("[![c](http://a.b/)](http://b.c)", f'<p><a href="http://b.c" rel="{REL}">c</a></p>'),
        ("<b>bold</b>", "<p>&lt;b&gt;bold&lt;/b&gt;</p>"),
        ("a\x00b\x1b[31mc\x7f\x9b", "<p>ab[31mc</p>"),
        ("&#0;&#27;", "<p>��</p>"),
        ("", ""),
    ],
)
def test_markdown_is_rendered(text: str, html: str) -> None:
    assert str(markdown.markdown(text)).strip() == html


def test_a_table_is_rendered_without_styles() -> None:
    html = markdown.markdown("| a | b |\n|:-:|--:|\n| 1 | 2 |")
    assert "<th>a</th>\n<th>b</th>" in html
    assert "<td>1</td>\n<td>2</td>" in html


def test_headings_start_below_those_of_the_page_and_skip_no_level() -> None:
    for ranks, tags in {
        "1": "3",
        "3 4": "34",
        "3 3": "33",
        "1 3 3 2 1": "34443",
        "2 1 2": "334",
        "1 2 3 4 5 6": "345666",
    }.items():
        text = "\n\n".join(f"{'#' * int(rank)} x" for rank in ranks.split())
        found = [element.tag for element in elements(str(markdown.markdown(text)))]
        assert found == [f"h{tag}" for tag in tags]


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("a\nb", "<p>a<br>\nb</p>"),
        ("a\r\nb\rc", "<p>a<br>\nb<br>\nc</p>"),
        ("a\n\n\n\nb", "<p>a</p>\n<p>b</p>"),
        ("**a** <i>", "<p>**a** &lt;i&gt;</p>"),
        ("\x00\x1b[1m\t", "<p>[1m\t</p>"),
    ],
)
def test_plain_text_is_shown_unchanged(text: str, html: str) -> None:
    assert str(plain(text)) == f"{html}\n"


_SLOW = (
    *("[", "![", "[](", "[a](", "[a](<b", "*", "**a ", "a**b", "*a_ ", "_a", ">", "> > > > a\n"),
    *("- ", "1. ", "|", "|a|b|\n", "[a]: b\n", "[a]: ", "&", "&amp;", "<", "<a ", "<http://", "\\"),
    *("\n", "a\n", "~", "~~a", "# a\n", "a\n=\n", "```\n", "~~~ a\n", "    a\n", "***\n", "word "),
    *(
        "](",
        "[a][",
        "[[a]",
        "\t",
        "-\n",
        "- a\n\n",
        "+\t*\t",
        "* a\n> b\n",
        "*a **b ",
        "<a@b",
        "`e",
    ),
)


@pytest.mark.parametrize(
    "piece", [*_SLOW[:6], *(pytest.param(piece, marks=pytest.mark.long) for piece in _SLOW[6:])]
)
def test_chat_04_every_answer_is_rendered_in_bounded_time(piece: str) -> None:
    began = time.process_time()
    for size in (MOST_MARKS, LONGEST, LONGEST + 1):
        assert isinstance(Renderer().answer((piece * size)[:size]), Markup)
    # It takes a tenth of this on an idle machine.
    assert time.process_time() - began < 20


@pytest.mark.parametrize(
    "text",
    [
        "".join("e" + "`" * count for count in range(1, 300)),
        "".join("  " * depth + "- a\n" for depth in range(250)),
        "".join(">" * depth + "a\n" for depth in range(300)),
        "|" * 1000 + "\n|" + "-|" * 1000 + "\n",
        "[" * 8000 + "]" * 8000,
        "[a](" + "(" * 60000,
        '[a](b "' + '\\"' * 30000,
    ],
    ids=["back-ticks", "lists", "quotes", "columns", "brackets", "parentheses", "title"],
)
def test_chat_04_a_deeply_nested_answer_is_rendered_in_bounded_time(text: str) -> None:
    began = time.process_time()
    list(elements(str(Renderer().answer(text))))
    assert time.process_time() - began < 20


def test_chat_04_a_table_with_very_many_cells_is_shown_as_text() -> None:
    text = "|a" * 1000 + "|\n" + "|-" * 1000 + "|\n" + "a\n" * 10_000
    body = Renderer().answer(text)
    assert "<table>" not in body
    assert len(body) < 2 * len(text) + 10_000 * len("<br>\n")
    # A table of a readable size is a table.
    assert "<table>" in Renderer().answer("|a|b|c|\n|-|-|-|\n" + "|1|2|3|\n" * 1000)


def test_a_page_of_answers_is_bounded_as_a_whole() -> None:
    renderer = Renderer()
    hostile = ["[" * MOST_MARKS + str(number) for number in range(50)]
    began = time.process_time()
    bodies = [renderer.answer(text) for text in hostile]
    assert time.process_time() - began < 20
    assert all(text in body for text, body in zip(hostile, bodies, strict=True))


def test_a_text_that_is_too_long_is_shown_as_plain_text() -> None:
    assert "<strong>" in Renderer().answer("**a**" + "x" * (LONGEST - 5))
    assert "<p>**a**x" in Renderer().answer("**a**" + "x" * LONGEST)
    assert "<p>**a**" in Renderer().answer("**a**" + "[" * MOST_MARKS)


def test_answers_on_one_page_are_rendered_as_each_alone() -> None:
    texts = [f"*{first}* `{second}`" for first, second in itertools.product("ab", "cd")] * 2
    renderer = Renderer()
    assert [renderer.answer(text) for text in texts] == [markdown.markdown(text) for text in texts]
