"""minisign's secret keys, and signing with them; this module does no I/O."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass, field

from nacl.exceptions import CryptoError
from nacl.pwhash import scrypt
from nacl.signing import SigningKey

from platform_common.errors import PlatformError
from release_tools.signing.minisign import (
    LEGACY,
    PREHASHED,
    FormatError,
    PublicKey,
    Signature,
    SignatureError,
    decode_base64,
)

_KDF, _NO_KDF, _CHECKSUM = b"Sc", b"\0\0", b"B2"
# What minisign writes, and therefore the most that a key file may demand of this machine.
DEFAULT_OPSLIMIT, DEFAULT_MEMLIMIT = 33_554_432, 1_073_741_824
TRUSTED_COMMENT_LIMIT_BYTES = 4_077


@dataclass(frozen=True, slots=True)
class SecretKey:
    """An Ed25519 secret key; neither `repr` nor `str` shows it."""

    key_id: bytes
    seed: bytes = field(repr=False)

    @property
    def public_key(self) -> PublicKey:
        """The public half."""
        return PublicKey(self.key_id, bytes(SigningKey(self.seed).verify_key))

    def sign(self, message: bytes) -> bytes:
        """Return the 64 bytes of an Ed25519 signature."""
        return SigningKey(self.seed).sign(message).signature


def sign(key: SecretKey, blake2b: bytes, comment: str) -> Signature:
    """Sign the file with that BLAKE2b-512 digest, and `comment`; raises `FormatError`."""
    plain = all(c.isprintable() or c == "\t" for c in comment)
    # A byte of a file name that is not UTF-8 arrives as a lone surrogate, which is not printable.
    trusted = comment.encode("utf-8") if plain else b""
    if not plain or len(trusted) > TRUSTED_COMMENT_LIMIT_BYTES:
        raise FormatError("the trusted comment is too long or contains a control character")
    signature = key.sign(blake2b)
    return Signature(PREHASHED, key.key_id, signature, trusted, key.sign(signature + trusted))


def parse_secret_key(data: bytes, ask_password: Callable[[], str]) -> SecretKey:
    """Return the key in a secret key file, or in its base64 line alone.

    `ask_password` is called only for an encrypted key. Raises `FormatError` if `data` is not a
    key file, and `SignatureError` for a wrong password or checksum.
    """
    lines = data.replace(b"\r\n", b"\n").strip(b"\n").split(b"\n")
    if len(lines) > 2 or (len(lines) == 2 and not lines[0].startswith(b"untrusted comment:")):
        raise FormatError("a secret key is a comment line and then the key, or the key alone")
    raw = decode_base64(lines[-1], 158, "secret key")
    kdf, body, checksum = raw[2:4], raw[54:126], raw[126:]
    if raw[:2] != LEGACY or raw[4:6] != _CHECKSUM or kdf not in (_KDF, _NO_KDF):
        raise FormatError("the secret key uses an unknown algorithm")
    error_message = "the secret key's checksum is wrong: the key file is damaged"
    if kdf == _KDF:
        stream = _derive(ask_password(), salt=raw[6:38], opslimit=raw[38:46], memlimit=raw[46:54])
        body, checksum = _xor(body, stream[:72]), _xor(checksum, stream[72:])
        error_message = "the password of the secret key is wrong, or the key file is damaged"
    # minisign writes a zero checksum if the key has never had a password.
    if checksum != bytes(32) and checksum != _checksum(body):
        raise SignatureError("E_KEY", error_message)
    key = SecretKey(body[:8], body[8:40])
    if key.public_key.point != body[40:]:
        raise SignatureError("E_KEY", error_message)
    return key


def render_secret_key(key: SecretKey, password: str, *, salt: bytes) -> bytes:
    """Return the secret key file, encrypted unless `password` is empty; `salt` is 32 bytes."""
    body = key.key_id + key.seed + key.public_key.point
    checksum = _checksum(body)
    head = LEGACY + _NO_KDF + _CHECKSUM + bytes(48)
    if password:
        opslimit = DEFAULT_OPSLIMIT.to_bytes(8, "little")
        memlimit = DEFAULT_MEMLIMIT.to_bytes(8, "little")
        stream = _derive(password, salt=salt, opslimit=opslimit, memlimit=memlimit)
        body, checksum = _xor(body, stream[:72]), _xor(checksum, stream[72:])
        head = LEGACY + _KDF + _CHECKSUM + salt + opslimit + memlimit
    comment = "untrusted comment: minisign encrypted secret key\n"
    return comment.encode() + base64.b64encode(head + body + checksum) + b"\n"


def _derive(password: str, *, salt: bytes, opslimit: bytes, memlimit: bytes) -> bytes:
    operations = int.from_bytes(opslimit, "little")
    memory_bytes = int.from_bytes(memlimit, "little")
    if operations > DEFAULT_OPSLIMIT or memory_bytes > DEFAULT_MEMLIMIT:
        raise FormatError("the secret key demands more work or memory than minisign ever does")
    try:
        return scrypt.kdf(104, os.fsencode(password), salt, operations, memory_bytes)
    except ValueError as error:
        raise FormatError(
            "the secret key's work and memory limits contradict each other"
        ) from error
    except (CryptoError, MemoryError) as error:
        raise PlatformError(
            f"the password check needs {memory_bytes >> 20} MiB of free memory"
        ) from error


def _checksum(body: bytes) -> bytes:
    return hashlib.blake2b(LEGACY + body, digest_size=32).digest()


def _xor(a: bytes, b: bytes) -> bytes:
    return bytes(x ^ y for x, y in zip(a, b, strict=True))
