"""minisign's file formats and signatures; no file, network, clock or terminal here.

Format: the page "Minisign" of its author, section "Signature format" and "Key
formats", as read by minisign 0.11, whose verdicts this module shares.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass

from platform_common.errors import PlatformError

LEGACY, PREHASHED = b"Ed", b"ED"
_GROUP_ORDER = 2**252 + 27742317777372353535851937790883648493


class FormatError(PlatformError):
    """A text that is no minisign key or signature."""


class SignatureError(PlatformError):
    """A signature that does not hold; `code` tells which check failed."""

    def __init__(self, code: str, message: str, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.code = code


def show_key_id(key_id: bytes) -> str:
    """A key id as minisign shows it: 16 upper-case hexadecimal digits."""
    return f"{int.from_bytes(key_id, 'little'):016X}"


@dataclass(frozen=True, slots=True)
class PublicKey:
    """An Ed25519 public key and the 8 bytes that name its pair."""

    key_id: bytes
    point: bytes

    @classmethod
    def parse_base64(cls, text: bytes) -> PublicKey:
        """The key in one line of 56 base64 characters."""
        raw = decode_base64(text, 42, "public key")
        if raw[:2] != LEGACY:
            raise FormatError("the public key is of an unknown algorithm")
        return cls(raw[2:10], raw[10:])

    @classmethod
    def parse(cls, data: bytes) -> PublicKey:
        """The key in a public key file: a comment line, then the key."""
        line, found, rest = data.partition(b"\n")
        if not found or len(line) > 1022:
            raise FormatError("a public key file has a comment line and then the key")
        key = re.split(rb"[\r\n\0]", rest[:59], maxsplit=1)[0]
        if len(key) != 56 and data.startswith(b"untrusted comment: minisign encrypted secret"):
            raise FormatError("this is a secret key file, and the public key is wanted")
        return cls.parse_base64(key)

    def render(self) -> bytes:
        """The public key file."""
        body = base64.b64encode(LEGACY + self.key_id + self.point)
        return f"untrusted comment: minisign public key {show_key_id(self.key_id)}\n".encode() + (
            body + b"\n"
        )


@dataclass(frozen=True, slots=True)
class Signature:
    """A detached signature file; comments are the bytes after their prefix.

    `oddities` names what minisign lets pass and a release must not have.
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
        """The signature in a `.minisig` file; raises `FormatError`."""
        untrusted, rest = _line(data, 1023, "untrusted comment")
        encoded, rest = _line(rest, 102, "signature")
        trusted, rest = _line(rest, 8191, "trusted comment")
        last = rest.partition(b"\n")[0][:90].partition(b"\0")[0]
        _after_prefix(untrusted, b"untrusted comment: ")
        comment = _trim(_after_prefix(trusted, b"trusted comment: "))
        raw = decode_base64(_trim(encoded), 74, "signature")
        of_comment = decode_base64(_trim(last), 64, "signature of the trusted comment")
        if raw[:2] not in (LEGACY, PREHASHED):
            raise FormatError("the signature is of an unknown algorithm")
        return cls(
            algorithm=raw[:2],
            key_id=raw[2:10],
            signature=raw[10:],
            trusted_comment=comment,
            global_signature=of_comment,
            oddities=tuple(_oddities(data, comment, {encoded: raw, last: of_comment})),
        )

    def render(self) -> bytes:
        """The signature file, four lines."""
        body = base64.b64encode(self.algorithm + self.key_id + self.signature)
        lines = (
            f"untrusted comment: signature of key {show_key_id(self.key_id)}".encode(),
            body,
            b"trusted comment: " + self.trusted_comment,
            base64.b64encode(self.global_signature),
            b"",
        )
        return b"\n".join(lines)


def prehash(data: bytes) -> bytes:
    """BLAKE2b-512 of a small file: what a prehashed signature signs."""
    return hashlib.blake2b(data).digest()


