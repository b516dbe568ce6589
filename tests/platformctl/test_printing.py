"""What the control CLI prints for people, wherever its output goes."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from tests.platformctl.conftest import run_at_terminal, run_on
from tests.support.devices import Device, set_up
from tests.support.releases import program

_READING = (
    *(("status",), ("version",), ("limits",), ("cost",), ("cost", "ledger")),
    *(("model", "list"), ("profile", "list"), ("profile", "show", "khoj"), ("voice", "status")),
)
_ASKING = (("cost", "reset"), ("voice", "enable"), ("model", "set", "--provider", "openai"))


@pytest.fixture(autouse=True)
def _set_up(device: Device) -> None:
    set_up(device)


def at_shell(device: Device, redirection: str, *args: str) -> subprocess.CompletedProcess[str]:
    """Run the control CLI with its streams redirected by a shell."""
    script = f'exec "$0" "$@" {redirection}'
    return run_on(device, "sh", "-c", script, program("platformctl"), *args)


@pytest.mark.parametrize(
    ("redirection", "args"),
    [
        *((">&-", args) for args in [*_READING, ("--help",), ("doctor",)]),
        # Standard error and standard input are handled by code that all commands share.
        *((closed, ("status",)) for closed in ("<&-", "2>&-", "<&- >&- 2>&-")),
    ],
    ids="-".join,
)
def test_a_program_with_closed_streams_ends_normally(
    device: Device, redirection: str, args: tuple[str, ...]
) -> None:
    # So that there is something to warn about, too.
    device.put("/etc/platform/version", b"\xff\n")
    done = at_shell(device, redirection, *args)
    assert "Traceback" not in done.stderr
    assert done.returncode in ((0, 1) if args == ("doctor",) else (0,))


@pytest.mark.parametrize(
    "args", [("--version",), ("--help",), ("model", "list"), ("cost", "ledger")], ids="-".join
)
def test_output_to_a_full_disk_is_reported_in_a_sentence(
    device: Device, args: tuple[str, ...]
) -> None:
    done = at_shell(device, ">/dev/full", *args)
    assert done.returncode == 1
    assert done.stderr == "error: reading or writing: No space left on device\n"


@pytest.mark.parametrize("args", _ASKING, ids="-".join)
def test_without_input_there_is_no_prompt(device: Device, args: tuple[str, ...]) -> None:
    limits = json.loads(device.ctl("limits", "--json").stdout)
    limits["capabilities"]["voice_wake_word"] = True
    device.put("/etc/platform/limits.json", json.dumps(limits))
    done = at_shell(device, "<&-", *args)
    assert done.returncode == 64
    assert done.stderr.startswith("error: There is no terminal to ask on\nhint: ")


@pytest.mark.parametrize("args", [("status",), ("version",), ("profile", "list")], ids="-".join)
def test_no_line_ends_with_blanks_if_nothing_is_active(
    device: Device, args: tuple[str, ...]
) -> None:
    device.path("/etc/platform/active-profile").unlink()
    lines = device.ctl(*args).stdout.splitlines()
    assert lines == [line.rstrip() for line in lines] != []


@pytest.mark.parametrize(
    "args", [("model", "list"), ("cost", "ledger"), ("cost",), ("profile", "list")], ids="-".join
)
def test_a_table_fits_the_terminal_and_omits_nothing(device: Device, args: tuple[str, ...]) -> None:
    widths = {
        columns: run_at_terminal(device, *args, columns=columns, NO_COLOR="1")
        for columns in (500, 80, 40)
    }
    assert [status for status, _ in widths.values()] == [0, 0, 0]
    words = [sorted("".join(text.split())) for _, text in widths.values()]
    assert words[0] == words[1] == words[2]
    assert max(map(len, widths[80][1].splitlines())) <= 80
    # The providers fit without a change.
    assert args != ("model", "list") or widths[80] == widths[500]


def test_a_long_line_of_the_ledger_does_not_widen_the_others(device: Device) -> None:
    ledger = device.path("/home/agent/.openclaw/cost-ledger.jsonl")
    message = json.loads(ledger.read_text().splitlines()[0]) | {"model": "x" * 60_000}
    with open(ledger, "a") as file:
        file.write(json.dumps(message) + os.linesep)
    for args in (("cost",), ("cost", "ledger")):
        lines = device.ctl(*args).stdout.splitlines()
        assert sum(len(line) > 200 for line in lines) == 1
