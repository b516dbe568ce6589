"""Doing what a plan says, whatever is in the way, and with programs that do not work."""

from __future__ import annotations

import contextlib
import os
import resource
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import html5lib
import pytest
from werkzeug.test import TestResponse

from platform_common.errors import PlatformError
from platform_common.files import Owner
from platform_common.key_store import store_keys
from platform_common.paths import SECRETS, Paths
from platform_common.secret import Secret
from tests.support import odd_files
from tests.support.apply_setups import FULL, KEY_FILE, result
from wizard_app import applying, runners
from wizard_app.actions import (
    MESH_VPN_KEY,
    TUNNEL_CREDENTIALS,
    Action,
    AddKeys,
    KeyFile,
    Phase,
    RemoveFile,
    RunCommand,
    SetVariables,
    WriteFile,
    write,
)
from wizard_app.app import create_app
from wizard_app.apply import ApplyError, execute
from wizard_app.plan import Item, build_plan
from wizard_app.runners import on_machine, recorded
from wizard_app.settings import COMMANDS, WizardSettings


def _nothing(command: RunCommand) -> None:
    pass


def _do(root: Path, *actions: Action) -> None:
    plan = [Item(Phase.SYSTEM, action) for action in actions]
    execute(plan, Paths(root, {}), _nothing, setup="test")


