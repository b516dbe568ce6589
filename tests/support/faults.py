"""Runs one of our programs with one failing system call, or one signal.

A process that has imported everything forks a copy for each run, and strace attaches to the copy
before it starts. So a run costs a fork instead of a start of Python, and the n-th call that strace
counts is the n-th of the command.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import pkgutil
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, Self

import release_tools
from platform_common.cli.group import run_and_leave
from platform_common.errors import PlatformError
from release_tools.signing.keys import load_public_key
from release_tools.verifying.verify import VerifyRequest, verify_location
from tests.support.releases import (
    REFERENCE,
    VERSION,
    KeyPair,
    clean_environment,
    pseudo_random,
    write_artefacts,
)

NEXT_VERSION = "2026.11.2"
# The modules that the commands of release-tools import late.
RELEASE_TOOLS = (
    *(found.name for found in pkgutil.walk_packages(release_tools.__path__, "release_tools.")),
    *("resource", "platform_common.data", "platform_common.schemas"),
)
_ROOT = Path(__file__).parents[2]
_TIMEOUT_S = 60
_PR_SET_PTRACER = 0x59616D61
_TRACED = signal.SIGWINCH


@dataclass(frozen=True)
class Run:
    """How a run ended; a negative `returncode` is a signal, `hit` is whether the fault occurred."""

    returncode: int
    stdout: str
    stderr: str
    hit: bool
    calls: list[str]


class Started:
    """A run in progress."""

    def __init__(self, server: FaultServer, pid: int, folder: Path, tracer: Tracer | None) -> None:
        self.pid = pid
        self._server = server
        self._folder = folder
        self._tracer = tracer

    def kill(self, number: signal.Signals) -> None:
        """Send it a signal, if it has not ended."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def wait(self) -> Run:
        """Wait for its end; return the result."""
        returncode = self._server.wait_for_end()
        log = ""
        if self._tracer is not None:
            _, said = self._tracer.communicate(timeout=_TIMEOUT_S)
            if self._tracer.returncode:
                raise RuntimeError(f"strace took no hold of the run: {said.decode()}")
            log = (self._folder / "strace").read_text("utf-8", "replace")
        out, err = ((self._folder / name).read_text() for name in ("out", "err"))
        hit = any(word in log for word in ("(INJECTED)", "(DELAYED)", "--- SIG", "+++ killed"))
        return Run(returncode, out, err, hit, log.splitlines())


Tracer = subprocess.Popen[bytes]


