"""Damaged copies and other values, drawn by hypothesis so that failures shrink to a few edits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from hypothesis import strategies as st

_EDITS = ("flip", "set", "insert", "delete", "repeat", "splice", "cut")
_TOKENS = (
    *(b"", b"\0", b"\r", b"\n", b"\r\n", b"\t", b" ", b'"', b"\\", b"{", b"}", b"[", b"]", b","),
    *(b":", b"=", b"-", b".", b"/", b"..", b"\xff", b"\xc0\xaf", b"\xef\xbb\xbf", b"\xed\xa0\x80"),
    *(b"null", b"true", b"NaN", b"-Infinity", b"1e999", b"1.0", b"-1", b"0", b"9" * 30),
    *(b"9" * 5000, b"[" * 2000, rb"\ud800", rb"\u0000", b"\x1b[2J", "０".encode(), b"\xe2\x80\xae"),
)


@st.composite
def mutations(
    draw: st.DrawFn, seeds: Sequence[bytes], tokens: Sequence[bytes] = (), most: int = 6
) -> bytes:
    """One of `seeds` after a few edits; `tokens` are words of the format."""
    data = draw(st.sampled_from(seeds))
    words = st.sampled_from((*_TOKENS, *tokens)) | st.binary(max_size=8)
    for _ in range(draw(st.integers(1, most))):
        at = draw(st.integers(0, len(data)))
        length = draw(st.integers(0, 12))
        match draw(st.sampled_from(_EDITS)):
            case "flip" if at < len(data):
                flipped = data[at] ^ (1 << draw(st.integers(0, 7)))
                data = data[:at] + bytes([flipped]) + data[at + 1 :]
            case "set":
                word = draw(words)
                data = data[:at] + word + data[at + len(word) :]
            case "insert":
                data = data[:at] + draw(words) + data[at:]
            case "delete":
                data = data[:at] + data[at + length :]
            case "repeat":
                data = data[: at + length] + data[at:]
            case "splice":
                other = draw(st.sampled_from(seeds))
                data = data[:at] + other[draw(st.integers(0, len(other))) :]
            case "cut":
                data = data[:at]
    return data


def places(document: Any) -> Iterator[tuple[str | int, ...]]:
    """The places of all values in a document."""
    if not isinstance(document, dict | list):
        return
    pairs = document.items() if isinstance(document, dict) else enumerate(document)
    for step, child in pairs:
        yield (step,)
        for place in places(child):
            yield (step, *place)


def texts_of(cases: Iterable[Any]) -> st.SearchStrategy[str]:
    """The texts among the values of `cases`."""
    return st.sampled_from([case.value for case in cases if isinstance(case.value, str)])


def documents(
    scalars: st.SearchStrategy[Any], texts: st.SearchStrategy[str]
) -> st.SearchStrategy[Any]:
    """Values of `scalars`, of `texts`, and of short ASCII text, alone or in lists and objects."""
    short = st.text(st.characters(codec="ascii"), max_size=12)
    return st.recursive(
        scalars | short | texts,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(short, inner, max_size=3),
        max_leaves=4,
    )
