"""Reading over HTTP: bounded in time, resumed where the connection broke."""

from __future__ import annotations

import contextlib
import threading
import time
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

import requests
from urllib3.exceptions import HTTPError, ReadTimeoutError

from platform_common.errors import UnreadableError
from release_tools.origins.stream import (
    SLOWEST_BYTES_PER_S,
    MissingError,
    RefusedUrlError,
    SlowError,
    show_url,
)

if TYPE_CHECKING:
    from urllib3 import HTTPResponse

_CONNECT_TIMEOUT_S = 10.0
_MAX_REDIRECTS = 3
_MAX_RESUMES = 5
_RESUME_PAUSE_S = 0.5
_PROGRESS_THAT_COUNTS_BYTES = 1 << 20


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
        """Let the connection go."""
        self._closed.set()
        self._response.close()

    def readinto(self, buffer: memoryview) -> int:
        """See `Stream`."""
        while True:
            data = self._read(len(buffer))
            if data is not None:
                break
            self._resume()
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)

    def _read(self, count: int) -> bytes | None:
        """Some bytes, none at the end, or None where the connection broke."""
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
        """End a download that is too slow, wherever the reading thread waits.

        The time-out of a socket starts again with every byte, also within the
        line that gives a chunk's length.
        """
        while True:
            began_s, received = time.monotonic(), self._received
            if self._closed.wait(self._timeout_s):
                return
            if time.monotonic() - began_s > 2 * self._timeout_s:
                continue  # This process itself was stopped.
            if self._received - received < SLOWEST_BYTES_PER_S * self._timeout_s:
                self._too_slow = True
                # It refuses a connection that is no longer this answer's.
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
            raise UnreadableError(
                f"{show_url(self._url)}: the connection broke after {self._position:,}{size} bytes"
            )
        time.sleep(_RESUME_PAUSE_S * (self._resumes - 1))
        self._response.close()
        headers = {"Range": f"bytes={self._position}-"} if self._position else {}
        if headers and self._validator:
            headers["If-Range"] = self._validator
        self._response = self._get(headers)
        if _validator(self._response) != self._validator:
            raise UnreadableError(f"{show_url(self._url)} changed while it was being read")
        if self._response.status_code == 206:
            said = self._response.headers.get("Content-Range", "")
            if not said.startswith(f"bytes {self._position}-"):
                raise UnreadableError(f"{show_url(self._url)}: the server sent another range")
        else:
            self._skip(self._position)

    def _skip(self, count: int) -> None:
        # The server knows no ranges: read again what we have had.
        while count:
            data = self._read(min(count, 1 << 20))
            if not data:
                raise UnreadableError(f"{show_url(self._url)}: the connection broke again")
            count -= len(data)

    def _get(self, headers: dict[str, str]) -> requests.Response:
        url = self._url
        for _ in range(_MAX_REDIRECTS + 1):
            try:
                response = self._ask(url, {"Accept-Encoding": "identity", **headers})
            except (requests.Timeout, Empty) as error:
                raise SlowError(f"{show_url(url)}: the server does not answer") from error
            except (requests.RequestException, ValueError, OSError) as error:
                raise UnreadableError(f"{show_url(url)}: {_cause(error)}") from error
            if not response.is_redirect:
                _refuse_answer(url, response)
                return response
            response.close()
            onward = urljoin(url, response.headers["Location"])
            schemes = urlsplit(url).scheme, urlsplit(onward).scheme
            if schemes[1] not in ("http", "https") or schemes == ("https", "http"):
                raise RefusedUrlError(
                    f"{show_url(url)}: the server leads from {schemes[0]} to {schemes[1]}"
                )
            url = onward
        raise UnreadableError(f"{show_url(self._url)}: more than {_MAX_REDIRECTS} redirects")

    def _ask(self, url: str, headers: dict[str, str]) -> requests.Response:
        """Ask on a thread of its own, because no time-out bounds a head that comes in drips."""
        connect_s = min(_CONNECT_TIMEOUT_S, self._timeout_s)
        answers: SimpleQueue[requests.Response | Exception] = SimpleQueue()
        given_up = threading.Event()

        def ask() -> None:
            try:
                response = self._session.get(
                    url,
                    headers=headers,
                    timeout=(connect_s, self._timeout_s),
                    stream=True,
                    allow_redirects=False,
                )
            except Exception as error:  # noqa: BLE001 - handed to the caller, who raises it
                answers.put(error)
                return
            answers.put(response)
            if given_up.is_set():
                response.close()

        threading.Thread(target=ask, daemon=True).start()
        try:
            answer = answers.get(timeout=connect_s + self._timeout_s)
        except BaseException:
            given_up.set()
            raise
        if isinstance(answer, Exception):
            raise answer
        return answer


def _refuse_answer(url: str, response: requests.Response) -> None:
    status = response.status_code
    encoding = response.headers.get("Content-Encoding", "identity").lower()
    if status in (200, 206) and encoding == "identity":
        return
    response.close()
    if status in (404, 410):
        raise MissingError(f"{show_url(url)} does not exist (the server answers {status})")
    if status in (200, 206):
        raise UnreadableError(f"{show_url(url)}: the server re-encodes it ({encoding[:40]!a})")
    raise UnreadableError(f"{show_url(url)}: the server answers {status}")


def _validator(response: requests.Response) -> str:
    """What tells this version of the file from another: a strong ETag, else its date."""
    tag = response.headers.get("ETag", "")
    return tag if tag.startswith('"') else response.headers.get("Last-Modified", "")


def _length(response: requests.Response) -> int | None:
    text = response.headers.get("Content-Length", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else None


def _cause(error: Exception) -> str:
    """Why a connection failed, without the address that the libraries put into their texts."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, OSError) and seen.strerror:
            return seen.strerror
        reason = getattr(seen, "reason", None) or next(iter(seen.args), None)
        seen = reason if isinstance(reason, BaseException) else seen.__cause__ or seen.__context__
    return f"the connection failed ({type(error).__name__})"
