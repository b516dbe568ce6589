"""Keys and signatures created in the process, the same in every run."""

from __future__ import annotations

import hashlib

from release_tools.signing.minisign import LEGACY, Signature, prehash
from release_tools.signing.secret_key import SecretKey, sign

MESSAGE = b"bytes of an artefact\n"
COMMENT = "timestamp:1793534400\tfile:artefact\thashed"


def secret_key(name: str = "release", *, key_id: bytes | None = None) -> SecretKey:
    """The secret key derived from `name`."""
    material = hashlib.blake2b(name.encode(), digest_size=40).digest()
    return SecretKey(material[:8] if key_id is None else key_id, material[8:])


def signed(
    message: bytes = MESSAGE, comment: str = COMMENT, key: SecretKey | None = None
) -> Signature:
    """A prehashed signature of `message`."""
    return sign(key or secret_key(), prehash(message), comment)


def signed_legacy(
    message: bytes = MESSAGE, comment: str = COMMENT, key: SecretKey | None = None
) -> Signature:
    """A signature in the legacy form, which signs the message itself."""
    key = key or secret_key()
    body, trusted = key.sign(message), comment.encode()
    return Signature(LEGACY, key.key_id, body, trusted, key.sign(body + trusted))
