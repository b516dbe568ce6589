"""One pass over an artefact: its size, SHA-256 and BLAKE2b-512.

hashlib releases the interpreter lock, so two threads can share 1 MiB buffers: the reading
thread computes SHA-256, the cheaper digest, and a second thread BLAKE2b.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Protocol, Self

BUFFER_BYTES = 1 << 20
# One is being read, one is being hashed by each thread, and one is ready.
_BUFFERS = 4

ReadInto = Callable[[memoryview], int]


class TooLongError(Exception):
    """The stream is longer than its limit."""


@dataclass(frozen=True, slots=True)
class Digests:
    """The size and digests of a stream; `sha256` is lower-case hex."""

    size: int
    sha256: str
    blake2b: bytes


def digest_stream(
    readinto: ReadInto,
    *,
    limit_bytes: int | None = None,
    paired: bool = True,
    on_chunk: Callable[[memoryview], None] = lambda chunk: None,
) -> Digests:
    """Read until `readinto` returns 0, and return the digests.

    `paired` computes the two digests on two threads; without it, the calling thread computes
    both, which is better while other files keep the cores busy. `on_chunk` receives every chunk
    in order. Raises `TooLongError` at the first byte past `limit_bytes`, and whatever
    `readinto` or `on_chunk` raises.
    """
    sha256, blake2b = hashlib.sha256(), _blake2b()
    size = 0
    with _Updater(blake2b, threaded=paired) as second:
        while True:
            buffer = second.take_buffer()
            count = readinto(buffer)
            if not count:
                break
            size += count
            if limit_bytes is not None and size > limit_bytes:
                raise TooLongError
            chunk = buffer[:count]
            second.give(buffer, chunk)
            sha256.update(chunk)
            on_chunk(chunk)
    return Digests(size, sha256.hexdigest(), blake2b.digest())


class _Digest(Protocol):
    def update(self, data: memoryview, /) -> None: ...
    def digest(self) -> bytes: ...


def _blake2b() -> _Digest:
    # OpenSSL's BLAKE2b is about 10 % faster than hashlib's own, but not every build has it.
    try:
        return hashlib.new("blake2b512", usedforsecurity=False)
    except ValueError:
        return hashlib.blake2b()


class _Updater:
    """Updates one digest, on its own thread if `threaded`, and hands out the buffers."""

    def __init__(self, digest: _Digest, *, threaded: bool) -> None:
        self._digest = digest
        self._free: SimpleQueue[memoryview] = SimpleQueue()
        for _ in range(_BUFFERS if threaded else 1):
            self._free.put(memoryview(bytearray(BUFFER_BYTES)))
        self._work: SimpleQueue[tuple[memoryview, memoryview] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, daemon=True) if threaded else None

    def __enter__(self) -> Self:
        if self._thread:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._thread:
            self._work.put(None)
            self._thread.join()

    def take_buffer(self) -> memoryview:
        return self._free.get()

    def give(self, buffer: memoryview, chunk: memoryview) -> None:
        if self._thread:
            self._work.put((buffer, chunk))
        else:
            self._digest.update(chunk)
            self._free.put(buffer)

    def _run(self) -> None:
        while (item := self._work.get()) is not None:
            buffer, chunk = item
            self._digest.update(chunk)
            self._free.put(buffer)
