"""Reading over HTTP from servers that misbehave."""

from __future__ import annotations

import itertools
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from platform_common.errors import AccessError
from release_tools.hashing import TooLongError, digest_stream
from release_tools.origins.origin import Origin
from release_tools.origins.stream import MissingError, RefusedUrlError, SlowError
from tests.support.raw_server import Answer, RawServer, Request, response
from tests.support.releases import pseudo_random

BODY = pseudo_random(200_000, "body")
TAG = '"one"'
LIMIT = 1 << 20


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("release_tools.origins.http_origin._RESUME_PAUSE_S", 0.0)


def fetch(answer: Answer, *, timeout_s: float = 5.0) -> tuple[bytes, list[Request]]:
    """Fetch from a server with this answer; return the data and the requests."""
    with RawServer(answer) as server:
        data = Origin(timeout_s).read(f"{server.url}/file", LIMIT)
    return data, server.requests


def cut(
    at: int,
    *,
    times: int = 1,
    tags: Iterator[str] | None = None,
    body: bytes = BODY,
    ranges: bool = True,
) -> Answer:
    """Send `at` more bytes and disconnect, `times` times; then send the rest."""
    cuts = itertools.count()
    said = tags or itertools.repeat(TAG)

    def answer(request: Request, connection: socket.socket) -> None:
        start = request.start if ranges else 0
        headers = {"ETag": next(said)}
        status = "200 OK"
        if start:
            status = "206 Partial Content"
            headers["Content-Range"] = f"bytes {start}-{len(body) - 1}/{len(body)}"
        end = request.start + at if next(cuts) < times else len(body)
        connection.sendall(response(body[start:end], status, headers, length=len(body) - start))

    return answer


def _in_chunks(chunks: bytes) -> bytes:
    return response(chunks, headers={"Transfer-Encoding": "chunked"}, length=-1)


_CHUNKS = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (BODY[:9], BODY[9:], b""))
_WHOLE = {
    "whole": response(BODY),
    "of unknown length": response(BODY, length=-1),
    "in chunks": _in_chunks(_CHUNKS),
}


@pytest.mark.parametrize("answer", _WHOLE.values(), ids=_WHOLE)
def test_a_response_is_read_to_its_end(answer: bytes) -> None:
    data, requests = fetch(lambda request, connection: connection.sendall(answer))
    assert data == BODY
    assert requests[0].headers["accept-encoding"] == "identity"


def test_a_broken_download_resumes_where_it_stopped() -> None:
    data, requests = fetch(cut(70_000))
    assert data == BODY
    assert "range" not in requests[0].headers
    assert requests[1].headers["range"] == "bytes=70000-"
    assert requests[1].headers["if-range"] == TAG


def broken(rest: bytes, headers: dict[str, str]) -> Answer:
    """Send a hundred bytes and disconnect; for the next request, send `rest`."""
    begin = response(BODY[:100], headers=headers, length=len(BODY))
    return lambda request, connection: connection.sendall(rest if request.start else begin)


def part(start: int, headers: dict[str, str]) -> bytes:
    """The response with the body from `start` on."""
    headers = headers | {"Content-Range": f"bytes {start}-{len(BODY) - 1}/{len(BODY)}"}
    return response(BODY[start:], "206 Partial Content", headers)


def test_the_date_is_used_to_resume_instead_of_a_weak_etag() -> None:
    headers = {"ETag": 'W/"one"', "Last-Modified": "Sun, 01 Nov 2026 00:00:00 GMT"}
    data, requests = fetch(broken(part(100, headers), headers))
    assert data == BODY
    assert requests[1].headers["if-range"] == headers["Last-Modified"]


def test_a_download_from_a_server_without_ranges_starts_again() -> None:
    data, requests = fetch(cut(70_000, times=2, ranges=False))
    assert data == BODY
    assert len(requests) == 3


