"""Keys from where people keep them: files, the environment, a password prompt."""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Callable, MutableMapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from platform_common.errors import PlatformError, UnreadableError, WrongUsageError
from platform_common.storage.atomic_write import create_exclusive
from platform_common.storage.safe_read import read_bounded
from platform_common.storage.stale_files import nothing_left_in
from release_tools.signing import minisign
from release_tools.signing.minisign import FormatError, PublicKey, Signature, SignatureError

if TYPE_CHECKING:
    from release_tools.signing.secret_key import SecretKey

SECRET_KEY_VARIABLE = "SIGNING_SECRET_KEY"  # noqa: S105 - a name, not a secret
PASSWORD_VARIABLE = "SIGNING_SECRET_KEY_PASSWORD"  # noqa: S105 - a name, not a secret
_KEY_FILE_LIMIT_BYTES = 64 << 10


class KeyFileError(WrongUsageError):
    """What was given as a key is none."""


class KeyExistsError(PlatformError):
    """A key file that exists is never overwritten."""


def load_public_key(text: str) -> PublicKey:
    """The public key that `text` is, or that the file of that name holds.

    Raises `KeyFileError` for what is no public key, `UnreadableError` for a
    file that cannot be read.
    """
    if re.search(r"[A-Za-z0-9+/]{211}=", text):
        # Not shown: someone gave the wrong one of the two.
        raise KeyFileError("this is a secret key, and the public key is wanted")
    try:
        if re.fullmatch(r"RW[A-Za-z0-9+/]{54}", text):
            return PublicKey.parse_base64(text.encode())
        return PublicKey.parse(read_bounded(Path(text), _KEY_FILE_LIMIT_BYTES))
    except FormatError as error:
        raise KeyFileError(
            f"{text} is no minisign public key: {error.message}",
            hint="Give the .pub file that keygen wrote, or its second line.",
        ) from error


def writable_by_others(text: str) -> bool:
    """Whether `text` names a file that others than its owner may change."""
    try:
        mode = Path(text).stat().st_mode
    except (OSError, ValueError):
        # Too long for a name, say, because it is no name but a key.
        return False
    return stat.S_ISREG(mode) and bool(mode & (stat.S_IWGRP | stat.S_IWOTH))


def check_signature(keys: Sequence[PublicKey], signature: Signature, blake2b: bytes) -> PublicKey:
    """The one of `keys` that made this prehashed signature; raises `SignatureError`."""
    *others, last = candidates(keys, signature)
    for key in others:
        try:
            minisign.check(key, signature, blake2b)
        except SignatureError:
            continue
        return key
    minisign.check(last, signature, blake2b)
    return last


def candidates(keys: Sequence[PublicKey], signature: Signature) -> list[PublicKey]:
    """Those of `keys` that the signature's key id names; raises `SignatureError` for none."""
    named = [key for key in keys if key.key_id == signature.key_id]
    if not named:
        known = ", ".join(sorted({minisign.show_key_id(key.key_id) for key in keys}))
        raise SignatureError(
            "E_KEY",
            f"the signature is of key {minisign.show_key_id(signature.key_id)},"
            f" and only {known} is trusted",
        )
    return named


def take_secret_key(
    environment: MutableMapping[str, str], ask_password: Callable[[], str]
) -> SecretKey | None:
    """The signing key that the environment names, removed from it; None without one.

    `SIGNING_SECRET_KEY` is a path, a key file's text, or its base64 line. The
    password is `SIGNING_SECRET_KEY_PASSWORD`, else what `ask_password` returns.
    """
    from release_tools.signing.secret_key import parse_secret_key

    value = environment.pop(SECRET_KEY_VARIABLE, None)
    password = environment.pop(PASSWORD_VARIABLE, None)
    if value is None:
        return None
    if not value.strip():
        raise KeyFileError(
            f"{SECRET_KEY_VARIABLE} is set but empty",
            hint="Unset it to build without signing.",
        )
    if "\n" in value.strip() or re.fullmatch(r"[A-Za-z0-9+/]{211}=", value.strip()):
        data = os.fsencode(value.strip())
    else:
        data = _read_secret(value)
    try:
        return parse_secret_key(data, ask_password if password is None else password.__str__)
    except FormatError as error:
        raise KeyFileError(f"{SECRET_KEY_VARIABLE} is no minisign key: {error.message}") from error


def _read_secret(value: str) -> bytes:
    # The value itself is never shown: it may be a damaged key and not a path.
    try:
        return read_bounded(Path(value), _KEY_FILE_LIMIT_BYTES)
    except (UnreadableError, ValueError):
        raise UnreadableError(
            f"{SECRET_KEY_VARIABLE} is neither a minisign secret key nor a file that can be read"
        ) from None


def generate(secret_path: Path, public_path: Path, password: str) -> PublicKey:
    """Write a new key pair, the secret key with mode 0600; neither file may exist."""
    from release_tools.signing.secret_key import SecretKey, render_secret_key

    for path in (secret_path, public_path):
        if path.exists() or path.is_symlink():
            raise KeyExistsError(f"{path} exists already and is not overwritten")
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
            # A secret key alone is of no use and would stand in the way of the next attempt.
            secret_path.unlink(missing_ok=True)
            raise
    return key.public_key
