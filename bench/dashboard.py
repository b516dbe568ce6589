"""Measures the served dashboard against a bare Flask app under the same gunicorn."""

from __future__ import annotations

import contextlib
import json
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.measuring import Row
from bench.serving import Server, ask, at_once, children, p99, rate, running, sampling

PAGE = "/app/dashboard"
VIEWERS = 32
SLOW_CLIENTS = 200
REQUESTS = 20_000
_CALL_S = 0.2
_LOAD_S = 6
_CALL = """\
#!{python} -IS
import os, time
time.sleep({seconds})
os.write(1, b"[]" if "list" in os.sys.argv else b"{{}}")
"""


def slow_calls(folder: Path, runs: int) -> Iterator[Row]:
    """Five calls of 200 ms each: one viewer, and many at once."""
    device = folder / "device"
    device.mkdir()
    ctl = device / "platformctl"
    ctl.write_text(_CALL.format(python=sys.executable, seconds=_CALL_S))
    ctl.chmod(0o755)
    with running("pwa_app.wsgi:app", device, PLATFORM_CTL=str(ctl)) as server:
        server.get(PAGE)
        calls, pages = [], []
        for _ in range(runs):
            began = time.perf_counter()
            subprocess.run([ctl, "status", "--json"], check=True, stdout=subprocess.DEVNULL)
            calls.append(time.perf_counter() - began)
            pages.append(server.seconds(PAGE))
        call, page = statistics.median(calls), statistics.median(pages)
        what = f"{PAGE} with five calls of 200 ms, against one of them"
        yield Row(what, page / call, "x", 1.25, f"{page:.3f} s against {call:.3f} s")
        (worker,) = children(server.process.pid)
        with sampling(lambda: len(children(worker))) as alive:
            many = at_once(VIEWERS, lambda: server.seconds(PAGE))
        what = f"{VIEWERS} viewers at once: programs alive at once"
        yield Row(what, max(alive), "", 5, f"{len(alive)} looks")
        slowest = max(many)
        what = f"{VIEWERS} viewers at once: the last answer, against one viewer"
        yield Row(what, slowest / page, "x", 1.6, f"{slowest:.3f} s against {page:.3f} s")
        yield health_under_load(server)


def health_under_load(server: Server) -> Row:
    """`/healthz` while pages are requested and slow clients hold connections."""
    rest = p99([server.seconds("/healthz") for _ in range(300)])
    taken = []
    with slow_clients(server.port), viewing(server) as viewers:
        while viewers.poll() is None:
            taken.append(server.seconds("/healthz"))
            time.sleep(0.01)
    loaded = p99(taken)
    what = f"/healthz, 99 of 100 under {VIEWERS} viewers and {SLOW_CLIENTS} slow clients"
    return Row(what, loaded * 1000, "ms", 50, f"{len(taken)} asked; at rest {rest * 1000:.1f} ms")


