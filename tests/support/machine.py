"""A real Debian machine with systemd as process 1, in a container without access to networks.

mmdebstrap creates its files once (half a minute); they are kept in the user's cache. Each machine
boots (half a second) on a throw-away layer above them, or on a `writable_tree`, which keeps the
changes for the next machine. Needs root.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from dev.distributions import ROOT
from tests.support.environments import CACHE, one_at_a_time
from tests.support.network_namespaces import Network
from tests.support.own_packages import LIBRARIES, PACKAGES, shared_folders
from tests.support.running import printed, run
from tests.support.waiting import wait_until

_BOOT_TIMEOUT_S = 60
_SUITE = "bookworm"
_PACKAGES = ("systemd-sysv", "dbus", "nftables", "openssh-server", "python3")
_UNWANTED = ("doc", "info", "locale", "man")
_NUMBERS = itertools.count()
# Where systemd's own tree of control groups is, on older hosts and on newer ones.
_CONTROL_GROUPS = [
    processes.parent
    for processes in map(
        Path,
        (
            "/sys/fs/cgroup/unified/cgroup.procs",
            "/sys/fs/cgroup/systemd/cgroup.procs",
            "/sys/fs/cgroup/cgroup.procs",
        ),
    )
    if processes.exists()
]
_JOIN = 'for group in $GROUPS; do echo $$ >"$group/cgroup.procs"; done; exec "$@"'
# Installed programs run with the libraries of the environment that runs the tests.
_PROGRAM = f"""#!/usr/bin/python3
import sys
sys.path += [{PACKAGES!r}, {LIBRARIES!r}]
from {{package}}.cli import program
program()
"""
_PROGRAMS = {"platformctl": "platformctl", "pwa-app": "pwa_app", "wizard-app": "wizard_app"}


@dataclass(frozen=True)
class Machine:
    """A running machine; `init` is the id of its process 1, as seen from outside."""

    init: int

    def run(self, *argv: str, stdin: str = "", check: bool = True) -> str:
        """Run a command inside, which must succeed if `check`; return its output."""
        done = self.call(*argv, stdin=stdin)
        if check and done.returncode:
            raise RuntimeError(f"{argv} ended with {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    def call(self, *argv: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command inside as root; return the finished process."""
        namespaces = ("--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup")
        enter = ("nsenter", f"--target={self.init}", *namespaces, "--root", "--wdns=/", "--")
        path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin"
        return run(*enter, *argv, stdin=stdin, env={"PATH": path, "HOME": "/"})

    def write(self, path: str, text: str, mode: str = "0644") -> None:
        """Write a file, and create the folders above it, on the machine."""
        self.run("install", "-D", f"--mode={mode}", "/dev/stdin", path, stdin=text)

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """Stop process 1 and the bus, so that neither answers until the block ends."""
        bus = self.run("pidof", "dbus-daemon").split()
        self.run("kill", "-STOP", *bus)
        os.kill(self.init, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.init, signal.SIGCONT)
            self.run("kill", "-CONT", *bus)

    def unit(self, name: str, service: str) -> None:
        """Install a unit whose section `[Service]` is `service`."""
        install = "[Install]\nWantedBy=multi-user.target\n"
        self.write(f"/etc/systemd/system/{name}", f"[Service]\n{service}\n{install}")
        self.run("systemctl", "daemon-reload")

    def show(self, unit: str, name: str) -> str:
        """A property of a unit, from systemd."""
        return self.run("systemctl", "show", "--value", f"--property={name}", unit).strip()

    def states(self, verb: str, *units: str) -> list[str]:
        """The state of each unit; `verb` is `is-active` or `is-enabled`."""
        return self.call("systemctl", verb, *units).stdout.split()

    def rights(self, path: str) -> str:
        """Mode and owner of a file, such as `640 root:agent`."""
        return self.run("stat", "--format=%a %U:%G", path).strip()

    def log(self, *options: str) -> str:
        """The machine's whole journal, including everything logged until now."""
        self.run("journalctl", "--sync")
        return self.run("journalctl", "--no-pager", "--all", *options)


@contextlib.contextmanager
def machine(
    tree: Path | None = None,
    *,
    programs: bool = True,
    clean: bool = False,
    console: Path | None = None,
    network: Network | None = None,
) -> Iterator[Machine]:
    """Boot a machine, with our programs on it unless `programs` is false.

    Its changes are kept in `tree`, if there is one. When the block ends the power is cut, or the
    machine is shut down if `clean`. The file `console` receives its screen. It is in `network`, or
    alone in its own network.
    """
    files = ("--volatile=overlay", f"--directory={_base_tree()}")
    if tree is not None:
        files = ("--volatile=no", f"--directory={tree}")
    shared = [*files, *_network(network)]
    if programs:
        shared += [f"--bind-ro={ROOT}"]
        shared += [f"--bind-ro={here}:{there}" for here, there in shared_folders()]
    with (
        _control_groups() as (name, groups),
        (console or Path(os.devnull)).open("ab") as screen,
        _container(name, groups, shared, screen) as container,
    ):
        booted = Machine(_init_of(container))
        try:
            wait_until_up(booted)
            if programs:
                install_programs(Path(f"/proc/{booted.init}/root"))
            yield booted
            if clean:
                booted.call("systemctl", "poweroff")
                container.wait(_BOOT_TIMEOUT_S)
        finally:
            # Otherwise it would outlive its parent.
            if container.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(booted.init, signal.SIGKILL)
            container.wait(_BOOT_TIMEOUT_S)


