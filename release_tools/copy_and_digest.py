"""Copying an artefact into a release and digesting it in one pass over its bytes."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from platform_common.errors import PlatformError, access_error
from platform_common.storage.safe_read import open_regular
from release_tools.hashing import Digests, TooLongError, digest_stream

# ioctl_ficlone(2): share the blocks of another file until either file changes.
_FICLONE = 0x40049409
_NO_LINK = {errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP, errno.ENOSYS}


class ChangedError(PlatformError):
    """A file changed while it was being read."""


def digest_file(
    path: Path,
    *,
    paired: bool = True,
    on_chunk: Callable[[memoryview], None] = lambda chunk: None,
) -> Digests:
    """Digest a regular file; raises `ChangedError` if it changes, and `AccessError`."""
    with access_error(path), open_regular(path) as descriptor, unchanged(path, descriptor):
        return _digest(descriptor, paired=paired, on_chunk=on_chunk)


def copy_and_digest(
    source: Path, target: Path, *, paired: bool, on_chunk: Callable[[memoryview], None]
) -> Digests:
    """Give `target` the bytes of `source` and return their digests.

    Uses a reflink or a hard link if the file system can, else copies the very bytes that are
    digested. Raises `ChangedError`, `AccessError`, and `OSError` if `target` cannot be
    written.
    """
    with open_regular(source) as descriptor, unchanged(source, descriptor):
        if _reflink(descriptor, target) or _hard_link(source, target):
            with open_regular(target) as linked:
                digests = _digest(linked, paired=paired, on_chunk=on_chunk)
                os.fsync(linked)
            return digests
        with target.open("xb", buffering=0) as copy:

            def write(chunk: memoryview) -> None:
                on_chunk(chunk)
                while chunk:
                    chunk = chunk[copy.write(chunk) :]

            digests = _digest(descriptor, paired=paired, on_chunk=write)
            os.fchmod(copy.fileno(), 0o644)
            os.fsync(copy.fileno())
    return digests


def _digest(descriptor: int, *, paired: bool, on_chunk: Callable[[memoryview], None]) -> Digests:
    return digest_stream(
        lambda buffer: os.readv(descriptor, [buffer]),
        # Otherwise a file that something keeps appending to would never end.
        limit_bytes=os.fstat(descriptor).st_size,
        paired=paired,
        on_chunk=on_chunk,
    )


@contextlib.contextmanager
def unchanged(path: Path, descriptor: int) -> Iterator[None]:
    """Raise `ChangedError` at the end of the block if the file has changed since its start."""
    before = os.fstat(descriptor)
    grown = False
    try:
        yield
    except TooLongError:
        grown = True
    after = os.fstat(descriptor)
    if grown or (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        raise ChangedError(
            f"{path} changed while it was read", hint="Try again when nothing writes to it."
        )


def _reflink(descriptor: int, target: Path) -> bool:
    with target.open("xb") as copy:
        try:
            fcntl.ioctl(copy.fileno(), _FICLONE, descriptor)
        except OSError:
            target.unlink()
            return False
        os.fchmod(copy.fileno(), 0o644)
    return True


def _hard_link(source: Path, target: Path) -> bool:
    # A hard link shares the mode too, and web servers must be able to read what we publish.
    if source.stat().st_mode & 0o444 != 0o444:
        return False
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError as error:
        if error.errno in _NO_LINK:
            return False
        raise
    return True
