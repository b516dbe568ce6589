"""Ctrl-C and SIGTERM: the program ends quickly with the right status, and leaves nothing behind."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.network import end
from tests.support.object_store import ObjectStore
from tests.support.raw_server import RawServer, Request, response, serving
from tests.support.releases import VERSION, KeyPair, clean_environment, program
from tests.support.resigning import change_manifest, sign_file
from tests.support.waiting import wait_until

_BIG_BYTES = 4 << 30
IMAGE = f"/stable/{VERSION}/platform-openclaw-rpi5-{VERSION}-stable.img.xz"


Ready = Callable[[subprocess.Popen[bytes]], object]
Interrupted = Callable[..., None]


@pytest.fixture(params=[(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["INT", "TERM"])
def interrupted(request: pytest.FixtureRequest, tmp_path: Path, key_pair: KeyPair) -> Interrupted:
    """Run the program, signal it once it is ready, and check how it ends."""
    number, status = request.param
    temporary = tmp_path / "temporary"
    temporary.mkdir()

    def interrupted(ready: Ready, *args: str | Path, **environment: str) -> None:
        with subprocess.Popen(
            [program(), *args, "-p", key_pair.public],
            cwd=tmp_path,
            env=clean_environment() | environment | {"TMPDIR": str(temporary)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            try:
                ready(process)
                sent = time.monotonic()
                process.send_signal(number)
                output, said = process.communicate(timeout=20)
            finally:
                end(process)
        assert process.returncode == status, said
        assert time.monotonic() - sent < 5
        assert b"Traceback" not in said
        assert b"TRUSTED" not in output
        assert list(temporary.iterdir()) == []

    return interrupted


def files(dist: Path) -> dict[str, bytes]:
    """The files of a distribution, by their path on a server."""
    found = (path for path in dist.rglob("*") if path.is_file())
    return {f"/{path.relative_to(dist)}": path.read_bytes() for path in found}


def _asked(server: RawServer, path: str) -> Ready:
    def ready(_: object) -> None:
        wait_until(lambda: path in server.paths)
        time.sleep(0.1)

    return ready


def _drip(request: Request, connection: socket.socket) -> None:
    connection.sendall(response(length=300_000))
    while True:
        connection.sendall(bytes(2000))
        time.sleep(0.05)


def _silence(request: Request, connection: socket.socket) -> None:
    connection.recv(1)


@pytest.mark.parametrize("verifier", ["native", "both"])
def test_a_slow_download_can_be_interrupted(
    verifier: str, signed_release: Path, interrupted: Interrupted
) -> None:
    with serving(files(signed_release), {IMAGE: _drip}) as server:
        interrupted(_asked(server, IMAGE), "verify", server.url, "--verifier", verifier)


def test_waiting_for_a_manifest_can_be_interrupted(interrupted: Interrupted) -> None:
    with RawServer(_silence) as server:
        interrupted(_asked(server, "/stable/manifest.json"), "verify", f"{server.url}/stable")


def test_waiting_for_a_store_can_be_interrupted(interrupted: Interrupted) -> None:
    with RawServer(_silence) as server:
        store = ObjectStore(0).environment | {"AWS_ENDPOINT_URL": server.url}
        asked = _asked(server, "/releases/stable/manifest.json")
        interrupted(asked, "verify", "s3://releases/stable", **store)


@pytest.fixture(scope="module")
def big_file(tmp_path_factory: pytest.TempPathFactory, key_pair: KeyPair) -> Iterator[Path]:
    """A large file whose digest takes seconds, and a signature of other content."""
    path = tmp_path_factory.mktemp("big") / "big.img"
    path.write_bytes(b"")
    sign_file(path, key_pair)
    # It takes no space.
    os.truncate(path, _BIG_BYTES)
    yield path
    path.unlink()


def _reading(path: Path) -> Ready:
    def ready(process: subprocess.Popen[bytes]) -> None:
        wait_until(lambda: path in opened(process))

    return ready


def opened(process: subprocess.Popen[bytes]) -> list[Path]:
    """The files that a process has open."""
    assert process.poll() is None
    # A file may be closed meanwhile.
    with contextlib.suppress(OSError):
        return [one.readlink() for one in Path(f"/proc/{process.pid}/fd").iterdir()]
    return []


def test_reading_a_big_file_can_be_interrupted(big_file: Path, interrupted: Interrupted) -> None:
    interrupted(_reading(big_file), "verify-file", big_file)


@pytest.mark.parametrize("verifier", ["native", "system"])
def test_reading_a_big_artefact_can_be_interrupted(
    verifier: str,
    big_file: Path,
    signed_release: Path,
    key_pair: KeyPair,
    interrupted: Interrupted,
) -> None:
    image = signed_release / IMAGE[1:]
    image.unlink()
    os.link(big_file, image)

    def grow(document: dict[str, list[dict[str, object]]]) -> None:
        for entry in document["artefacts"]:
            if entry["filename"] == image.name:
                entry["size_bytes"] = big_file.stat().st_size

    change_manifest(signed_release / "stable", key_pair, grow)
    interrupted(_reading(image), "verify", "dist", "--verifier", verifier)
