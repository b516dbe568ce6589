"""`make test-fresh`: both commands of the README, timed on a machine that has nothing yet.

That machine is a minimal Debian tree with a clone of this project, run with mounts,
processes and control groups of its own; it all goes when the program ends, in whatever
way. It knows of this machine how packages are reached, and nothing else. Needs root.

With Python's standard library alone, as it must not need what it is to test.
"""

from __future__ import annotations

import argparse
import configparser
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from dev.distributions import ROOT, git
from platform_common.storage.stale_files import signals_held

SUITE = "bookworm"
PACKAGES = ("ca-certificates", "git", "make", "python3", "python3-venv")
COMMANDS = ("make run ARGS=--once", "make test")
_HOME = "/root"
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_TIMEOUT_S, _END_TIMEOUT_S = 900, 60
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_SUMMARY = re.compile(r"^=+ (.*\b\d+ (?:passed|failed|errors?)\b.* in \d.*?) =+$")

# The variables that a machine needs to reach its registries.
_PROXIES = ("http_proxy", "https_proxy", "no_proxy")
_APT = re.compile(r"Acquire::(https?::(?!Proxy-Auto)|Check-|ForceIP|Retries)")
_CERTIFICATES = Path("/usr/local/share/ca-certificates")

# The folders of systemd's own tree of control groups, on older and newer hosts.
_CONTROL_GROUPS = ("/sys/fs/cgroup/unified", "/sys/fs/cgroup/systemd", "/sys/fs/cgroup")
_JOIN = 'for group in $OWN_GROUPS; do echo $$ >"$group/cgroup.procs"; done; exec "$@"'
_ENDING = ("--mount", "--pid", "--fork", "--kill-child")
_OWN = (*_ENDING, "--uts", "--ipc", "--cgroup")
_ENTER = """\
mount --bind "$1" "$1"
cd "$1"
mount -t proc proc proc
mount --rbind /sys sys
# It only sees its own control groups, so no name is taken.
for group in $OWN_GROUPS; do mount --bind "$group" ".${group%/*}"; done
unset OWN_GROUPS
mount --bind /dev dev
mount -t devpts -o newinstance,ptmxmode=666,mode=620,gid=5 devpts dev/pts
mount -t tmpfs -o "mode=1777,size=$2" tmpfs dev/shm
mount -t tmpfs -o mode=755 tmpfs run
mkdir -m 1777 run/lock
# Not chroot, inside which no user namespace can be made.
pivot_root . mnt
umount --lazy /mnt
cd "$HOME/platform"
umask "$3"
set +e
# This shell stays as the machine's first process, and reaps orphaned processes.
sh -c "$4"
exit $?
"""


@dataclass(frozen=True)
class Manager:
    """The settings of a package manager, and which of them say how to reach packages."""

    prefix: str
    files: tuple[str, ...]
    wanted: re.Pattern[str]
    target: str
    heading: str = ""


PIP = Manager(
    "PIP_",
    (
        *("/etc/xdg/pip/pip.conf", "/etc/pip.conf"),
        *("~/.pip/pip.conf", "~/.config/pip/pip.conf", "$PIP_CONFIG_FILE"),
    ),
    re.compile(r"(.*-)?(index|links|host|proxy|cert|timeout|retries)(-.*)?"),
    "etc/pip.conf",
    "[global]\n",
)
NPM = Manager(
    "NPM_CONFIG_",
    ("/usr/etc/npmrc", "/etc/npmrc", "~/.npmrc", "$NPM_CONFIG_USERCONFIG"),
    re.compile(r"(@.*:)?registry|(.*-)?proxy|noproxy|ca|cafile|strict-ssl"),
    "etc/npmrc",
)


@dataclass(frozen=True)
class Machine:
    """How the new machine differs from this one."""

    variables: Mapping[str, str] = field(default_factory=dict)
    umask: str = "022"
    shared_memory: str = "50%"
    cores: int = 0


MACHINES = {
    "plain": Machine(),
    "small": Machine(shared_memory="64m", cores=1),
    "strict": Machine(umask="077"),
    "posix": Machine({"LC_ALL": "POSIX", "TZ": "UTC"}),
    "german": Machine({"LANG": "de_DE.UTF-8", "LANGUAGE": "de", "TZ": "Europe/Berlin"}),
    "far": Machine({"TZ": "Pacific/Chatham"}),
}


# How to reach packages.


def settings(
    manager: Manager, texts: Iterable[str], variables: Mapping[str, str]
) -> dict[str, str]:
    """The relevant settings in its files and variables; later ones override earlier ones.

    Folders of this machine are left out: the new machine does not have them.
    """
    found: dict[str, str] = {}
    for text in texts:
        parser = configparser.RawConfigParser(
            delimiters=("=",), strict=False, allow_no_value=True, default_section=""
        )
        parser.read_string("[global]\n" + text)
        for section in ("global", "install"):
            if parser.has_section(section):
                found |= {name: value or "" for name, value in parser.items(section)}
    for name, value in variables.items():
        if name.upper().startswith(manager.prefix):
            found[name[len(manager.prefix) :].lower().replace("_", "-")] = value
    elsewhere = {
        name: " ".join(word for word in value.split() if not _is_folder(word))
        for name, value in found.items()
        if manager.wanted.fullmatch(name)
    }
    return {name: value for name, value in elsewhere.items() if value}


