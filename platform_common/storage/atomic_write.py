"""Writes whole files that others read; the only module that does."""

from __future__ import annotations

import contextlib
import errno
import grp
import os
import pwd
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from platform_common.errors import AccessError, PlatformError, access_error
from platform_common.storage.safe_read import close
from platform_common.storage.stale_files import signals_held, temporary_name

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
# renameat2(2), which Python lacks: AT_FDCWD and RENAME_NOREPLACE.
_AT_FDCWD = -100
_RENAME_NOREPLACE = 1
# fchown is only called for a change, because a service may not be allowed to call it at all.
_UNCHANGED = (-1, -1)


class ExistsError(PlatformError):
    """The file to be created already exists."""


class NotDurableError(AccessError):
    """The change is visible but may not survive a power cut; repeating it is safe."""


class Owner(NamedTuple):
    """The names of a file's user and group."""

    user: str
    group: str


ROOT = Owner("root", "root")
# The gateways run as agent, and read the keys.
KEYS_OWNER = Owner("root", "agent")


def write_atomic(path: Path, data: bytes, *, mode: int = 0o644, owner: Owner | None = None) -> None:
    """Write `data` to `path` with `mode`; readers see the old file or the new one.

    Bytes, mode and owner are on the disk before the name, and the name before this returns. The
    owner is only set by root, and only if the user and the group exist. Raises
    `AccessError`, after which the old file is unchanged, or `NotDurableError`.
    """
    write_atomic_together({path: data}, mode=mode, owner=owner)


def write_atomic_together(
    contents: dict[Path, bytes], *, mode: int = 0o644, owner: Owner | None = None
) -> None:
    """Like `write_atomic` for several files in one directory, renamed in the given order.

    All bytes are durable before the first rename, so running out of space changes nothing, and the
    renames follow each other at once. If a rename fails, the earlier ones are undone.
    """
    *_, last = contents
    ids = ids_of(owner)
    staged = {path.name: temporary_name(path.name) for path in contents}
    kept = {path.name: temporary_name(path.name) for path in contents if path is not last}
    with access_error(last), opened_folder(last.parent) as folder:
        with _temporary(folder, [*staged.values(), *kept.values()]):
            for path, data in contents.items():
                _write_durable(folder, staged[path.name], data, mode, ids)
            for name, temporary in kept.items():
                # Without hard links there is no undo, but the remaining pair does not verify.
                with contextlib.suppress(OSError):
                    _link(folder, name, temporary)
            with signals_held():
                _rename_all(folder, staged, kept)
        confirm(folder, f"{last} was written")


def _rename_all(folder: int, staged: dict[str, str], kept: dict[str, str]) -> None:
    done: list[str] = []
    try:
        for name, temporary in staged.items():
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            done.append(name)
    except OSError:
        for name in done:
            with contextlib.suppress(OSError):
                try:
                    os.rename(kept[name], name, src_dir_fd=folder, dst_dir_fd=folder)
                except FileNotFoundError:
                    os.unlink(name, dir_fd=folder)
        raise


def create_exclusive(
    path: Path, data: bytes, *, mode: int, owner: Owner | None = None, durable: bool = True
) -> None:
    """Write a new file; raises `ExistsError` if there is one.

    Without `durable`, its name is not durable yet; the caller must fsync the folder.
    """
    temporary = temporary_name(path.name)
    try:
        with opened_folder(path.parent) as folder:
            with _temporary(folder, [temporary]):
                _write_durable(folder, temporary, data, mode, ids_of(owner))
                rename_to_free(temporary, path.name, folder)
            if durable:
                confirm(folder, f"{path} was written")
    except FileExistsError as error:
        raise ExistsError(f"{path} already exists and is not overwritten") from error
    except OSError as error:
        raise AccessError.of(path, error) from error


def rename_to_free(source: str, target: str, folder: int = _AT_FDCWD) -> None:
    """Rename, with both names relative to `folder`; raises `FileExistsError` if `target` exists."""
    # Imported here: commands that write nothing start faster.
    import ctypes

    names = os.fsencode(source), os.fsencode(target)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(folder, names[0], folder, names[1], _RENAME_NOREPLACE) == 0:
        return
    number = ctypes.get_errno()
    if number != errno.EINVAL:
        raise OSError(number, os.strerror(number))
    # Not supported by NFS, for example; there the file has two names for a moment.
    _link(folder, source, target)
    os.unlink(source, dir_fd=folder)


def _link(folder: int, source: str, target: str) -> None:
    os.link(source, target, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)


@contextlib.contextmanager
def _temporary(folder: int, names: Iterable[str]) -> Iterator[None]:
    """Delete `names` on exit, also by a signal."""

    def remove() -> None:
        with signals_held():
            for name in names:
                with contextlib.suppress(OSError):
                    os.unlink(name, dir_fd=folder)

    try:
        try:
            yield
        finally:
            remove()
    finally:
        # Again, because a signal may have come before the first attempt.
        remove()


def _write_durable(folder: int, name: str, data: bytes, mode: int, ids: tuple[int, int]) -> None:
    descriptor = os.open(name, _NEW, 0o600, dir_fd=folder)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        if ids != _UNCHANGED:
            os.fchown(descriptor, *ids)
        os.fchmod(descriptor, mode)
        os.fsync(descriptor)


def ids_of(owner: Owner | None) -> tuple[int, int]:
    """The ids of an owner; -1 (leave unchanged) for a name that does not exist.

    Both are -1 without root, because only root can change the owner of a file.
    """
    user, group = _UNCHANGED
    if owner is None or os.geteuid() != 0:
        return user, group
    with contextlib.suppress(KeyError):
        user = pwd.getpwnam(owner.user).pw_uid
    with contextlib.suppress(KeyError):
        group = grp.getgrnam(owner.group).gr_gid
    return user, group


@contextlib.contextmanager
def opened_folder(folder: Path) -> Iterator[int]:
    """Open `folder`; the descriptor stays valid even if the folder is renamed."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield descriptor
    finally:
        close(descriptor)


def confirm(folder: int, done: str) -> None:
    """Fsync an opened folder; raises `NotDurableError`, whose message starts with `done`."""
    try:
        os.fsync(folder)
    except OSError as error:
        raise NotDurableError(
            f"{done}, but may not survive a power cut: {error.strerror}",
            hint="Check the disk, then try again. That is safe.",
        ) from error


def make_folder(folder: Path, *, owner: Owner | None = None) -> None:
    """Create `folder` and its missing parents durably; raises `AccessError`.

    New ones belong to `owner`, under the same conditions as files.
    """
    with access_error(folder):
        if folder.is_dir():
            return
        make_folder(folder.parent, owner=owner)
        # Another program may create it at the same time.
        with contextlib.suppress(FileExistsError):
            folder.mkdir(0o755)
            if (ids := ids_of(owner)) != _UNCHANGED:
                os.chown(folder, *ids, follow_symlinks=False)
        with opened_folder(folder.parent) as above:
            os.fsync(above)


def fsync_directory(directory: Path) -> None:
    """Fsync `directory`, which makes the names in it durable."""
    with opened_folder(directory) as folder:
        os.fsync(folder)


def remove_file(path: Path) -> None:
    """Remove the file at `path`, if there is one, durably; raises `AccessError`."""
    try:
        path.unlink(missing_ok=True)
        fsync_directory(path.parent)
    except (FileNotFoundError, NotADirectoryError):
        return  # There is no such folder.
    except OSError as error:
        raise AccessError.of(path, error) from error
