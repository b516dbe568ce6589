"""Text that is safe to show."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from platform_common.plain_text import printable
from tests.support.properties import examples


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text", "plain text"),
        ("Zürich 漢字 😀", "Zürich 漢字 😀"),
        ("a\tb", "a b"),
        ("a\nb\r", r"a\nb\r"),
        ("\x1b[31mred", r"\x1b[31mred"),
        ("\x9b2J\x7f\0", r"\x9b2J\x7f\x00"),
        ("\u202eexe.txt", r"\u202eexe.txt"),
        ("\u2028\u200b\ufeff", r"\u2028\u200b\ufeff"),
        ("\ud800", r"\ud800"),
        ("<b>&", "<b>&"),
    ],
    ids=ascii,
)
def test_rel_20_control_characters_are_shown_as_escapes(text: str, shown: str) -> None:
    assert printable(text) == shown


@examples(300)
@given(st.text())
def test_rel_20_any_text_becomes_one_printable_line(text: str) -> None:
    assert printable(text).isprintable()
