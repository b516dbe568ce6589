"""Executing a plan, with obstacles in its way and programs that fail."""

from __future__ import annotations

import contextlib
import os
import resource
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from platform_common.errors import PlatformError
from platform_common.paths import SECRETS, Paths
from platform_common.records.key_store import store_keys
from platform_common.secret import Secret
from platform_common.storage.atomic_write import Owner
from tests.support import odd_files
from tests.support.apply_setups import FULL, KEY_FILE
from wizard_app.app import create_app
from wizard_app.setup.apply.command_runners import on_machine, recorded
from wizard_app.setup.apply.executor import ApplyError, execute
from wizard_app.setup.plan.actions import (
    MESH_VPN_KEY,
    TUNNEL_CREDENTIALS,
    Action,
    AddKeys,
    KeyFile,
    RemoveFile,
    RunCommand,
    SetVariables,
    WriteFile,
    write,
)
from wizard_app.setup.plan.phases import Phase
from wizard_app.setup.plan.plan import Item
from wizard_app.setup.settings import COMMANDS, WizardSettings


def _nothing(command: RunCommand) -> None:
    pass


def _do(root: Path, *actions: Action) -> None:
    plan = [Item(Phase.SYSTEM, action) for action in actions]
    execute(plan, Paths(root, {}), _nothing, setup="test")


