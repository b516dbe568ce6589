"""Keys from where people keep them: files, the environment, a password prompt."""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Callable, MutableMapping
from pathlib import Path

from platform_common.errors import AccessError, PlatformError, WrongUsageError
from platform_common.storage.atomic_write import create_exclusive
from platform_common.storage.safe_read import read_bounded
from release_tools.left_overs import nothing_left_in
from release_tools.signing.minisign import FormatError, PublicKey
from release_tools.signing.secret_key import SecretKey, parse_secret_key, render_secret_key

SECRET_KEY_VARIABLE = "SIGNING_SECRET_KEY"  # noqa: S105 - a name, not a secret
PASSWORD_VARIABLE = "SIGNING_SECRET_KEY_PASSWORD"  # noqa: S105 - a name, not a secret
_KEY_FILE_LIMIT_BYTES = 64 << 10
_SECRET_KEY_LINE = r"[A-Za-z0-9+/]{211}="  # noqa: S105 - a pattern, not a secret


class KeyFileError(WrongUsageError):
    """The text or file given as a key is not one."""


class KeyExistsError(PlatformError):
    """A key file already exists; key files are never overwritten."""


def load_public_key(text: str) -> PublicKey:
    """Return the public key that `text` is, or that the file of that name holds.

    Raises `KeyFileError` if there is no public key in it, and `AccessError`.
    """
    if re.search(_SECRET_KEY_LINE, text):
        # Someone passed the secret key instead of the public one: do not show it.
        raise KeyFileError("this is a secret key, but a public key is needed")
    try:
        if re.fullmatch(r"RW[A-Za-z0-9+/]{54}", text):
            return PublicKey.parse_base64(text.encode())
        return PublicKey.parse(read_bounded(Path(text), _KEY_FILE_LIMIT_BYTES))
    except FormatError as error:
        raise KeyFileError(
            f"{text} is not a minisign public key: {error.message}",
            hint="Give the .pub file that keygen wrote, or its second line.",
        ) from error


def writable_by_others(text: str) -> bool:
    """Whether `text` names a file that users other than its owner can change."""
    try:
        mode = Path(text).stat().st_mode
    except (OSError, ValueError):
        # A key instead of a file name can be too long for a name, for example.
        return False
    return stat.S_ISREG(mode) and bool(mode & (stat.S_IWGRP | stat.S_IWOTH))


def take_secret_key(
    environment: MutableMapping[str, str], ask_password: Callable[[], str]
) -> SecretKey | None:
    """Remove the signing key and its password from `environment` and return the key, if any.

    `SIGNING_SECRET_KEY` is a path, a key file's text, or its base64 line. The password is
    `SIGNING_SECRET_KEY_PASSWORD`, else what `ask_password` returns. Raises `KeyFileError`,
    `AccessError`, and `SignatureError` for a wrong password.
    """
    value = environment.pop(SECRET_KEY_VARIABLE, None)
    password = environment.pop(PASSWORD_VARIABLE, None)
    if value is None:
        return None
    text = value.strip()
    if not text:
        raise KeyFileError(
            f"{SECRET_KEY_VARIABLE} is set but empty",
            hint="Unset it to build without signing.",
        )
    is_key = "\n" in text or re.fullmatch(_SECRET_KEY_LINE, text)
    data = os.fsencode(text) if is_key else _read_secret(value)
    try:
        return parse_secret_key(data, lambda: ask_password() if password is None else password)
    except FormatError as error:
        raise KeyFileError(
            f"{SECRET_KEY_VARIABLE} is not a minisign key: {error.message}"
        ) from error


def _read_secret(value: str) -> bytes:
    # The value is never shown: it may be a damaged key rather than a path.
    try:
        return read_bounded(Path(value), _KEY_FILE_LIMIT_BYTES)
    except (AccessError, ValueError):
        raise AccessError(
            f"{SECRET_KEY_VARIABLE} is neither a minisign secret key nor a file that can be read"
        ) from None


def generate(secret_path: Path, public_path: Path, password: str) -> PublicKey:
    """Write a new key pair, the secret key with mode 0600; neither file may exist yet."""
    for path in (secret_path, public_path):
        if path.exists() or path.is_symlink():
            raise KeyExistsError(f"{path} already exists and is not overwritten")
    if secret_path.resolve() == public_path.resolve():
        raise WrongUsageError("the two keys need two files")
    key = SecretKey(secrets.token_bytes(8), secrets.token_bytes(32))
    salt = secrets.token_bytes(32)
    for path, mode in ((secret_path, 0o700), (public_path, 0o755)):
        path.parent.mkdir(mode=mode, parents=True, exist_ok=True)
    secret_data = render_secret_key(key, password, salt=salt)
    with nothing_left_in(secret_path.parent, public_path.parent):
        create_exclusive(secret_path, secret_data, mode=0o600)
        try:
            create_exclusive(public_path, key.public_key.render(), mode=0o644)
        except BaseException:
            # A secret key alone is useless and would block the next attempt.
            secret_path.unlink(missing_ok=True)
            raise
    return key.public_key
