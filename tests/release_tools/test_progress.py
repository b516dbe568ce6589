"""What long work shows, and what it takes: a bar on a terminal only, and little memory."""

from __future__ import annotations

import os
import pty
import subprocess
from pathlib import Path

import pytest

from release_tools.progress import byte_progress
from tests.support.memory import peak_kib
from tests.support.releases import (
    VERSION,
    KeyPair,
    Tools,
    clean_environment,
    program,
    write_artefacts,
)

_LARGE = 160 << 20
_MOST_KIB = 80 << 10


def test_nothing_is_shown_unless_asked_for(capfd: pytest.CaptureFixture[str]) -> None:
    with byte_progress("Working", shown=False) as start:
        start(100)(50)
    assert capfd.readouterr() == ("", "")


def test_no_bar_is_shown_without_a_terminal(
    signed_release: Path, tools: Tools, key_pair: KeyPair
) -> None:
    assert tools("verify", "dist", "-p", key_pair.public).stderr == ""


def test_a_bar_with_bytes_rate_and_time_left_is_shown_on_a_terminal_and_stdout_stays_clean(
    tmp_path: Path, key_pair: KeyPair
) -> None:
    folder = write_artefacts(tmp_path / "artefacts", {})
    path = folder / f"platform-khoj-rpi5-{VERSION}-stable.img.xz"
    path.touch()
    # Enough for the bar to be drawn while the work is half done; a hole takes no space.
    os.truncate(path, 64 << 20)
    ours, theirs = pty.openpty()
    args = ("build", "artefacts", "--version", VERSION, "--channel", "stable", "--json")
    process = subprocess.Popen(
        [program(), *args],
        cwd=tmp_path,
        env=clean_environment() | {"TERM": "xterm", "COLUMNS": "100"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=theirs,
    )
    os.close(theirs)
    shown = b""
    try:
        while chunk := os.read(ours, 65536):
            shown += chunk
    except OSError:
        # The terminal's other end is closed: the program has ended.
        pass
    finally:
        os.close(ours)
    stdout, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    assert b"Building" in shown
    assert b"/67.1 MB" in shown or b"/64.0 MiB" in shown
    assert b"/s" in shown
    assert stdout.startswith(b"{\n")
    assert stdout.endswith(b"}\n")


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """A folder with one artefact of 160 MiB, which takes no space."""
    folder = write_artefacts(tmp_path / "artefacts", {})
    path = folder / f"platform-khoj-rpi5-{VERSION}-stable.img.xz"
    path.touch()
    os.truncate(path, _LARGE)
    return folder


def test_a_large_artefact_is_never_held_in_memory(large: Path, key_pair: KeyPair) -> None:
    env = clean_environment() | {"SIGNING_SECRET_KEY": str(key_pair.secret)}
    args = {
        "build": ["build", "artefacts", "--version", VERSION, "--channel", "stable"],
        "verify": ["verify", "dist", "-p", str(key_pair.public)],
    }
    peaks = {
        name: peak_kib([program(), *command], cwd=large.parent, env=env)
        for name, command in args.items()
    }
    assert max(peaks.values()) <= _MOST_KIB, peaks


def test_a_large_file_that_should_hold_a_reference_is_never_held_in_memory(
    tmp_path: Path, tools: Tools
) -> None:
    folder = write_artefacts(tmp_path / "artefacts", {})
    path = folder / f"platform-khoj-fly-machines-{VERSION}-stable.oci"
    path.touch()
    os.truncate(path, _LARGE)
    # With less address space than the file is long, reading it whole would fail.
    limited = ["prlimit", f"--as={_LARGE}", program()]
    args = ("build", "artefacts", "--version", VERSION, "--channel", "stable", "--jobs", "1")
    built = subprocess.run(
        [*limited, *args],
        cwd=tmp_path,
        env=clean_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert built.returncode == 1
    assert "must hold one reference" in built.stderr