@pytest.mark.parametrize("kind", ["symbolic link", "dangling link", "hard link", "FIFO", "socket"])
def test_ssh_10_and_fs_07_anything_in_place_of_the_file_is_replaced(
    tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "etc/timezone"
    path.parent.mkdir()
    odd_files.make(kind, path)
    # An owner that does not exist is ignored.
    _do(
        tmp_path,
        WriteFile("/etc/timezone", ("UTC", Secret("\n")), owner=Owner("none-such", "none")),
    )
    assert stat.S_ISREG(path.lstat().st_mode)
    assert path.read_bytes() == b"UTC\n"
    precious = path.with_name("precious")
    assert not precious.exists() or precious.read_bytes() == b"precious\n"
    assert not path.with_name("nowhere").exists()


@pytest.mark.parametrize(
    "action",
    [
        WriteFile("/etc/x", ("y\n",)),
        SetVariables("/etc/platform/secrets.env", {"A_KEY": Secret("b")}),
        RemoveFile("/etc/x"),
    ],
)
def test_fs_07_a_folder_in_place_of_a_file_is_reported_and_kept(
    tmp_path: Path, action: Action
) -> None:
    path = tmp_path / action.shown["path"].lstrip("/")
    path.mkdir(parents=True)
    with pytest.raises(ApplyError) as caught:
        _do(tmp_path, action, WriteFile("/etc/later", ("x",)))
    assert str(path) in str(caught.value.problem)
    assert caught.value.what == action.said
    assert path.is_dir()
    assert not (tmp_path / "etc/later").exists()


@pytest.mark.parametrize("kind", [*odd_files.NOT_REGULAR, *odd_files.LINKS])
def test_fs_07_a_keys_file_that_is_not_a_regular_file_is_left_unchanged(
    tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "etc/platform/secrets.env"
    path.parent.mkdir(parents=True)
    odd_files.make(kind, path)
    before = odd_files.picture(path.parent)
    with pytest.raises(ApplyError, match=r"secrets\.env"):
        _do(tmp_path, SetVariables("/etc/platform/secrets.env", {"A_KEY": Secret("b")}))
    seen = odd_files.picture(path.parent)
    assert {name: seen[name] for name in before} == before


@pytest.mark.parametrize("fails", [True, False])
def test_the_key_of_a_command_is_only_readable_by_root_and_removed_afterwards(
    tmp_path: Path, *, fails: bool
) -> None:
    seen: list[Any] = []
    key = tmp_path / KEY_FILE

    def run(command: RunCommand) -> None:
        seen.append((stat.S_IMODE(key.stat().st_mode), key.read_bytes()))
        if fails:
            raise PlatformError("no such luck")

    command = RunCommand(("x",), 1.0, key_file=KeyFile(f"/{KEY_FILE}", Secret("k")))
    with pytest.raises(ApplyError) if fails else contextlib.nullcontext():
        execute([Item(Phase.SYSTEM, command)], Paths(tmp_path, {}), run, setup="test")
    assert seen == [(0o600, b"k\n")]
    assert not key.exists()
    # A secret that is no longer held is never written either.
    with pytest.raises(ApplyError, match="no longer in memory"):
        _do(tmp_path, WriteFile("/etc/x", (Secret(""),)))
    assert not (tmp_path / "etc/x").exists()


_API_KEY = Secret("sk-CaNaRy-0123456789")
_LINE = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"
_TUNNEL = '{"TunnelName": "kitchen"}'
_PLAN = [
    Item(Phase.SELECTION, write("/etc/platform/active-profile", "openclaw")),
    Item(Phase.KEYS, SetVariables(SECRETS.device, {"OPENAI_API_KEY": _API_KEY})),
    Item(Phase.SSH, AddKeys("/home/agent/.ssh/authorized_keys", (_LINE,))),
    Item(Phase.MESH_VPN, RunCommand(("mesh",), 5.0, key_file=KeyFile(MESH_VPN_KEY, _API_KEY))),
    Item(Phase.TUNNEL, WriteFile(TUNNEL_CREDENTIALS, (Secret(_TUNNEL),), mode=0o600)),
]


def _set_up(device: Paths) -> None:
    execute(_PLAN, device, recorded(device.root / COMMANDS), setup="now")


def _tree(root: Path) -> dict[str, tuple[int, bytes]]:
    """All files with their modes and contents, except those that contain times."""
    return {
        str(path.relative_to(root)): (stat.S_IMODE(path.stat().st_mode), path.read_bytes())
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.suffix not in (".jsonl", ".lock")
    }


@pytest.fixture
def device(tmp_path: Path) -> Paths:
    """An empty device in a folder."""
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
def test_wiz_16_other_lines_of_the_keys_file_are_kept(
    device: Paths, before: str | None, after: str
) -> None:
    keys = device.path_of(SECRETS)
    if before is not None:
        keys.parent.mkdir(parents=True)
        keys.write_text(before)
    for _ in range(2):
        _set_up(device)
        assert keys.read_text() == after.format(_API_KEY.reveal())


def test_wiz_17_the_keys_are_never_readable_by_others_than_owner_and_group(device: Paths) -> None:
    store_keys(device, {"A": _API_KEY}, mode=0o600)
    keys, over = device.path_of(SECRETS), threading.Event()
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
            store_keys(device, {"A": _API_KEY}, mode=mode)
            assert stat.S_IMODE(keys.stat().st_mode) == mode
    finally:
        os.umask(before)
        over.set()
        looking.join()
    assert seen <= {0o600, 0o640}


def test_wiz_18_tun_03_and_fs_07_files_have_their_content_and_mode(
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


def test_fs_05_running_out_of_descriptors_is_reported_and_the_next_attempt_completes(
    device: Paths,
) -> None:
    _set_up(Paths(device.root.with_name("another"), {}))
    wanted = _tree(device.root.with_name("another"))
    words = set()
    for free in range(8):
        with _only_free_descriptors(free):
            try:
                _set_up(device)
            except PlatformError as error:
                words.add(error.message.rpartition(": ")[2])
    assert words == {"Too many open files"}
    _set_up(device)
    assert _tree(device.root) == wanted


@contextlib.contextmanager
def _only_free_descriptors(free: int) -> Iterator[None]:
    """Let this process open at most `free` more files."""
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


# What the program does instead of its work, and the reported problem.
FAULTS = {
    "missing": (None, "program could not be started: No such file or directory"),
    "status 1": ("echo no >&2; echo luck >&2; exit 1", "program ended with status 1: no luck"),
    "silent": ("exit 3", "program ended with status 3"),
    "hangs": ("/bin/sleep 60 & exec /bin/sleep 60", "program did not finish in 0.3 s"),
    "killed": ("kill -9 $$", "program was ended by signal 9"),
    "endless": ("exec /bin/cat /dev/zero", "program printed more than 262,144 bytes"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_wiz_11_a_failing_program_is_reported_and_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    way, told = FAULTS[fault]
    monkeypatch.setenv("PATH", str(tmp_path))
    program, device = tmp_path / "program", Paths(tmp_path / "device", {})
    limit_s = 0.3 if fault == "hangs" else 60
    command = RunCommand(("program", "/etc/x"), limit_s, files=("/etc/x",))
    plan = [Item(Phase.SYSTEM, command), Item(Phase.SYSTEM, WriteFile("/etc/x", ("later",)))]
    for work in (way, f'test "$1" = {device.on_device("/etc/x")}'):
        if work is not None:
            program.write_text(f"#!/bin/sh\n{work}\n")
            program.chmod(0o755)
        if work == way:
            with pytest.raises(ApplyError) as caught:
                execute(plan, device, on_machine(device), setup="test")
            assert str(caught.value.problem) == told
            assert caught.value.what == command.said
            assert caught.value.hint
            assert not device.on_device("/etc/x").exists()
        else:
            execute(plan, device, on_machine(device), setup="test")
            assert device.on_device("/etc/x").exists()


def test_a_wizard_in_production_runs_the_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, token, here = tmp_path / "device", "0123456789abcdef" * 4, "https://localhost"
    wants = root / "etc/systemd/system/multi-user.target.wants"
    wants.mkdir(parents=True)
    (wants / "khoj-gateway.service").touch()
    for name in ("hostnamectl", "timedatectl", "tailscale", "systemctl", "nft"):
        (tmp_path / name).write_text(f"#!/bin/sh\necho {name} >>'{tmp_path}/log'\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    settings = {"WIZARD_PRODUCTION": "1", "PLATFORM_ROOT": str(root), "WIZARD_TOKEN": token}
    client = create_app(WizardSettings.from_env(settings)).test_client()
    client.get(f"/?token={token}", base_url=here)
    for slug, form in FULL.items():
        assert client.post(f"/wizard/{slug}", data=form, base_url=here).location
    assert client.post("/wizard/review/apply", base_url=here).location == "/wizard/done"
    assert len((tmp_path / "log").read_text().split()) == 8
    assert (root / "etc/hostname").read_text() == "kitchen\n"
