"""Measures the services under systemd, on a machine with the Debian package.

Against a bare Flask app under the same gunicorn with an equal unit, and against the
machine without us. Needs root.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import socket
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.dashboard import slow_clients
from bench.measuring import Row
from bench.serving import ROOT, p99
from tests.support.debian_package import built_package
from tests.support.machine import Machine, machine, run_in, writable_tree
from tests.support.network_namespaces import network_of
from tests.support.web_load import Results, load
from tests.support.web_servers import unverified

STARTS = 9
RESTARTS = 3
SLOW_CLIENTS = (200, 800)
_UNITS = "/lib/systemd/system"
_LIBRARIES = "/usr/lib/platform-appliance"
_DASHBOARD, _WIZARD = "platform-pwa", "platform-wizard"
_PORTS = {_DASHBOARD: 8089, _WIZARD: 8088, "bare": 8090, "plain": 8091}
_BARE = f"""#!/usr/bin/python3 -I
import sys
sys.path += [{_LIBRARIES!r}, {str(ROOT)!r}]
sys.argv[1:] = ["--config", "python:platform_common.web.gunicorn_conf", "--preload"]
sys.argv.append("bench.bare:bare()")
from gunicorn.app.wsgiapp import run
run()
"""


class _Tls(http.client.HTTPConnection):
    def connect(self) -> None:
        super().connect()
        assert self.sock is not None
        self.sock = unverified().wrap_socket(self.sock)


def _connection(name: str) -> http.client.HTTPConnection:
    kind = _Tls if name == _WIZARD else http.client.HTTPConnection
    return kind("127.0.0.1", _PORTS[name], timeout=60)


def _get(
    name: str, path: str = "/healthz", headers: dict[str, str] | None = None
) -> http.client.HTTPResponse:
    """Read a page; anything but 200 or a redirect is an error."""
    with contextlib.closing(_connection(name)) as connection:
        connection.request("GET", path, headers=headers or {})
        answer = connection.getresponse()
        answer.read()
        if answer.status not in (200, 302):
            raise SystemExit(f"{name}{path} answered {answer.status}")
        return answer


@contextlib.contextmanager
def _installed() -> Iterator[Path]:
    """The files of a machine with our package, before its first boot."""
    package = built_package()
    with writable_tree() as tree:
        run_in(tree, "dpkg", "--install", str(package), shared=[package])
        yield tree


def size(tree: Path) -> Row:
    """The files that installing the package added, including the package database."""
    files = [path for path in tree.with_name("upper").rglob("*") if path.is_file()]
    mib = sum(path.lstat().st_blocks for path in files if not path.is_symlink()) * 512 / (1 << 20)
    return Row("package, installed", mib, "MiB", 120, f"{len(files):,} files")


def booting(tree: Path, runs: int) -> Row:
    """From the start of the container to the wizard's page, against the end of a bare boot.

    Beside it a bare Flask app in our place, which is what no wizard of this kind is below.
    """
    ours, theirs, bare = [], [], []
    for _ in range(runs):
        with writable_tree(tree) as fresh:
            began = time.monotonic()
            with machine(fresh, programs=False) as booted, network_of(booted.init) as network:
                ready = _seconds(booted, "ActiveEnterTimestampMonotonic", f"{_WIZARD}.service")
                asked = time.monotonic()
                with network.inside():
                    _wizard_page(booted)
                ours.append(ready - began + time.monotonic() - asked)
        with writable_tree() as fresh:
            began = time.monotonic()
            with machine(fresh, programs=False) as booted:
                theirs.append(_seconds(booted, "FinishTimestampMonotonic") - began)
        with writable_tree(tree) as fresh:
            _bare_alone(fresh)
            began = time.monotonic()
            with machine(fresh) as booted, network_of(booted.init) as network:
                ready = _seconds(booted, "ActiveEnterTimestampMonotonic", "bare.service")
                asked = time.monotonic()
                with network.inside():
                    _get("bare")
                bare.append(ready - began + time.monotonic() - asked)
    first, second, third = (statistics.median(times) for times in (ours, theirs, bare))
    what = "first boot to the wizard's first page, against a boot without us"
    detail = f"{first:.3f} s against {second:.3f} s; {third:.3f} s to a bare Flask app's page"
    return Row(what, first / second, "x", 1.5, detail)


def _bare_alone(tree: Path) -> None:
    """Let systemd start the bare app at boot, and nothing of ours."""
    wanted = tree / "etc/systemd/system"
    for link in wanted.glob("*.wants/platform-*"):
        link.unlink()
    for path, text in _bare_files(lambda unit: (tree / _UNITS[1:] / unit).read_text()).items():
        (tree / path[1:]).write_text(text)
    (tree / "usr/bin/bare").chmod(0o755)
    link = wanted / "multi-user.target.wants/bare.service"
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(f"{_UNITS}/bare.service")


def _seconds(booted: Machine, name: str, *unit: str) -> float:
    """The time of an event, also by this machine's clock."""
    return int(booted.run("systemctl", "show", "--value", f"--property={name}", *unit)) / 1e6


def _wizard_page(booted: Machine) -> None:
    token = Path(f"/proc/{booted.init}/root/run/platform/wizard.token").read_text()
    cookie = _get(_WIZARD, f"/?token={token}").headers["Set-Cookie"] or ""
    _get(_WIZARD, "/wizard/system", {"Cookie": cookie.partition(";")[0]})