def test_reading_skipped_bytes_again_counts_as_progress() -> None:
    def answer(request: Request, connection: socket.socket) -> None:
        if "range" not in request.headers:
            connection.sendall(response(BODY[:100_000], headers={"ETag": TAG}, length=len(BODY)))
            return
        connection.sendall(response(headers={"ETag": TAG}, length=len(BODY)))
        for start in range(0, len(BODY), 10_000):
            connection.sendall(BODY[start : start + 10_000])
            time.sleep(0.04)

    assert fetch(answer, timeout_s=0.5)[0] == BODY


@pytest.mark.parametrize("ranges", [True, False], ids=["ranges", "no-ranges"])
def test_rel_18_parts_of_a_replaced_file_are_not_joined(*, ranges: bool) -> None:
    with pytest.raises(AccessError, match="changed while it was being read"):
        fetch(cut(70_000, tags=iter((TAG, '"two"')), ranges=ranges))


def test_a_wrong_range_or_a_denial_is_unreadable() -> None:
    tag = {"ETag": TAG}
    with pytest.raises(AccessError, match="sent another range"):
        fetch(broken(part(0, tag), tag))
    with pytest.raises(AccessError, match="answers 403"):
        fetch(broken(response(b"", "403 Forbidden"), tag))


def test_a_download_that_always_breaks_at_once_is_abandoned() -> None:
    with RawServer(cut(0, times=100)) as server:
        with pytest.raises(AccessError, match="broke after 0 of 200,000 bytes"):
            Origin().read(f"{server.url}/file", LIMIT)
        assert len(server.requests) == 6


def test_a_download_that_breaks_often_but_progresses_is_finished() -> None:
    body = pseudo_random(9 << 20, "long")
    with RawServer(cut(1 << 20, times=8, body=body)) as server:
        data = Origin().read(f"{server.url}/file", len(body))
    assert data == body
    assert len(server.requests) == 9


def _silence(request: Request, connection: socket.socket) -> None:
    connection.recv(1)


def _stall(request: Request, connection: socket.socket) -> None:
    connection.sendall(response(b"some", length=100))
    connection.recv(1)


def _drip(head: bytes, drop: bytes = b"x") -> Answer:
    def answer(request: Request, connection: socket.socket) -> None:
        connection.sendall(head)
        pause = threading.Event()
        while not pause.wait(0.05):
            connection.sendall(drop)

    return answer


