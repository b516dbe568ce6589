"""Secrets are only in the files that are meant for them: a whole setup, searched afterwards.

Twelve secrets are entered, in every field that takes one, correctly and incorrectly; a program
repeats its secret; and the arguments of all processes are recorded.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from dev.distributions import ROOT
from tests.support import stand_in_programs
from tests.support.appliances import Image, image
from tests.support.network import end, free_port
from tests.support.process_watch import watched
from tests.support.web_servers import served
from tests.support.wizard_secrets import found
from tests.support.wizard_visits import Fields, Visitor, visitor_of

# One for each field, with every symbol that a key may have and some encoding changes. No other test
# that runs at the same time has these, because the processes of all tests are recorded.
_OURS = secrets.token_hex(4)
CANARIES = {
    name: f"CaNaRy+{number:02}/{name}-{_OURS}<&>%7E=="
    for number, name in enumerate(
        (
            *("provider", "access-id", "access-secret", "mesh", "tunnel", "earlier-tunnel"),
            *("a-key", "b-access", "b-secret", "c-access", "c-secret", "private-key"),
        )
    )
}
# Where each may be in the end; secrets that were replaced must not be anywhere.
ALLOWED = {
    "access-id": "etc/platform/secrets.env",
    "access-secret": "etc/platform/secrets.env",
    "tunnel": "etc/platform/tunnel/credentials.json",
    "c-access": "etc/platform/rclone.conf",
    "c-secret": "etc/platform/rclone.conf",
}
SSH_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl me"


def tunnel(secret: str, name: str) -> str:
    return json.dumps({"TunnelSecret": CANARIES[secret], "TunnelName": name})


def private_key() -> str:
    begin, end_ = (f"-----{word} OPENSSH PRIVATE KEY-----" for word in ("BEGIN", "END"))
    return f"{begin}\n{CANARIES['private-key']}\n{end_}"


def refused(here: Visitor) -> None:
    """Send invalid forms, which are shown again."""
    closed = f"http://127.0.0.1:{free_port()}/v1"
    for slug, fields in (
        # The key test fails, because nothing listens there.
        ("provider", [*key_of("custom", "provider"), ("endpoint", closed), ("model", "m")]),
        ("provider", [*key_of("nobody", "provider"), ("skip_validation", "1")]),
        ("provider", [*key_of("bedrock", "access-id"), ("secret_access_key", "a b")]),
        ("ssh", [("ssh_keys", private_key())]),
        ("mesh-vpn", [("authkey", f"{CANARIES['mesh']} with a blank")]),
        ("tunnel", [("choice", "named"), ("credentials", tunnel("earlier-tunnel", "a b"))]),
        ("tunnel", [("choice", "named"), ("credentials", tunnel("tunnel", "x")[:-1])]),
        ("backup", [("kind", "store_a"), ("a_application_key", CANARIES["a-key"])]),
        ("backup", [("kind", "store_b"), *pair("b"), ("b_account_id", "."), ("b_bucket", "x")]),
        ("backup", [("kind", "store_c"), *pair("c"), ("c_endpoint", "x"), ("c_bucket", "abc")]),
    ):
        assert here.ask(f"/wizard/{slug}", fields).status == 200, slug


def key_of(provider: str, canary: str) -> Fields:
    return [("provider", provider), ("api_key", CANARIES[canary])]


def pair(prefix: str) -> Fields:
    return [(f"{prefix}_{half}_key", CANARIES[f"{prefix}-{half}"]) for half in ("access", "secret")]


# What is accepted first, and changed before setup is applied.
EARLIER: Mapping[str, Fields] = {
    "system": [("hostname", "kitchen"), ("timezone", "Europe/Berlin")],
    "profile": [("profile", "openclaw")],
    "provider": [*key_of("openai", "provider"), ("skip_validation", "1")],
    "channels": [],
    "ssh": [("ssh_keys", SSH_KEY)],
    "mesh-vpn": [("authkey", CANARIES["mesh"])],
    "tunnel": [("choice", "named"), ("credentials", tunnel("earlier-tunnel", "old"))],
    "backup": [
        *(("kind", "store_a"), ("a_account_id", "0012"), ("a_bucket", "kitchen")),
        ("a_application_key", CANARIES["a-key"]),
    ],
}
LATER: Mapping[str, Fields] = {
    "provider": [
        *key_of("bedrock", "access-id"),
        *(("secret_access_key", CANARIES["access-secret"]), ("region", "eu-west-1")),
        ("skip_validation", "1"),
    ],
    "tunnel": [("choice", "named"), ("credentials", tunnel("tunnel", "kitchen"))],
}
STORE_B: Fields = [("kind", "store_b"), *pair("b"), ("b_account_id", "x"), ("b_bucket", "abc")]
STORE_C: Fields = [
    *(("kind", "store_c"), *pair("c"), ("c_bucket", "kitchen")),
    ("c_endpoint", "https://s3.example.com"),
]


@dataclass(frozen=True)
class Run:
    """Everything that a run left behind: pages, logs, files, command lines."""

    traces: Mapping[str, list[bytes]]

    @property
    def calls(self) -> list[str]:
        """The successful system calls of the wizard."""
        lines = self.traces["strace"][0].decode("utf-8", "replace").splitlines()
        return [line for line in lines if "= -1 " not in line]

    def assert_only_where_it_belongs(self, canary: str, *elsewhere: str) -> None:
        """Check that a secret, in any form, is only where it may be, and `elsewhere`."""
        hits = [name for name, texts in self.traces.items() if found(CANARIES[canary], *texts)]
        allowed = [ALLOWED[canary]] if canary in ALLOWED else []
        assert sorted(hits) == sorted([*allowed, *elsewhere])


def visit(here: Visitor) -> None:
    """Do everything that a person can do with secrets, except applying setup."""
    refused(here)
    here.answer(EARLIER)
    here.answer(LATER)
    here.answer({"backup": STORE_B})
    here.answer({"backup": STORE_C})
    pages = [*EARLIER, "review", "answers.json"]
    assert {here.ask(f"/wizard/{page}").status for page in pages} == {200}


def files(root: Path, *folders: str) -> dict[str, list[bytes]]:
    """The contents of the files in these folders, each with its name.

    Without this checkout, which may be in one of the folders.
    """
    checkout = root / ROOT.relative_to("/")
    held = {}
    for folder in folders:
        for place, inner, names in os.walk(root / folder):
            inner[:] = [name for name in inner if Path(place, name) != checkout]
            for path in sorted(Path(place, name) for name in names):
                if path.is_file() and not path.is_symlink():
                    held[str(path.relative_to(root))] = [path.read_bytes(), str(path).encode()]
    return held


@contextlib.contextmanager
def traced(process: int, file: Path) -> Iterator[None]:
    """Record each program that `process` starts and each file it creates, until the block ends."""
    strace = subprocess.Popen(
        [
            *("strace", "-f", "-qq", "-v", "-y", "-s", "100000", "-o", file),
            *("-e", "trace=execve,openat,mkdirat,mkdir", "-e", "signal=none", "-p", str(process)),
        ],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        tracer = re.compile(rf"\nTracerPid:\t{strace.pid}\n")
        while not tracer.search(Path(f"/proc/{process}/status").read_text()):
            assert strace.poll() is None
        yield
    finally:
        end(strace)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run in dev mode, of a server whose umask hides nothing."""
    folder = tmp_path_factory.mktemp("leaks")
    for name in ("scratch", "account", "device"):
        (folder / name).mkdir()
    environment = {
        "PLATFORM_ROOT": str(folder / "device"),
        "WIZARD_DEV_OUT": str(folder / "out"),
        "TMPDIR": str(folder / "scratch"),
        "HOME": str(folder / "account"),
    }
    open_mask = ("sh", "-c", 'umask 0; exec "$@"', "sh")
    with (
        watched(folder / "processes"),
        served("wizard-app", environment, folder / "log", "--no-token", before=open_mask) as app,
    ):
        worker = worker_of(app.process.pid)
        here = visitor_of(app)
        with traced(worker, folder / "strace"):
            visit(here)
            done = here.apply()
            assert (done.status, done.location) == (302, "/wizard/done"), done.body
            here.ask("/wizard/done")
    return Run(
        {
            "pages": [page.encode() for page in here.pages],
            "output": [(folder / "log").read_bytes()],
            "processes": [(folder / "processes").read_bytes()],
            "strace": [(folder / "strace").read_bytes()],
            **files(folder / "out", "."),
            **files(folder, "scratch", "account", "device"),
        }
    )


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run in production on a real machine, where a program prints its secret and fails."""
    folder = tmp_path_factory.mktemp("leaks")
    with watched(folder / "processes"), image() as device:
        here, root = device.serve(), device.here.root
        with traced(worker_of(main_process(device)), folder / "strace"):
            visit(here)
            device.tailscale.set_behaviour(stand_in_programs.BAD_KEY)
            assert here.apply().status == 200
            device.tailscale.set_behaviour(stand_in_programs.OK)
            done = here.apply()
            assert (done.status, done.location) == (302, "/wizard/done"), done.body
            here.ask("/wizard/done")
        return Run(
            {
                "pages": [page.encode() for page in here.pages],
                "journal": [device.here.machine.log("--output=short-full").encode()],
                "processes": [(folder / "processes").read_bytes()],
                "strace": [(folder / "strace").read_bytes()],
                **files(root, "etc", "var/lib/platform", "var/tmp", "var/log", "tmp"),
                **files(root, "run/platform", "home", "root"),
            }
        )


def worker_of(process: int) -> int:
    """The worker process, whose parent is `process`."""
    while not (found_ := Path(f"/proc/{process}/task/{process}/children").read_text().split()):
        assert Path(f"/proc/{process}").exists()
    return int(found_[0])


def main_process(device: Image) -> int:
    """The id of the wizard's process outside its machine."""
    machine = device.here.machine
    inside = machine.show("platform-wizard.service", "MainPID")
    namespace = Path(f"/proc/{machine.init}/ns/pid").readlink()
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            same = (path / "ns/pid").readlink() == namespace
            if same and f"\t{inside}\nNSpgid:" in (path / "status").read_text():
                return int(path.name)
    raise AssertionError(f"there is no process {inside}")


