"""The history of the chat: what is stored, what is read back, and how it is deleted."""

from __future__ import annotations

import json
import os
import stat
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from platform_common.errors import AccessError, PlatformError
from platform_common.paths import Paths
from tests.support.gateways import profile
from tests.support.odd_files import LINKS, NOT_REGULAR, make, picture
from wizard_app.chat import export
from wizard_app.chat.history import SHOWN_BYTES, ChatHistory, Turn, history_of, parse, turn


@pytest.fixture
def history(tmp_path: Path) -> ChatHistory:
    return ChatHistory(tmp_path / "data" / "chat-history.jsonl")


def contents(history: ChatHistory) -> list[str]:
    return [one.content for one in history.last()]


def test_a_turn_is_a_line_with_its_time_and_the_folder_is_created(history: ChatHistory) -> None:
    for one in (
        turn("user", 'hé\n"x" \x00'),
        turn("assistant", "so"),
        turn("assistant", "why", error=True),
        turn("assistant", "ha", stopped=True),
    ):
        history.append(one)
    lines = history.path.read_bytes().splitlines()
    first, second, failed, half = map(json.loads, lines)
    assert list(first) == ["role", "content", "at"]
    assert (first["role"], first["content"]) == ("user", 'hé\n"x" \x00')
    assert (second["role"], second["content"]) == ("assistant", "so")
    at = datetime.fromisoformat(first["at"])
    assert abs(datetime.now(UTC) - at) < timedelta(minutes=5)
    # Programs that split the file at any line boundary get one line for each turn.
    text = "a\x85b\u2028c\u2029d\x0be\x0cf\x1cg\x1dh\x1ei\nj\rk"
    history.append(turn("user", text))
    assert len(history.path.read_text("utf-8").splitlines()) == 5
    assert contents(history)[-1] == text
    # These members are only written if they are true.
    assert failed == {"role": "assistant", "content": "why", "at": failed["at"], "error": True}
    assert half == {"role": "assistant", "content": "ha", "at": half["at"], "stopped": True}


def test_chat_08_only_the_owner_and_the_group_can_read_the_history(history: ChatHistory) -> None:
    for mask in (0o000, 0o077):
        before = os.umask(mask)
        try:
            history.append(turn("user", "private"))
        finally:
            os.umask(before)
        assert stat.S_IMODE(history.path.stat().st_mode) == 0o640
        history.clear()


def test_the_last_two_hundred_turns_are_read_oldest_first(history: ChatHistory) -> None:
    history.path.parent.mkdir()
    lines = (json.dumps({"role": "user", "content": str(number)}) for number in range(1000))
    history.path.write_text("".join(f"{line}\n" for line in lines))
    assert contents(history) == [str(number) for number in range(800, 1000)]
    assert [one.content for one in history.last(3)] == ["997", "998", "999"]
    # Unknown members are ignored.
    line = b'{"role":"assistant","content":"x","at":"2026-01-01T00:00:00Z","mood":"good"}'
    assert parse(line) == Turn("assistant", "x", "2026-01-01T00:00:00Z")


_BAD = {
    "torn": b'{"role":"user","content":"ha',
    "empty": b"",
    "not JSON": b"hello",
    "an array": b"[]",
    "another role": b'{"role":"system","content":"x"}',
    "no content": b'{"role":"user"}',
    "content that is not text": b'{"role":"user","content":1}',
    "an invalid time": b'{"role":"user","content":"x","at":7}',
    "not UTF-8": b'{"role":"user","content":"\xff"}',
    "half a character": b'{"role":"user","content":"\\ud800"}',
    "deep": b'{"role":"user","content":"x","y":' + b"[" * 100_000,
    "a NUL": b"\x00",
    "too long": b'{"role":"user","content":"' + b"x" * SHOWN_BYTES + b'"}',
}


@pytest.mark.parametrize("line", _BAD.values(), ids=_BAD)
def test_chat_05_an_invalid_line_is_ignored(history: ChatHistory, line: bytes) -> None:
    assert parse(line) is None
    history.path.parent.mkdir()
    good = b'{"role":"user","content":"good"}\n'
    history.path.write_bytes(good + line + b"\n" + good + good)
    assert {*contents(history)} == {"good"}
    assert [found for found, _ in history.lines()] == [good.rstrip()] * 3
    history.path.write_bytes(good + line)
    assert len(list(history.lines())) == 1
    history.append(turn("user", "next"))
    assert contents(history)[-1] == "next"


def test_chat_05_half_a_million_invalid_lines_take_little_time(history: ChatHistory) -> None:
    history.append(turn("user", "before them"))
    with history.path.open("ab") as file:
        file.write(b"{\n" * 500_000)
    began = time.process_time()
    assert contents(history) == []
    assert time.process_time() - began < 0.3
    history.append(turn("user", "behind them"))
    assert contents(history) == ["behind them"]


