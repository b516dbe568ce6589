"""The application server key: created once in `vapid.pem`, never replaced.

A subscription belongs to one key for ever, so another key would make all of them useless: a
broken file stays as it is, and push is off.
"""

from __future__ import annotations

import base64
import contextlib
import logging
import os
import stat
from importlib.util import find_spec
from pathlib import Path

from platform_common.errors import AccessError, PlatformError, access_error
from platform_common.storage.atomic_write import (
    ExistsError,
    create_exclusive,
    make_folder,
    opened_folder,
)
from platform_common.storage.file_lock import hold
from platform_common.storage.safe_read import open_regular
from platform_common.storage.stale_files import remove_left_overs

FILE = "vapid.pem"
MODE = 0o600
_LIMIT_BYTES = 16 << 10
_CURVE = "secp256r1"  # Another name of prime256v1.
_LOG = logging.getLogger(__name__)


class BrokenKeyError(PlatformError):
    """The file has no usable key."""


class PushKey:
    """The key in the folder `data_dir`; without the library py_vapid there is none."""

    def __init__(self, data_dir: Path, *, generator: bool | None = None) -> None:
        self.path = data_dir / FILE
        # Only looked for here; it is imported when the key is needed.
        self._generator = _has_generator() if generator is None else generator
        self._warned = ""

    def public(self) -> str:
        """The public key for browsers, base64url; empty if push is off."""
        if not self._generator:
            self._warn_once("push is off: py-vapid is not installed")
            return ""
        try:
            return _public_part(self._pem(), self.path)
        except PlatformError as error:
            self._warn_once(f"push is off: {error.message}")
            return ""

    def _pem(self) -> bytes:
        try:
            return self._read()
        except FileNotFoundError:
            self._create()
        try:
            return self._read()
        except FileNotFoundError as error:
            raise AccessError.of(self.path, error) from error

    def _read(self) -> bytes:
        with (
            open_regular(self.path, follow_link=False, one_name=True) as descriptor,
            access_error(self.path),
        ):
            mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
            if mode & ~MODE:
                try:
                    os.fchmod(descriptor, MODE)
                except OSError:
                    said = f"has the mode {mode:04o}, and only its owner can change it"
                    self._warn_once(f"{self.path} {said}")
                else:
                    _LOG.warning("%s had the mode %04o and now has %04o", self.path, mode, MODE)
            return os.read(descriptor, _LIMIT_BYTES)

    def _create(self) -> None:
        """Create the file, unless another process just did."""
        new = _generate()
        make_folder(self.path.parent)
        with access_error(self.path), opened_folder(self.path.parent) as folder:
            # The folder itself is locked, so that no lock file is left behind.
            hold(folder, self.path)
            if not os.access(FILE, os.F_OK, dir_fd=folder, follow_symlinks=False):
                remove_left_overs(self.path.parent, of_name=FILE)
                with contextlib.suppress(ExistsError):
                    create_exclusive(self.path, new, mode=MODE)

    def _warn_once(self, what: str) -> None:
        """Log `what` once, because anyone can request the key any number of times."""
        if what != self._warned:
            self._warned = what
            _LOG.warning("%s", what)


def _has_generator() -> bool:
    return find_spec("py_vapid") is not None


def _generate() -> bytes:
    # Imported here and below: the package is optional, and slow to load.
    from py_vapid import Vapid02

    vapid = Vapid02()
    vapid.generate_keys()
    pem: bytes = vapid.private_pem()
    return pem


def _public_part(pem: bytes, path: Path) -> str:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        PublicFormat,
        load_pem_private_key,
    )

    try:
        key = load_pem_private_key(pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        # The error's text might repeat a part of the file.
        raise BrokenKeyError(f"{path} contains no private key without a password") from None
    if not isinstance(key, EllipticCurvePrivateKey) or key.curve.name != _CURVE:
        raise BrokenKeyError(f"{path} contains a key that is not on the curve prime256v1")
    point = key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    return base64.urlsafe_b64encode(point).decode().rstrip("=")