@pytest.mark.parametrize("canary", CANARIES)
def test_leak_01_a_secret_is_only_where_it_belongs_after_a_run_in_dev_mode(
    recorded: Run, canary: str
) -> None:
    recorded.assert_only_where_it_belongs(canary)


@pytest.mark.long
@pytest.mark.parametrize("canary", CANARIES)
def test_leak_01_a_secret_is_only_where_it_belongs_on_a_real_machine(
    real: Run, canary: str
) -> None:
    # systemd passes its key to the gateway in its environment.
    real.assert_only_where_it_belongs(canary, *["processes"] * canary.startswith("access-"))


# What else these runs show


@pytest.mark.long
def test_leak_03_leak_04_every_started_program_was_recorded(real: Run) -> None:
    started = set(re.findall(r' execve\("[^"]*/([^"/]+)"', "\n".join(real.calls)))
    assert started >= {"hostnamectl", "timedatectl", "tailscale", "systemctl", "nft"}
    # The tests above check that no secret is in an argument or a variable.
    assert b"--auth-key=file:" in real.traces["strace"][0]
    assert b"wizard-app" in real.traces["processes"][0]


CREATED = re.compile(r" openat\(.*O_CREAT.*, (0[0-7]+)\) = [0-9]+<(.+)>")


@pytest.fixture(params=["recorded", pytest.param("real", marks=pytest.mark.long)])
def run(request: pytest.FixtureRequest) -> Run:
    """Each of the two runs."""
    found_: Run = request.getfixturevalue(request.param)
    return found_


def test_leak_05_every_file_is_private_from_its_creation(run: Run) -> None:
    made = [found_.groups() for line in run.calls if (found_ := CREATED.search(line))]
    # Files that programs create for themselves, such as Python's compiled modules, are not ours.
    ours = {path: mode for mode, path in made if "/platform" in path or "/leaks" in path}
    assert any(".rclone.conf." in path for path in ours)
    assert any(".secrets.env." in path for path in ours)
    # Nothing is created in shared folders either.
    assert [name for name in run.traces if name.startswith(("scratch/", "account/", "tmp/"))] == []
    assert {path: mode for path, mode in ours.items() if mode != "0600"} == {}


def test_leak_07_there_is_no_other_copy_of_a_file(run: Run) -> None:
    names = {name for name in run.traces if name.startswith("etc/platform/")}
    # On a machine root creates the completion marker; in a folder nobody does.
    names -= {"etc/platform/setup-complete"}
    wanted = ("active-profile", "active-provider", "backup.toml", "rclone.conf", "secrets.env")
    assert {name for name in names if not name.endswith(".lock")} == {
        f"etc/platform/{name}" for name in (*wanted, "tunnel/credentials.json")
    }
