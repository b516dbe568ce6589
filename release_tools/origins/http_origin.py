"""Reading over HTTP: bounded in time, resumed where the connection broke."""

from __future__ import annotations

import contextlib
import threading
import time
from queue import Empty, SimpleQueue
from urllib.parse import urljoin, urlsplit

import requests
from urllib3 import HTTPResponse
from urllib3.exceptions import HTTPError, ReadTimeoutError

from platform_common.errors import AccessError
from release_tools.origins.stream import (
    SLOWEST_BYTES_PER_S,
    MissingError,
    RefusedUrlError,
    SlowError,
)
from release_tools.origins.urls import show_url

_CONNECT_TIMEOUT_S = 10.0
_MAX_REDIRECTS = 3
_MAX_RESUMES = 5
_RESUME_PAUSE_S = 0.5
_PROGRESS_THAT_COUNTS_BYTES = 1 << 20


def open_http(
    url: str, timeout_s: float, sessions: threading.local
) -> contextlib.closing[HttpStream]:
    """Open `url`; `sessions` keeps a session for each thread, as requests cannot share one."""
    if not hasattr(sessions, "of_thread"):
        sessions.of_thread = requests.Session()
    return contextlib.closing(HttpStream(sessions.of_thread, url, timeout_s))


class HttpStream:
    """An HTTP download that resumes with Range requests (RFC 9110, section 14)."""

    size: int | None

    def __init__(self, session: requests.Session, url: str, timeout_s: float) -> None:
        self._session, self._url, self._timeout_s = session, url, timeout_s
        self._position = 0
        self._resumes = 0
        self._resumed_at = 0
        self._received = 0
        self._too_slow = False
        self._closed = threading.Event()
        self._response = self._get({})
        self._validator = _validator(self._response)
        self.size = _length(self._response)
        threading.Thread(target=self._watch_pace, daemon=True).start()

    def close(self) -> None:
        """Close the connection."""
        self._closed.set()
        self._response.close()

    def readinto(self, buffer: memoryview) -> int:
        """See `Stream`."""
        while (data := self._read(len(buffer))) is None:
            self._resume()
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)

    def _read(self, count: int) -> bytes | None:
        """Return some bytes, none at the end, or None if the connection broke."""
        raw: HTTPResponse = self._response.raw
        try:
            data = raw.read1(count, decode_content=False)
        except ReadTimeoutError as error:
            raise self._slow() from error
        except (HTTPError, OSError, ValueError):
            data = None
        if self._too_slow:
            raise self._slow()
        if data is None or (not data and self.size is not None and self._position < self.size):
            return None
        self._received += len(data)
        return data

    def _watch_pace(self) -> None:
        """End a download that is too slow, wherever the reading thread is waiting.

        A socket's own timeout is not enough: it starts again with every byte, even within the
        line that gives a chunk's length.
        """
        while True:
            began_s, received = time.monotonic(), self._received
            if self._closed.wait(self._timeout_s):
                return
            if time.monotonic() - began_s > 2 * self._timeout_s:
                continue  # This process itself was suspended.
            if self._received - received < SLOWEST_BYTES_PER_S * self._timeout_s:
                self._too_slow = True
                # urllib3 raises if the response has already returned its connection.
                with contextlib.suppress(OSError, ValueError, RuntimeError):
                    self._response.raw.shutdown()
                return

    def _slow(self) -> SlowError:
        return SlowError(
            f"{show_url(self._url)}: the server sent less than 1 KiB/s for {self._timeout_s:g} s"
        )

    def _resume(self) -> None:
        if self._position - self._resumed_at >= _PROGRESS_THAT_COUNTS_BYTES:
            self._resumes = 0
        self._resumes += 1
        self._resumed_at = self._position
        if self._resumes > _MAX_RESUMES:
            size = f" of {self.size:,}" if self.size is not None else ""
            raise AccessError(
                f"{show_url(self._url)}: the connection broke after {self._position:,}{size} bytes"
            )
        time.sleep(_RESUME_PAUSE_S * (self._resumes - 1))
        self._response.close()
        headers = {"Range": f"bytes={self._position}-"} if self._position else {}
        if headers and self._validator:
            headers["If-Range"] = self._validator
        self._response = self._get(headers)
        # A server ignores the range, and answers 200, if If-Range no longer matches.
        if _validator(self._response) != self._validator:
            raise AccessError(f"{show_url(self._url)} changed while it was being read")
        if self._response.status_code == 206:
            said = self._response.headers.get("Content-Range", "")
            if not said.startswith(f"bytes {self._position}-"):
                raise AccessError(f"{show_url(self._url)}: the server sent another range")
        else:
            self._skip(self._position)

    def _skip(self, count: int) -> None:
        # The server does not support ranges: discard what was already read.
        while count:
            data = self._read(min(count, 1 << 20))
            if not data:
                raise AccessError(f"{show_url(self._url)}: the connection broke again")
            count -= len(data)

    def _get(self, headers: dict[str, str]) -> requests.Response:
        url = self._url
        for _ in range(_MAX_REDIRECTS + 1):
            try:
                # Digests and ranges count the stored bytes, so the server must not compress them.
                response = self._request(url, {"Accept-Encoding": "identity", **headers})
            except (requests.Timeout, Empty) as error:
                raise SlowError(f"{show_url(url)}: the server does not answer") from error
            except (requests.RequestException, ValueError, OSError) as error:
                raise AccessError(f"{show_url(url)}: {_cause(error)}") from error
            if not response.is_redirect:
                _refuse_response(url, response)
                return response
            response.close()
            target = urljoin(url, response.headers["Location"])
            schemes = urlsplit(url).scheme, urlsplit(target).scheme
            if schemes[1] not in ("http", "https") or schemes == ("https", "http"):
                raise RefusedUrlError(
                    f"{show_url(url)}: the server redirects from {schemes[0]} to {schemes[1]}"
                )
            url = target
        raise AccessError(f"{show_url(self._url)}: more than {_MAX_REDIRECTS} redirects")

    def _request(self, url: str, headers: dict[str, str]) -> requests.Response:
        """Send a request on its own thread: no timeout of requests bounds slow response headers."""
        connect_s = min(_CONNECT_TIMEOUT_S, self._timeout_s)
        responses: SimpleQueue[requests.Response | Exception] = SimpleQueue()
        abandoned = threading.Event()

        def request() -> None:
            try:
                response = self._session.get(
                    url,
                    headers=headers,
                    timeout=(connect_s, self._timeout_s),
                    stream=True,
                    allow_redirects=False,
                )
            except Exception as error:  # noqa: BLE001 - handed to the caller, who raises it
                responses.put(error)
                return
            responses.put(response)
            if abandoned.is_set():
                response.close()

        threading.Thread(target=request, daemon=True).start()
        try:
            result = responses.get(timeout=connect_s + self._timeout_s)
        except BaseException:
            abandoned.set()
            raise
        if isinstance(result, Exception):
            raise result
        return result


def _refuse_response(url: str, response: requests.Response) -> None:
    status = response.status_code
    encoding = response.headers.get("Content-Encoding", "identity").lower()
    if status in (200, 206) and encoding == "identity":
        return
    response.close()
    if status in (404, 410):
        raise MissingError(f"{show_url(url)} does not exist (the server answers {status})")
    if status in (200, 206):
        raise AccessError(f"{show_url(url)}: the server re-encodes it ({encoding[:40]!a})")
    raise AccessError(f"{show_url(url)}: the server answers {status}")


def _validator(response: requests.Response) -> str:
    """Return what identifies this version of the file: a strong ETag, else its date."""
    tag = response.headers.get("ETag", "")
    return tag if tag.startswith('"') else response.headers.get("Last-Modified", "")


def _length(response: requests.Response) -> int | None:
    text = response.headers.get("Content-Length", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else None


def _cause(error: Exception) -> str:
    """Say why a connection failed, without the address in the libraries' own messages."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, OSError) and seen.strerror:
            return seen.strerror
        reason = getattr(seen, "reason", None) or next(iter(seen.args), None)
        seen = reason if isinstance(reason, BaseException) else seen.__cause__ or seen.__context__
    return f"the connection failed ({type(error).__name__})"
