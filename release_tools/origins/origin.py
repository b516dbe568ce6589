"""Where a release is read from: a folder, a web server, an object store.

Every read has a bound in bytes and in time, and a broken download goes on from
where it stopped.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes, urlsplit

from platform_common.errors import UnreadableError
from platform_common.storage.safe_read import open_regular
from release_tools.origins.stream import MissingError, RefusedUrlError, SlowError, Stream, show_url

if TYPE_CHECKING:
    import requests

OBJECT_STORE_SCHEMES = ("s3", "gs", "az")
FETCHED_SCHEMES = ("file", "http", "https", *OBJECT_STORE_SCHEMES)
_SMALL_FILE_DEADLINE_S = 60.0
_SMALL_READ_BYTES = 64 << 10


class Origin:
    """Opens and reads URLs; `timeout_s` is the longest silence, or slowness, it bears."""

    def __init__(self, timeout_s: float = 30.0) -> None:
        self.timeout_s = timeout_s
        self._local = threading.local()

    def open(self, url: str, *, of: str | None = None) -> AbstractContextManager[Stream]:
        """The stream of `url`, as it is named by the document at `of`.

        Raises `RefusedUrlError` where that document has no business naming it,
        `MissingError`, `SlowError` and `UnreadableError`.
        """
        scheme = urlsplit(url).scheme
        if of is not None:
            _refuse_reach(urlsplit(of).scheme, scheme, url)
        if scheme == "file":
            return _open_file(url)
        if scheme in ("http", "https"):
            from release_tools.origins.http_origin import HttpStream

            return contextlib.closing(HttpStream(self._session(), url, self.timeout_s))
        if scheme in OBJECT_STORE_SCHEMES:
            from release_tools.origins.object_origin import open_object

            return open_object(url, self.timeout_s)
        raise RefusedUrlError(f"{show_url(url)}: nothing here can read a {scheme}: address")

    def read(self, url: str, limit_bytes: int, *, of: str | None = None) -> bytes:
        """All bytes of a small file, `limit_bytes` at most."""
        deadline = time.monotonic() + _SMALL_FILE_DEADLINE_S
        data = bytearray()
        buffer = memoryview(bytearray(min(limit_bytes + 1, _SMALL_READ_BYTES)))
        with self.open(url, of=of) as stream:
            while count := stream.readinto(buffer):
                data += buffer[:count]
                if len(data) > limit_bytes:
                    raise UnreadableError(f"{show_url(url)} is larger than {limit_bytes:,} bytes")
                if time.monotonic() > deadline:
                    raise SlowError(f"{show_url(url)} took over {_SMALL_FILE_DEADLINE_S:g} s")
        return bytes(data)

    def _session(self) -> requests.Session:
        # One for each thread: requests does not promise that a session can be shared.
        import requests

        if not hasattr(self._local, "session"):
            self._local.session = requests.Session()
        session: requests.Session = self._local.session
        return session


def _refuse_reach(of: str, scheme: str, url: str) -> None:
    if scheme == "file" and of != "file":
        raise RefusedUrlError(
            f"{show_url(url)}: a manifest from elsewhere must not name files of this machine"
        )
    if scheme == "http" and of not in ("http", "file"):
        raise RefusedUrlError(f"{show_url(url)}: a manifest from {of} must not lead to plain http")
    if scheme in OBJECT_STORE_SCHEMES and of not in (scheme, "file"):
        raise RefusedUrlError(
            f"{show_url(url)}: a manifest from {of} must not use this machine's store credentials"
        )


class _FileStream:
    size: int | None

    def __init__(self, descriptor: int, size: int) -> None:
        self._descriptor, self.size = descriptor, size

    def readinto(self, buffer: memoryview) -> int:
        try:
            return os.readv(self._descriptor, [buffer])
        except OSError as error:
            raise UnreadableError(f"reading failed: {error.strerror}") from error


def path_of(url: str) -> Path:
    """The path that a file URL names; raises `RefusedUrlError` for one of another machine."""
    parts = urlsplit(url)
    path = unquote_to_bytes(parts.path)
    if parts.netloc not in ("", "localhost") or b"\0" in path:
        raise RefusedUrlError(f"{url!a} names no file of this machine")
    return Path(os.fsdecode(path))


@contextlib.contextmanager
def _open_file(url: str) -> Iterator[Stream]:
    path = path_of(url)
    try:
        with open_regular(path, follow_link=False) as descriptor:
            yield _FileStream(descriptor, os.fstat(descriptor).st_size)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise MissingError(f"{path} does not exist") from error