@contextlib.contextmanager
def writable_tree(above: Path | None = None) -> Iterator[Path]:
    """The files of a machine, for changing them; the changes are discarded when the block ends.

    They are a layer above the files that every machine has, or above another such tree, which must
    not change until then.
    """
    with tempfile.TemporaryDirectory(prefix="platform-tree-", dir="/var/tmp") as folder:
        parts = {name: Path(folder, name) for name in ("upper", "work", "tree")}
        for path in parts.values():
            path.mkdir()
            path.chmod(0o755)
        # As lower layers side by side instead of mounts on mounts, of which the kernel allows two.
        below = str(_base_tree()) if above is None else _layers(above).read_text()
        _layers(parts["tree"]).write_text(f"{parts['upper']}:{below}")
        options = f"lowerdir={below},upperdir={parts['upper']},workdir={parts['work']}"
        # Volatile, because discarded files need not reach the disk.
        words = ("-t", "overlay", "overlay", "-o", f"{options},volatile")
        printed("mount", *words, str(parts["tree"]))
        try:
            yield parts["tree"]
        finally:
            printed("umount", str(parts["tree"]))


def _layers(tree: Path) -> Path:
    """The file that lists the folders of a tree, the topmost first."""
    return tree.with_name("layers")


def run_in(tree: Path, *argv: str, shared: Sequence[Path] = ()) -> str:
    """Run a command as root in a tree that is not booted; return its output.

    It must succeed. It can read the files and folders in `shared` at the same paths.
    """
    with _control_groups() as (name, groups):
        options = ["--private-network", f"--directory={tree}", "--as-pid2"]
        options += [f"--bind-ro={path}" for path in shared]
        return printed(*_nspawn(name, options), "--", *argv, env=_environment(groups))


def _network(network: Network | None) -> Sequence[str]:
    if network is None:
        return ("--private-network",)
    path = f"/proc/{os.getpid()}/fd/{network.descriptor}"
    return (f"--network-namespace-path={path}", "--capability=CAP_NET_ADMIN")


def install_programs(root: Path) -> None:
    """Install our programs in the files of a machine; their packages are mounted when it runs."""
    for program, package in _PROGRAMS.items():
        place = root / "usr/local/bin" / program
        place.write_text(_PROGRAM.format(package=package))
        place.chmod(0o755)


@contextlib.contextmanager
def _container(
    name: str, groups: list[Path], more: Sequence[str], screen: IO[bytes]
) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        _nspawn(name, ["--boot", *more]),
        env=_environment(groups),
        stdin=subprocess.DEVNULL,
        stdout=screen,
        stderr=screen,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _init_of(container: subprocess.Popen[bytes]) -> int:
    """The process below `container` that is process 1 of its own namespace."""
    deadline = time.monotonic() + _BOOT_TIMEOUT_S
    children = Path(f"/proc/{container.pid}/task/{container.pid}/children")
    while time.monotonic() < deadline and container.poll() is None:
        for child in map(int, children.read_text().split()):
            with contextlib.suppress(OSError):
                status = Path(f"/proc/{child}/status").read_text()
                if status.startswith("Name:\tsystemd\n") and "\t1\nNSpgid:" in status:
                    return child
        time.sleep(0.02)
    raise RuntimeError(f"the machine does not start (status {container.returncode})")


def wait_until_up(booted: Machine) -> None:
    """Wait until it has started all its services."""
    up = {"running\n", "degraded\n"}
    wait_until(lambda: booted.call("systemctl", "is-system-running").stdout in up, pause_s=0.05)


@contextlib.contextmanager
def _control_groups() -> Iterator[tuple[str, list[Path]]]:
    """The name of a new machine, and the control groups of its processes."""
    name = f"platform-test-{os.getpid()}-{next(_NUMBERS)}"
    groups = [group / name for group in _CONTROL_GROUPS]
    for group in groups:
        group.mkdir()
    try:
        yield name, groups
    finally:
        for group in groups:
            for folder, _, _ in os.walk(group, topdown=False):
                with contextlib.suppress(OSError):
                    Path(folder).rmdir()


def _nspawn(name: str, more: Sequence[str]) -> list[str]:
    """The command that creates a container with that name."""
    return [
        *("/bin/sh", "-c", _JOIN, "sh"),
        *("systemd-nspawn", "--quiet", "--register=no", "--keep-unit"),
        *("--link-journal=no", "--console=read-only", "--resolv-conf=off", "--timezone=off"),
        *("-M", name, *more),
    ]


def _environment(groups: Sequence[Path]) -> dict[str, str]:
    """The environment of that command, whose processes belong to those groups."""
    return os.environ | {"GROUPS": " ".join(map(str, groups))}


def _base_tree() -> Path:
    """The files of every machine, created if they do not exist."""
    recipe = repr((_SUITE, _PACKAGES, _UNWANTED))
    tree = CACHE / f"machine-{hashlib.sha256(recipe.encode()).hexdigest()[:12]}"
    with one_at_a_time(CACHE / "machine.lock"):
        if not tree.exists():
            partial = tree.with_suffix(".partial")
            shutil.rmtree(partial, ignore_errors=True)
            excluded = (f"--dpkgopt=path-exclude=/usr/share/{folder}/*" for folder in _UNWANTED)
            printed(
                *("mmdebstrap", "--quiet", "--variant=minbase", *excluded),
                *(f"--include={','.join(_PACKAGES)}", _SUITE, str(partial)),
            )
            # An empty file gets a new id at every boot.
            (partial / "etc/machine-id").write_bytes(b"")
            partial.rename(tree)
    return tree
