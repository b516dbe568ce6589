"""A journal that is not as we wrote it: whoever serves the wizard may write to it."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from tests.wizard_app.conftest import MakeReady
from wizard_app.journal import read_try

_PAGES = ("/wizard/review", "/wizard/apply/status", "/wizard/done", "/wizard/record.json")
_AT = "2026-11-01T12:00:00Z"
_BEGIN = {"setup": "", "at": _AT, "actions": [{"id": "a", "what": "Write /a"}]}
_CHANGE = b'{"at":"2026-11-01T12:00:00Z","action":0,"state":"done"}'


def _begin(**members: Any) -> bytes:
    return json.dumps(_BEGIN | members).encode() + b"\n"


def _of_this_setup(state_file: Path, **members: Any) -> bytes:
    return _begin(setup=json.loads(state_file.read_text())["started_at"], **members)


def test_no_journal_fails_a_page(ready: MakeReady, out: Path, state_file: Path) -> None:
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
def test_a_journal_of_very_many_lines_is_none_and_is_not_waited_for(
    tmp_path: Path, line: bytes
) -> None:
    journal = tmp_path / "apply-journal.jsonl"
    journal.write_bytes(_begin() + (line + b"\n") * (3_000_000 // (len(line) + 1)))
    began = time.process_time()
    assert read_try(journal) is None
    assert time.process_time() - began < 2


def test_the_lines_of_a_long_try_are_read_to_the_last(tmp_path: Path) -> None:
    journal = tmp_path / "apply-journal.jsonl"
    running = _CHANGE.replace(b"done", b"running")
    journal.write_bytes(_begin() + (running + b"\n") * 1000 + _CHANGE + b"\n")
    last = read_try(journal)
    assert last is not None
    assert [entry.state for entry in last.entries] == ["done"]


def test_fs_07_a_link_in_its_place_tells_nothing(
    ready: MakeReady, out: Path, state_file: Path, tmp_path: Path
) -> None:
    client = ready()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(
        _of_this_setup(state_file, actions=[{"id": "a", "what": "x", "why": "CANARY"}])
    )
    journal = out / "var/lib/platform/apply-journal.jsonl"
    for plant in (os.symlink, os.link):
        plant(elsewhere, journal)
        assert "CANARY" not in client.get("/wizard/review").text
        journal.unlink()
