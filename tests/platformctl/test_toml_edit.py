"""Changing values in a TOML file that people edit, too."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from platform_common.formats.decode import DecodingError
from platformctl.toml_edit import with_values
from tests.support.properties import examples

ENABLED = ("voice", "enabled")


def said(data: bytes) -> dict[str, Any]:
    return tomllib.loads(data.decode())


# The value at {} changes.
_CHANGED = {
    "comments-and-blanks": ("# top\n[voice] # head\n  enabled  =  {}   # why\nx = 1\n\n# end\n"),
    "windows-line-ends": "[voice]\r\nenabled = {} # c\r\n[stt]\r\n",
    "dotted-keys": "voice.enabled = {} # c\nvoice.x = 1\n",
    "an-inline-table": "voice = { enabled = {} } # c\n",
    "a-section-after-its-part": "[voice.sub]\na = 1\n[stt]\nb = 1\n[voice]\nenabled = {}\n",
    "a-quoted-key": '[voice]\n"enabled" = {}\n',
    "no-line-feed-at-the-end": "[voice]\nenabled = {}",
}
# This is added at {}.
_ADDED = {
    "a-new-key-among-windows-line-ends": (
        "[voice]\r\nx = 1\r\n{}[stt]\r\n", "enabled = true\r\n"),
    "no-section-after-arrays-of-tables": (
        "a = 1\n[[x]]\nb = 1\n[[x]]\nb = 2 # end\n{}", "\n[voice]\nenabled = true\n"),
    "an-empty-file": ("{}", "[voice]\nenabled = true\n"),
    "numbers-as-they-were-written": ("[voice]\nx = nan\ny = 0x1F\n{}", "enabled = true\n"),
}  # fmt: skip


@pytest.mark.parametrize("text", _CHANGED.values(), ids=_CHANGED)
def test_only_the_value_changes(text: str) -> None:
    changed = with_values(text.replace("{}", "false").encode(), {ENABLED: True})
    assert changed.decode() == text.replace("{}", "true")


@pytest.mark.parametrize(("text", "added"), _ADDED.values(), ids=_ADDED)
def test_missing_values_are_added(text: str, added: str) -> None:
    changed = with_values(text.replace("{}", "").encode(), {ENABLED: True})
    assert changed.decode() == text.replace("{}", added)


@pytest.mark.parametrize(
    "value",
    [
        *("it's", 'a "b"', "C:\\n", "é\u2028", "#", "]", "a\nb\t\r", "\x7f\x00"),
        *(True, 7, 0.1, 1e-7, 1e15),
    ],
    ids=repr,
)
def test_a_value_is_read_back_unchanged(value: str | float) -> None:
    for before in (b"", b"[voice]\nenabled = 1 # c\n", b"voice = {}\n"):
        assert said(with_values(before, {ENABLED: value}))["voice"]["enabled"] == value


@pytest.mark.parametrize("before", [b"voice = 1\n", b"[[voice]]\nenabled = false\n"])
def test_an_impossible_change_is_refused(before: bytes) -> None:
    with pytest.raises(DecodingError, match=r"a program cannot change \[voice\] enabled"):
        with_values(before, {ENABLED: True})


def test_invalid_toml_is_refused() -> None:
    for before in (
        *(b"[voice\n", b"a = 1\na = 2\n", b"\xff", b"\xef\xbb\xbf[voice]\n", b"\x00"),
        *(b"x = " + b"[" * 5000, b"[voice]\rx = 1\r"),
    ):
        with pytest.raises(DecodingError):
            with_values(before, {ENABLED: True})


_COMMENT = st.sampled_from(["", " # c", "  # ünï [x] = \"'"])
_VALUES = ("1", '"a"', "'b'", "[1, 2,\n 3] ", "{ a = 1, b.c = 2 }", "nan", "1979-05-27")
_VALUE = st.sampled_from([*_VALUES, '"""x\n# no comment\n"""'])
_KEY = st.sampled_from(["a", "b.c", "b.d", '"q q"', "voice.k", "stt.binary"])
_HEAD = st.sampled_from(["[voice]", "[stt]", "[stt.deep]", "[voice.deep]", "[[list]]", "[ a . z ]"])
_LINE = st.one_of(
    st.sampled_from(["", "   ", "# a comment", "\t# another"]),
    st.tuples(_KEY, _VALUE, _COMMENT).map(lambda parts: f"{parts[0]} = {parts[1]}{parts[2]}"),
    st.tuples(_HEAD, _COMMENT).map("".join),
    st.sampled_from(["enabled = false", "enabled=false# c", "voice.enabled = false"]),
)


@examples(200)
@given(st.lists(_LINE, max_size=8), st.sampled_from(["\n", "\r\n"]))
def test_an_odd_file_keeps_everything_else_or_is_refused(lines: list[str], end: str) -> None:
    text = "".join(line.replace("\n", end) + end for line in lines)
    try:
        before = tomllib.loads(text, parse_float=str)
    except tomllib.TOMLDecodeError:
        with pytest.raises(DecodingError):
            with_values(text.encode(), {ENABLED: True})
        return
    try:
        after = with_values(text.encode(), {ENABLED: True}).decode()
    except DecodingError:
        return
    tree = tomllib.loads(after, parse_float=str)
    assert tree["voice"].pop("enabled") is True
    before.setdefault("voice", {}).pop("enabled", None)
    assert tree == before
    comments = [line.partition("#")[2] for line in text.split(end) if "#" in line]
    assert [c for c in comments if c not in after] == []
    assert not lines or end == "\n" or "\n" not in after.replace("\r\n", "")


@pytest.mark.parametrize("data", [b"\n", b"#\n", b"[[a]]\n"], ids=["empty", "comments", "tables"])
def test_a_file_that_is_too_large_to_edit_quickly_is_refused(data: bytes) -> None:
    with pytest.raises(DecodingError, match="larger than 65,536 bytes") as caught:
        with_values(data * 70_000, {ENABLED: True})
    assert caught.value.hint == "Change it with an editor."
