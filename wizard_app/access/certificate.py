"""The wizard's own certificate, for devices without another one: created once, then kept."""

from __future__ import annotations

import ipaddress
import os
import stat
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, time, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID

from platform_common.clock import release_month, today
from platform_common.errors import AccessError, PlatformError
from platform_common.storage.atomic_write import make_folder, write_atomic
from platform_common.storage.safe_read import open_regular, read_open

FILE = "wizard.pem"
_MODE = 0o600
_LIMIT_BYTES = 64 << 10
# Some browsers refuse longer lifetimes, even as an exception.
_LIFETIME = timedelta(days=825)
# How far this clock may be ahead of a browser's.
_AHEAD = timedelta(days=30)
_SPARE = timedelta(days=1)
_LOOPBACK = ("127.0.0.1", "::1")


def own_certificate(folder: Path, name: str, addresses: Iterable[str]) -> Path:
    """Return the PEM file in `folder` with a certificate for this machine and its key.

    A new one is made if there is none, or if it has expired, is for another name, is damaged, or
    if others could read its key. Raises `PlatformError`.
    """
    path = folder / FILE
    if not _is_fit(path, name):
        make_folder(folder)
        write_atomic(path, _made(name, addresses), mode=_MODE)
    return path


def _is_fit(path: Path, name: str) -> bool:
    try:
        with open_regular(path, follow_link=False, one_name=True) as descriptor:
            status = os.fstat(descriptor)
            if stat.S_IMODE(status.st_mode) & ~_MODE or status.st_uid != os.geteuid():
                return False
            data = read_open(descriptor, path, _LIMIT_BYTES)
        certificate = x509.load_pem_x509_certificate(data)
        key = load_pem_private_key(data, password=None)
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except (FileNotFoundError, AccessError, ValueError, TypeError, x509.ExtensionNotFound):
        return False
    return (
        certificate.public_key() == key.public_key()
        and name in names.value.get_values_for_type(x509.DNSName)
        and datetime.now(UTC) < certificate.not_valid_after_utc - _SPARE
    )


def _made(name: str, addresses: Iterable[str]) -> bytes:
    """Make a key and its certificate, in this order."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    # The clock may be earlier than this release.
    begin = datetime.combine(max(today(), release_month()), time(), UTC) - _AHEAD
    try:
        certificate = (
            x509.CertificateBuilder(subject, subject, key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(begin)
            .not_valid_after(begin + _LIFETIME)
            .add_extension(x509.SubjectAlternativeName(_names(name, addresses)), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .sign(key, hashes.SHA256())
        )
    except ValueError as error:
        raise PlatformError(
            f"No certificate can be made for {name!a}, the name of this machine: {error}",
            hint="Give one with --certfile and --keyfile.",
        ) from error
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return private + certificate.public_bytes(Encoding.PEM)


def _names(name: str, addresses: Iterable[str]) -> Iterator[x509.GeneralName]:
    for host in dict.fromkeys(("localhost", name, f"{name}.local")):
        yield x509.DNSName(host)
    for address in dict.fromkeys((*_LOOPBACK, *addresses)):
        yield x509.IPAddress(ipaddress.ip_address(address))
