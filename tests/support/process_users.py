"""Becoming another user for a while, in this process."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

NOBODY = 65534


@contextlib.contextmanager
def as_user(user: int) -> Iterator[None]:
    """Switch to that user and group, without other groups, until the block ends."""
    groups = os.getgroups()
    os.setgroups([])
    os.setegid(user)
    os.seteuid(user)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(groups)


@contextlib.contextmanager
def another_user(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Work in `folder`, which anyone can change, as a user who owns nothing there.

    Root really becomes that user; for other users only `os.geteuid` is patched. Meanwhile paths in
    `folder` are relative, because that user cannot enter the folders above.
    """
    folder.chmod(0o777)
    patch.chdir(folder)
    with contextlib.ExitStack() as stack:
        if os.geteuid() == 0:
            stack.enter_context(as_user(NOBODY))
        else:
            other = os.geteuid() + 1
            stack.enter_context(patch.context()).setattr(os, "geteuid", lambda: other)
        yield
