"""Reading from an object store (S3, Google Cloud Storage, Azure), with obstore.

Credentials and the endpoint come from the environment variables of each cloud.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
from datetime import timedelta
from queue import Empty, Full, Queue
from typing import Any
from urllib.parse import unquote, urlsplit

import obstore
from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError
from obstore.store import ObjectStore, from_url

from platform_common.errors import AccessError
from release_tools.origins.stream import (
    SLOWEST_BYTES_PER_S,
    MissingError,
    SlowError,
)
from release_tools.origins.urls import show_url

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


def open_object(url: str, timeout_s: float) -> contextlib.closing[_ObjectStream]:
    """Open an object; raises `MissingError`, `SlowError` and `AccessError`."""
    return contextlib.closing(_ObjectStream(url, timeout_s, _store(url, timeout_s)))


def _store(url: str, timeout_s: float) -> ObjectStore:
    parts = urlsplit(url)
    allow_http = os.environ.get(f"{_PREFIXES[parts.scheme]}_ALLOW_HTTP", "")
    try:
        return from_url(
            f"{parts.scheme}://{parts.netloc}",
            client_options={
                "timeout": _LONGEST_DOWNLOAD,
                "connect_timeout": timedelta(seconds=min(_CONNECT_TIMEOUT_S, timeout_s)),
                "read_timeout": timedelta(seconds=timeout_s),
                # Client options given here replace those of the environment, this one too.
                "allow_http": allow_http.lower() in ("1", "true"),
            },
            retry_config={
                "max_retries": _MAX_RETRIES,
                "retry_timeout": timedelta(seconds=timeout_s),
            },
        )
    except (BaseError, ValueError) as error:
        raise AccessError(f"{show_url(url)} is not the address of an object store") from error


class _ObjectStream:
    """An object that a thread reads ahead.

    obstore cannot be interrupted while it waits, and its timeout starts again with every byte.
    The reader can be interrupted, and waits at most `timeout_s` for the next chunk.
    """

    size: int | None

    def __init__(self, url: str, timeout_s: float, store: ObjectStore) -> None:
        self._url, self._timeout_s, self._store = url, timeout_s, store
        # What the thread hands over: the size, then chunks, an empty one at the end; or an error.
        self._ready: Queue[Any] = Queue(_CHUNKS_AHEAD)
        self._closed = threading.Event()
        self._rest = memoryview(b"")
        threading.Thread(target=self._read_ahead, daemon=True).start()
        try:
            self.size = self._take()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Make the thread end at its next chunk."""
        self._closed.set()

    def readinto(self, buffer: memoryview) -> int:
        """See `Stream`."""
        if not self._rest:
            self._rest = self._take()
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count

    def _take(self) -> Any:
        try:
            item = self._ready.get(timeout=self._timeout_s)
        except Empty:
            raise SlowError(
                f"{show_url(self._url)}: the object store sent less than 1 KiB/s"
                f" for {self._timeout_s:g} s"
            ) from None
        if isinstance(item, Exception):
            raise _readable_error(self._url, item) from item
        return item

    def _read_ahead(self) -> None:
        # As much as must arrive within the timeout, so that `_take` notices a slow download.
        least = min(int(SLOWEST_BYTES_PER_S * self._timeout_s), _LARGEST_CHUNK_BYTES)
        try:
            result = obstore.get(self._store, unquote(urlsplit(self._url).path).lstrip("/"))
            self._give(result.meta["size"])
            for chunk in result.stream(min_chunk_size=max(least, 1)):
                if not self._give(memoryview(chunk)):
                    return
            self._give(memoryview(b""))
        except Exception as error:  # noqa: BLE001 - handed to the reader, who raises it
            self._give(error)

    def _give(self, item: int | memoryview | Exception) -> bool:
        while not self._closed.is_set():
            with contextlib.suppress(Full):
                self._ready.put(item, timeout=_STOP_POLL_S)
                return True
        return False


def _readable_error(url: str, error: Exception) -> AccessError:
    """Return `error` in our own words; obstore's repeat the server's whole response."""
    where, parts, text = show_url(url), urlsplit(url), str(error)
    if isinstance(error, FileNotFoundError) and "<Code>NoSuchBucket</Code>" in text:
        return AccessError(f"{where}: the object store has no bucket {parts.netloc!a}")
    if isinstance(error, FileNotFoundError):
        return MissingError(f"{where} does not exist (the object store answers 404)")
    credentials = f"Check {_CREDENTIALS[parts.scheme]}."
    if isinstance(error, PermissionDeniedError | UnauthenticatedError):
        return AccessError(f"{where}: the object store denies access", hint=credentials)
    if "/latest/api/token" in text or "/latest/meta-data" in text:
        return AccessError(f"{where}: there are no credentials for it", hint=credentials)
    if "BadScheme" in text:
        return AccessError(
            f"{where}: the endpoint is a plain http address",
            hint=f"To allow that, set {_PREFIXES[parts.scheme]}_ALLOW_HTTP=true.",
        )
    if status := re.search(r"status code: ([0-9]{3})", text):
        return AccessError(f"{where}: the object store answers {status[1]}")
    if re.search(r"\bTimedOut\b|kind: Timeout", text):
        return SlowError(f"{where}: the object store does not answer")
    if re.search(r"kind: Connect\b", text):
        return AccessError(f"{where}: the object store cannot be reached")
    return AccessError(f"{where}: the object store failed ({type(error).__name__})")
