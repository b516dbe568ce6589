"""Reading from an object store (S3, Google Cloud Storage, Azure), with obstore."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from urllib.parse import unquote, urlsplit

from platform_common.errors import UnreadableError
from release_tools.origin import MissingError, Stream, show_url

_CHUNK_BYTES = 1 << 20
_LONGEST_DOWNLOAD = timedelta(days=1)


@dataclass
class _ObjectStream:
    chunks: Iterator[memoryview]
    size: int | None
    _rest: memoryview = field(default_factory=lambda: memoryview(b""))

    def readinto(self, buffer: memoryview) -> int:
        if not self._rest:
            self._rest = next(self.chunks, memoryview(b""))
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count


@contextlib.contextmanager
def open_object(url: str, timeout_s: float) -> Iterator[Stream]:
    """The stream of an object; credentials come from the environment, as its cloud names them."""
    try:
        import obstore
        from obstore.exceptions import BaseError
        from obstore.store import from_url
    except ImportError as error:
        raise UnreadableError(
            f"{show_url(url)}: reading an object store needs the package obstore",
            hint="Install it with: pip install 'platform-appliance[object-store]'",
        ) from error
    parts = urlsplit(url)
    try:
        store = from_url(
            f"{parts.scheme}://{parts.netloc}",
            client_options={
                "timeout": _LONGEST_DOWNLOAD,
                "connect_timeout": timedelta(seconds=timeout_s),
            },
        )
        result = obstore.get(store, unquote(parts.path).lstrip("/"))
        chunks = (memoryview(chunk) for chunk in result.stream(min_chunk_size=_CHUNK_BYTES))
        yield _ObjectStream(chunks, result.meta["size"])
    except FileNotFoundError as error:
        raise MissingError(f"{show_url(url)} does not exist") from error
    except BaseError as error:
        raise UnreadableError(f"{show_url(url)}: {str(error).splitlines()[0][:300]}") from error
