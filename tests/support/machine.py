"""A real Debian machine with systemd as process 1, in a container, its network cut off.

Its files are made once by mmdebstrap (half a minute) and kept in the user's
cache; each machine boots (half a second) on a throw-away layer above them.
Needs root.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import itertools
import os
import shutil
import signal
import subprocess
import sysconfig
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dev.distributions import ROOT

_SUITE = "bookworm"
_PACKAGES = ("systemd-sysv", "dbus", "nftables", "openssh-server", "python3")
_UNWANTED = ("doc", "info", "locale", "man")
_MAKE_TIMEOUT_S = 600
_BOOT_TIMEOUT_S = 60
_COMMAND_TIMEOUT_S = 60
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
# What an installed program does, with the libraries of the environment that runs the tests.
_PROGRAM = f"""#!/usr/bin/python3
import site, sys
sys.path.append({str(ROOT)!r})
site.addsitedir({sysconfig.get_path("purelib")!r})
from {{package}}.cli import program
program()
"""
_PROGRAMS = {"platformctl": "platformctl", "pwa-app": "pwa_app", "wizard-app": "wizard_app"}


@dataclass(frozen=True)
class Machine:
    """A running machine; `init` is its process 1 as we see it."""

    init: int

    def run(self, *argv: str, stdin: str = "", check: bool = True) -> str:
        """What a command inside prints on standard output; it must succeed if `check`."""
        done = self.call(*argv, stdin=stdin)
        if check and done.returncode:
            raise RuntimeError(f"{argv} ended with {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    def call(self, *argv: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """How a command inside ends, run as root."""
        namespaces = ("--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup")
        enter = ("nsenter", f"--target={self.init}", *namespaces, "--wdns=/", "--")
        return subprocess.run(
            [*enter, *argv],
            input=stdin,
            env={"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin", "HOME": "/"},
            capture_output=True,
            text=True,
            timeout=_COMMAND_TIMEOUT_S,
            check=False,
        )

    def write(self, path: str, text: str, mode: str = "0644") -> None:
        """Put a file, and the folders above it, on the machine."""
        self.run("install", "-D", f"--mode={mode}", "/dev/stdin", path, stdin=text)

    def freeze(self) -> None:
        """Stop process 1 and the bus, so that nobody who asks them is answered."""
        self.run(
            "sh",
            "-c",
            "kill -STOP $(pidof dbus-daemon || systemctl show --value"
            " --property=MainPID dbus.service)",
        )
        os.kill(self.init, signal.SIGSTOP)

    def unit(self, name: str, service: str) -> None:
        """Install a unit whose section `[Service]` is `service`."""
        install = "[Install]\nWantedBy=multi-user.target\n"
        self.write(f"/etc/systemd/system/{name}", f"[Service]\n{service}\n{install}")
        self.run("systemctl", "daemon-reload")


@contextlib.contextmanager
def machine() -> Iterator[Machine]:
    """Boot a machine with our programs on it; it is switched off when the block ends."""
    name = f"platform-test-{os.getpid()}-{next(_NUMBERS)}"
    groups = [group / name for group in _CONTROL_GROUPS]
    for group in groups:
        group.mkdir()
    try:
        with _container(name, groups) as container:
            booted = Machine(_init_of(container))
            try:
                _wait_until_up(booted)
                for program, package in _PROGRAMS.items():
                    text = _PROGRAM.format(package=package)
                    booted.write(f"/usr/local/bin/{program}", text, mode="0755")
                yield booted
            finally:
                # It would outlive the program that keeps it.
                os.kill(booted.init, signal.SIGKILL)
                container.wait(_BOOT_TIMEOUT_S)
    finally:
        for group in groups:
            for folder, _, _ in os.walk(group, topdown=False):
                with contextlib.suppress(OSError):
                    Path(folder).rmdir()


@contextlib.contextmanager
def _container(name: str, groups: list[Path]) -> Iterator[subprocess.Popen[bytes]]:
    libraries = Path(sysconfig.get_path("purelib"))
    shared = [ROOT, *([] if libraries.is_relative_to(ROOT) else [libraries])]
    process = subprocess.Popen(
        [
            *("/bin/sh", "-c", _JOIN, "sh"),
            *("systemd-nspawn", "--quiet", "--boot", "--volatile=overlay", "--private-network"),
            *("--register=no", "--keep-unit", "--link-journal=no", "--console=pipe"),
            *("--resolv-conf=off", "--timezone=off", f"--directory={_tree()}", "-M", name),
            *(f"--bind-ro={path}" for path in shared),
        ],
        env=os.environ | {"GROUPS": " ".join(map(str, groups))},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _init_of(container: subprocess.Popen[bytes]) -> int:
    """The process below `container` that is number 1 of a namespace of its own."""
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


def _wait_until_up(booted: Machine) -> None:
    deadline = time.monotonic() + _BOOT_TIMEOUT_S
    state = ""
    while time.monotonic() < deadline:
        state = booted.call("systemctl", "is-system-running").stdout.strip()
        if state in {"running", "degraded"}:
            return
        time.sleep(0.05)
    raise RuntimeError(f"the machine is not up: {state}")


def _tree() -> Path:
    """The machine's files, made when they are not there."""
    recipe = repr((_SUITE, _PACKAGES, _UNWANTED))
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "platform-appliance"
    tree = cache / f"machine-{hashlib.sha256(recipe.encode()).hexdigest()[:12]}"
    cache.mkdir(parents=True, exist_ok=True)
    # Several test runs may want it at once; the first makes it and the others wait.
    with (cache / "machine.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not tree.exists():
            partial = tree.with_suffix(".partial")
            shutil.rmtree(partial, ignore_errors=True)
            excluded = (f"--dpkgopt=path-exclude=/usr/share/{folder}/*" for folder in _UNWANTED)
            made = subprocess.run(
                [
                    *("mmdebstrap", "--quiet", "--variant=minbase", *excluded),
                    *(f"--include={','.join(_PACKAGES)}", _SUITE, partial),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=_MAKE_TIMEOUT_S,
                check=False,
            )
            if made.returncode:
                raise RuntimeError(f"mmdebstrap failed:\n{made.stdout}")
            # Empty, it is made anew at every boot.
            (partial / "etc/machine-id").write_bytes(b"")
            partial.rename(tree)
    return tree
