"""The progress bar of long work, which only a terminal gets, and low memory use."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
from pathlib import Path

import pytest

from release_tools.progress import byte_progress
from tests.release_tools.conftest import run
from tests.support.memory import peak_kib
from tests.support.releases import (
    VERSION,
    KeyPair,
    clean_environment,
    program,
    write_artefacts,
)

_ARGS = ("build", "artefacts", "--version", VERSION, "--channel", "stable")
_IMAGE = f"platform-khoj-rpi5-{VERSION}-stable.img.xz"
_LARGE = 160 << 20
_MOST_KIB = 80 << 10


def test_no_progress_is_shown_unless_requested(capfd: pytest.CaptureFixture[str]) -> None:
    with byte_progress("Working", shown=False) as start:
        start(100)(50)
    assert capfd.readouterr() == ("", "")


def artefact_of(size: int, folder: Path, name: str) -> None:
    """Create an artefact of `size`, as a hole that takes no space on the disk."""
    write_artefacts(folder / "artefacts", {name: b""})
    os.truncate(folder / "artefacts" / name, size)


def test_a_bar_with_bytes_rate_and_time_left_is_shown_on_a_terminal_and_stdout_stays_clean(
    tmp_path: Path,
) -> None:
    # Large enough for the bar to be drawn during the work.
    artefact_of(64 << 20, tmp_path, _IMAGE)
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [program(), *_ARGS, "--json"],
        cwd=tmp_path,
        env=clean_environment() | {"TERM": "xterm", "COLUMNS": "100"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=theirs,
    )
    os.close(theirs)
    shown = b""
    # When the program has ended, the other end of the terminal is closed.
    with contextlib.suppress(OSError):
        while chunk := os.read(ours, 65536):
            shown += chunk
    os.close(ours)
    stdout, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    assert b"Building" in shown
    assert b"/67.1 MB" in shown or b"/64.0 MiB" in shown
    assert b"/s" in shown
    assert stdout.startswith(b"{\n")
    assert stdout.endswith(b"}\n")


def test_a_large_artefact_is_never_held_in_memory(tmp_path: Path, key_pair: KeyPair) -> None:
    artefact_of(_LARGE, tmp_path, _IMAGE)
    env = clean_environment() | {"SIGNING_SECRET_KEY": str(key_pair.secret)}
    for args in (_ARGS, ("verify", "dist", "-p", str(key_pair.public))):
        assert peak_kib([program(), *args], cwd=tmp_path, env=env) <= _MOST_KIB, args


def test_a_large_file_in_place_of_a_reference_is_never_held_in_memory(tmp_path: Path) -> None:
    artefact_of(_LARGE, tmp_path, f"platform-khoj-fly-machines-{VERSION}-stable.oci")
    # With less address space than the file is long, reading all of it would fail.
    built = run("prlimit", f"--as={_LARGE}", program(), *_ARGS, "--jobs", "1", folder=tmp_path)
    assert built.returncode == 1
    assert "must hold one reference" in built.stderr