def _equal_units(booted: Machine) -> None:
    """A bare app with a unit and a socket as the dashboard's, and our dashboard without one."""
    texts = _bare_files(lambda unit: booted.run("cat", f"{_UNITS}/{unit}"))
    for path, text in texts.items():
        booted.write(path, text, mode="0755" if path.endswith("bare") else "0644")
    unit = booted.run("cat", f"{_UNITS}/{_DASHBOARD}.service")
    bind = f"pwa-app serve --bind 0.0.0.0:{_PORTS['plain']}"
    plain = unit.replace("pwa-app serve", bind)
    plain = re.sub(rf"^Requires=.*\n|{_DASHBOARD}\.socket", "", plain, flags=re.MULTILINE)
    booted.write(f"{_UNITS}/plain.service", plain)
    booted.run("systemctl", "daemon-reload")
    booted.run("systemctl", "start", "bare.service", "plain.service")


def _bare_files(unit_text: Callable[[str], str]) -> dict[str, str]:
    """The files of a bare app with a unit and a socket as the dashboard's, by path."""
    unit, listening = (unit_text(f"{_DASHBOARD}.{kind}") for kind in ("service", "socket"))
    return {
        "/usr/bin/bare": _BARE,
        f"{_UNITS}/bare.service": unit.replace("pwa-app serve", "bare").replace(
            f"{_DASHBOARD}.socket", "bare.socket"
        ),
        f"{_UNITS}/bare.socket": listening.replace("8089", str(_PORTS["bare"])),
    }


def starting(booted: Machine, runs: int) -> Iterator[Row]:
    """From `systemctl start` to the first answer."""
    taken: dict[str, list[float]] = {"bare": [], _DASHBOARD: [], _WIZARD: []}
    for _ in range(max(runs, STARTS)):
        for name, times in taken.items():
            # Its socket stays open, as in every restart.
            booted.run("systemctl", "stop", f"{name}.service")
            began = time.perf_counter()
            booted.run("systemctl", "start", f"{name}.service")
            _get(name)
            times.append(time.perf_counter() - began)
    bare = statistics.median(taken["bare"])
    for name in (_DASHBOARD, _WIZARD):
        ours = statistics.median(taken[name])
        what = f"{name}: systemctl start to the first answer, against a bare Flask app"
        yield Row(what, ours / bare, "x", 1.6, f"{ours:.3f} s against {bare:.3f} s")


def memory(booted: Machine) -> Row:
    """The memory of both apps after some use; shared pages are counted once."""
    for _ in range(500):
        _get(_DASHBOARD)
        _get(_WIZARD)
    for _ in range(5):
        _get(_DASHBOARD, "/app/dashboard")
    totals = {"Pss": 0, "Rss": 0}
    for name in (_DASHBOARD, _WIZARD):
        group = f"/sys/fs/cgroup/*/system.slice/{name}.service/cgroup.procs"
        for process in set(booted.run("sh", "-c", f"cat {group}").split()):
            told = booted.run("cat", f"/proc/{process}/smaps_rollup")
            for kind in totals:
                totals[kind] += int(re.findall(rf"^{kind}: +([0-9]+)", told, re.MULTILINE)[0])
    detail = f"{totals['Rss'] / 1024:.1f} MiB with what several processes share counted for each"
    return Row("memory of both apps together", totals["Pss"] / 1024, "MiB", 130, detail)


def slow(booted: Machine) -> Iterator[Row]:
    """`/healthz` of the service beside slow clients."""
    for number in SLOW_CLIENTS:
        taken = []
        with slow_clients(_PORTS[_DASHBOARD], number):
            for _ in range(1000):
                began = time.perf_counter()
                _get(_DASHBOARD)
                taken.append(time.perf_counter() - began)
        what = f"/healthz of the service, 99 of 100, beside {number} slow clients"
        yield Row(what, p99(taken) * 1000, "ms", 50, f"{len(taken):,} asked, none failed")
        # Remaining ones must not count for the next.
        booted.run("systemctl", "restart", f"{_DASHBOARD}.service")


def restarting(booted: Machine) -> Row:
    """Requests that fail while the service is restarted, with systemd's socket and without."""
    ended = {name: _restarted(booted, name) for name in (_DASHBOARD, "plain")}
    ours, plain = ended[_DASHBOARD], ended["plain"]
    detail = (
        f"of {ours.answered:,}, the longest {ours.longest_s:.2f} s;"
        f" {plain.failed.total():,} beside {plain.answered:,} without the socket of systemd"
    )
    what = f"requests that failed in {RESTARTS} restarts under load"
    return Row(what, ours.failed.total(), "", 0, detail)


def _restarted(booted: Machine, name: str) -> Results:
    with load(lambda: _quick(name), "/healthz") as ended:
        for _ in range(RESTARTS):
            time.sleep(1)
            booted.run("systemctl", "restart", f"{name}.service")
        time.sleep(1)
    return ended


def _quick(name: str) -> http.client.HTTPConnection:
    return _NoDelay("127.0.0.1", _PORTS[name], timeout=60)


class _NoDelay(http.client.HTTPConnection):
    def connect(self) -> None:
        super().connect()
        assert self.sock is not None
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def measured(runs: int) -> Iterator[Row]:
    """All measurements, on one machine."""
    with _installed() as tree:
        yield size(tree)
        yield booting(tree, runs)
        with (
            writable_tree(tree) as fresh,
            machine(fresh) as booted,
            network_of(booted.init) as network,
            network.inside(),
        ):
            _equal_units(booted)
            yield from starting(booted, runs)
            yield memory(booted)
            yield from slow(booted)
            yield restarting(booted)


def parts(runs: int) -> list[Callable[[], Iterator[Row]]]:
    """The parts of this bench: none without root, who alone can boot a machine."""
    if os.geteuid() != 0:
        print("# the services are left out: booting a machine needs root")
        return []
    return [lambda: measured(runs)]
