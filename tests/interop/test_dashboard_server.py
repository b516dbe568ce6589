"""The dashboard as installed: gunicorn, tested over raw sockets."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import resource
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.interop.conftest import call
from tests.support.network import free_port
from tests.support.network_namespaces import connected, new_network
from tests.support.releases import clean_environment, program
from tests.support.waiting import wait_until
from tests.support.web_servers import Served, served

SECONDS = 60
GUNICORN = (program("gunicorn"), "-c", "python:platform_common.web.gunicorn_conf")
OK = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
STUB = {"PWA_DEV_STUB": "1"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One server for all of these tests; it must survive them."""
    folder = tmp_path_factory.mktemp("served")
    (folder / "device").mkdir()
    variables = STUB | {"PLATFORM_ROOT": str(folder / "device"), "WEB_CONCURRENCY": "4"}
    with served("pwa-app", variables, folder / "log") as running:
        yield running


def ask(port: int, data: bytes, *, end: bool = True) -> bytes:
    """Send `data` and, if `end`, nothing more; return the whole response."""
    with socket.create_connection(("127.0.0.1", port), SECONDS) as connection:
        answer = b""
        # A server that refuses a request may close the connection before reading all of it.
        with contextlib.suppress(ConnectionError):
            connection.sendall(data)
            if end:
                connection.shutdown(socket.SHUT_WR)
            while part := connection.recv(65536):
                answer += part
        return answer


def status(answer: bytes) -> int:
    """The status of a response; 0 for a connection that was closed without one."""
    return int(answer.split(b" ", 2)[1]) if answer else 0


def request(*lines: bytes, first: bytes = b"GET /healthz HTTP/1.1", body: bytes = b"") -> bytes:
    return b"\r\n".join([first, b"Host: localhost", *lines, b"", body])


def post(*lines: bytes, body: bytes = b"") -> bytes:
    form = b"Content-Type: application/x-www-form-urlencoded"
    return request(form, *lines, first=b"POST /preferences HTTP/1.1", body=body)


