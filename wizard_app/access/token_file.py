"""The launch token on the disk, the only place that has it: whoever may read it may set up."""

from __future__ import annotations

import contextlib
import logging
import os
import stat
from collections.abc import Callable
from pathlib import Path

from platform_common.errors import PlatformError, UnreadableError
from platform_common.storage.atomic_write import Owner
from platform_common.storage.file_lock import changing
from platform_common.storage.safe_read import open_regular, read_open
from wizard_app.setup.serving_file import put

_MODE = 0o600
_LIMIT_BYTES = 1024
_WAIT_S = 2.0
_LOG = logging.getLogger(__name__)


class TokenFile:
    """The file at `path`; what is no file of ours there counts as no token.

    `server` is the user who serves, for who reads it as another one.
    """

    def __init__(self, path: Path, server: int | None = None) -> None:
        self.path = path
        self._server = server

    def write(self, token: str, owner: Owner | None = None) -> None:
        """Put a token there, in place of one that was not used; raises `PlatformError`.

        A link that lies there is replaced, and not followed.
        """
        put(self.path, token.encode(), owner)

    def read(self) -> str:
        """The token; empty when there is none. Raises `UnreadableError`."""
        try:
            with open_regular(self.path, follow_link=False, one_name=True) as descriptor:
                if os.fstat(descriptor).st_uid not in self._trusted():
                    raise UnreadableError(f"{self.path} belongs to another user")
                return read_open(descriptor, self.path, _LIMIT_BYTES).decode("ascii").strip()
        except FileNotFoundError:
            return ""
        except UnicodeDecodeError as error:
            raise UnreadableError(f"{self.path} holds no token") from error

    def _trusted(self) -> set[int]:
        """The users whose file may be the token."""
        folder = self.path.parent.stat()
        # Whose folder it is may put there what they like.
        trusted = {0, os.geteuid(), folder.st_uid}
        # Where everybody may write, anybody may say that they serve.
        if self._server is not None and not folder.st_mode & stat.S_IWOTH:
            trusted.add(self._server)
        return trusted

    def spend(self, matches: Callable[[str], bool]) -> bool:
        """Remove the token if it is there and `matches`; whether this call did that.

        Another process may write a new one at any time, which then stays.
        """
        try:
            with changing(self.path, wait_s=_WAIT_S):
                token = self.read()
                if not token or not matches(token):
                    return False
                return self._removed()
        except PlatformError as error:
            _LOG.warning("no launch token is taken: %s", error.message)
            return False

    def remove(self, token: str) -> None:
        """Remove the token if it is this one, as far as that can be told and done."""
        with contextlib.suppress(PlatformError, OSError), changing(self.path, wait_s=_WAIT_S):
            if self.read() == token:
                self.path.unlink()

    def clear(self) -> None:
        """Remove whatever token is there."""
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
