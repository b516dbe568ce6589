"""The files that setting up writes where others are already, and with few descriptors left."""

from __future__ import annotations

import contextlib
import os
import resource
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from platform_common.errors import PlatformError
from platform_common.key_store import store_keys
from platform_common.paths import SECRETS, Paths
from platform_common.secret import Secret
from wizard_app.actions import (
    MESH_VPN_KEY,
    TUNNEL_CREDENTIALS,
    AddKeys,
    KeyFile,
    Phase,
    RunCommand,
    SetVariables,
    WriteFile,
    write,
)
from wizard_app.apply import execute
from wizard_app.plan import Item
from wizard_app.runners import recorded
from wizard_app.settings import COMMANDS

_KEY = Secret("sk-CaNaRy-0123456789")
_LINE = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"
_TUNNEL = '{"TunnelName": "kitchen"}'
_PLAN = [
    Item(Phase.SELECTION, write("/etc/platform/active-profile", "openclaw")),
    Item(Phase.KEYS, SetVariables(SECRETS.device, {"OPENAI_API_KEY": _KEY})),
    Item(Phase.SSH, AddKeys("/home/agent/.ssh/authorized_keys", (_LINE,))),
    Item(Phase.MESH_VPN, RunCommand(("mesh",), 5.0, key_file=KeyFile(MESH_VPN_KEY, _KEY))),
    Item(Phase.TUNNEL, WriteFile(TUNNEL_CREDENTIALS, (Secret(_TUNNEL),), mode=0o600)),
]


def _set_up(device: Paths) -> None:
    execute(_PLAN, device, recorded(device.root / COMMANDS), setup="now")


def _tree(root: Path) -> dict[str, tuple[int, bytes]]:
    """Files but those that tell when something was done, with their modes."""
    return {
        str(path.relative_to(root)): (stat.S_IMODE(path.stat().st_mode), path.read_bytes())
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.suffix not in (".jsonl", ".lock")
    }


@pytest.fixture
def device(tmp_path: Path) -> Paths:
    """A device in a folder, with nothing on it."""
    return Paths(tmp_path / "device", {})


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, "OPENAI_API_KEY={}\n"),
        ("", "OPENAI_API_KEY={}\n"),
        ("# mine\nA=1\n", "# mine\nA=1\nOPENAI_API_KEY={}\n"),
        ("A=1", "A=1\nOPENAI_API_KEY={}\n"),
        ("OPENAI_API_KEY=old\nA=1\n", "OPENAI_API_KEY={}\nA=1\n"),
        ("A='1'\n\nOPENAI_API_KEY=\n; b\nB=2\n", "A='1'\n\nOPENAI_API_KEY={}\n; b\nB=2\n"),
        (
            "OPENAI_API_KEY=1\nA=1\nOPENAI_API_KEY=2\n",
            "OPENAI_API_KEY={0}\nA=1\nOPENAI_API_KEY={0}\n",
        ),
    ],
)
def test_wiz_16_the_keys_of_others_stay_as_they_are(
    device: Paths, before: str | None, after: str
) -> None:
    keys = device.writable(SECRETS)
    if before is not None:
        keys.parent.mkdir(parents=True)
        keys.write_text(before)
    for _ in range(2):
        _set_up(device)
        assert keys.read_text() == after.format(_KEY.reveal())


def test_wiz_17_the_keys_are_never_for_more_than_their_owner_and_group(device: Paths) -> None:
    store_keys(device, {"A": _KEY}, mode=0o600)
    keys, over = device.writable(SECRETS), threading.Event()
    seen: set[int] = set()

    def look() -> None:
        while not over.is_set():
            for path in (keys, *keys.parent.glob(".secrets.env.*")):
                with contextlib.suppress(FileNotFoundError):
                    seen.add(stat.S_IMODE(path.lstat().st_mode))

    looking = threading.Thread(target=look)
    looking.start()
    before = os.umask(0)
    try:
        for mode in (0o640, 0o600) * 25:
            store_keys(device, {"A": _KEY}, mode=mode)
            assert stat.S_IMODE(keys.stat().st_mode) == mode
    finally:
        os.umask(before)
        over.set()
        looking.join()
    assert seen <= {0o600, 0o640}


def test_wiz_18_tun_03_and_fs_07_each_file_has_its_bytes_and_its_mode_whatever_was_there(
    device: Paths, tmp_path: Path
) -> None:
    places = [device.on_device("/etc/platform/active-profile")]
    places += [device.on_device(path) for path in (TUNNEL_CREDENTIALS, MESH_VPN_KEY)]
    for place in places:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(b"\xef\xbb\xbfold\r\n")
        place.chmod(0o666)
    for _ in range(2):
        _set_up(device)
        found = _tree(device.root)
        assert found["etc/platform/active-profile"] == (0o644, b"openclaw\n")
        assert found[TUNNEL_CREDENTIALS[1:]] == (0o600, _TUNNEL.encode())
        assert not any(place.is_symlink() for place in places)
        # A link is replaced, too, and not followed.
        for number, place in enumerate(places):
            elsewhere = tmp_path / str(number)
            assert not elsewhere.exists() or elsewhere.read_text() == "theirs"
            elsewhere.write_text("theirs")
            place.unlink(missing_ok=True)
            place.symlink_to(elsewhere)


def test_fs_05_with_too_few_descriptors_a_try_ends_in_words_and_the_next_one_completes(
    device: Paths,
) -> None:
    _set_up(Paths(device.root.with_name("another"), {}))
    wanted = _tree(device.root.with_name("another"))
    words = set()
    for free in range(8):
        with _descriptors_left(free):
            try:
                _set_up(device)
            except PlatformError as error:
                words.add(error.message.rpartition(": ")[2])
    assert words == {"Too many open files"}
    _set_up(device)
    assert _tree(device.root) == wanted


@contextlib.contextmanager
def _descriptors_left(free: int) -> Iterator[None]:
    """Let this process open so many files more, and no others."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(path.name) for path in Path("/proc/self/fd").iterdir())
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 10, limits[1]))
    held = []
    try:
        with contextlib.suppress(OSError):
            while True:
                held.append(os.open("/dev/null", os.O_RDONLY))
        for _ in range(free):
            os.close(held.pop())
        yield
    finally:
        for descriptor in held:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
