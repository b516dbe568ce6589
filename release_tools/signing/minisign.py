"""minisign's public keys and signature files: bytes to objects and back.

The formats are those of minisign's own page ("Signature format", "Key formats") as minisign
0.11 reads them: it and this module accept and reject the same files. This module does no I/O.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from platform_common.errors import PlatformError

LEGACY, PREHASHED = b"Ed", b"ED"


class FormatError(PlatformError):
    """A text that is not a minisign key or signature."""


class SignatureError(PlatformError):
    """A signature that does not hold; `code` says which check failed."""

    def __init__(self, code: str, message: str, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.code = code


def show_key_id(key_id: bytes) -> str:
    """A key id as minisign shows it: 16 upper-case hexadecimal digits."""
    return f"{int.from_bytes(key_id, 'little'):016X}"


@dataclass(frozen=True, slots=True)
class PublicKey:
    """An Ed25519 public key and the 8 bytes that identify its key pair."""

    key_id: bytes
    point: bytes

    @classmethod
    def parse_base64(cls, text: bytes) -> PublicKey:
        """Return the key in one line of 56 base64 characters; raises `FormatError`."""
        raw = decode_base64(text, 42, "public key")
        if raw[:2] != LEGACY:
            raise FormatError("the public key uses an unknown algorithm")
        return cls(raw[2:10], raw[10:])

    @classmethod
    def parse(cls, data: bytes) -> PublicKey:
        """Return the key in a public key file, a comment line and the key; raises `FormatError`."""
        line, found, rest = data.partition(b"\n")
        if not found or len(line) > 1022:
            raise FormatError("a public key file has a comment line and then the key")
        # minisign reads 59 characters and ends the line at the first of these.
        key = re.split(rb"[\r\n\0]", rest[:59], maxsplit=1)[0]
        if len(key) != 56 and data.startswith(b"untrusted comment: minisign encrypted secret"):
            raise FormatError("this is a secret key file, but a public key is needed")
        return cls.parse_base64(key)

    def render(self) -> bytes:
        """Return the public key file."""
        body = base64.b64encode(LEGACY + self.key_id + self.point)
        comment = f"untrusted comment: minisign public key {show_key_id(self.key_id)}"
        return comment.encode() + b"\n" + body + b"\n"


@dataclass(frozen=True, slots=True)
class Signature:
    """A detached signature file; comments are the bytes after their prefix.

    `oddities` lists what minisign tolerates in the file but a release must not have.
    """

    algorithm: bytes
    key_id: bytes
    signature: bytes
    trusted_comment: bytes
    global_signature: bytes
    oddities: tuple[str, ...] = ()

    @property
    def legacy(self) -> bool:
        """Whether the file itself is signed rather than its BLAKE2b-512."""
        return self.algorithm == LEGACY

    @property
    def comment_text(self) -> str:
        """The trusted comment as text; bytes that are not UTF-8 become escapes."""
        return self.trusted_comment.decode("utf-8", "backslashreplace")

    @property
    def comment_words(self) -> list[tuple[str, str]]:
        """The `name:value` words of the trusted comment, which tabs separate."""
        words = (word.partition(":") for word in self.comment_text.split("\t"))
        return [(name, value) for name, colon, value in words if colon]

    @classmethod
    def parse(cls, data: bytes) -> Signature:
        """Return the signature in a `.minisig` file; raises `FormatError`."""
        # The limits are the sizes of minisign's own line buffers.
        untrusted, rest = _line(data, 1023, "untrusted comment")
        encoded, rest = _line(rest, 102, "signature")
        trusted, rest = _line(rest, 8191, "trusted comment")
        last = rest.partition(b"\n")[0][:90].partition(b"\0")[0]
        _after_prefix(untrusted, b"untrusted comment: ")
        comment = _trim(_after_prefix(trusted, b"trusted comment: "))
        raw = decode_base64(_trim(encoded), 74, "signature")
        of_comment = decode_base64(_trim(last), 64, "signature of the trusted comment")
        if raw[:2] not in (LEGACY, PREHASHED):
            raise FormatError("the signature uses an unknown algorithm")
        return cls(
            algorithm=raw[:2],
            key_id=raw[2:10],
            signature=raw[10:],
            trusted_comment=comment,
            global_signature=of_comment,
            oddities=tuple(_oddities(data, comment, {encoded: raw, last: of_comment})),
        )

    def render(self) -> bytes:
        """Return the signature file, four lines."""
        lines = (
            f"untrusted comment: signature of key {show_key_id(self.key_id)}".encode(),
            base64.b64encode(self.algorithm + self.key_id + self.signature),
            b"trusted comment: " + self.trusted_comment,
            base64.b64encode(self.global_signature),
            b"",
        )
        return b"\n".join(lines)


def prehash(data: bytes) -> bytes:
    """Return the BLAKE2b-512 of a small file: what a prehashed signature signs."""
    return hashlib.blake2b(data).digest()


def decode_base64(text: bytes, size: int, what: str) -> bytes:
    """Decode `text` to `size` bytes by minisign's rules; raises `FormatError` naming `what`."""
    length, padding = (size + 2) // 3 * 4, -size % 3
    if not re.fullmatch(rb"[A-Za-z0-9+/]{%d}={%d}" % (length - padding, padding), text):
        raise FormatError(f"the {what} is not {length} base64 characters")
    return base64.b64decode(text)


def _line(data: bytes, limit_bytes: int, what: str) -> tuple[bytes, bytes]:
    line, found, _ = data[:limit_bytes].partition(b"\n")
    if not found or b"\0" in line:
        raise FormatError(f"not a minisign signature: the {what} line is incomplete")
    return line, data[len(line) + 1 :]


def _after_prefix(line: bytes, prefix: bytes) -> bytes:
    if not line.startswith(prefix):
        name = prefix.decode().rstrip(": ")
        raise FormatError(f"not a minisign signature: the {name} line is missing")
    return line.removeprefix(prefix)


def _trim(line: bytes) -> bytes:
    return re.split(rb"[\r\n]", line, maxsplit=1)[0]


def _oddities(data: bytes, comment: bytes, decoded: dict[bytes, bytes]) -> Iterator[str]:
    if b"\r" in data:
        yield "a carriage return"
    if b"\0" in data:
        yield "a NUL byte"
    if any(_trim(line) != base64.b64encode(raw) for line, raw in decoded.items()):
        yield "base64 that no signer writes"
    if data.count(b"\n") > 4 or (data.count(b"\n") == 4 and not data.endswith(b"\n")):
        yield "text after its four lines"
    try:
        text = comment.decode("utf-8")
    except UnicodeDecodeError:
        yield "a trusted comment that is not UTF-8"
        return
    if not all(c.isprintable() or c == "\t" for c in text):
        yield "a control character in the trusted comment"
