"""Calls of the control CLI, and how failures are handled."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from platform_common.control_answers import (
    Check,
    Cost,
    Model,
    Outcome,
    Status,
    Verdict,
    Version,
)
from platform_common.message import Sentence
from platform_common.process.run import Finished
from platform_common.records.limits import Limits
from pwa_app.control_client import BusyError, CliQuery, SubprocessCli, object_view, plain
from pwa_app.overview import read_models
from tests.support.control_cli import FakeCtl
from tests.support.waiting import wait_until

VIEWS: dict[str, CliQuery[object]] = {
    name: object_view((name, "--json"), shape)
    for name, shape in {
        "status": Status(),
        "version": Version(),
        "limits": Limits(),
        "cost": Cost(),
        "doctor": Verdict(),
    }.items()
}


class FixedCli:
    """A control CLI whose calls all have the same result, or cannot be made."""

    sample: Sentence | None = None

    def __init__(self, output: bytes = b"", status: int = 0, errors: bytes = b"") -> None:
        self.finished = Finished(status, output, errors)
        self.error: Exception | None = None

    def run(
        self, words: Sequence[str], *, stdin: bytes = b"", limit_s: float | None = None
    ) -> Finished:
        if self.error:
            raise self.error
        return self.finished


# Answers that are refused for every call; `test_strict_json.py` has more invalid JSON.
NONSENSE = {
    "nothing": b"",
    "text": b"Everything is fine.\n",
    "null": b"null",
    "array": b"[]",
    "half": b'{"active_state": "act',
    "two": b"{} {}",
    "not-utf-8": b'{"x": "\xff"}',
    "nan": b'{"x": NaN}',
    "deep": b'{"x":' * 100_000,
    "twice": b'{"x": 1, "x": 2}',
}
# Valid JSON with a member of the wrong type: call to its outputs.
WRONG_TYPES = {
    "status": [b'{"active_state": 1}', b'{"uptime_seconds": "3"}', b'{"tunnel": []}'],
    "version": [b'{"profiles": {}}', b'{"kernel": {}}', b'{"profiles": [1]}'],
    "limits": [b'{"ram_mb": -1}', b'{"tier": "huge"}', b'{"limitations": [{}]}'],
    "cost": [b'{"today_usd": "1"}', b'{"days": [{"usd": "1"}]}', b'{"tripped": 1}'],
    "doctor": [b'{"checks": [{"outcome": "Pass"}]}', b'{"fails": 1.5}', b'{"checks": ""}'],
}


@pytest.mark.parametrize("call", VIEWS)
@pytest.mark.parametrize("output", NONSENSE.values(), ids=NONSENSE)
@pytest.mark.parametrize("status", [0, 1], ids=["good", "failed"])
def test_cli_04_an_invalid_answer_gives_the_default_with_the_reason(
    call: str, output: bytes, status: int
) -> None:
    view = VIEWS[call]
    found = view.load(FixedCli(output, status))
    assert (found.value, found.stub, found.given) == (view.default, True, frozenset())
    assert call in str(found.reason)
    assert len(str(found.reason)) < 300


@pytest.mark.parametrize(
    ("call", "output"),
    [(call, output) for call, outputs in WRONG_TYPES.items() for output in outputs],
)
def test_cli_04_a_member_of_the_wrong_type_gives_the_default_with_the_reason(
    call: str, output: bytes
) -> None:
    found = VIEWS[call].load(FixedCli(output))
    assert found.value == VIEWS[call].default
    assert "did not answer as expected" in str(found.reason)


@pytest.mark.parametrize("status", [0, 1, 2, 64, 127, -9])
def test_cli_04_valid_json_is_used_whatever_the_exit_status(status: int) -> None:
    found = VIEWS["status"].load(FixedCli(b'{"active_state": "active"}', status, b"error: x\n"))
    assert found.value == Status(active_state="active")
    assert not found.stub


def test_the_reason_of_a_failed_call_is_the_error_message_or_the_exit_status() -> None:
    for status, errors, reason in (
        (1, b"warning: a\nerror: no \x1b[1mledger\n", "cost --json failed: no ·[1mledger"),
        (3, b"", "cost --json failed: exit code 3"),
        (-9, b"", "cost --json failed: signal 9"),
        (64, b"", "cost --json failed: exit code 64"),
        (64, b"Error: No such command\n", "The control CLI does not support cost --json: "),
    ):
        found = str(VIEWS["cost"].load(FixedCli(status=status, errors=errors)).reason)
        assert found.startswith(reason) if errors[:5] == b"Error" else found == reason


_ERRORS = (MemoryError(), RuntimeError("no new thread"), RecursionError(), OSError(11, "EAGAIN"))


@pytest.mark.parametrize("error", _ERRORS, ids=lambda error: type(error).__name__)
def test_cli_05_any_exception_during_a_call_is_a_reason(error: Exception) -> None:
    cli = FixedCli()
    cli.error = error
    found = VIEWS["cost"].load(cli)
    assert str(found.reason) == f"cost --json could not run: {type(error).__name__}"


def test_the_given_members_of_an_answer_are_known() -> None:
    output = b'{"today_usd": 0, "month_usd": null, "tunnel": {"enabled": false, "unit": null}}'
    found = VIEWS["cost"].load(FixedCli(output))
    assert found.value == Cost()
    assert found.given == {"today_usd", "tunnel", "tunnel.enabled"}


def test_null_counts_as_absent_everywhere() -> None:
    output = (
        b'{"checks": [{"name": "disk", "outcome": {"kind": "Pass", "detail": null}, "fix": null}]}'
    )
    found = VIEWS["doctor"].load(FixedCli(output))
    assert found.value == Verdict(checks=(Check("disk", Outcome("Pass")),))
    models: CliQuery[tuple[Model, ...]] = CliQuery(("model", "list", "--json"), read_models, ())
    listed = models.load(FixedCli(b'{"providers": [{"id": "openai", "masked_key_prefix": null}]}'))
    assert listed.value == (Model("openai"),)
    # An answer that is not an object has its own reader.
    assert models.load(FixedCli(b'[{"id": "openai"}]')).value == (Model("openai"),)
    assert models.load(FixedCli(b"{}")).stub


def test_a_text_of_any_length_is_kept_and_unprintable_characters_become_a_dot() -> None:
    for sent, shown in (
        ("a\\u0000b\\u001b[1m\x7f\x9f\ufffe\U0001ffff ok\\n\\u00e4", "a·b·[1m···· ok\nä"),
        ("x" * 500_000, "x" * 500_000),
    ):
        answer = FixedCli(f'{{"kernel": "{sent}"}}'.encode())
        assert VIEWS["version"].load(answer).value == Version(kernel=shown)


def test_the_same_bytes_are_read_as_the_requested_shape() -> None:
    for _ in range(2):
        assert VIEWS["cost"].load(FixedCli(b"{}")).value == Cost()
        assert VIEWS["status"].load(FixedCli(b"{}")).value == Status()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\nb\t c", "a b c"),
        ("\x00\x1b", "··"),
        ("x" * 300, "x" * 199 + "…"),
        ("", ""),
    ],
)
def test_a_reason_is_one_short_line(text: str, shown: str) -> None:
    assert plain(text) == shown


# Real programs.


def script(folder: Path, text: str) -> str:
    program = folder / "ctl"
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)
    return str(program)


def test_cli_05_a_missing_program_is_a_reason(tmp_path: Path) -> None:
    found = VIEWS["cost"].load(SubprocessCli(str(tmp_path / "gone"), {}))
    assert "could not be started: No such file" in str(found.reason)


def test_cli_01_the_reason_of_a_hanging_call_is_its_time_limit(tmp_path: Path) -> None:
    hanging = script(tmp_path, "exec sleep 60")
    own = object_view(("update", "--check", "--json"), Cost(), limit_s=0.5)
    for limit_s, view in ((0.5, VIEWS["cost"]), (60, own)):
        cli = SubprocessCli(hanging, {}, limit_s=limit_s)
        assert "did not finish in 0.5 s" in str(view.load(cli).reason)


def test_cli_03_too_much_output_is_a_reason(tmp_path: Path) -> None:
    for stream in ("", " >&2"):
        cli = SubprocessCli(script(tmp_path, f"exec yes{stream}"), {})
        assert "printed more than 1,048,576 bytes" in str(VIEWS["cost"].load(cli).reason)


def test_cli_07_a_call_gets_a_clean_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "canary")
    monkeypatch.setenv("PLATFORM_SECRETS_FILE", "not given to the app, so not passed on")
    ctl = FakeCtl(tmp_path)
    ctl.answer("status --json", {})
    assert not VIEWS["status"].load(SubprocessCli(str(ctl.program), {"PLATFORM_ROOT": "/d"})).stub
    (call,) = ctl.calls()
    assert set(call["environment"]) <= {"PATH", "HOME", "TMPDIR", "LC_ALL", "PLATFORM_ROOT"}
    assert call["environment"]["PLATFORM_ROOT"] == "/d"
    assert call["folder"] == "/"
    # The three standard streams, the closed file with the answers, and the listing itself.
    assert len(call["descriptors"]) == 4
    assert call["stdin"] == ""


def test_cli_08_at_most_eight_calls_run_at_once(tmp_path: Path) -> None:
    ctl = FakeCtl(tmp_path)
    ctl.answer("*", {}, takes_s=0.3)
    cli = SubprocessCli(str(ctl.program), {})
    with ThreadPoolExecutor(20) as pool:
        for finished in pool.map(lambda n: cli.run([str(n)]), range(20)):
            assert finished.status == 0
    assert most_at_once(ctl) <= 8
    assert len(ctl.calls()) == 20


def most_at_once(ctl: FakeCtl) -> int:
    """The largest number of its calls that ran at the same time."""
    edges = sorted(
        edge for call in ctl.calls() for edge in ((call["began"], 1), (call["ended"], -1))
    )
    alive = most = 0
    for _, step in edges:
        alive += step
        most = max(most, alive)
    return most


def test_a_call_that_waits_too_long_for_a_slot_says_so(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    begun.mkdir()
    program = script(tmp_path, f"> {begun}/$$; exec sleep 60")
    cli = SubprocessCli(program, {}, limit_s=60)
    with ThreadPoolExecutor(8) as pool:
        hanging = [pool.submit(VIEWS["cost"].load, cli) for _ in range(8)]
        wait_until(lambda: len(list(begun.iterdir())) == 8)
        with pytest.raises(BusyError, match="busy"):
            cli.run(["x"], limit_s=0.2)
        for program_id in begun.iterdir():
            os.kill(int(program_id.name), signal.SIGKILL)
        assert all(call.result().stub for call in hanging)
    assert len(list(begun.iterdir())) == 8
