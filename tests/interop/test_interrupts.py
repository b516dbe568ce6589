"""Ctrl-C and SIGTERM: a quick end, the right status, nothing left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.network import end
from tests.support.raw_server import RawServer, Request, response, serving
from tests.support.releases import VERSION, KeyPair, clean_environment, program
from tests.support.resigning import change_manifest, sign_file
from tests.support.waiting import wait_until

SIGNALS = pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["INT", "TERM"]
)
_BIG_BYTES = 4 << 30
IMAGE = f"/stable/{VERSION}/platform-openclaw-rpi5-{VERSION}-stable.img.xz"


@contextlib.contextmanager
def started(folder: Path, *args: str | Path) -> Iterator[subprocess.Popen[bytes]]:
    """The program running in `folder`, with a temporary folder of its own."""
    (folder / "temporary").mkdir(exist_ok=True)
    process = subprocess.Popen(
        [program(), *args],
        cwd=folder,
        env=clean_environment() | {"TMPDIR": str(folder / "temporary")},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        end(process)
        for stream in (process.stdout, process.stderr):
            assert stream is not None
            stream.close()


def ends_well(
    process: subprocess.Popen[bytes], number: signal.Signals, status: int, folder: Path
) -> None:
    """Send the signal and check how the program ends."""
    sent = time.monotonic()
    process.send_signal(number)
    output, said = process.communicate(timeout=20)
    assert process.returncode == status, said
    assert time.monotonic() - sent < 5
    assert b"Traceback" not in said
    assert b"TRUSTED" not in output
    assert list((folder / "temporary").iterdir()) == []


def files(dist: Path) -> dict[str, bytes]:
    """The files of a distribution by their path on a server."""
    found = (path for path in dist.rglob("*") if path.is_file())
    return {f"/{path.relative_to(dist)}": path.read_bytes() for path in found}


def _wait_for(server: RawServer, path: str) -> None:
    wait_until(lambda: path in server.paths)
    time.sleep(0.1)


def _drip(request: Request, connection: socket.socket) -> None:
    connection.sendall(response(length=300_000))
    while True:
        connection.sendall(bytes(2000))
        time.sleep(0.05)


def _silence(request: Request, connection: socket.socket) -> None:
    connection.recv(1)


@SIGNALS
@pytest.mark.parametrize("verifier", ["native", "both"])
def test_a_slow_download_can_be_interrupted(
    verifier: str,
    number: signal.Signals,
    status: int,
    signed_release: Path,
    tmp_path: Path,
    key_pair: KeyPair,
) -> None:
    with serving(files(signed_release), {IMAGE: _drip}) as server:
        arguments = ("verify", server.url, "-p", key_pair.public, "--verifier", verifier)
        with started(tmp_path, *arguments) as process:
            _wait_for(server, IMAGE)
            ends_well(process, number, status, tmp_path)


@SIGNALS
def test_waiting_for_a_manifest_can_be_interrupted(
    number: signal.Signals, status: int, tmp_path: Path, key_pair: KeyPair
) -> None:
    with RawServer(_silence) as server:
        location = f"{server.url}/stable"
        with started(tmp_path, "verify", location, "-p", key_pair.public) as process:
            _wait_for(server, "/stable/manifest.json")
            ends_well(process, number, status, tmp_path)


@pytest.fixture(scope="module")
def big_file(tmp_path_factory: pytest.TempPathFactory, key_pair: KeyPair) -> Iterator[Path]:
    """A file whose digest takes seconds, and a signature of something else."""
    path = tmp_path_factory.mktemp("big") / "big.img"
    path.write_bytes(b"")
    sign_file(path, key_pair)
    # It takes no room.
    os.truncate(path, _BIG_BYTES)
    yield path
    path.unlink()


def _wait_until_reading(process: subprocess.Popen[bytes], path: Path) -> None:
    def is_open() -> bool:
        assert process.poll() is None
        for descriptor in Path(f"/proc/{process.pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                if descriptor.readlink() == path:
                    return True
        return False

    wait_until(is_open)


@SIGNALS
def test_reading_a_big_file_can_be_interrupted(
    number: signal.Signals, status: int, big_file: Path, tmp_path: Path, key_pair: KeyPair
) -> None:
    with started(tmp_path, "verify-file", big_file, "-p", key_pair.public) as process:
        _wait_until_reading(process, big_file)
        ends_well(process, number, status, tmp_path)


@SIGNALS
@pytest.mark.parametrize("verifier", ["native", "system"])
def test_reading_a_big_artefact_can_be_interrupted(
    verifier: str,
    number: signal.Signals,
    status: int,
    big_file: Path,
    signed_release: Path,
    tmp_path: Path,
    key_pair: KeyPair,
) -> None:
    image = signed_release / IMAGE[1:]
    image.unlink()
    os.link(big_file, image)

    def grow(document: dict[str, list[dict[str, object]]]) -> None:
        for entry in document["artefacts"]:
            if entry["filename"] == image.name:
                entry["size_bytes"] = big_file.stat().st_size

    change_manifest(signed_release / "stable", key_pair, grow)
    arguments = ("verify", "dist", "-p", key_pair.public, "--verifier", verifier)
    with started(tmp_path, *arguments) as process:
        _wait_until_reading(process, image)
        ends_well(process, number, status, tmp_path)
