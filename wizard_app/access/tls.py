"""TLS for the wizard: version 1.2 or later, and an answer to clients that speak plain HTTP."""

from __future__ import annotations

import contextlib
import hashlib
import re
import socket
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from platform_common.errors import AccessError, WrongUsageError
from platform_common.storage.safe_read import read_bounded

_LIMIT_BYTES = 64 << 10
_BLOCK = re.compile(
    "-----BEGIN CERTIFICATE-----\\s[A-Za-z0-9+/=\\s]+-----END CERTIFICATE-----", re.ASCII
)
_HANDSHAKE = b"\x16"
_MOST_READ_BYTES = 65536
_PATIENCE_S = 2.0
_PLAIN = (
    b'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
    b'<meta name="viewport" content="width=device-width"><title>Use https</title></head><body>'
    b"<h1>Use https</h1><p>This address works only with https. Nothing that you sent was used,"
    b" and a link that works once still works.</p>"
    b"<p>Change <b>http://</b> at the beginning of the address to <b>https://</b>, and open it"
    b" again.</p></body></html>"
)
_ANSWER = (
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/html; charset=utf-8\r\n"
    b"Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\n"
    b"Content-Security-Policy: default-src 'none'\r\nX-Content-Type-Options: nosniff\r\n"
    b"Connection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(_PLAIN), _PLAIN)
)


def settings(certificate: Path, key: Path | None = None) -> Mapping[str, Any]:
    """Gunicorn's settings for the certificates and the key in these PEM files.

    Without `key`, the first file has both. Raises `WrongUsageError` if they do not belong
    together, and `AccessError` if one cannot be read.
    """
    context = _Context(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key, password=_no_password)
    except ssl.SSLError as error:
        raise WrongUsageError(
            f"{certificate} is not a certificate whose key is in {key or 'the same file'}",
            hint="Give a certificate and its private key, both as PEM and without a password.",
        ) from error
    except OSError as error:
        raise AccessError.of(key or certificate, error) from error
    return {
        "certfile": str(certificate),
        "keyfile": None if key is None else str(key),
        # Loaded once: later changes of the files do not affect a running server.
        "ssl_context": lambda config, default: context,
    }


def fingerprint(certificate: Path) -> str:
    """The SHA-256 fingerprint of the first certificate in a PEM file, in openssl's format.

    Raises `PlatformError`.
    """
    text = read_bounded(certificate, _LIMIT_BYTES).decode("latin-1")
    block = _BLOCK.search(text)
    if block is None:
        raise WrongUsageError(f"{certificate} does not contain a PEM certificate")
    try:
        der = ssl.PEM_cert_to_DER_cert(block[0])
    except ValueError as error:
        raise WrongUsageError(f"{certificate} does not contain a PEM certificate") from error
    return hashlib.sha256(der).digest().hex(":").upper()


def _no_password() -> str:
    raise WrongUsageError("The private key has a password", hint="Give one without.")


class _Context(ssl.SSLContext):
    """Tells plain-HTTP clients to use https."""

    def wrap_socket(self, sock: socket.socket, *args: Any, **options: Any) -> ssl.SSLSocket:
        if sock.recv(1, socket.MSG_PEEK) not in (_HANDSHAKE, b""):
            with contextlib.suppress(OSError):
                sock.settimeout(_PATIENCE_S)
                sock.recv(_MOST_READ_BYTES)
                sock.sendall(_ANSWER)
                sock.shutdown(socket.SHUT_WR)
            # gunicorn treats this like a client that closed the connection.
            raise ssl.SSLError(ssl.SSL_ERROR_EOF, "plain HTTP")
        return super().wrap_socket(sock, *args, **options)