def _is_folder(word: str) -> bool:
    return word.startswith("file:") or (Path(word).is_absolute() and not Path(word).is_file())


def mirrors(targets: str) -> list[str]:
    """The lines of a sources.list for Debian's own packages, from apt's list of its indexes."""
    found = [line.split() for line in targets.splitlines()]
    return [
        f"deb {place} {suite} main"
        for place, suite, component in (words for words in found if len(words) == 3)
        if component == "main" and re.fullmatch(rf"{SUITE}(-updates|-security)?", suite)
    ]


def apt_options(dump: str) -> list[str]:
    """The lines of `apt-config dump` that say how packages are fetched."""
    return [line for line in dump.splitlines() if _APT.match(line)]


def _give_settings(tree: Path) -> None:
    """Give the new machine the settings with which this one reaches packages."""
    for name in ("resolv.conf", "hosts"):
        with contextlib.suppress(FileNotFoundError):
            shutil.copyfile(f"/etc/{name}", tree / "etc" / name)
    for certificate in _CERTIFICATES.glob("**/*.crt"):
        shutil.copy(certificate, tree / _CERTIFICATES.relative_to("/"))
    _checked(["env", "-i", f"PATH={_PATH}", "chroot", tree, "update-ca-certificates"])
    for manager in (PIP, NPM):
        paths = (Path(os.path.expandvars(name)).expanduser() for name in manager.files)
        texts = [path.read_text("utf-8") for path in paths if path.is_file()]
        found = settings(manager, texts, os.environ)
        for value in found.values():
            if Path(value).is_absolute() and not (tree / value[1:]).exists():
                (tree / value[1:]).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(value, tree / value[1:])
        lines = (f"{name}={value}\n" for name, value in found.items())
        (tree / manager.target).write_text(manager.heading + "".join(lines), "utf-8")


# The tree.


@contextlib.contextmanager
def _kept_or_new(kept: Path | None, packages: Sequence[str]) -> Iterator[Path]:
    """The tree at `kept`, or else one that is removed after the block."""
    with contextlib.ExitStack() as undo:
        if kept is None:
            # On a disk, because it grows to gigabytes.
            place = os.environ.get("TMPDIR", "/var/tmp")
            scratch = Path(tempfile.mkdtemp(prefix="platform-fresh-", dir=place))
            undo.callback(_remove, scratch)
        tree = (kept or scratch / "tree").absolute()
        if not tree.exists():
            undo.callback(_remove, tree)
            _make(tree, packages)
        if kept is not None:
            undo.pop_all()
        yield tree


def _remove(folder: Path) -> None:
    with signals_held():
        if folder.exists():
            shutil.rmtree(folder)


def _make(tree: Path, packages: Sequence[str]) -> None:
    indexes = ["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)"]
    sources = mirrors(_checked([*indexes, "Created-By: Packages"]))
    options = [f"--aptopt={line}" for line in apt_options(_checked(["apt-config", "dump"]))]
    include = f"--include={','.join((*PACKAGES, *packages))}"
    command = ["mmdebstrap", "--quiet", "--variant=minbase", include, *options]
    _checked([*command, SUITE, tree, *sources])
    _give_settings(tree)
    # As in every container: a service that a package starts would be in the host's network.
    policy = tree / "usr/sbin/policy-rc.d"
    policy.write_text("#!/bin/sh\nexit 101\n")
    policy.chmod(0o755)
    with tempfile.NamedTemporaryFile("w", suffix=".gitconfig") as config:
        # For any owner of the checkout: git passes no option on to its child process.
        config.write("[safe]\n\tdirectory = *\n")
        config.flush()
        clone = ["git", "-c", "advice.detachedHead=false", "clone", "--quiet", "--no-hardlinks"]
        _checked([*clone, ROOT, f"{tree}{_HOME}/platform"], {"GIT_CONFIG_GLOBAL": config.name})


def _checked(command: Sequence[str | Path], variables: Mapping[str, str] | None = None) -> str:
    """The output of a command that must succeed; not shown, because it contains settings."""
    own = ["unshare", *_ENDING, "--mount-proc", *map(str, command)]
    with _started(own, os.environ | {"LC_ALL": "C"} | dict(variables or {})) as process:
        printed, _ = process.communicate(timeout=_TIMEOUT_S)
    if process.returncode:
        raise SystemExit(f"{command[0]} ended with {process.returncode}.")
    return printed


# Running commands in it.


