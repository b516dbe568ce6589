"""Files: the one way to write one whole, and the one way to open one we do not trust."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import signal
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

from platform_common.errors import PlatformError, UnreadableError

_TEMPORARY_NAME = re.compile(r"\..+\.([0-9]+)\.[0-9a-f]{8}\.tmp", re.DOTALL)


def temporary_name(name: str) -> str:
    """A hidden sibling of `name` that says which process is writing it."""
    return f".{name[:200]}.{os.getpid()}.{os.urandom(4).hex()}.tmp"


def remove_left_overs(directory: Path, *, of_process: int | None = None) -> None:
    """Remove what killed programs of this user left unfinished in `directory`.

    Without `of_process` only for a caller that no other writer can run beside.
    """
    with os.scandir(directory) as entries:
        found = [(entry, _TEMPORARY_NAME.fullmatch(entry.name)) for entry in entries]
    for entry, match in found:
        if match is None or (of_process is not None and int(match[1]) != of_process):
            continue
        if entry.stat(follow_symlinks=False).st_uid != os.geteuid():
            continue
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path, ignore_errors=True)
        elif entry.is_file(follow_symlinks=False):
            Path(entry.path).unlink(missing_ok=True)


@contextlib.contextmanager
def nothing_left_in(*directories: Path) -> Iterator[None]:
    """Remove this process's own left-overs when the block fails or is interrupted.

    A signal may come in the midst of any clean-up inside the block, and skip it.
    """
    try:
        yield
    except BaseException:
        with signals_held():
            for directory in directories:
                with contextlib.suppress(OSError):
                    remove_left_overs(directory, of_process=os.getpid())
        raise


def write_atomic(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Put `data` at `path` with `mode`: a reader sees the old file or the new one.

    The bytes and the mode are on the disk before the name is, and the name
    before this returns. Raises `UnreadableError`, the old file then untouched.
    """
    write_atomic_together({path: data}, mode=mode)


def write_atomic_together(contents: dict[Path, bytes], *, mode: int = 0o644) -> None:
    """Like `write_atomic` for several files of one directory, renamed in the order given.

    All bytes are durable before the first name changes, so that running out of
    space changes nothing and the renames follow each other at once. A rename
    that fails takes those before it back.
    """
    directory = next(iter(contents)).parent
    staged: dict[Path, Path] = {}
    kept: dict[Path, Path] = {}
    try:
        for path, data in contents.items():
            staged[path] = path.with_name(temporary_name(path.name))
            _write_durable(staged[path], data, mode)
        for path in list(contents)[:-1]:
            kept[path] = path.with_name(temporary_name(path.name))
            # Without hard links a failed rename leaves no pair that anyone would trust.
            with contextlib.suppress(OSError):
                os.link(path, kept[path], follow_symlinks=False)
        with signals_held():
            _rename_all(staged, kept)
        fsync_directory(directory)
    except OSError as error:
        raise UnreadableError.of(directory, error) from error
    finally:
        with signals_held():
            for temporary in (*staged.values(), *kept.values()):
                with contextlib.suppress(OSError):
                    temporary.unlink()


def _rename_all(staged: dict[Path, Path], kept: dict[Path, Path]) -> None:
    done: list[Path] = []
    try:
        for path, temporary in staged.items():
            temporary.replace(path)
            done.append(path)
    except OSError:
        for path in done:
            with contextlib.suppress(OSError):
                if kept[path].exists():
                    kept[path].replace(path)
                else:
                    path.unlink()
        raise


@contextlib.contextmanager
def signals_held() -> Iterator[None]:
    """Let SIGINT and SIGTERM wait until the block has ended."""
    # A signal mask would not do: it is each thread's own, and Python handles a
    # signal that any other thread took in the main thread all the same.
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        signal.signal(number, lambda number, frame: came.append(number))
    try:
        yield
    finally:
        for number, handler in before.items():
            # None is a handler that Python did not set and cannot give back.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        for late in came:
            signal.raise_signal(late)


def create_exclusive(path: Path, data: bytes, *, mode: int) -> None:
    """Write a new file durably; raises `PlatformError` when `path` exists already."""
    temporary = path.with_name(temporary_name(path.name))
    try:
        _write_durable(temporary, data, mode)
        os.link(temporary, path)
        fsync_directory(path.parent)
    except FileExistsError as error:
        raise PlatformError(f"{path} exists already and is not overwritten") from error
    except OSError as error:
        raise UnreadableError.of(path, error) from error
    finally:
        with signals_held(), contextlib.suppress(OSError):
            temporary.unlink()


def _write_durable(path: Path, data: bytes, mode: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fchmod(descriptor, mode)
        os.fsync(descriptor)


def fsync_directory(directory: Path) -> None:
    """Make the names in `directory` durable."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def open_regular(path: Path, *, follow_link: bool = True) -> Iterator[int]:
    """A read-only descriptor of a regular file; a FIFO, device or folder is refused.

    Raises `FileNotFoundError` as it is and `UnreadableError` for the rest.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | (0 if follow_link else os.O_NOFOLLOW)
    try:
        descriptor = os.open(path, flags)
    except FileNotFoundError:
        raise
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise UnreadableError(f"{path} is a symbolic link, not a regular file") from error
        raise UnreadableError.of(path, error) from error
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise UnreadableError(f"{path} is not a regular file")
        yield descriptor
    finally:
        os.close(descriptor)


def read_bounded(path: Path, limit_bytes: int) -> bytes:
    """The bytes of a regular file that may hold `limit_bytes` at most.

    Raises `UnreadableError`, also when the file is missing or larger.
    """
    try:
        with open_regular(path) as descriptor, os.fdopen(os.dup(descriptor), "rb") as file:
            data = file.read(limit_bytes + 1)
    except OSError as error:
        raise UnreadableError.of(path, error) from error
    if len(data) > limit_bytes:
        raise UnreadableError(f"{path} is larger than {limit_bytes:,} bytes")
    return data
