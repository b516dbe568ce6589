"""The file of the launch token, its only copy: whoever can read it can set up the device."""

from __future__ import annotations

import contextlib
import logging
import os
import stat
from collections.abc import Callable
from pathlib import Path

from platform_common.errors import AccessError, PlatformError
from platform_common.storage.atomic_write import Owner
from platform_common.storage.file_lock import changing
from platform_common.storage.safe_read import open_regular, read_open
from wizard_app.setup.serving_file import put

_MODE = 0o600
_LIMIT_BYTES = 1024
_WAIT_S = 2.0
_LOG = logging.getLogger(__name__)


class TokenFile:
    """The file at `path`; a file that is not trusted counts as no token.

    `server` is the user of the running wizard, for commands that another user runs.
    """

    def __init__(self, path: Path, server: int | None = None) -> None:
        self.path = path
        self._server = server

    def write(self, token: str, owner: Owner | None = None) -> None:
        """Write a token, replacing an unused one; raises `PlatformError`.

        A link in its place is replaced and not followed.
        """
        put(self.path, token.encode(), owner)

    def read(self) -> str:
        """Return the token; empty if there is none. Raises `AccessError`."""
        try:
            with open_regular(self.path, follow_link=False, one_name=True) as descriptor:
                if os.fstat(descriptor).st_uid not in self._trusted():
                    raise AccessError(f"{self.path} belongs to another user")
                return read_open(descriptor, self.path, _LIMIT_BYTES).decode("ascii").strip()
        except FileNotFoundError:
            return ""
        except UnicodeDecodeError as error:
            raise AccessError(f"{self.path} does not contain a token") from error

    def _trusted(self) -> set[int]:
        """The users whose file is trusted."""
        folder = self.path.parent.stat()
        # The owner of the folder can put any file there anyway.
        trusted = {0, os.geteuid(), folder.st_uid}
        # In a folder that others can write to, anyone could claim to serve.
        if self._server is not None and not folder.st_mode & stat.S_IWOTH:
            trusted.add(self._server)
        return trusted

    def spend(self, matches: Callable[[str], bool]) -> bool:
        """Remove the token if it exists and `matches`; return whether this call did.

        Another process may write a new one at any time, which then stays.
        """
        try:
            with changing(self.path, wait_s=_WAIT_S):
                token = self.read()
                if not token or not matches(token):
                    return False
                return self._removed()
        except PlatformError as error:
            _LOG.warning("the launch token cannot be read: %s", error.message)
            return False

    def remove(self, token: str) -> None:
        """Remove the token if it is this one and that is possible."""
        with contextlib.suppress(PlatformError, OSError), changing(self.path, wait_s=_WAIT_S):
            if self.read() == token:
                self.path.unlink()

    def clear(self) -> None:
        """Remove any token."""
        with contextlib.suppress(OSError):
            self.path.unlink()

    def _removed(self) -> bool:
        try:
            self.path.unlink()
        except FileNotFoundError:
            return False
        except OSError as error:
            _LOG.warning("%s could not be removed: %s", self.path, error.strerror)
        return True
