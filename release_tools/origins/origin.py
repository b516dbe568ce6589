"""Where a release is read from: a folder, a web server or an object store.

Every read is bounded in bytes and in time, and an interrupted download is resumed.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from urllib.parse import urlsplit

from platform_common.errors import AccessError
from platform_common.storage.safe_read import open_regular
from release_tools.origins.stream import MissingError, RefusedUrlError, SlowError, Stream
from release_tools.origins.urls import local_path, show_url

OBJECT_STORE_SCHEMES = ("s3", "gs", "az")
FETCHED_SCHEMES = ("file", "http", "https", *OBJECT_STORE_SCHEMES)
_SMALL_FILE_DEADLINE_S = 60.0
_SMALL_READ_BYTES = 64 << 10


class Origin:
    """Opens and reads URLs; `timeout_s` bounds every silence and every slow stretch."""

    def __init__(self, timeout_s: float = 30.0) -> None:
        self.timeout_s = timeout_s
        self._http_sessions = threading.local()

    def open(self, url: str, *, of: str | None = None) -> AbstractContextManager[Stream]:
        """Open `url`, which the document at the URL `of` names.

        Raises `RefusedUrlError` if that document must not lead there, `MissingError`,
        `SlowError` and `AccessError`.
        """
        scheme = urlsplit(url).scheme
        if of is not None:
            _refuse_weaker_origin(urlsplit(of).scheme, scheme, url)
        if scheme == "file":
            return _open_file(url)
        # Imported here because requests and obstore take longer to import than a manifest on
        # disk to verify (bench: "verify --manifest-only of 50 artefacts").
        if scheme in ("http", "https"):
            from release_tools.origins.http_origin import open_http

            return open_http(url, self.timeout_s, self._http_sessions)
        if scheme in OBJECT_STORE_SCHEMES:
            try:
                from release_tools.origins.object_origin import open_object
            except ImportError as error:
                raise AccessError(
                    f"{show_url(url)}: reading an object store needs the package obstore",
                    hint="Install it with: pip install 'platform-appliance[object-store]'",
                ) from error
            return open_object(url, self.timeout_s)
        raise RefusedUrlError(f"{show_url(url)}: {scheme}: URLs are not supported")

    def read(self, url: str, limit_bytes: int, *, of: str | None = None) -> bytes:
        """Return the content of a small file of at most `limit_bytes`; see `open` and `of`."""
        began_s = time.monotonic()
        with self.open(url, of=of) as stream:
            return read_small(stream, url, limit_bytes, began_s)


def read_small(stream: Stream, url: str, limit_bytes: int, began_s: float) -> bytes:
    """Return the rest of `stream`, at most `limit_bytes` and within 60 s of `began_s`.

    Raises `AccessError`, and `SlowError` after that time.
    """
    data = bytearray()
    buffer = memoryview(bytearray(min(limit_bytes + 1, _SMALL_READ_BYTES)))
    while count := stream.readinto(buffer):
        data += buffer[:count]
        if len(data) > limit_bytes:
            raise AccessError(f"{show_url(url)} is larger than {limit_bytes:,} bytes")
        if time.monotonic() - began_s > _SMALL_FILE_DEADLINE_S:
            raise SlowError(f"{show_url(url)} took over {_SMALL_FILE_DEADLINE_S:g} s")
    return bytes(data)


def _refuse_weaker_origin(of: str, scheme: str, url: str) -> None:
    if scheme == "file" and of != "file":
        raise RefusedUrlError(
            f"{show_url(url)}: a manifest from elsewhere must not name files on this machine"
        )
    if scheme == "http" and of not in ("http", "file"):
        raise RefusedUrlError(f"{show_url(url)}: a manifest from {of} must not lead to plain http")
    if scheme in OBJECT_STORE_SCHEMES and of not in (scheme, "file"):
        raise RefusedUrlError(
            f"{show_url(url)}: a manifest from {of} must not use this machine's store credentials"
        )


@dataclass
class _FileStream:
    descriptor: int
    size: int | None

    def readinto(self, buffer: memoryview) -> int:
        try:
            return os.readv(self.descriptor, [buffer])
        except OSError as error:
            raise AccessError(f"reading failed: {error.strerror}") from error


@contextlib.contextmanager
def _open_file(url: str) -> Iterator[Stream]:
    path = local_path(url)
    try:
        with open_regular(path, follow_link=False) as descriptor:
            yield _FileStream(descriptor, os.fstat(descriptor).st_size)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise MissingError(f"{path} does not exist") from error
