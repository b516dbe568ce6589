"""Ending a program: its status and its output arrive however it ends."""

from __future__ import annotations

import subprocess
import sys
from typing import IO

import pytest

_PROGRAM = """
import sys, threading, time
from platform_common.cli.group import run_and_leave
def main():
    print("said")
    print("told", file=sys.stderr)
    {body}
run_and_leave(main)
"""


def run(body: str, stdout: IO[str] | int = subprocess.PIPE) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _PROGRAM.format(body=body)],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        timeout=30,
        check=False,
    )


_HANGS = "threading.Thread(target=time.sleep, args=(60,), daemon=True).start(); sys.exit(1)"


@pytest.mark.parametrize(
    ("body", "status", "told"),
    [
        *(("pass", 0, ""), ("sys.exit()", 0, ""), ("sys.exit(0)", 0, ""), ("sys.exit(5)", 5, "")),
        *(("sys.exit(143)", 143, ""), (_HANGS, 1, ""), ("sys.exit('no way')", 1, "no way\n")),
        ("raise ValueError('a mistake of ours')", 1, "ValueError: a mistake of ours\n"),
    ],
    ids=["returns", "exits", "0", "5", "143", "with a hanging thread", "with a message", "fails"],
)
def test_exit_status_and_output_are_passed_on(body: str, status: int, told: str) -> None:
    done = run(body)
    assert (done.returncode, done.stdout) == (status, "said\n")
    assert done.stderr.startswith("told\n")
    assert done.stderr.endswith(told)
    assert done.stderr == f"told\n{told}" or "Traceback" in done.stderr


def test_output_that_cannot_be_written_is_a_failure() -> None:
    with open("/dev/full", "w") as full:
        assert run("pass", stdout=full).returncode != 0
