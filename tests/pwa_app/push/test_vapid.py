"""The application server key."""

from __future__ import annotations

import base64
import os
import re
import shutil
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, SECP384R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
)
from py_vapid import Vapid02

from pwa_app.push.vapid import FILE, PushKey
from tests.support.odd_files import LINKS, NOT_REGULAR, make, picture
from tests.support.releases import clean_environment
from tests.support.waiting import wait_until

PUBLIC = re.compile(r"[A-Za-z0-9_-]{87}")


def public_of(path: Path) -> str:
    """The public key as openssl reads it from the file: the end of its DER form."""
    der = subprocess.run(
        ["openssl", "pkey", "-in", path, "-pubout", "-outform", "DER"],
        capture_output=True,
        check=True,
    ).stdout
    return base64.urlsafe_b64encode(der[-65:]).decode().rstrip("=")


def pem(
    curve: type[SECP256R1 | SECP384R1] = SECP256R1,
    form: PrivateFormat = PrivateFormat.PKCS8,
    encryption: KeySerializationEncryption | None = None,
) -> bytes:
    return generate_private_key(curve()).private_bytes(
        Encoding.PEM, form, encryption or NoEncryption()
    )


def test_the_first_call_creates_the_key_and_later_ones_find_it(tmp_path: Path) -> None:
    key = PushKey(tmp_path / "data")
    assert list(tmp_path.iterdir()) == []
    public, path = key.public(), tmp_path / "data" / FILE
    assert PUBLIC.fullmatch(public)
    assert base64.urlsafe_b64decode(public + "=")[0] == 4
    assert list(path.parent.iterdir()) == [path]
    assert public == public_of(path) == key.public() == PushKey(tmp_path / "data").public()


def test_a_sender_reads_the_key_that_browsers_were_given(tmp_path: Path) -> None:
    public = base64.urlsafe_b64decode(PushKey(tmp_path).public() + "=")
    numbers = Vapid02.from_file(str(tmp_path / FILE)).public_key.public_numbers()
    assert public == b"\4" + numbers.x.to_bytes(32) + numbers.y.to_bytes(32)


@pytest.mark.parametrize("mask", [0o000, 0o077, 0o777])
def test_only_the_owner_can_read_the_key_whatever_the_umask(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        assert PushKey(tmp_path).public()
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600


def _sec1_of_openssl() -> bytes:
    """A key with EC PARAMETERS before it, as `openssl ecparam -genkey` writes it."""
    return subprocess.run(
        ["openssl", "ecparam", "-genkey", "-name", "prime256v1"], capture_output=True, check=True
    ).stdout


@pytest.mark.parametrize(
    "made",
    [pem, lambda: pem(form=PrivateFormat.TraditionalOpenSSL), _sec1_of_openssl],
    ids=["PKCS8", "SEC1", "openssl"],
)
def test_an_existing_key_is_used(tmp_path: Path, made: Callable[[], bytes]) -> None:
    (tmp_path / FILE).write_bytes(made())
    (tmp_path / FILE).chmod(0o600)
    before = picture(tmp_path)
    assert PushKey(tmp_path).public() == public_of(tmp_path / FILE)
    assert picture(tmp_path) == before


GOOD = pem()
BROKEN = {
    "empty": b"",
    "cut": GOOD[: len(GOOD) // 2],
    "not-pem": b"\x00\xff" * 100,
    "public-half": GOOD.replace(b"PRIVATE", b"PUBLIC"),
    "other-curve": pem(SECP384R1),
    "other-kind": Ed25519PrivateKey.generate().private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
    ),
    "password": pem(encryption=BestAvailableEncryption(b"word")),
    "odd-letters": GOOD.replace(b"\n", b"!\n", 2),
    "huge": b"-" * (1 << 20),
}


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN)
def test_push_07_a_broken_key_turns_push_off_and_is_kept(
    tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / FILE).write_bytes(content)
    (tmp_path / FILE).chmod(0o600)
    before = picture(tmp_path)
    key = PushKey(tmp_path)
    assert [key.public(), key.public()] == ["", ""]
    assert picture(tmp_path) == before
    (line,) = caplog.messages
    assert line.startswith(f"push is off: {tmp_path / FILE} contains ")
    assert GOOD.splitlines()[1].decode()[:16] not in line


@pytest.mark.parametrize("kind", [*NOT_REGULAR, *LINKS])
def test_push_07_fs_07_a_linked_or_special_file_turns_push_off_and_is_kept(
    tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = make(kind, tmp_path / FILE)
    before = picture(tmp_path)
    assert PushKey(tmp_path).public() == ""
    assert picture(tmp_path) == before
    (line,) = caplog.messages
    assert line.startswith(f"push is off: {path} is ")


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o666, 0o604, 0o700, 0o4600])
def test_push_07_the_mode_of_the_key_is_restricted(
    tmp_path: Path, mode: int, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / FILE).write_bytes(GOOD)
    (tmp_path / FILE).chmod(mode)
    key = PushKey(tmp_path)
    assert key.public() == key.public() == public_of(tmp_path / FILE)
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600
    assert caplog.messages == [f"{tmp_path / FILE} had the mode {mode:04o} and now has 0600"]


