"""Measures setup against writing the same bytes, its plan, and a chat with a long history."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from bench.bare import replace
from bench.measuring import Row
from bench.serving import ROOT
from bench.wizard import wizard
from platform_common.clock import now
from platform_common.secret import Secret
from wizard_app.apply_job import executor
from wizard_app.setup.answers import Answers
from wizard_app.setup.device_facts import DeviceFacts
from wizard_app.setup.pending import HeldSecrets, PendingSecrets
from wizard_app.setup.plan.actions import AddKeys, RunCommand, SetVariables, WriteFile
from wizard_app.setup.plan.plan import Plan, build_plan
from wizard_app.setup.settings import COMMANDS, JOURNAL, WizardSettings
from wizard_app.setup.snapshot import Snapshot, StoredState
from wizard_app.setup.state import DONE, WizardState
from wizard_app.setup.state_file import StateFile
from wizard_app.setup.steps import STEPS
from wizard_app.setup.steps.ssh import SshAnswer

RUNS = 41
PLANS = 200
PAGES = 100
TURNS, FEW_TURNS = 100_000, 200
_SSH_KEYS, _LONGEST_SSH_KEY = 100, 16_000
_STEPS = {step.slug: step for step in STEPS}
_ANSWERS: dict[str, Any] = {
    "hostname": "kitchen-agent",
    "timezone": "Europe/Berlin",
    "profile": "openclaw",
    "provider": "openrouter",
    "model": "anthropic/claude-sonnet-4.6",
    "endpoint": "https://openrouter.example/api/v1",
    "channels": ["telegram", "whatsapp-twilio"],
    "mesh_vpn_enabled": True,
    "tunnel_choice": "named",
    "tunnel_name": "kitchen",
    "backup_kind": "store_c",
    "backup_meta": {"endpoint": "https://s3.example.com", "bucket": "kitchen-backup"},
}
_SECRETS = {
    "provider": {"OPENROUTER_API_KEY": "sk-or-v1-0123456789abcdef"},
    "mesh-vpn": {"authkey": "tskey-0123456789"},
    "backup": {"c_access_key": "access0123456789", "c_secret_key": "secret0123456789"},
}


class Written(NamedTuple):
    """The result of setup: files in their order, and appended lines by their file."""

    files: list[tuple[str, bytes]]
    lines: list[tuple[str, bytes]]


def snapshot(out: Path, *, ssh_keys: int = 1, longest: int = 68, largest: bool = False) -> Snapshot:
    """The snapshot of a wizard for the folder `out`, with every step answered."""
    note = base64.b64encode(bytes(range(256)) * 186).decode() if largest else "0123456789abcdef"
    credentials = json.dumps({"TunnelName": "kitchen", "TunnelSecret": note})
    secrets = _SECRETS | {"tunnel": {"credentials": credentials}}
    keys = tuple(_ssh_key(number, longest) for number in range(ssh_keys))
    answers = Answers(_ANSWERS).with_answer(SshAnswer(ssh_keys=keys))
    held = {
        slug: HeldSecrets({name: Secret(text) for name, text in named.items()})
        for slug, named in secrets.items()
    }
    state = WizardState(now(), "review", answers)
    return Snapshot(_STEPS, DeviceFacts(_settings(out)), StoredState(state, PendingSecrets(held)))


def _ssh_key(number: int, longest: int) -> str:
    blob = b"\0\0\0\x0bssh-ed25519\0\0\0\x20" + number.to_bytes(32, "big")
    line = f"ssh-ed25519 {base64.b64encode(blob).decode()} "
    return line + "x" * max(1, longest - len(line))


def _settings(out: Path) -> WizardSettings:
    return WizardSettings.from_env({"WIZARD_DEV_OUT": str(out), "PLATFORM_ROOT": str(out)})


def applying(folder: Path, runs: int) -> Iterator[Row]:
    """All that "Set up this device" does, on a disk, and in memory, where no disk hides the work.

    Against it stand the same bytes in the same files: each written beside its place, made
    durable, renamed, and the folder made durable; each line of the journal and of the
    commands added and made durable. Only folders are made without that.
    """
    in_memory = _medians(folder, RUNS)
    with tempfile.TemporaryDirectory(dir=_disk(), prefix="bench-") as name:
        ours, theirs = _medians(Path(name), RUNS)
    what = "a device set up in dev mode on the disk, against writing the same bytes durably"
    detail = f"{_milliseconds(ours, theirs)}; in memory {_milliseconds(*in_memory)}"
    yield Row(what, ours / theirs, "x", 2.0, detail)


def _medians(folder: Path, runs: int) -> tuple[float, float]:
    ours, theirs = [], []
    out, bare = folder / "ours", folder / "theirs"
    # In a thread, as in a server.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(_set_up, out).result()
        written = _written(out)
        for _ in range(runs):
            shutil.rmtree(out)
            ours.append(thread.submit(_set_up, out).result())
            theirs.append(thread.submit(_write, bare, written).result())
            shutil.rmtree(bare)
    return statistics.median(ours), statistics.median(theirs)


def _set_up(out: Path) -> float:
    """The time to plan and to do everything, until the state says that it is done."""
    here = snapshot(out)
    act, state_file = executor(_settings(out)), StateFile(_settings(out).state_file, STEPS)
    began = time.perf_counter()
    act(here, build_plan(here), lambda progress: None)
    state_file.save(WizardState(here.state.started_at, DONE, here.state.answers, now()))
    return time.perf_counter() - began


def _written(out: Path) -> Written:
    paths = _settings(out).paths
    commands, journal = out / COMMANDS, paths.path_of(JOURNAL)
    files: list[tuple[str, bytes]] = []
    for item in build_plan(snapshot(out)):
        match item.action:
            case WriteFile(path=path) | SetVariables(path=path) | AddKeys(path=path):
                files.append((path, paths.on_device(path).read_bytes()))
            case RunCommand(key_file=key) if key is not None:
                files.append((key.path, key.secret.reveal().encode() + b"\n"))
    state = _settings(out).state_file
    files.append((f"/{state.relative_to(out)}", state.read_bytes()))
    lines = [
        (f"/{file.relative_to(out)}", line)
        for file in (commands, journal)
        for line in file.read_bytes().splitlines(keepends=True)
    ]
    return Written(files, lines)


def _write(out: Path, written: Written) -> float:
    began = time.perf_counter()
    for name, data in written.files:
        path = out / name[1:]
        path.parent.mkdir(parents=True, exist_ok=True)
        replace(path, data)
    for name, data in written.lines:
        descriptor = os.open(out / name[1:], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o640)
        try:
            os.write(descriptor, data)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    return time.perf_counter() - began


def _disk() -> Path:
    """A folder on the disk of the checkout."""
    folder = ROOT / "dev-out"
    folder.mkdir(exist_ok=True)
    return folder


def planning(folder: Path, runs: int) -> Iterator[Row]:
    """The plan of the largest answers, parsed again each time; its records are read before."""
    taken, size = [], 0
    for _ in range(PLANS):
        here = snapshot(folder, ssh_keys=_SSH_KEYS, longest=_LONGEST_SSH_KEY, largest=True)
        machine = here.machine
        _ = machine.profiles, machine.providers, machine.limits, machine.open_ports
        began = time.perf_counter()
        plan = build_plan(here)
        taken.append(time.perf_counter() - began)
        size = _size(plan)
    value = statistics.median(taken) * 1000
    detail = f"{len(plan)} actions, {size / 1024:,.0f} KiB"
    yield Row("the plan of the largest answers", value, "ms", 5, detail)


def _size(plan: Plan) -> int:
    """The bytes of the files in a plan."""
    return sum(
        len(item.action.reveal())
        if isinstance(item.action, WriteFile)
        else sum(map(len, getattr(item.action, "lines", ())))
        for item in plan
    )


def chatting(folder: Path, runs: int) -> Iterator[Row]:
    """The chat's page with a long history, against one that shows the same."""
    with contextlib.ExitStack() as stack:
        servers = [
            stack.enter_context(
                wizard(
                    folder / str(turns),
                    WIZARD_NO_TOKEN="1",
                    WIZARD_CHAT_HISTORY=str(_history(folder, turns)),
                )
            )[0]
            for turns in (TURNS, FEW_TURNS)
        ]
        pages = [server.get("/chat") for server in servers]
        if any(page.count(b"the last of them") != 1 for page in pages):
            raise SystemExit("the chat does not show its last turn")
        taken: list[list[float]] = [[], []]
        for _ in range(PAGES):
            for server, seconds in zip(servers, taken, strict=True):
                seconds.append(server.seconds("/chat"))
    ours, theirs = map(statistics.median, taken)
    what = f"the chat's page with {TURNS:,} turns, against one with {FEW_TURNS}"
    yield Row(what, ours / theirs, "x", 1.3, _milliseconds(ours, theirs))


def _history(folder: Path, turns: int) -> Path:
    """A history of that many turns, of which the last ones are always the same."""
    path = folder / f"history-{turns}.jsonl"
    with path.open("w") as file:
        for number in range(turns, 0, -1):
            role = "assistant" if number % 2 else "user"
            content = f"Turn {number}: **how** much rain fell?" + " It rained a lot." * (number % 7)
            content += " This is the last of them." if number == 1 else ""
            file.write(json.dumps({"role": role, "content": content, "at": now()}) + "\n")
    return path


def _milliseconds(ours: float, theirs: float) -> str:
    return f"{ours * 1000:.1f} ms against {theirs * 1000:.1f} ms"


def parts(folder: Path, runs: int) -> Sequence[Callable[[], Iterator[Row]]]:
    """The parts of this bench, each of which may fill `folder`."""
    return [
        lambda part=part: part(folder, runs)  # type: ignore[misc]  # a default holds the part
        for part in (applying, planning, chatting)
    ]
