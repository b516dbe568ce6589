"""Locks between programs, so that only one at a time changes a file."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from weakref import WeakValueDictionary

from platform_common.errors import AccessError, PlatformError
from platform_common.storage.atomic_write import opened_folder, rename_to_free
from platform_common.storage.safe_read import close, descriptor_of
from platform_common.storage.stale_files import remove_left_overs, temporary_name

_WAIT_S = 10.0
_QUEUE_S = 60.0
_LOOK_AGAIN_S = 0.01
_TRIES = 100
_OWN_MODE, _SHARED_MODE = 0o600, 0o660

# By device and inode: one path can have two locks, its own and that of the file beside it.
_queues: WeakValueDictionary[tuple[int, int], threading.Lock] = WeakValueDictionary()
_queues_lock = threading.Lock()


class LockedError(PlatformError):
    """Another program holds the lock and did not release it in time."""


@contextlib.contextmanager
def changing(path: Path, *, wait_s: float = _WAIT_S) -> Iterator[None]:
    """Keep other programs from changing `path` until the block ends.

    The lock is on the file `.<name>.lock` beside it, which is never removed, because `path` itself
    is a new file after each change. Raises `LockedError` or `AccessError`.
    """
    lock = path.with_name(f".{path.name}.lock")
    try:
        descriptor = open_lock(lock)
    except FileNotFoundError as error:
        raise AccessError.of(path, error) from error
    except AccessError as error:
        said = f"{path} cannot be changed: {error.message}"
        raise AccessError(said, hint=error.hint) from error
    try:
        hold(descriptor, path, wait_s=wait_s)
        yield
    finally:
        close(descriptor)


def hold(descriptor: int, path: Path, *, wait_s: float = _WAIT_S) -> None:
    """Lock the open file of `path` until it is closed, waiting `wait_s` for who holds it.

    Raises `LockedError` or `AccessError`.
    """
    queue = _queue_for(descriptor, path)
    # Our own threads queue first: if each of many asked the kernel again and again, some would
    # never be the first to ask after a release.
    if not queue.acquire(timeout=_QUEUE_S):
        raise _still_locked(path)
    try:
        deadline = time.monotonic() + wait_s
        while not _try(descriptor, path):
            if time.monotonic() >= deadline:
                raise _still_locked(path)
            time.sleep(_LOOK_AGAIN_S)
    finally:
        queue.release()


def _queue_for(descriptor: int, path: Path) -> threading.Lock:
    try:
        status = os.fstat(descriptor)
    except OSError as error:
        raise AccessError.of(path, error) from error
    with _queues_lock:
        return _queues.setdefault((status.st_dev, status.st_ino), threading.Lock())


def _try(descriptor: int, path: Path) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise AccessError.of(path, error) from error
    return True


def _still_locked(path: Path) -> LockedError:
    return LockedError(
        f"{path} is being changed by another program", hint="Try again when it has finished."
    )


def open_lock(lock: Path, flags: int = os.O_RDWR) -> int:
    """Open a lock file, creating it if necessary for everyone who can write to its folder.

    Raises `FileNotFoundError` without that folder, and `AccessError`.
    """
    for _ in range(_TRIES):
        # First without O_CREAT: in a shared sticky folder, the kernel refuses it for another user's
        # file, even to root (fs.protected_regular).
        with contextlib.suppress(FileNotFoundError):
            return descriptor_of(lock, flags)
        _make(lock)
    raise AccessError(f"{lock} keeps being removed by another program")


def _make(lock: Path) -> None:
    """Create the lock file for everyone who shares its folder; another process may be faster.

    Raises `FileNotFoundError` without the folder, and `AccessError`.
    """
    try:
        group = _sharing(lock.parent)
        if group is None:
            close(os.open(lock, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, _OWN_MODE))
        else:
            _make_shared(lock, group)
    except FileExistsError:
        pass
    except FileNotFoundError:
        raise
    except OSError as error:
        raise AccessError.of(lock, error) from error


def _sharing(folder: Path) -> int | None:
    """The group that shares the folder with root, if we are root; None for a private folder."""
    status = folder.stat()
    if os.geteuid() == 0 and status.st_uid == 0 and status.st_mode & stat.S_IWGRP:
        return status.st_gid
    return None


def _make_shared(lock: Path, group: int) -> None:
    """Create the lock with its group and mode in one step, so that the group can always open it."""
    remove_left_overs(lock.parent, of_name=lock.name)
    temporary = temporary_name(lock.name)
    with opened_folder(lock.parent) as folder:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        descriptor = os.open(temporary, flags, _OWN_MODE, dir_fd=folder)
        try:
            os.fchown(descriptor, -1, group)
            os.fchmod(descriptor, _SHARED_MODE)
            # Another root process may have removed it as a left-over: then it is created again.
            with contextlib.suppress(FileNotFoundError):
                rename_to_free(temporary, lock.name, folder)
        finally:
            close(descriptor)
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=folder)
