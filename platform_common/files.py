"""Files that others read: the one way to write one whole."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from platform_common.errors import PlatformError, UnreadableError

_NAME_LENGTH = 200
_TEMPORARY_NAME = re.compile(r"\.(?P<name>.+)\.(?P<process>[0-9]+)\.[0-9a-f]{8}\.tmp", re.DOTALL)


class ExistsError(PlatformError):
    """A file that was to be made is there already."""


class Owner(NamedTuple):
    """The user and the group that a file is to belong to, by name."""

    user: str
    group: str


def temporary_name(name: str) -> str:
    """A hidden sibling of `name` that says which process is writing it."""
    return f".{name[:_NAME_LENGTH]}.{os.getpid()}.{os.urandom(4).hex()}.tmp"


def remove_left_overs(
    directory: Path,
    *,
    of_process: int | None = None,
    of_name: str | None = None,
    of_file: os.stat_result | None = None,
) -> None:
    """Remove what killed programs of this user left unfinished in `directory`.

    Without `of_process` only for a caller that no other writer of these files,
    or of the one called `of_name`, can run beside. With `of_file` only further
    names of that file.
    """
    with os.scandir(directory) as entries:
        found = [(entry, _TEMPORARY_NAME.fullmatch(entry.name)) for entry in entries]
    for entry, match in found:
        if match is None or (of_process is not None and int(match["process"]) != of_process):
            continue
        if of_name is not None and match["name"] != of_name[:_NAME_LENGTH]:
            continue
        status = entry.stat(follow_symlinks=False)
        if status.st_uid != os.geteuid():
            continue
        if of_file is not None and not os.path.samestat(status, of_file):
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


def write_atomic(path: Path, data: bytes, *, mode: int = 0o644, owner: Owner | None = None) -> None:
    """Put `data` at `path` with `mode`: a reader sees the old file or the new one.

    The bytes, the mode and the owner are on the disk before the name is, and
    the name before this returns. The owner counts for root alone, and as far as
    such a user and group exist. Raises `UnreadableError`, the old file then
    untouched.
    """
    write_atomic_together({path: data}, mode=mode, owner=owner)


def write_atomic_together(
    contents: dict[Path, bytes], *, mode: int = 0o644, owner: Owner | None = None
) -> None:
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
            _write_durable(staged[path], data, mode, owner)
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


def create_exclusive(path: Path, data: bytes, *, mode: int, owner: Owner | None = None) -> None:
    """Write a new file durably; raises `ExistsError` when there is one."""
    temporary = path.with_name(temporary_name(path.name))
    try:
        _write_durable(temporary, data, mode, owner)
        os.link(temporary, path)
        fsync_directory(path.parent)
    except FileExistsError as error:
        raise ExistsError(f"{path} exists already and is not overwritten") from error
    except OSError as error:
        raise UnreadableError.of(path, error) from error
    finally:
        with signals_held(), contextlib.suppress(OSError):
            temporary.unlink()


def _write_durable(path: Path, data: bytes, mode: int, owner: Owner | None) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        if owner is not None and os.geteuid() == 0:
            os.fchown(descriptor, *_ids(owner))
        os.fchmod(descriptor, mode)
        os.fsync(descriptor)


def _ids(owner: Owner) -> tuple[int, int]:
    """The numbers of an owner; -1, which changes nothing, for a name that does not exist."""
    import grp
    import pwd

    user = group = -1
    with contextlib.suppress(KeyError):
        user = pwd.getpwnam(owner.user).pw_uid
    with contextlib.suppress(KeyError):
        group = grp.getgrnam(owner.group).gr_gid
    return user, group


def fsync_directory(directory: Path) -> None:
    """Make the names in `directory` durable."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