@pytest.mark.parametrize("folder", ["file", "file/below"])
def test_push_07_without_a_file_push_is_off(
    tmp_path: Path, folder: str, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_bytes(b"")
    assert PushKey(tmp_path / folder).public() == ""
    assert caplog.messages
    assert (tmp_path / "file").read_bytes() == b""


_PUBLIC = """\
import sys
from pathlib import Path
from pwa_app.push.vapid import PushKey
print(PushKey(Path(sys.argv[1])).public())
"""


def test_push_07_fs_02_a_read_only_folder_turns_push_off(tmp_path: Path) -> None:
    script = f'mount -t tmpfs -o ro none "$1" && {sys.executable} -c "$2" "$1"'
    # Users other than root become root in their own namespace, where nothing else can be mounted.
    user = () if os.geteuid() == 0 else ("--map-root-user",)
    finished = subprocess.run(
        ["unshare", "--mount", *user, "sh", "-c", script, "sh", tmp_path, _PUBLIC],
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert finished.stdout == "\n"
    assert f"{tmp_path / FILE}: Read-only file system" in finished.stderr


def test_without_py_vapid_at_the_start_push_is_off(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pwa_app.push.vapid.find_spec", lambda name: None)
    without = PushKey(tmp_path)
    monkeypatch.undo()
    for key in (without, PushKey(tmp_path, generator=False)):
        assert key.public() == ""
        assert list(tmp_path.iterdir()) == []
        assert caplog.messages.pop() == "push is off: py-vapid is not installed"
    assert PushKey(tmp_path).public()


def test_cryptography_is_only_imported_when_the_key_is_needed(tmp_path: Path) -> None:
    script = """\
import sys
from pathlib import Path
from pwa_app.push.vapid import PushKey
key = PushKey(Path(sys.argv[1]))
loaded = {"cryptography", "py_vapid"} & set(sys.modules)
print(sorted(loaded), bool(key.public()))
"""
    finished = subprocess.run(
        [sys.executable, "-c", script, tmp_path], capture_output=True, text=True, check=True
    )
    assert finished.stdout == "[] True\n"


def test_push_06_100_threads_create_one_key(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for folder in (tmp_path / str(turn) for turn in range(10)):
        folder.mkdir()
        start = threading.Barrier(100)

        def ask(_: int, folder: Path = folder, start: threading.Barrier = start) -> str:
            key = PushKey(folder)
            start.wait()
            return key.public()

        with ThreadPoolExecutor(100) as pool:
            assert set(pool.map(ask, range(100))) == {public_of(folder / FILE)}
        assert [path.name for path in folder.iterdir()] == [FILE]
    assert caplog.messages == []


_MANY = """\
import os, sys, time
from pathlib import Path
from pwa_app.push.vapid import PushKey, _generate
_generate()
ready, go = Path(sys.argv[2]), Path(sys.argv[3])
for _ in range(10):
    if not os.fork():
        key = PushKey(Path(sys.argv[1]))
        (ready / str(os.getpid())).touch()
        while not go.exists():
            time.sleep(0.01)
        os.write(1, (key.public() + "\\n").encode())
        os._exit(0)
for _ in range(10):
    os.wait()
"""


def test_push_06_a_hundred_simultaneous_processes_create_one_key(tmp_path: Path) -> None:
    folder, ready, go = tmp_path / "data", tmp_path / "ready", tmp_path / "go"
    folder.mkdir()
    ready.mkdir()
    command = [sys.executable, "-c", _MANY, *map(str, (folder, ready, go))]
    parents = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(10)]
    wait_until(lambda: len(list(ready.iterdir())) == 100)
    go.touch()
    found = [line for parent in parents for line in parent.communicate(timeout=60)[0].split("\n")]
    assert [line for line in found if line] == [public_of(folder / FILE)] * 100
    assert [path.name for path in folder.iterdir()] == [FILE]


def test_left_overs_of_a_killed_program_are_removed_with_the_first_new_key(tmp_path: Path) -> None:
    left = tmp_path / f".{FILE}.4194304.0123abcd.tmp"
    left.write_bytes(GOOD)
    assert PushKey(tmp_path).public()
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


def test_a_key_is_only_replaced_if_it_disappears(tmp_path: Path) -> None:
    key = PushKey(tmp_path)
    first = key.public()
    shutil.copy(tmp_path / FILE, tmp_path / "kept")
    (tmp_path / FILE).unlink()
    second = key.public()
    assert second not in ("", first)
    shutil.copy(tmp_path / "kept", tmp_path / FILE)
    assert key.public() == first
