"""The browser's side of Web Push: its key pair, and decrypting what was encrypted for it."""

from __future__ import annotations

import base64
import os
from dataclasses import dataclass, field
from typing import Any

import http_ece
from cryptography.hazmat.primitives.asymmetric.ec import (
    SECP256R1,
    EllipticCurvePrivateKey,
    generate_private_key,
)
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat


def base64url(data: bytes) -> str:
    """The encoding of browsers, without padding."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


@dataclass
class Receiver:
    """A browser that has subscribed at `endpoint`."""

    endpoint: str = "https://push.example.com/send/abc"
    key: EllipticCurvePrivateKey = field(default_factory=lambda: generate_private_key(SECP256R1()))
    auth: bytes = field(default_factory=lambda: os.urandom(16))

    @property
    def point(self) -> bytes:
        """Its public key."""
        return self.key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)

    def subscription(self, **members: Any) -> dict[str, Any]:
        """The subscription that it sends; `members` replace its own or are added."""
        return {
            "endpoint": self.endpoint,
            "expirationTime": None,
            "keys": {"p256dh": base64url(self.point), "auth": base64url(self.auth)},
            **members,
        }

    def read(self, message: bytes) -> str:
        """The text of an encrypted message."""
        plain: bytes = http_ece.decrypt(
            message, private_key=self.key, auth_secret=self.auth, version="aes128gcm"
        )
        return plain.decode("utf-8")
