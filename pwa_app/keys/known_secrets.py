"""The device's keys, as far as this process may read them, so that pages can mask them."""

from __future__ import annotations

from platform_common.errors import PlatformError
from platform_common.paths import SECRETS, Paths
from platform_common.records.key_store import read_keys
from platform_common.redaction import Redactor

_Signature = tuple[int, int, int]


class KnownSecrets:
    """Reads `secrets.env` again whenever it has changed."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._known: tuple[_Signature | None, Redactor] = (None, Redactor())

    def redactor(self) -> Redactor:
        """The redactor for the keys; without a readable file, it masks text shaped like keys."""
        signature, redactor = self._known
        now = self._signature()
        if now != signature:
            redactor = self._read()
            self._known = (now, redactor)
        return redactor

    def _signature(self) -> _Signature | None:
        try:
            status = self._paths.path_of(SECRETS).stat()
        except OSError:
            return None
        return status.st_ino, status.st_mtime_ns, status.st_size

    def _read(self) -> Redactor:
        try:
            return Redactor(read_keys(self._paths).all_values())
        except PlatformError:
            return Redactor()
