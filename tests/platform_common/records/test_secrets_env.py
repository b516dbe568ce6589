"""`secrets.env`: a tolerant reader, and a writer that changes one line."""

from __future__ import annotations

import contextlib
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from platform_common.records.secrets_env import InvisibleValueError, parse
from platform_common.secret import Secret
from tests.support.properties import examples

NEW = Secret("sk-new")


def value(data: bytes, name: str = "KEY") -> str | None:
    secret = parse(data).get(name)
    return None if secret is None else secret.reveal()


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(b"KEY=abc\n", "abc", id="plain"),
        pytest.param(b"KEY=abc", "abc", id="no-final-newline"),
        pytest.param(b"KEY=abc\r\nB=1\r\n", "abc", id="crlf"),
        pytest.param(b"KEY=abc\rB=1\r", "abc", id="cr"),
        pytest.param(b'KEY="abc"\n', "abc", id="double-quotes"),
        pytest.param(b"KEY='abc'\n", "abc", id="single-quotes"),
        pytest.param(b"KEY=\"'abc'\"\n", "'abc'", id="one-layer-of-quotes"),
        pytest.param(b'KEY="abc\n', '"abc', id="one-quote"),
        pytest.param(b'KEY="\n', '"', id="nothing-but-a-quote"),
        pytest.param(b"KEY=a=b#c\n", "a=b#c", id="equals-and-hash-in-the-value"),
        pytest.param(b" KEY =  abc  \n", "abc", id="blanks"),
        pytest.param(b"#KEY=abc\n", None, id="comment"),
        pytest.param(b"  # KEY=abc\n", None, id="indented-comment"),
        pytest.param(b"KEY\n", None, id="no-equals"),
        pytest.param(b"KEY=\n", None, id="empty"),
        pytest.param(b'KEY=""\n', None, id="empty-quotes"),
        pytest.param(b"KEY=old\nKEY=new\n", "new", id="the-last-of-two"),
        pytest.param(b"KEY=old\nKEY=\n", None, id="the-last-of-two-is-empty"),
        pytest.param(b"KEYS=1\nMY_KEY=2\nkey=3\nexport KEY=4\n", None, id="other-names"),
        pytest.param(b"\xff\xfe\n\x00=\x00\n=\nKEY=abc\n", "abc", id="among-rubbish"),
        pytest.param(b"A=\xff\nKEY=abc\n", "abc", id="after-bad-utf8"),
        pytest.param(b"", None, id="empty-file"),
    ],
)
def test_the_value_of_a_variable_is_read(data: bytes, expected: str | None) -> None:
    assert value(data) == expected


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(b"", b"KEY=sk-new\n", id="empty"),
        pytest.param(b"A=1\n", b"A=1\nKEY=sk-new\n", id="append"),
        pytest.param(b"A=1", b"A=1\nKEY=sk-new\n", id="append-without-a-final-newline"),
        pytest.param(b"A=1\nKEY=x\nB=2\n", b"A=1\nKEY=sk-new\nB=2\n", id="in-its-place"),
        pytest.param(b"A=1\r\nKEY=x\r\nB=2\r\n", b"A=1\r\nKEY=sk-new\r\nB=2\r\n", id="crlf"),
        pytest.param(b" KEY = 'x'\n", b"KEY=sk-new\n", id="quotes-and-blanks-are-removed"),
        pytest.param(b"#KEY=x\n", b"#KEY=x\nKEY=sk-new\n", id="a-comment-is-kept"),
        pytest.param(b"KEY=x\nKEY=y\n", b"KEY=sk-new\nKEY=sk-new\n", id="every-line-of-that-name"),
        pytest.param(b"KEY=x", b"KEY=sk-new\n", id="the-last-line-gets-its-newline"),
        pytest.param(b'A="x\ny"\n', b'A="x\ny"\nKEY=sk-new\n', id="after-a-closed-quote"),
        pytest.param(b"A=x\\\nB=y\nKEY=1\n", b"A=x\\\nB=y\nKEY=sk-new\n", id="after-two-lines"),
        pytest.param(b"KEY=x\\\n", b"KEY=sk-new\n", id="a-backslash-without-effect"),
        pytest.param(b"# \xfcber\nA=1\n", b"# \xfcber\nA=1\nKEY=sk-new\n", id="latin1-comment"),
        pytest.param(b"KEY=\xff\n", b"KEY=sk-new\n", id="its-own-bad-bytes"),
    ],
)
def test_setting_a_value_changes_only_its_line(before: bytes, after: bytes) -> None:
    assert parse(before).with_value("KEY", NEW).render() == after


@pytest.mark.parametrize(
    ("data", "line"),
    [
        pytest.param(b"A=1\nB=x\\\nKEY=1\n", 2, id="backslash"),
        pytest.param(b'A="x\nKEY=1\n', 1, id="open-double-quote"),
        pytest.param(b"#\n\nA='x\nKEY=1\n", 3, id="open-single-quote"),
        pytest.param(b'A="x\n', 1, id="open-quote-then-append"),
        pytest.param(b"A=x\\", 1, id="backslash-then-append"),
        pytest.param(b"# x\\\nKEY=1\n", 1, id="comment-with-a-backslash"),
        pytest.param(b'B=1\nKEY="x\nA=1\n', 2, id="its-own-quote-spans-other-lines"),
        pytest.param(b"KEY=x\\\nA=1\n", 1, id="its-own-backslash-joins-other-lines"),
        pytest.param(b"KEY=1\nA=2\n\nB=\xff\n", 4, id="bad-utf8"),
        pytest.param(b"A=\xef\xbf\xbe\n", 1, id="not-a-character"),
        pytest.param(b"A=1\nB=\0\n", 2, id="nul"),
        pytest.param(b"#\0\n", 1, id="nul-in-a-comment"),
    ],
)
def test_env_02_a_value_that_systemd_would_not_read_is_not_written(data: bytes, line: int) -> None:
    with pytest.raises(InvisibleValueError, match=rf"^line {line} ") as caught:
        parse(data).with_value("KEY", NEW)
    assert NEW.reveal() not in f"{caught.value.message}{caught.value.hint}"
    assert caught.value.hint


@examples(300)
@given(st.lists(st.sampled_from(b"=#'\"\\\n\r \tA1;$\xff\0")).map(bytes))
def test_env_05_the_reader_never_fails_and_renders_its_input_unchanged(data: bytes) -> None:
    assert parse(data).render() == data
    assert value(data + b"\nKEY=abc\n") == "abc"


@pytest.mark.parametrize(
    "line",
    [b"KEY=a\n", b'A="\n"\nKEY=\n', b'A="\n', b"#\\\n", b"A=\\", b"A='", b"\xff", b"\n"],
    ids=lambda line: repr(line)[2:-1],
)
def test_env_05_a_large_file_is_read_and_checked_quickly(line: bytes) -> None:
    keys = parse(line * ((1 << 18) // len(line)))
    began = time.process_time()
    with contextlib.suppress(InvisibleValueError):
        keys.with_value("KEY", NEW)
    assert time.process_time() - began < 3


def test_leak_08_no_repr_contains_a_value() -> None:
    keys = parse(b"KEY=sk-canary\n")
    assert "canary" not in f"{keys!r}{keys}{keys.get('KEY')!r}{keys.get('KEY')}"


def test_env_05_many_lines_are_searched_only_once() -> None:
    keys = parse(b"x\n" * 500_000)
    began = time.process_time()
    assert [keys.get(f"KEY_{number}") for number in range(100)] == [None] * 100
    assert time.process_time() - began < 0.5