@contextlib.contextmanager
def viewing(server: Server) -> Iterator[subprocess.Popen[bytes]]:
    """A program that requests the page like many viewers, repeatedly for some seconds."""
    # Not threads of this process, which would slow down what it measures.
    load = ("wrk", "--threads", "1", "--connections", f"{VIEWERS}", "--duration", f"{_LOAD_S}s")
    command = [*load, "--timeout", "10s", f"http://127.0.0.1:{server.port}{PAGE}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        yield process
        assert process.stdout is not None
        said = process.stdout.read().decode()
    if process.returncode or "Non-2xx" in said:
        raise SystemExit(f"the viewers got no pages: {said}")


def rendering(folder: Path, runs: int) -> Iterator[Row]:
    """Pages per second, and memory, against a bare page of the same size."""
    with running("bench.apps:dashboard()", folder) as ours:
        size = len(ours.get(PAGE))
        with running("bench.bare:bare()", folder, BARE_PAGE_BYTES=str(size)) as bare:
            bare_size = len(bare.get("/page"))
            rates: tuple[list[float], list[float]] = ([], [])
            for _ in range(runs):
                rates[0].append(rate(ours, PAGE))
                rates[1].append(rate(bare, "/page"))
            first, second = map(statistics.median, rates)
            # A row has an upper bound: this is 1 / 0.6.
            what = "pages a second of a bare app, of that size, against ours"
            detail = f"{second:.0f}/s against {first:.0f}/s, {bare_size:,} and {size:,} bytes"
            yield Row(what, second / first, "x", 1.667, detail)
    yield from memory(folder, size)


def memory(folder: Path, size: int) -> Iterator[Row]:
    """Memory of fresh servers after many requests."""
    with running("bench.apps:dashboard()", folder) as ours:
        ask(ours, PAGE, REQUESTS * 3 // 4)
        before = ours.memory_mib()
        ask(ours, PAGE, REQUESTS // 4)
        after = ours.memory_mib()
    with running("bench.bare:bare()", folder, BARE_PAGE_BYTES=str(size)) as bare:
        ask(bare, "/page", REQUESTS)
        bare_mib = bare.memory_mib()
    what = f"memory after {REQUESTS:,} requests, against a bare Flask app"
    yield Row(what, after / bare_mib, "x", 1.5, f"{after:.1f} MiB against {bare_mib:.1f} MiB")
    yield Row("its growth in the last quarter of them", after - before, "MiB", 1, "")


def on_the_wire(folder: Path, runs: int) -> Iterator[Row]:
    """The compressed size of what every page needs."""
    from bench.apps import dashboard

    files = dashboard().extensions["assets"].files
    for suffix, bound in ((".css", 14), (".js", 8)):
        sizes = {name: len(f.compressed) for name, f in files.items() if name.endswith(suffix)}
        detail = ", ".join(f"{name} {size:,}" for name, size in sorted(sizes.items()))
        what = f"all {suffix} files on the wire, gzip"
        yield Row(what, sum(sizes.values()) / 1024, "KiB", bound, detail)


def lighthouse_scores(folder: Path, runs: int) -> Iterator[Row]:
    """The points that Lighthouse deducts."""
    from bench.lighthouse import scores

    with running("bench.apps:dashboard()", folder) as ours:
        found = scores(f"http://127.0.0.1:{ours.port}{PAGE}")
    for name, bound in (("performance", 0.05), ("accessibility", 0.0), ("best-practices", 0.0)):
        what = f"Lighthouse {name}, short of 1"
        yield Row(what, round(1 - found[name], 4), "", bound, f"{found[name]:.2f}")


def parts(folder: Path, runs: int) -> list[Callable[[], Iterator[Row]]]:
    """The parts of this bench, each of which may fill `folder`."""
    return [
        lambda part=part: part(folder, runs)  # type: ignore[misc]  # a default holds the part
        for part in (slow_calls, rendering, on_the_wire, lighthouse_scores)
    ]


@contextlib.contextmanager
def slow_clients(port: int, number: int = SLOW_CLIENTS) -> Iterator[None]:
    """Clients that send nothing, or a header or a body very slowly, until the block ends."""
    beginnings = (
        b"",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
        b"POST /app/keys/rotate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999\r\n\r\na",
    )
    over = threading.Event()
    with contextlib.ExitStack() as opened:
        drips = []
        for index in range(number):
            client = opened.enter_context(socket.create_connection(("127.0.0.1", port)))
            client.sendall(beginnings[index % 3])
            if index % 3:
                drips.append(client)

        def drip() -> None:
            while not over.wait(1):
                for client in drips:
                    with contextlib.suppress(OSError):
                        client.sendall(b"a")

        thread = threading.Thread(target=drip)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


def main() -> None:
    """Print the rows as JSON, for a look at one part."""
    for part in parts(Path(sys.argv[1]), 3):
        for row in part():
            print(json.dumps([row.what, round(row.value, 3), row.unit, row.must_be, row.detail]))


if __name__ == "__main__":
    main()