def check(key: PublicKey, signature: Signature, blake2b: bytes) -> None:
    """Raise `SignatureError` unless `key` made this prehashed signature of that digest."""
    check_key_id(key, signature)
    if signature.legacy:
        raise SignatureError(
            "E_SIG",
            "the signature is of the legacy kind, which does not hash the file first",
            hint="Sign again with a current minisign or with release-tools sign.",
        )
    _check_ed25519(key, signature.signature, blake2b, "the signature does not match the file")
    _check_comment(key, signature)


def check_legacy(key: PublicKey, signature: Signature, chunks: Iterable[memoryview]) -> None:
    """Like `check` for a legacy signature, over the file in pieces.

    Ed25519 (RFC 8032, section 5.1.7) hashes the message once, so the file need
    not be in memory: S·B = R + SHA-512(R ‖ A ‖ M)·A.
    """
    from nacl import bindings
    from nacl.exceptions import CryptoError

    check_key_id(key, signature)
    r, s = signature.signature[:32], signature.signature[32:]
    digest = hashlib.sha512(r + key.point)
    for chunk in chunks:
        digest.update(chunk)
    try:
        if int.from_bytes(s, "little") >= _GROUP_ORDER:
            raise ValueError
        scalar = bindings.crypto_core_ed25519_scalar_reduce(digest.digest())
        right = bindings.crypto_core_ed25519_add(
            r, bindings.crypto_scalarmult_ed25519_noclamp(scalar, key.point)
        )
        if bindings.crypto_scalarmult_ed25519_base_noclamp(s) != right:
            raise ValueError
    except (ValueError, CryptoError) as error:
        raise SignatureError("E_SIG", "the signature does not match the file") from error
    _check_comment(key, signature)


def check_key_id(key: PublicKey, signature: Signature) -> None:
    """Raise `SignatureError` when another key pair than `key`'s made the signature."""
    if key.key_id != signature.key_id:
        raise SignatureError(
            "E_KEY",
            f"the signature is of key {show_key_id(signature.key_id)},"
            f" and the public key is {show_key_id(key.key_id)}",
        )


def _check_comment(key: PublicKey, signature: Signature) -> None:
    _check_ed25519(
        key,
        signature.global_signature,
        signature.signature + signature.trusted_comment,
        "the trusted comment does not belong to this signature",
    )


def _check_ed25519(key: PublicKey, signature: bytes, message: bytes, complaint: str) -> None:
    from nacl.exceptions import CryptoError
    from nacl.signing import VerifyKey

    try:
        VerifyKey(key.point).verify(message, signature)
    except CryptoError as error:
        raise SignatureError("E_SIG", complaint) from error


def decode_base64(text: bytes, size: int, what: str) -> bytes:
    """The `size` bytes that `text` encodes, by minisign's rules; raises `FormatError`."""
    padding = -size % 3
    pattern = rb"[A-Za-z0-9+/]{%d}={%d}" % ((size + 2) // 3 * 4 - padding, padding)
    if not re.fullmatch(pattern, text):
        raise FormatError(f"the {what} is not {(size + 2) // 3 * 4} base64 characters")
    return base64.b64decode(text)


def _line(data: bytes, limit_bytes: int, what: str) -> tuple[bytes, bytes]:
    line, found, _ = data[:limit_bytes].partition(b"\n")
    if not found or b"\0" in line:
        raise FormatError(f"not a minisign signature: the line of the {what} is not whole")
    return line, data[len(line) + 1 :]


def _after_prefix(line: bytes, prefix: bytes) -> bytes:
    if not line.startswith(prefix):
        name = prefix.decode().rstrip(": ")
        raise FormatError(f"not a minisign signature: the line of the {name} is missing")
    return line.removeprefix(prefix)


def _trim(line: bytes) -> bytes:
    return re.split(rb"[\r\n]", line, maxsplit=1)[0]


def _oddities(data: bytes, comment: bytes, decoded: dict[bytes, bytes]) -> Iterable[str]:
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
    else:
        if not all(c.isprintable() or c == "\t" for c in text):
            yield "a control character in the trusted comment"
