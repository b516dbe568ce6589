"""The journal of an attempt: how far it came."""

from __future__ import annotations

import json
import stat
import time
from pathlib import Path
from typing import Any

import pytest

from platform_common.errors import PlatformError
from tests.support import odd_files
from tests.wizard_app.conftest import MakeReady
from wizard_app.setup.apply.journal import Entry, Journal, forget, read_attempt

_ENTRIES = [Entry("a", "Write /a"), Entry("b", "Write /b", "kept"), Entry("c", "Run: c")]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The journal's path, in a folder that does not exist yet."""
    return tmp_path / "lib/apply-journal.jsonl"


def _states(path: Path) -> list[str]:
    last = read_attempt(path)
    assert last is not None
    return [entry.state for entry in last.entries]


def test_an_attempt_is_read_back_as_it_was_written(path: Path) -> None:
    journal = Journal(path)
    journal.begin("setup", _ENTRIES)
    assert _states(path) == ["waiting", "kept", "waiting"]
    journal.note(0, "running")
    assert _states(path) == ["running", "kept", "waiting"]
    journal.note(0, "done")
    journal.note(2, "failed", "no such thing")
    last = read_attempt(path)
    assert last is not None
    assert (last.setup, last.ended) == ("setup", False)
    assert last.applied == {"a", "b"}
    assert last.entries[2].why == "no such thing"
    journal.end()
    again = read_attempt(path)
    assert again is not None
    assert again.ended


def test_the_next_attempt_replaces_the_previous_one(path: Path) -> None:
    journal = Journal(path)
    journal.begin("one", _ENTRIES)
    journal.note(0, "done")
    left = path.with_name(f".{path.name}.4711.0123abcd.tmp")
    left.write_text("x")
    journal.begin("two", _ENTRIES[:1])
    assert _states(path) == ["waiting"]
    assert not left.exists()
    assert stat.S_IMODE(path.stat().st_mode) == 0o660


def test_changed_secrets_count_as_not_stored(path: Path) -> None:
    journal = Journal(path)
    journal.begin("setup", _ENTRIES)
    journal.note(0, "done")
    forget(path, {"b", "c", "other"})
    assert _states(path) == ["done", "waiting", "waiting"]
    before = path.read_bytes()
    forget(path, {"b"})
    assert path.read_bytes() == before


@pytest.mark.parametrize("cut", range(2, 60, 7))
def test_a_torn_line_is_ignored_and_does_not_affect_others(path: Path, cut: int) -> None:
    journal = Journal(path)
    journal.begin("setup", _ENTRIES)
    journal.note(0, "done")
    path.write_bytes(path.read_bytes()[:-cut])
    assert _states(path) == ["waiting", "kept", "waiting"]
    journal.note(2, "done")
    assert _states(path) == ["waiting", "kept", "done"]


def test_a_line_without_a_meaning_is_ignored(path: Path) -> None:
    Journal(path).begin("setup", _ENTRIES)
    with path.open("ab") as file:
        for line in (
            *(b"{}", b"\xff", b"[]", b'{"at":"","action":7,"state":"done"}', b"[" * 5000),
            *(b'{"at":"","action":-1,"state":"done"}', b'{"at":"","action":0,"state":"kept"}'),
            *(b'{"at":"","action":0,"action":0,"state":"done"}', b'{"at":"","ended":false}'),
        ):
            file.write(line + b"\n")
    last = read_attempt(path)
    assert last is not None
    assert not last.ended
    assert _states(path) == ["waiting", "kept", "waiting"]


def test_a_file_that_does_not_start_like_an_attempt_is_ignored(path: Path) -> None:
    forget(path, {"a"})
    assert not path.exists()
    path.parent.mkdir()
    for data in (b"", b"\n", b"{}\n", b'{"setup":"x"}\n', b"\0\n", b"[]"):
        path.write_bytes(data)
        assert read_attempt(path) is None


@pytest.mark.parametrize("kind", [*odd_files.NOT_REGULAR, *odd_files.LINKS])
def test_fs_07_a_linked_or_special_file_is_not_a_journal(path: Path, kind: str) -> None:
    path.parent.mkdir()
    odd_files.make(kind, path)
    before = odd_files.picture(path.parent)
    assert read_attempt(path) is None
    with pytest.raises(PlatformError, match="apply-journal"):
        Journal(path).note(0, "done")
    seen = odd_files.picture(path.parent)
    assert {name: seen[name] for name in before} == before


# Journals that we did not write: the user who serves the wizard can write to the file.

_PAGES = ("/wizard/review", "/wizard/apply/status", "/wizard/done", "/wizard/record.json")
_AT = "2026-11-01T12:00:00Z"
_BEGIN = {"setup": "", "at": _AT, "actions": [{"id": "a", "what": "Write /a"}]}
_CHANGE = b'{"at":"2026-11-01T12:00:00Z","action":0,"state":"done"}'


def _begin(**members: Any) -> bytes:
    return json.dumps(_BEGIN | members).encode() + b"\n"


def _of_this_setup(state_file: Path, **members: Any) -> bytes:
    return _begin(setup=json.loads(state_file.read_text())["started_at"], **members)


def test_no_content_of_the_journal_makes_a_page_fail(
    ready: MakeReady, out: Path, state_file: Path
) -> None:
    client = ready()
    hostile = {"id": "a", "what": "<b>" * 999, "state": "failed", "why": "<script>" * 999}
    wrong: list[dict[str, Any]] = [
        *({"at": "", "actions": []}, {"actions": []}, {"at": "\0"}, {"actions": [hostile]}),
        *({"at": "9999-12-31T23:59:59-23:59"}, {"at": "0001-01-01T00:00:00+23:59"}),
    ]
    for members in wrong:
        journal = out / "var/lib/platform/apply-journal.jsonl"
        journal.write_bytes(_of_this_setup(state_file, **members))
        for page in _PAGES:
            answer = client.get(page)
            assert answer.status_code < 400
            assert "<script>" * 2 not in answer.text


@pytest.mark.parametrize("line", [b"", b"{", b'"ended"', b"[" * 50, _CHANGE])
def test_a_journal_with_too_many_lines_is_ignored_quickly(tmp_path: Path, line: bytes) -> None:
    journal = tmp_path / "apply-journal.jsonl"
    journal.write_bytes(_begin() + (line + b"\n") * (3_000_000 // (len(line) + 1)))
    began = time.process_time()
    assert read_attempt(journal) is None
    assert time.process_time() - began < 2


def test_a_long_journal_is_read_to_its_last_line(tmp_path: Path) -> None:
    journal = tmp_path / "apply-journal.jsonl"
    running = _CHANGE.replace(b"done", b"running")
    journal.write_bytes(_begin() + (running + b"\n") * 1000 + _CHANGE + b"\n")
    last = read_attempt(journal)
    assert last is not None
    assert [entry.state for entry in last.entries] == ["done"]
