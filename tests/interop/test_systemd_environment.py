"""`secrets.env` as systemd's own parser reads it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from platform_common.records.secrets_env import InvisibleValueError, parse
from platform_common.secret import Secret
from tests.support.properties import examples
from tests.support.systemd_environment import read_by_systemd

GUARDS = b"FIRST=1\nSECOND=two words\n"
ALLOWED = "".join(chr(c) for c in range(0x21, 0x7F) if chr(c) not in "\"'\\`")
LINES = [
    *("KEY=old", "KEY", "A=1", "B=x", "#c", ";c", "", " ", "A='x", "y'", 'A="x', 'y"', "A=\\"),
    *("# c\\", "; c\\", "C=a\\b", "D=a'b", "KEY='o'", 'KEY="o', "KEY=o\\", "é=1", "E=é", "F=\\\\"),
    *("G='a' b", 'H="a\\"b"', "I=a#b", "J==", "=", "==", " KEY = x", "K=\\'", "\\", "'", '"'),
]
TEXTS = st.lists(st.sampled_from(LINES), max_size=7).flatmap(
    lambda lines: st.sampled_from(["\n", "\n", "\n", "\r\n", "\r"]).map(
        lambda end: end.join(lines).encode()
    )
)
RUBBISH = st.lists(st.sampled_from(b"K=#'\"\\\n\r \tA1;$\xff\xc3\xa9"), max_size=24).map(bytes)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("systemd")


@examples(80)
@given(secret=st.text(ALLOWED, min_size=1, max_size=60))
def test_env_04_systemd_reads_every_allowed_character_of_a_key(folder: Path, secret: str) -> None:
    data = parse(GUARDS).with_value("KEY", Secret(secret)).render() + b"LAST=3\n"
    seen = read_by_systemd(folder, data)
    assert seen is not None
    assert seen[b"KEY"] == secret.encode()
    assert (seen[b"FIRST"], seen[b"SECOND"], seen[b"LAST"]) == (b"1", b"two words", b"3")
    ours = parse(data).get("KEY")
    assert ours is not None
    assert ours.reveal() == secret


@pytest.mark.long
@examples(250)
@given(data=st.one_of(TEXTS, RUBBISH))
def test_env_02_both_readers_read_a_written_value_and_nothing_else_changes(
    folder: Path, data: bytes
) -> None:
    try:
        written = parse(data).with_value("KEY", Secret("new#1$x"))
    except InvisibleValueError:
        return
    before, after = read_by_systemd(folder, data), read_by_systemd(folder, written.render())
    assert after is not None
    # Only if an old key of ours was not UTF-8, systemd could not read the file before.
    if before is not None:
        assert after == before | {b"KEY": b"new#1$x"}
    ours = written.get("KEY")
    assert ours is not None
    assert ours.reveal() == "new#1$x"
    for name in "ABCDEFGHIJK":
        assert written.get(name) == parse(data).get(name)


def test_env_02_an_ordinary_file_is_not_refused(folder: Path) -> None:
    data = b"# keys\n\nA='x y'\nB=\"z\"\r\nC=a\\b\nnothing\n; end\n"
    written = parse(data).with_value("KEY", Secret("v")).render()
    assert read_by_systemd(folder, written) == (read_by_systemd(folder, data) or {}) | {
        b"KEY": b"v"
    }