@pytest.mark.parametrize("kind", ["symbolic link", "dangling link", "hard link", "FIFO", "socket"])
def test_ssh_10_and_fs_07_what_is_in_a_files_place_is_replaced(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "etc/timezone"
    path.parent.mkdir()
    odd_files.make(kind, path)
    # An owner that nobody knows changes nothing.
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
def test_fs_07_a_folder_in_a_files_place_is_named(tmp_path: Path, action: Action) -> None:
    path = tmp_path / action.shown["path"].lstrip("/")
    path.mkdir(parents=True)
    with pytest.raises(ApplyError) as caught:
        _do(tmp_path, action, WriteFile("/etc/later", ("x",)))
    assert str(path) in str(caught.value.problem)
    assert caught.value.what == action.said
    assert path.is_dir()
    assert not (tmp_path / "etc/later").exists()


@pytest.mark.parametrize("kind", [*odd_files.NOT_REGULAR, *odd_files.LINKS])
def test_fs_07_keys_that_are_no_plain_file_are_left_alone(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "etc/platform/secrets.env"
    path.parent.mkdir(parents=True)
    odd_files.make(kind, path)
    before = odd_files.picture(path.parent)
    with pytest.raises(ApplyError, match=r"secrets\.env"):
        _do(tmp_path, SetVariables("/etc/platform/secrets.env", {"A_KEY": Secret("b")}))
    seen = odd_files.picture(path.parent)
    assert {name: seen[name] for name in before} == before


@pytest.mark.parametrize("fails", [True, False])
def test_a_commands_key_is_for_root_alone_and_meanwhile(tmp_path: Path, *, fails: bool) -> None:
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
    # Nor is a secret that is not held ever written.
    with pytest.raises(ApplyError, match="not held any more"):
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
def test_wiz_16_the_keys_of_others_stay(device: Paths, before: str | None, after: str) -> None:
    keys = device.writable(SECRETS)
    if before is not None:
        keys.parent.mkdir(parents=True)
        keys.write_text(before)
    for _ in range(2):
        _set_up(device)
        assert keys.read_text() == after.format(_API_KEY.reveal())


def test_wiz_17_the_keys_are_never_for_more_than_their_owner_and_group(device: Paths) -> None:
    store_keys(device, {"A": _API_KEY}, mode=0o600)
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
            store_keys(device, {"A": _API_KEY}, mode=mode)
            assert stat.S_IMODE(keys.stat().st_mode) == mode
    finally:
        os.umask(before)
        over.set()
        looking.join()
    assert seen <= {0o600, 0o640}


def test_wiz_18_tun_03_and_fs_07_files_have_their_bytes_and_mode(
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


def test_fs_05_on_few_descriptors_a_try_ends_in_words_and_the_next_completes(device: Paths) -> None:
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


# What a program does in place of its work, and what is told of it.
_FAULTS = {
    "missing": (None, "{program} could not be started: No such file or directory"),
    "status 1": ("echo no >&2; echo luck >&2; exit 1", "{program} ended with status 1: no luck"),
    "silent": ("exit 3", "{program} ended with status 3"),
    "hangs": ("/bin/sleep 60 & exec /bin/sleep 60", "{program} did not finish in 0.3 s"),
    "killed": ("kill -9 $$", "{program} was ended by signal 9"),
    "endless": ("exec /bin/cat /dev/zero", "{program} printed more than 262,144 bytes"),
}
_TOKEN = "0123456789abcdef" * 4
_HERE = "https://localhost"


class Production:
    """A wizard that sets up a folder by real programs, all of them ours."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self._programs = folder / "device", folder / "bin"
        self._log, self._broken = folder / "log", folder / "broken"
        self._programs.mkdir()
        wants = self.root / "etc/systemd/system/multi-user.target.wants"
        wants.mkdir(parents=True)
        (wants / "khoj-gateway.service").touch()
        monkeypatch.setenv("PATH", str(self._programs))
        monkeypatch.setattr(applying, "on_machine", self._in_short)
        settings = WizardSettings.from_env(
            {"WIZARD_PRODUCTION": "1", "PLATFORM_ROOT": str(self.root), "WIZARD_TOKEN": _TOKEN}
        )
        self.client = create_app(settings).test_client()
        self.client.get(f"/?token={_TOKEN}", base_url=_HERE)
        for slug, form in FULL.items():
            assert self.client.post(f"/wizard/{slug}", data=form, base_url=_HERE).location

    def _in_short(self, device: Paths) -> runners.Run:
        run = on_machine(device)

        def act(command: RunCommand) -> None:
            hangs = self._broken.exists() and "sleep" in self._broken.read_text()
            limit_s = 0.3 if hangs and self._is_broken(command.argv) else command.timeout_s
            run(RunCommand(command.argv, limit_s, command.files, command.key_file))

        return act

    def install(self, broken: tuple[str, ...] = (), way: str | None = "") -> None:
        """Have every program work but for the one command that is `broken`."""
        for name in ("hostnamectl", "timedatectl", "tailscale", "systemctl", "nft"):
            path = self._programs / name
            path.unlink(missing_ok=True)
            if way is None and broken and name == broken[0]:
                continue
            path.write_text(
                f"#!/bin/sh\necho \"{name} $*\" >>'{self._log}'\n"
                f"case \"{name} $*\" in '{' '.join(broken)}') {way};; esac\n"
            )
            path.chmod(0o755)
        self._broken.write_text(way or "")
        self._command = broken
        self._log.unlink(missing_ok=True)

    def _is_broken(self, argv: tuple[str, ...]) -> bool:
        return tuple(argv[:2]) == tuple(self._command[:2])

    def press(self) -> TestResponse:
        """Press the button."""
        return self.client.post("/wizard/review/apply", base_url=_HERE)

    def ran(self) -> list[str]:
        """The commands that were begun, by their lines."""
        return self._log.read_text().splitlines() if self._log.exists() else []


@pytest.fixture
def production(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Production:
    return Production(tmp_path, monkeypatch)


def _stopped(page: TestResponse) -> list[str]:
    tree = html5lib.parse(page.text, namespaceHTMLElements=False)
    [box] = [one for one in tree.iter() if one.attrib.get("aria-labelledby") == "stopped"]
    return [" ".join("".join(line.itertext()).split()) for line in box.iter("p")]


_QUICK = ("status 1", "hangs")


@pytest.mark.parametrize(
    "fault",
    [pytest.param(one, marks=() if one in _QUICK else pytest.mark.long) for one in _FAULTS],
)
def test_wiz_11_what_a_program_does_is_told_and_tried_again(
    production: Production, fault: str
) -> None:
    way, told = _FAULTS[fault]
    production.install()
    commands = _all_commands(production)
    assert len(commands) == 8
    for number, command in enumerate(commands):
        production.install(tuple(command.split()), way)
        page = production.press()
        assert page.status_code == 200, command
        what, why, advice = _stopped(page)
        assert command.split()[0] in what
        assert why.startswith(told.format(program=command.split()[0])), why
        assert advice
        assert not (production.root / KEY_FILE).exists()
        # One that is not there leaves no line, and is not there for its other uses either.
        ran = production.ran()
        first = next(n for n, one in enumerate(commands) if one.split()[0] == command.split()[0])
        assert ran == commands[: first if way is None else number + 1]
    production.install()
    assert production.press().location == "/wizard/done"
    assert production.ran() == commands
    assert result(production.root)["etc/hostname"][1] == b"kitchen\n"


def _all_commands(production: Production) -> list[str]:
    """The lines of all commands of the plan, with the paths that they get here."""
    wizard = production.client.application.extensions["wizard_app"]
    plan = build_plan(wizard.standing())
    lines = [" ".join(item.action.argv) for item in plan if isinstance(item.action, RunCommand)]
    for path in (f"/{KEY_FILE}", "/etc/nftables.d/platform.nft"):
        lines = [line.replace(path, f"{production.root}{path}") for line in lines]
    return lines