def test_chat_05_only_the_end_of_a_large_file_is_read(
    history: ChatHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    history.path.parent.mkdir()
    line = json.dumps({"role": "user", "content": "x" * 1000}).encode() + b"\n"
    with history.path.open("wb") as file:
        file.truncate(100 << 20)
        file.seek(0, os.SEEK_END)
        file.write(b"\n" + line * 150)
    read = 0
    pread = os.pread

    def counted(*args: int) -> bytes:
        nonlocal read
        data = pread(*args)
        read += len(data)
        return data

    monkeypatch.setattr(os, "pread", counted)
    assert len(history.last()) == 150
    assert read <= SHOWN_BYTES


def test_every_turn_is_read_whole_however_long_its_line(history: ChatHistory) -> None:
    lengths = [0, 1, 65_535, 65_536, 65_537, 200_000, 3, SHOWN_BYTES - 1024]
    for length in lengths:
        history.append(turn("user", "y" * length))
    lines = list(history.lines())
    assert [len(one.content) for _, one in lines] == lengths
    assert len(lines[-1][0]) < SHOWN_BYTES
    assert len(contents(history)[-1]) == SHOWN_BYTES - 1024


def test_turns_added_while_reading_are_not_included(history: ChatHistory) -> None:
    history.append(turn("user", "before"))
    lines = history.lines()
    first = next(lines)
    for _ in range(10):
        history.append(turn("user", "after"))
    assert [one.content for _, one in (first, *lines)] == ["before"]


def test_a_cleared_history_is_deleted_and_starts_again(history: ChatHistory) -> None:
    history.append(turn("user", "old"))
    history.append(turn("user", "older"))
    lines = history.lines()
    next(lines)
    assert history.clear()
    assert not history.path.exists()
    assert history.last() == []
    history.append(turn("user", "new"))
    assert contents(history) == ["new"]
    # A reader of the old file can read it to its end.
    assert [one.content for _, one in lines] == ["older"]


@pytest.mark.parametrize("kind", [*LINKS, *NOT_REGULAR])
def test_fs_07_and_chat_05_special_files_are_neither_read_nor_written(
    tmp_path: Path, kind: str
) -> None:
    path = make(kind, tmp_path / "chat-history.jsonl")
    history = ChatHistory(path)
    before = picture(tmp_path)
    for work in (
        history.last,
        lambda: list(history.lines()),
        lambda: history.append(turn("user", "x")),
        history.clear,
    ):
        with pytest.raises(AccessError, match=r"chat-history\.jsonl.*(link|not a regular)"):
            work()
        assert picture(tmp_path) == before


def test_a_folder_that_cannot_be_created_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PlatformError, match="file"):
        ChatHistory(tmp_path / "file/chat-history.jsonl").append(turn("user", "x"))


def test_the_place_of_the_history_depends_on_the_profile_and_a_variable(tmp_path: Path) -> None:
    one = profile("http://127.0.0.1:9")
    paths = Paths(tmp_path, {})
    assert history_of(paths, one).path == tmp_path / "home/agent/.box/chat-history.jsonl"
    assert history_of(paths, None).path == tmp_path / "var/lib/platform/chat-history.jsonl"
    named = Paths(tmp_path, {"WIZARD_CHAT_HISTORY": str(tmp_path / "else.jsonl")})
    for chosen in (one, None):
        assert history_of(named, chosen).path == tmp_path / "else.jsonl"


def test_an_export_has_every_turn_that_can_be_read(history: ChatHistory) -> None:
    # Without a history there are no turns, and the export is empty.
    assert not history.last()
    assert not list(history.lines())
    assert not history.clear()
    assert b"".join(export.opened(history, "jsonl")) == b""
    assert b"".join(export.opened(history, "md")) == b"# Chat\n"
    history.path.parent.mkdir()
    good = b'{"role":"user","content":"# hi","at":"2026-01-01T00:00:00Z","mood":1}'
    failed = b'{"role":"assistant","content":"nobody","error":true}'
    history.path.write_bytes(b"\n".join([good, b"bad", failed, b'{"role":"assis']))
    assert b"".join(export.opened(history, "jsonl")) == good + b"\n" + failed + b"\n"
    assert b"".join(export.opened(history, "md")).decode() == (
        "# Chat\n\n## You, 2026-01-01T00:00:00Z\n\n# hi\n\n## No answer\n\nnobody\n"
    )


def test_an_export_only_needs_memory_for_a_line(history: ChatHistory) -> None:
    import tracemalloc

    history.path.parent.mkdir()
    line = json.dumps({"role": "user", "content": "x" * 10_000}).encode() + b"\n"
    with history.path.open("wb") as file:
        for _ in range(2000):
            file.write(line)
    tracemalloc.start()
    try:
        for kind in export.CONTENT_TYPES:
            size = sum(map(len, export.opened(history, kind)))
            assert size > 20_000_000
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


def test_an_export_is_named_after_the_device() -> None:
    for device, name in (("box", "box"), ("My Böx", "my-b-x"), ('a"\r\nX: y', "a-x-y")):
        assert export.file_name(device, "md") == f"chat-{name}.md"