class FaultServer:
    """Starts runs of `module.main`, one at a time; `folder` takes their output.

    The modules in `preload` are imported before, so that no import meets a fault. `module.prepare`
    is called once for all runs, with the arguments in `prepared`, if there are any.
    """

    def __init__(
        self,
        folder: Path,
        module: str = "release_tools.cli",
        preload: Sequence[str] = RELEASE_TOOLS,
        prepared: Sequence[str] = (),
    ) -> None:
        self._folder = folder
        self._is_running = False
        what = json.dumps(prepared)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.faults", module, what, *preload],
            cwd=_ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(_TIMEOUT_S)
        self._process.stdout.close()

    def start(
        self,
        *args: str | Path,
        cwd: Path,
        env: Mapping[str, str],
        fault: str | None = None,
        also_trace: str = "",
        user: int | None = None,
    ) -> Started:
        """Start the program with `args`, as `user` and with strace's `fault`, if given.

        A fault is the text after `-e inject=`, or several separated by blanks, or "" for none; the
        log of these calls and of `also_trace` becomes `Run.calls`.
        """
        request = {
            "args": [str(arg) for arg in args],
            "cwd": str(cwd),
            "env": clean_environment() | dict(env),
            "folder": str(self._folder),
            "traced": fault is not None,
            "user": user,
        }
        pid = int(self._ask(request))
        tracer = None
        if fault is not None:
            faults = fault.split()
            calls = ",".join([*(one.partition(":")[0] for one in faults), also_trace]).rstrip(",")
            trace = ["-y", "-e", f"trace={calls}"]
            for one in faults:
                trace += ["-e", f"inject={one}"]
            log = self._folder / "strace"
            log.unlink(missing_ok=True)
            tracer = subprocess.Popen(
                [
                    "strace",
                    "-qqq",
                    "-f",
                    *trace,
                    "-e",
                    f"signal=!{_TRACED.name}",
                    "-o",
                    log,
                    "-p",
                    str(pid),
                ],
                stdin=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
            )
        return Started(self, pid, self._folder, tracer)

    def run(self, *args: str | Path, **how: Any) -> Run:
        """Run `start`, and wait for the end."""
        return self.start(*args, **how).wait()

    def _ask(self, request: dict[str, Any]) -> str:
        # A test that failed did not wait for its run; its status is not that of the next one.
        if self._is_running:
            self.wait_for_end()
        self._is_running = True
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def wait_for_end(self) -> int:
        """The exit status of the current run."""
        status = int(self._answer())
        self._is_running = False
        return status

    def _answer(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the process that starts the runs has ended")
        return line


def _serve(module: str, prepared: str, *preload: str) -> None:
    """Fork a copy for each request on stdin; print its process id, and then its status."""
    program = importlib.import_module(module)
    main = program.main
    for name in preload:
        importlib.import_module(name)
    if what := json.loads(prepared):
        program.prepare(*what)
    for line in sys.stdin:
        request = json.loads(line)
        ready, to_tell = os.pipe()
        pid = os.fork()
        if not pid:
            os.close(ready)
            _become(main, request, to_tell)
        os.close(to_tell)
        os.read(ready, 1)
        os.close(ready)
        print(pid, flush=True)
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _become(main: Callable[[], int | None], request: Mapping[str, Any], ready: int) -> NoReturn:
    folder = Path(request["folder"])
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = ["program", *request["args"]]
    ctypes.CDLL(None).prctl(_PR_SET_PTRACER, ctypes.c_ulong(-1))
    status = os.open("/proc/self/status", os.O_RDONLY)
    if request["user"] is not None:
        os.setgroups([])
        os.setgid(request["user"])
        os.setuid(request["user"])
    os.close(ready)
    if request["traced"]:
        _wait_for_tracer(status)
    run_and_leave(lambda: sys.exit(main()))


def _wait_for_tracer(descriptor: int) -> None:
    # With a call that our programs do not make, because strace may see the last of these.
    status = bytearray(4096)
    deadline = time.monotonic() + _TIMEOUT_S
    while os.preadv(descriptor, [status], 0) and b"TracerPid:\t0\n" in status:
        if time.monotonic() > deadline:
            os._exit(1)
        time.sleep(0.001)
    # strace is attached, but may not trace calls yet. This signal stops a traced process and does
    # nothing else; only strace lets it continue, and then it traces calls.
    signal.raise_signal(_TRACED)


@dataclass(frozen=True)
class Site:
    """A distribution with one release, and the artefacts of the next one."""

    folder: Path
    keys: KeyPair

    @property
    def dist(self) -> Path:
        """The distribution."""
        return self.folder / "dist"

    @property
    def env(self) -> dict[str, str]:
        """The environment of a signed build that always gives the same bytes."""
        return {"SIGNING_SECRET_KEY": str(self.keys.secret), "SOURCE_DATE_EPOCH": "1793491200"}

    def build_args(self, version: str = NEXT_VERSION) -> list[str]:
        """The command line that builds `version`."""
        release = ("--version", version, "--channel", "stable", "--jobs", "1")
        return ["build", f"artefacts-{version}", *release]

    def reset(self, *, unsigned: bool = False) -> None:
        """Restore the distribution; with `unsigned`, it contains the unsigned next release."""
        shutil.rmtree(self.dist, ignore_errors=True)
        shutil.copytree(self.folder / ("unsigned" if unsigned else "before"), self.dist)

    def state(self) -> str:
        """What the operator of a mirror would find: `old`, `new`, or the reason not to trust it."""
        request = VerifyRequest(str(self.dist), [load_public_key(str(self.keys.public))])
        try:
            [report] = verify_location(request, lambda total: lambda count: None)
        except PlatformError as error:
            return error.message
        if report.errors:
            return "; ".join(finding.code for finding in report.errors)
        assert report.manifest is not None
        version = report.manifest.release_version.text
        return {VERSION: "old", NEXT_VERSION: "new"}.get(version, version)


def make_site(folder: Path, keys: KeyPair, server: FaultServer) -> Site:
    """A site in `folder` with two small artefacts in each release."""
    site = Site(folder, keys)
    for version in (VERSION, NEXT_VERSION):
        files = {
            f"platform-openclaw-rpi5-{version}-stable.img.xz": pseudo_random(5_000, version),
            f"platform-hermes-fly-machines-{version}-stable.oci": REFERENCE,
        }
        write_artefacts(folder / f"artefacts-{version}", files)
    built = server.run(*site.build_args(VERSION), cwd=folder, env=site.env)
    assert built.returncode == 0, built.stderr
    shutil.copytree(site.dist, folder / "before")
    built = server.run(*site.build_args(), cwd=folder, env={"SOURCE_DATE_EPOCH": "1793491200"})
    assert built.returncode == 0, built.stderr
    shutil.copytree(site.dist, folder / "unsigned")
    return site


if __name__ == "__main__":
    _serve(*sys.argv[1:])