_SLOW: dict[str, Answer] = {
    "no answer": _silence,
    "stall after headers": _stall,
    "drip": _drip(response(length=1000)),
    "drip of unknown length": _drip(response(length=-1)),
    "drip of chunks": _drip(_in_chunks(b""), b"1\r\nx\r\n"),
    "drip of a chunk's size": _drip(_in_chunks(b""), b"0"),
    "drip of headers": _drip(b"HTTP/1.1 200 OK\r\nX: "),
    "drip of the status": _drip(b"HTTP/1.1 200 "),
    "drip of header lines": _drip(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n"),
}


@pytest.mark.parametrize("answer", _SLOW.values(), ids=_SLOW)
def test_rel_17_a_server_that_is_too_slow_is_abandoned_in_time(answer: Answer) -> None:
    started = time.monotonic()
    with pytest.raises(SlowError):
        fetch(answer, timeout_s=0.4)
    assert time.monotonic() - started < 20


def _send(data: bytes) -> Answer:
    return lambda request, connection: connection.sendall(data)


_BROKEN: dict[str, Answer] = {
    "closes at once": _send(b""),
    "garbage": _send(b"\x00\xff\x16\x03\x01" * 50),
    "another protocol": _send(b"SSH-2.0-OpenSSH_9.2\r\n"),
    "giant header": _send(b"HTTP/1.1 200 OK\r\nX: " + b"y" * 2_000_000),
    "too many headers": _send(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 100_000),
    "two lengths": _send(
        b"HTTP/1.1 200 OK\r\n" + b"Content-Length: 5\r\nContent-Length: 9\r\n\r\nabcdefghi"
    ),
    "broken chunks": _send(_in_chunks(b"zz\r\n")),
    "chunks that stop": _send(_in_chunks(b"9\r\nabc")),
}


@pytest.mark.parametrize("answer", _BROKEN.values(), ids=_BROKEN)
def test_a_response_that_is_not_http_is_unreadable(answer: Answer) -> None:
    with pytest.raises(AccessError, match=r"^http://127\.0\.0\.1:[0-9]+/file: .{5,80}$"):
        fetch(answer)


@pytest.mark.parametrize("status", ["404 Not Found", "410 Gone"])
def test_a_file_that_does_not_exist_is_missing(status: str) -> None:
    with pytest.raises(MissingError, match=f"answers {status[:3]}"):
        fetch(_send(response(b"no", status)))


@pytest.mark.parametrize(
    "status",
    ["204 No Content", "304 Not Modified", "301 No Location", "401 Who", "403 Forbidden",
     "416 Range", "429 Slow down", "500 Oops", "503 Busy"],
)  # fmt: skip
def test_any_other_status_is_unreadable(status: str) -> None:
    with pytest.raises(AccessError, match=f"answers {status[:3]}") as caught:
        fetch(_send(response(b"", status)))
    assert not isinstance(caught.value, MissingError)


def test_pub_11_a_compressed_response_is_refused() -> None:
    with pytest.raises(AccessError, match=r"re-encodes it \('gzip'\)"):
        fetch(_send(response(BODY, headers={"Content-Encoding": "gzip"})))


def test_a_file_larger_than_its_limit_is_refused() -> None:
    with pytest.raises(AccessError, match="larger than 1,048,576 bytes"):
        fetch(_send(response(bytes(LIMIT + 1))))


def _endless(server_sent: list[int]) -> Answer:
    def answer(request: Request, connection: socket.socket) -> None:
        connection.sendall(response(length=-1))
        while True:
            connection.sendall(bytes(1 << 16))
            server_sent[0] += 1 << 16

    return answer


def test_rel_14_an_endless_response_is_cut_off_at_its_limit() -> None:
    sent, taken = [0], [0]
    with RawServer(_endless(sent)) as server, Origin().open(f"{server.url}/file") as stream:

        def readinto(buffer: memoryview) -> int:
            count = stream.readinto(buffer)
            taken[0] += count
            return count

        with pytest.raises(TooLongError):
            digest_stream(readinto, limit_bytes=300_000)
    assert taken[0] <= 300_000 + (1 << 20)
    assert sent[0] < 64 << 20


def redirecting(*onward: str) -> Answer:
    """Redirect /file to each of `onward` in turn, and answer the last with the body."""
    places = {"/file": onward[0]} | dict(itertools.pairwise(onward))

    def answer(request: Request, connection: socket.socket) -> None:
        place = places.get(request.path)
        if place is None:
            connection.sendall(response(BODY))
        else:
            connection.sendall(response(b"", "301 Moved", {"Location": place}))

    return answer


def test_three_redirects_are_followed() -> None:
    data, requests = fetch(redirecting("/a", "/b", "/c"))
    assert data == BODY
    assert [request.path for request in requests] == ["/file", "/a", "/b", "/c"]


@pytest.mark.parametrize(
    "onward", [("/a", "/b", "/c", "/d"), ("/file", "/file")], ids=["4", "loop"]
)
def test_rel_16_more_redirects_are_refused(onward: tuple[str, ...]) -> None:
    with pytest.raises(AccessError, match="more than 3 redirects"):
        fetch(redirecting(*onward))


@pytest.mark.parametrize(
    "onward", ["file:///etc/passwd", "ftp://127.0.0.1/x", "javascript:x", "s3://bucket/x"]
)
def test_rel_16_a_redirect_to_another_scheme_is_refused(onward: str) -> None:
    with pytest.raises(RefusedUrlError, match="the server redirects from http to"):
        fetch(redirecting(onward))


def test_a_refused_connection_is_reported_without_the_password() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(AccessError, match=r":[0-9]+/file: Connection refused$") as caught:
        Origin().read(f"http://user:hidden@127.0.0.1:{port}/file?token=hidden", LIMIT)
    assert "hidden" not in caught.value.message
