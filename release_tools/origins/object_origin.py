"""Reading from an object store (S3, Google Cloud Storage, Azure), with obstore.

Credentials and the endpoint come from the environment, as each cloud names them.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from queue import Empty, Full, Queue
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from platform_common.errors import UnreadableError
from release_tools.origins.stream import (
    SLOWEST_BYTES_PER_S,
    MissingError,
    SlowError,
    Stream,
    show_url,
)

if TYPE_CHECKING:
    from obstore.store import ObjectStore

_CONNECT_TIMEOUT_S = 10.0
_LONGEST_DOWNLOAD = timedelta(days=1)
_MAX_RETRIES = 3
_LARGEST_CHUNK_BYTES = 1 << 20
_CHUNKS_AHEAD = 4
_STOP_POLL_S = 0.2
_PREFIXES = {"s3": "AWS", "gs": "GOOGLE", "az": "AZURE"}
_CREDENTIALS = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_SKIP_SIGNATURE for a public bucket",
    "gs": "GOOGLE_SERVICE_ACCOUNT, or GOOGLE_SKIP_SIGNATURE for a public bucket",
    "az": "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
}


@contextlib.contextmanager
def open_object(url: str, timeout_s: float) -> Iterator[Stream]:
    """The stream of an object; raises `MissingError`, `SlowError` and `UnreadableError`."""
    download = _Download(url, timeout_s, _store(url, timeout_s))
    try:
        yield _ObjectStream(download, download.start())
    finally:
        download.stop()


def _store(url: str, timeout_s: float) -> ObjectStore:
    try:
        from obstore.exceptions import BaseError
        from obstore.store import from_url
    except ImportError as error:
        raise UnreadableError(
            f"{show_url(url)}: reading an object store needs the package obstore",
            hint="Install it with: pip install 'platform-appliance[object-store]'",
        ) from error
    parts = urlsplit(url)
    try:
        return from_url(
            f"{parts.scheme}://{parts.netloc}",
            client_options={
                "timeout": _LONGEST_DOWNLOAD,
                "connect_timeout": timedelta(seconds=min(_CONNECT_TIMEOUT_S, timeout_s)),
                "read_timeout": timedelta(seconds=timeout_s),
                # Client options given here replace those of the environment.
                "allow_http": _allows_http(parts.scheme),
            },
            retry_config={
                "max_retries": _MAX_RETRIES,
                "retry_timeout": timedelta(seconds=timeout_s),
            },
        )
    except (BaseError, ValueError) as error:
        raise UnreadableError(f"{show_url(url)} is no address of an object store") from error


def _allows_http(scheme: str) -> bool:
    variable = f"{_PREFIXES[scheme]}_ALLOW_HTTP"
    return os.environ.get(variable, "").lower() in ("1", "true")


@dataclass
class _Download:
    """A thread that reads an object ahead.

    obstore cannot be interrupted while it waits and counts every byte as
    progress; whoever waits here for the thread can be, and bears silence no
    longer than `timeout_s`.
    """

    url: str
    timeout_s: float
    store: ObjectStore
    _ready: Queue[int | memoryview | Exception] = field(
        default_factory=lambda: Queue(_CHUNKS_AHEAD)
    )
    _stopped: threading.Event = field(default_factory=threading.Event)

    def start(self) -> int:
        """Begin; the size of the object."""
        threading.Thread(target=self._run, daemon=True).start()
        size = self._take()
        assert isinstance(size, int)  # noqa: S101 - the thread hands over the size first
        return size

    def next_chunk(self) -> memoryview:
        """The bytes that come next, none at the end."""
        chunk = self._take()
        assert isinstance(chunk, memoryview)  # noqa: S101 - and then nothing but chunks
        return chunk

    def stop(self) -> None:
        """Let the thread end at its next chunk."""
        self._stopped.set()

    def _take(self) -> int | memoryview:
        try:
            item = self._ready.get(timeout=self.timeout_s)
        except Empty:
            raise SlowError(
                f"{show_url(self.url)}: the object store sent less than 1 KiB/s"
                f" for {self.timeout_s:g} s"
            ) from None
        if isinstance(item, Exception):
            raise _told(self.url, item) from item
        return item

    def _run(self) -> None:
        import obstore

        # What must arrive in one time limit, for `_take` to see that the pace holds.
        least = min(int(SLOWEST_BYTES_PER_S * self.timeout_s), _LARGEST_CHUNK_BYTES)
        try:
            result = obstore.get(self.store, unquote(urlsplit(self.url).path).lstrip("/"))
            self._give(result.meta["size"])
            for chunk in result.stream(min_chunk_size=max(least, 1)):
                if not self._give(memoryview(chunk)):
                    return
            self._give(memoryview(b""))
        except Exception as error:  # noqa: BLE001 - handed to the reader, who raises it
            self._give(error)

    def _give(self, item: int | memoryview | Exception) -> bool:
        while not self._stopped.is_set():
            with contextlib.suppress(Full):
                self._ready.put(item, timeout=_STOP_POLL_S)
                return True
        return False


@dataclass
class _ObjectStream:
    download: _Download
    size: int | None
    _rest: memoryview = field(default_factory=lambda: memoryview(b""))

    def readinto(self, buffer: memoryview) -> int:
        if not self._rest:
            self._rest = self.download.next_chunk()
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count


def _told(url: str, error: Exception) -> UnreadableError:
    """`error` in a sentence of ours: obstore's own texts repeat the server's whole answer."""
    from obstore.exceptions import PermissionDeniedError, UnauthenticatedError

    where, parts, text = show_url(url), urlsplit(url), str(error)
    if isinstance(error, FileNotFoundError) and "<Code>NoSuchBucket</Code>" in text:
        return UnreadableError(f"{where}: the object store has no bucket {parts.netloc!a}")
    if isinstance(error, FileNotFoundError):
        return MissingError(f"{where} does not exist (the object store answers 404)")
    credentials = f"Check {_CREDENTIALS[parts.scheme]}."
    if isinstance(error, PermissionDeniedError | UnauthenticatedError):
        return UnreadableError(f"{where}: the object store denies access", hint=credentials)
    if "/latest/api/token" in text or "/latest/meta-data" in text:
        return UnreadableError(f"{where}: there are no credentials for it", hint=credentials)
    if "BadScheme" in text:
        return UnreadableError(
            f"{where}: the endpoint is a plain http address",
            hint=f"To allow that, set {_PREFIXES[parts.scheme]}_ALLOW_HTTP=true.",
        )
    if status := re.search(r"status code: ([0-9]{3})", text):
        return UnreadableError(f"{where}: the object store answers {status[1]}")
    if re.search(r"\bTimedOut\b|kind: Timeout", text):
        return SlowError(f"{where}: the object store does not answer")
    if re.search(r"kind: Connect\b", text):
        return UnreadableError(f"{where}: the object store cannot be reached")
    return UnreadableError(f"{where}: the object store failed ({type(error).__name__})")
