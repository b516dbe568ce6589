"""Adds SSH keys to a user's `authorized_keys`.

The folder belongs to the user, who may change anything in it while we write as root: a link in
its place is not followed, and files are written relative to the opened, checked folder.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from platform_common.errors import AccessError, PlatformError
from platform_common.storage.atomic_write import (
    Owner,
    confirm,
    ids_of,
    make_folder,
    opened_folder,
    write_atomic,
)
from platform_common.storage.safe_read import close, read_own
from platform_common.storage.stale_files import remove_left_overs

_FOLDER_MODE = 0o700
_LIMIT_BYTES = 1 << 20
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


def add_keys(path: Path, lines: Sequence[str], *, mode: int, owner: Owner) -> None:
    """Append those of `lines` that are not yet in the file at `path`.

    Its folder is created if necessary and only accessible to `owner`. Raises
    `AccessError`, after which the file is unchanged.
    """
    make_folder(path.parent.parent)
    with _own_folder(path.parent, owner) as folder:
        # The opened folder, even if its path now leads elsewhere.
        place = Path(f"/proc/self/fd/{folder}", path.name)
        try:
            remove_left_overs(place.parent, of_name=path.name, given_to=ids_of(owner)[0])
            try:
                before = read_own(place, _LIMIT_BYTES)
            except FileNotFoundError:
                before = b""
            write_atomic(place, _added(before, lines), mode=mode, owner=owner)
        except PlatformError as error:
            said = error.message.replace(str(place.parent), str(path.parent))
            raise AccessError(said, hint=error.advice or "") from error


def _added(before: bytes, lines: Sequence[str]) -> bytes:
    there = {line.strip() for line in before.split(b"\n")}
    new = [line.encode() for line in dict.fromkeys(lines) if line.encode().strip() not in there]
    if before and not before.endswith(b"\n"):
        before += b"\n"
    return before + b"".join(line + b"\n" for line in new)


@contextlib.contextmanager
def _own_folder(path: Path, owner: Owner) -> Iterator[int]:
    """Open the folder at `path`, which must belong to `owner` and not be a link."""
    user, group = ids_of(owner)
    try:
        with opened_folder(path.parent) as above:
            with contextlib.suppress(FileExistsError):
                os.mkdir(path.name, _FOLDER_MODE, dir_fd=above)
            folder = os.open(path.name, _FOLDER, dir_fd=above)
            try:
                if os.fstat(folder).st_uid not in (os.geteuid(), user):
                    raise AccessError(
                        f"{path} belongs to another user",
                        hint="Change its owner to its user, then set up again.",
                    )
                os.fchown(folder, user, group)
                os.fchmod(folder, _FOLDER_MODE)
                confirm(above, f"{path} was created")
                yield folder
            finally:
                close(folder)
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP):
            raise AccessError(
                f"{path} is a symbolic link or not a folder",
                hint="Move it away, then set up again.",
            ) from error
        raise AccessError.of(path, error) from error
