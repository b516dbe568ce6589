"""One pass over a stream: the digests, the limit, and no remaining thread."""

from __future__ import annotations

import hashlib
import io
import threading
from collections.abc import Iterator

import pytest

from release_tools.hashing import BUFFER_BYTES, TooLongError, digest_stream
from release_tools.signing.minisign import prehash
from tests.support.releases import pseudo_random
from tests.support.waiting import no_thread_left

pytestmark = pytest.mark.usefixtures("no_thread_remains")

both = pytest.mark.parametrize("paired", [True, False], ids=["paired", "alone"])
DATA = pseudo_random(3 * BUFFER_BYTES + 17, "hashing")


@pytest.fixture
def no_thread_remains() -> Iterator[None]:
    with no_thread_left(patience_s=0):
        yield


@both
@pytest.mark.parametrize(
    "size",
    [
        *(0, 1, 63, 64, 65, 127, 128, 129, len(DATA)),
        *(n * BUFFER_BYTES + more for n in (1, 2, 3) for more in (-1, 0, 1)),
    ],
)
def test_the_digests_match_hashlib(size: int, *, paired: bool) -> None:
    digests = digest_stream(io.BytesIO(DATA[:size]).readinto, paired=paired)
    assert digests.size == size
    assert digests.sha256 == hashlib.sha256(DATA[:size]).hexdigest()
    assert digests.blake2b == hashlib.blake2b(DATA[:size]).digest() == prehash(DATA[:size])


@both
def test_short_reads_change_nothing(*, paired: bool) -> None:
    stream, steps = io.BytesIO(DATA), iter([1, 7, BUFFER_BYTES, 3, 100_000] * 1000)
    digests = digest_stream(lambda buffer: stream.readinto(buffer[: next(steps)]), paired=paired)
    assert digests == digest_stream(io.BytesIO(DATA).readinto)


@both
def test_every_chunk_is_seen_in_order(*, paired: bool) -> None:
    seen = bytearray()
    digest_stream(io.BytesIO(DATA).readinto, paired=paired, on_chunk=seen.extend)
    assert bytes(seen) == DATA


@both
@pytest.mark.parametrize("limit", [0, 1, BUFFER_BYTES, len(DATA) - 1])
def test_a_stream_beyond_its_limit_is_stopped_at_once(limit: int, *, paired: bool) -> None:
    stream, seen = io.BytesIO(DATA), bytearray()
    with pytest.raises(TooLongError):
        digest_stream(stream.readinto, limit_bytes=limit, paired=paired, on_chunk=seen.extend)
    assert len(seen) <= limit
    assert stream.tell() <= limit + BUFFER_BYTES


@pytest.mark.parametrize("limit", [len(DATA), len(DATA) + 1, 10**30])
def test_a_stream_up_to_its_limit_is_read(limit: int) -> None:
    assert digest_stream(io.BytesIO(DATA).readinto, limit_bytes=limit).size == len(DATA)


@both
@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt], ids=["error", "interrupt"])
@pytest.mark.parametrize("where", ["readinto", "on_chunk"])
def test_an_error_is_raised_and_leaves_no_thread(
    where: str, error: type[BaseException], *, paired: bool
) -> None:
    stream = io.BytesIO(DATA)

    def readinto(buffer: memoryview) -> int:
        if where == "readinto" and stream.tell():
            raise error
        return stream.readinto(buffer)

    def on_chunk(chunk: memoryview) -> None:
        if where == "on_chunk":
            raise error

    with pytest.raises(error):
        digest_stream(readinto, paired=paired, on_chunk=on_chunk)


def test_two_threads_work_only_if_paired() -> None:
    before, counts = threading.active_count(), set()
    for paired in (True, False):
        digest_stream(
            io.BytesIO(DATA).readinto,
            paired=paired,
            on_chunk=lambda chunk: counts.add(threading.active_count() - before),
        )
        assert counts == {1 if paired else 0}
        counts.clear()