CHUNKED = b"Transfer-Encoding: chunked"
FIRST_LINES = (
    *(b"GET", b"GET /healthz", b"GET  /healthz HTTP/1.1", b" GET /healthz HTTP/1.1"),
    *(b"GET /healthz HTTP/1.1 x", b"GET /heal thz HTTP/1.1", b"GET /healthz HTTP/9.9"),
    *(b"GET /healthz HTTP/1.", b"GET /healthz HTTP/01.1", b"GET /healthz http/1.1"),
    *(b"GET /healthz HTTPS/1.1", b"GET healthz HTTP/1.1", b"GET ?healthz HTTP/1.1"),
    *(b"GET * HTTP/1.1", b"G\x00T /healthz HTTP/1.1", b"G:T /healthz HTTP/1.1"),
    *(b"get /healthz HTTP/1.1", b"GET /healthz\x00 HTTP/1.1", b"GET /health\xffz HTTP/1.1"),
    *(b"GET /healthz%00 HTTP/1.1", b"GET /healthz%0a HTTP/1.1", b"GET /%68ealthz%zz HTTP/1.1"),
    *(b"GET /static/%2e%2e/%2e%2e/etc/passwd HTTP/1.1", b"GET /static/../../etc/passwd HTTP/1.1"),
    b"GET /static/%252e%252e%252fetc%252fpasswd HTTP/1.1",
    b"GET /static/%c0%ae%c0%ae/etc/passwd HTTP/1.1",
    *(b"GET //evil.example/healthz HTTP/1.1", b"CONNECT evil.example:443 HTTP/1.1"),
    *(b"GET /" + b"a" * length + b" HTTP/1.1" for length in (65536, 4094)),
    b"TRACE /healthz HTTP/1.1\r\nX-Probe: echo",
)
HOSTS = (
    *(b"", b"Host:", b"Host: localhost\r\nHost: evil.example", b"Host: local\x00host"),
    *(b"Host: evil.example\r\nHost: localhost", b"Host: localhost evil.example"),
    *(b"Host: user@localhost", b"Host: " + b"a" * 300, b"Host: localhost\xff"),
)
HEADERS = (
    *(b"X-A : b", b"X A: b", b": b", b"no colon", b"X-A: b\r\n folded", b"X-A: b\x00c"),
    *(b"X-A: b\rc", b"X-\xc3\xa9: b", b"X(A): b", b"X-A: " + b"b" * 65536),
    *(b"\r\n".join(b"X-%d: b" % number for number in range(200)), b"Expect: 200-nonsense"),
)
LENGTHS = (
    *(b"-1", b"+10", b"1e1", b"0x0a", b"ten", b"10, 10", b"10\r\nContent-Length: 11"),
    *(b"\xb2", b"10 0", b"9" * 40, b"1073741824", b"100"),
)
ENCODINGS = (
    *(b"identity, chunked, identity", b"chunked, gzip", b"xchunked", b"\x0bchunked"),
    *(b"chunked\r\n ,", b"chunked\r\nTransfer-Encoding: chunked"),
    b"chunked\r\nContent-Length: 4",
)
CHUNKS = (
    *(b"z\r\n\r\n", b"-1\r\n\r\n", b"0x4\r\nabcd\r\n0\r\n\r\n", b"4\r\nabcdefgh\r\n0\r\n\r\n"),
    *(b"ffffffffffffffffffff\r\nabcd\r\n0\r\n\r\n", b"4;" + b"x" * 20_000, b"4\r\nab"),
    (b"40000\r\n" + b"x" * 0x40000 + b"\r\n") * 2,
)
MALFORMED = [
    *(b"\r\n\r\n\r\n", b"\x00" * 100, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 200,
    *(request(first=line) for line in FIRST_LINES),
    *(b"GET /healthz HTTP/1.1\r\n" + host + b"\r\n\r\n" for host in HOSTS),
    *(request(header) for header in HEADERS),
    b"GET /healthz HTTP/1.0\r\n\r\n",
    b"GET /healthz HTTP/1.1\nHost: localhost\n\n",
    b"GET /healthz HTTP/1.1\r\nX-A: b\nHost: localhost\n\r\n\r\n",
    b"PROXY TCP4 1.2.3.4 1.2.3.4 1 2\r\n" + request(),
    *(post(b"Content-Length: " + length, body=b"theme=dark") for length in LENGTHS),
    *(post(b"Transfer-Encoding: " + word, body=b"0\r\n\r\n") for word in ENCODINGS),
    post(b"Content-Length: 4", CHUNKED, body=b"0\r\n\r\n"),
    *(post(CHUNKED, body=body) for body in CHUNKS),
    b"POST /preferences HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
]


@pytest.mark.parametrize("data", MALFORMED, ids=range(len(MALFORMED)))
def test_http_03_and_05_http_06_malformed_requests_are_refused(server: Served, data: bytes) -> None:
    answer = ask(server.port, data)
    found = status(answer)
    assert found == 0 or 400 <= found < 500 or found in (501, 505), answer[:200]
    for leaked in (b"\r\n\r\nok", b"root:", b"X-Probe"):
        assert leaked not in answer
    assert status(ask(server.port, OK)) == 200


def test_http_03_a_second_request_in_a_body_is_not_answered(server: Served) -> None:
    hidden = b"0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    for lines in ((b"Content-Length: 5", CHUNKED), (CHUNKED, b"Content-Length: 50")):
        assert b"\r\n\r\nok" not in ask(server.port, post(*lines, body=hidden))


def test_http_08_no_header_changes_the_path(server: Served) -> None:
    for line in (b"SCRIPT_NAME: /healthz", b"PATH_INFO: /healthz", b"Script-Name: /x"):
        answer = ask(server.port, request(line, first=b"GET /nowhere HTTP/1.1"))
        assert status(answer) in (400, 404)
        assert b"\r\n\r\nok" not in answer


def test_http_03_an_endless_body_is_cut_off(server: Served) -> None:
    sent = 0
    with socket.create_connection(("127.0.0.1", server.port), SECONDS) as connection:
        connection.sendall(post(CHUNKED, b"Connection: close"))
        with contextlib.suppress(ConnectionError):
            while sent < 64 << 20:
                connection.sendall(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")
                sent += 0x10000
    assert sent < 64 << 20


def test_leak_02_the_log_has_one_line_per_event_and_no_values(server: Served) -> None:
    before = server.log.stat().st_size
    secret = b"canary-4711"
    for data in (
        b"GET /?token=" + secret + b"\x00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /?" + secret + b" x HTTP/1.1\r\nHost: localhost\r\n\r\n",
        request(b"Authorization: " + secret + b"\x1b[31m\x00"),
        request(b"X-A(" + secret + b"): b"),
        request(b"User-Agent: " + secret + b"\x1b[31m\x0d\x0a[2026] forged"),
    ):
        ask(server.port, data)
    new = server.log.read_bytes()[before:]
    assert secret not in new
    assert b"\x1b" not in new
    assert b"forged" not in new
    for line in new.splitlines():
        assert re.fullmatch(rb"\[[^]]+\] \[\d+\] \[WARNING\] Invalid request from [^\n]+", line)


@contextlib.contextmanager
def connections(port: int, number: int) -> Iterator[list[socket.socket]]:
    """Open this number of connections at once."""
    with contextlib.ExitStack() as opened:
        address = ("127.0.0.1", port)
        yield [
            opened.enter_context(socket.create_connection(address, SECONDS)) for _ in range(number)
        ]


@contextlib.contextmanager
def slow_clients(port: int, number: int) -> Iterator[None]:
    """Slow connections of four kinds."""
    # How each kind begins, and what it keeps sending.
    manners = (
        (b"", b""),
        (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n", b"X-A: b\r\n"),
        (post(b"Content-Length: 100000", body=b"theme="), b"x"),
        (b"GET /static/style.css HTTP/1.1\r\nHost: localhost\r\n\r\n" * 8, b""),
    )
    over = threading.Event()

    def drip() -> None:
        while not over.wait(0.5):
            for connection, (_, more) in zip(opened, itertools.cycle(manners), strict=False):
                with contextlib.suppress(OSError):
                    connection.sendall(more)

    with connections(port, number) as opened:
        for connection, (begun, _) in zip(opened, itertools.cycle(manners), strict=False):
            connection.sendall(begun)
        dripping = threading.Thread(target=drip)
        dripping.start()
        try:
            yield
        finally:
            over.set()
            dripping.join()


def health_times(port: int, number: int) -> list[float]:
    """The times of `number` successive requests, each answered with `ok`."""
    times = []
    for _ in range(number):
        began = time.monotonic()
        assert ask(port, OK, end=False).endswith(b"\r\n\r\nok")
        times.append(time.monotonic() - began)
    return times


@pytest.mark.long
def test_http_01_200_slow_clients_do_not_block_others(server: Served) -> None:
    with slow_clients(server.port, 200):
        times = sorted(health_times(server.port, 200))
    # Benchmarks measure the time; here no request may wait for a byte of a slow client.
    assert times[-2] < 2


@pytest.fixture
def many_files() -> Iterator[None]:
    """Let these tests open many files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.long
def test_http_01_clients_that_do_not_hang_up_do_not_block_others(server: Served) -> None:
    with connections(server.port, 200) as opened:
        for connection in opened:
            connection.sendall(OK)
        times = sorted(health_times(server.port, 20))
    # The server waits two seconds for each of them to hang up, in a separate thread.
    assert times[-1] < 1.5


@pytest.mark.long
@pytest.mark.usefixtures("many_files")
def test_http_02_a_thousand_simultaneous_requests_are_answered(server: Served) -> None:
    with connections(server.port, 1000) as opened:
        for connection in opened:
            connection.sendall(OK.replace(b"close", b"keep-alive"))
        answers = [connection.recv(65536) for connection in opened]
    assert {status(answer) for answer in answers} == {200}


@pytest.mark.long
@pytest.mark.usefixtures("many_files")
def test_http_02_the_server_recovers_from_more_connections_than_it_can_hold(server: Served) -> None:
    # More connections than the server can hold.
    with connections(server.port, 1300) as opened:
        for number, connection in enumerate(opened):
            # A refused connection may already be closed.
            with contextlib.suppress(ConnectionError):
                connection.sendall(OK[: 10 if number % 2 else 40])
    assert health_times(server.port, 20)
    assert server.process.poll() is None


def workers(server: Served) -> list[Path]:
    """The folders in /proc of the server's worker processes."""
    pid = server.process.pid
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [Path(f"/proc/{child}") for child in children]


def test_http_02_the_server_uses_little_memory(server: Served) -> None:
    pages = sum(int((one / "statm").read_text().split()[1]) for one in workers(server))
    assert pages * resource.getpagesize() < 150 << 20


def test_key_17_the_server_always_has_one_process(server: Served) -> None:
    before = workers(server)
    assert len(before) == 1  # With WEB_CONCURRENCY=4.
    os.kill(server.process.pid, signal.SIGTTIN)
    time.sleep(1.5)
    assert workers(server) == before


def test_the_served_process_leaves_no_core_file(server: Served) -> None:
    for process in (Path(f"/proc/{server.process.pid}"), *workers(server)):
        (line,) = re.findall(r"Max core file size +(\S+)", (process / "limits").read_text())
        assert int(line) <= 1


def finish(
    *words: str, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> tuple[int, str]:
    """Run a server that must not start; return its status and its output."""
    done = call(*words, env=STUB | dict(env or {}), cwd=cwd)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout + done.stderr


SERVE = (program("pwa-app"), "serve")


@pytest.mark.parametrize(
    ("bind", "code", "said"),
    [
        ("nonsense", 2, "'nonsense' is not an address to listen on"),
        ("127.0.0.1", 2, "not an address to listen on"),
        ("127.0.0.1:65536", 2, "not an address to listen on"),
        ("127.0.0.1:-1", 2, "not an address to listen on"),
        ("::1:8089", 2, "not an address to listen on"),
        ("fd://x", 2, "not an address to listen on"),
        ("", 2, "not an address to listen on"),
        ("192.0.2.1:8089", 1, "192.0.2.1:8089 is not an address of this machine"),
        ("no-such-host.invalid:8089", 1, "There is no address for no-such-host.invalid"),
        ("unix:/nonexistent/s", 1, "/nonexistent is not a folder"),
        ("unix:/etc/passwd", 2, "/etc/passwd is a file, not a socket"),
        ("127.0.0.1:{in_use}", 1, "Another program already listens on 127.0.0.1:{in_use}"),
    ],
)
def test_an_unavailable_address_is_reported_in_a_sentence(
    bind: str, code: int, said: str, server: Served
) -> None:
    found, told = finish(*SERVE, "--bind", bind.format(in_use=server.port))
    assert found == code
    assert told.startswith("error: ")
    assert said.format(in_use=server.port) in told
    assert len(told.splitlines()) <= 2


@pytest.mark.parametrize(
    ("variables", "code", "said"),
    [
        ({"FLASK_DEBUG": "1"}, 2, "This app does not run in debug mode"),
        ({"GUNICORN_CMD_ARGS": "--workers 2"}, 2, "run it with one worker"),
        ({"PLATFORM_ALLOWED_HOSTS": "https://x.example"}, 2, "which is not a host name"),
        ({"GUNICORN_CMD_ARGS": "--certfile /nonexistent"}, 1, "/nonexistent"),
    ],
    ids=str,
)
def test_http_19_and_key_17_refused_settings_are_reported_in_a_sentence(
    variables: dict[str, str], code: int, said: str
) -> None:
    found, told = finish(*SERVE, "--bind", f"127.0.0.1:{free_port()}", env=variables)
    assert (found, said in told) == (code, True), told


def test_a_missing_package_is_named(tmp_path: Path) -> None:
    (tmp_path / "gunicorn").mkdir()
    (tmp_path / "gunicorn/__init__.py").write_text(
        "raise ModuleNotFoundError(\"No module named 'gunicorn'\", name='gunicorn')\n"
    )
    code, told = finish(*SERVE, env={"PYTHONPATH": str(tmp_path)})
    assert code == 1
    assert "The package gunicorn is not installed" in told
    assert "platform-appliance[web,push]" in told


def test_key_17_gunicorn_with_our_settings_also_refuses_more_workers() -> None:
    bind = ("--bind", f"127.0.0.1:{free_port()}")
    code, told = finish(*GUNICORN, *bind, "--workers", "2", "pwa_app.wsgi:app")
    assert (code, "run it with one worker" in told) == (1, True), told


def test_no_module_in_the_current_folder_replaces_an_installed_one(
    tmp_path: Path,
) -> None:
    for name in ("flask", "jinja2", "babel", "gunicorn.conf"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('taken over')\n")
    assert "not an address to listen on" in finish(*SERVE, "--bind", "nonsense", cwd=tmp_path)[1]


def test_the_server_answers_waiting_requests_before_it_ends(tmp_path: Path) -> None:
    slow = tmp_path / "platformctl"
    began = tmp_path / "began"
    slow.write_text(f"#!/bin/sh\ntouch {began}\nsleep 2\necho '{{}}'\n")
    slow.chmod(0o755)
    variables = {"PLATFORM_CTL": str(slow), "PLATFORM_ROOT": str(tmp_path)}
    answers: list[bytes] = []
    with served("pwa-app", variables, tmp_path / "log") as running:
        page = request(b"Connection: close", first=b"GET /app/dashboard HTTP/1.1")
        waiting = threading.Thread(
            target=lambda: answers.append(ask(running.port, page, end=False))
        )
        waiting.start()
        wait_until(began.exists)
        running.process.send_signal(signal.SIGTERM)
        waiting.join()
        assert running.process.wait(SECONDS) == 0
        with pytest.raises(ConnectionRefusedError):
            ask(running.port, OK)
    assert [status(answer) for answer in answers] == [200]
    assert "Traceback" not in running.log.read_text()


def answer_of(family: int, address: str | tuple[str, int]) -> bytes:
    """The response at an address, once something listens there."""
    with connected(family, address) as connection:
        connection.sendall(OK)
        return b"".join(iter(lambda: connection.recv(65536), b""))


@pytest.mark.parametrize("host", ["[::1]", "unix"])
def test_the_server_listens_at_the_given_address(host: str, tmp_path: Path) -> None:
    path, port = tmp_path / "socket", free_port()
    bind = f"unix:{path}" if host == "unix" else f"{host}:{port}"
    env = clean_environment() | STUB
    # This network has IPv6, even if the machine does not.
    with (
        new_network(up=True) as own,
        own.inside(),
        subprocess.Popen([*SERVE, "--bind", bind], env=env) as process,
    ):
        try:
            family = socket.AF_UNIX if host == "unix" else socket.AF_INET6
            address: str | tuple[str, int] = str(path) if host == "unix" else ("::1", port)
            assert answer_of(family, address).endswith(b"\r\n\r\nok")
        finally:
            process.terminate()
        assert process.wait(SECONDS) == 0
    assert not path.exists()


@pytest.mark.long
def test_the_server_works_with_a_low_limit_on_open_files(tmp_path: Path) -> None:
    few = ("prlimit", "--nofile=512:512")
    with served("pwa-app", STUB, tmp_path / "log", before=few) as running:
        with connections(running.port, 400):
            # By then it has accepted them.
            assert health_times(running.port, 5)
        assert running.process.poll() is None
    assert running.process.returncode == 0
    assert "rror" not in running.log.read_text()


def test_fs_02_on_read_only_disks_the_server_starts_and_shows_the_page(tmp_path: Path) -> None:
    (tmp_path / "device").mkdir()
    variables = STUB | {"PLATFORM_ROOT": str(tmp_path / "device")}
    # Mounts of this process only, which end with it.
    shell = ("unshare", "-m", "sh", "-c", 'mount -o remount,bind,ro / && exec "$@"', "sh")
    with served("pwa-app", variables, tmp_path / "log", before=shell) as running:
        answer = ask(running.port, OK.replace(b"/healthz", b"/app/dashboard"))
        assert status(answer) == 200, running.log.read_text()