@contextlib.contextmanager
def _started(
    command: Sequence[str], variables: Mapping[str, str], *, shown: bool = False
) -> Iterator[subprocess.Popen[str]]:
    """Run a command that makes a process namespace, and end all its processes after the block."""
    process = subprocess.Popen(
        command,
        env=variables,
        stdin=None if shown else subprocess.DEVNULL,
        stdout=None if shown else subprocess.PIPE,
        text=True,
        errors="replace",
        umask=0o022,
    )
    try:
        yield process
    finally:
        with signals_held():
            _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    """Kill the first process of a machine, and so all others."""
    try:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    except OSError:
        children = []
    for first in children:
        os.kill(int(first), signal.SIGKILL)
    if not children:
        process.kill()
    process.wait(_END_TIMEOUT_S)


@contextlib.contextmanager
def _own_groups() -> Iterator[list[Path]]:
    """Control groups for the machine, removed after the block."""
    there = (Path(place) for place in _CONTROL_GROUPS)
    groups = [
        place / f"platform-fresh-{os.getpid()}"
        for place in there
        if (place / "cgroup.procs").exists()
    ]
    for group in groups:
        group.mkdir()
    try:
        yield groups
    finally:
        for group in groups:
            for folder, _, _ in os.walk(group, topdown=False):
                Path(folder).rmdir()


def inside(tree: Path, machine: Machine, command: str) -> list[str]:
    """The command that starts the machine in `tree` and runs `command` in its clone."""
    cores = ["taskset", "--cpu-list", f"0-{machine.cores - 1}"] if machine.cores else []
    enter = ["sh", "-ec", _ENTER, "sh", str(tree), machine.shared_memory, machine.umask, command]
    return ["sh", "-ec", _JOIN, "sh", *cores, "unshare", *_OWN, *enter]


def environment(machine: Machine, variables: Mapping[str, str]) -> dict[str, str]:
    """All variables of that machine; proxies, the terminal and `CI` are as here."""
    kept = {name for name in variables if name in ("CI", "TERM") or name.lower() in _PROXIES}
    here = {name: variables[name] for name in kept}
    return {"PATH": _PATH, "HOME": _HOME} | here | dict(machine.variables)


@contextlib.contextmanager
def _running(
    tree: Path, machine: Machine, command: str, *, shown: bool = False
) -> Iterator[subprocess.Popen[str]]:
    """Run `command`, a shell command line, in the clone on that machine."""
    with _own_groups() as groups:
        own = environment(machine, os.environ) | {"OWN_GROUPS": " ".join(map(str, groups))}
        with _started(inside(tree, machine, command), own, shown=shown) as process:
            yield process


@dataclass(frozen=True)
class Outcome:
    """The result of one command."""

    status: int
    seconds: float
    summary: str


def _timed(tree: Path, machine: Machine, command: str) -> Outcome:
    """Run a command and show its output."""
    print(f"\n$ {command}", flush=True)
    begun, summary = time.monotonic(), ""
    with _running(tree, machine, f"exec 2>&1; {command}") as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            summary = summary_of(line) or summary
        status = process.wait()
    return Outcome(status, time.monotonic() - begun, summary)


def summary_of(line: str) -> str:
    """The last line of pytest, or nothing."""
    match = _SUMMARY.fullmatch(_COLOUR.sub("", line).strip())
    return match[1] if match else ""


def report(outcomes: Mapping[str, Outcome]) -> str:
    """A line for each command, and for each last line of pytest in its output."""
    lines = []
    for name, outcome in outcomes.items():
        failed = f"   failed with {outcome.status}" if outcome.status else ""
        lines.append(f"{name:<22}{outcome.seconds:>8.1f} s{failed}")
        if outcome.summary:
            lines.append(f"  pytest: {outcome.summary}")
    return "\n".join(lines)


def main() -> int:
    """Make the machine and run both commands, or one of the caller's."""
    parser = argparse.ArgumentParser(prog="make test-fresh", description=main.__doc__)
    parser.add_argument("--run", metavar="COMMAND", help="this instead of both commands")
    parser.add_argument("--as", dest="machine", choices=MACHINES, default="plain")
    parser.add_argument("--font", action="append", default=[], metavar="PACKAGE")
    parser.add_argument("--tree", type=Path, help="make it here, or use it, and keep it")
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        print("`make test-fresh` mounts file systems and boots machines: run it as root.")
        return 1
    # A shell starts a background process with Ctrl-C ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _ended)
    if git("status", "--porcelain"):
        print("Changes that are not committed are not tested: this takes a clone of HEAD.")
    machine = MACHINES[arguments.machine]
    begun = time.monotonic()
    with _kept_or_new(arguments.tree, arguments.font) as tree:
        outcomes = {"the Debian tree": Outcome(0, time.monotonic() - begun, "")}
        if arguments.run is not None:
            with _running(tree, machine, arguments.run, shown=True) as process:
                return process.wait()
        for command in COMMANDS:
            outcomes[command] = _timed(tree, machine, command)
    print(f"\n{report(outcomes)}")
    return 1 if any(outcome.status for outcome in outcomes.values()) else 0


def _ended(number: int, frame: object) -> NoReturn:
    raise SystemExit(128 + number)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
