"""The browsers that want notifications, one line each in `push-subscriptions.jsonl`.

Of two lines with the same endpoint the last counts. An invalid line, such as a torn one, is
ignored and stays.
"""

from __future__ import annotations

import base64
import ipaddress
import json
import re
import sys
import threading
from pathlib import Path

import msgspec
from msgspec import Struct, field

from platform_common.errors import PlatformError
from platform_common.formats.decode import DecodingError, check_member, from_json
from platform_common.net.networks import Address, address_of, is_in, networks
from platform_common.storage.append_log import append_line, drop_lines
from platform_common.storage.atomic_write import make_folder
from platform_common.storage.safe_read import read_own
from platform_common.validation import check_http_url

FILE = "push-subscriptions.jsonl"
MODE = 0o640
BODY_LIMIT_BYTES = 16 << 10
LIMIT_LINES = 1000
LIMIT_BYTES = 1 << 20
# A file that another program made larger is still read up to here.
_READ_BYTES = 4 * LIMIT_BYTES
_ENDPOINT_CHARACTERS = 2048
_BASE64URL = re.compile(r"[A-Za-z0-9_-]*={0,2}")
_POINT_BYTES = 65
_AUTH_BYTES = 16
_LABEL = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)")
_LAST_LABEL = re.compile(r"(?=.*[A-Za-z])[A-Za-z0-9-]{2,63}", re.DOTALL)
# Names that resolve locally and lead to this network or machine.
_INNER_ENDINGS = frozenset(
    ["localhost", "local", "localdomain", "internal", "intranet", "lan", "home", "corp"]
)
_INNER_NAMES = ("home.arpa",)
# IPv6 addresses that contain an IPv4 one, at any position (NAT64, Teredo, 6to4).
_IPV4_TUNNELS = networks("::/96", "::ffff:0:0/96", "64:ff9b::/32", "2001::/32", "2002::/16")


class FullError(PlatformError):
    """The file is full."""


class Keys(Struct, frozen=True):
    """The keys that encrypt messages for the browser."""

    p256dh: str
    auth: str

    def __post_init__(self) -> None:
        check_member("p256dh", _check_point, self.p256dh)
        check_member("auth", _check_auth, self.auth)


class Subscription(Struct, frozen=True, kw_only=True):
    """A browser's subscription, with only the members that are stored."""

    endpoint: str
    expiration_time: int | float | None = field(name="expirationTime", default=None)
    keys: Keys

    def __post_init__(self) -> None:
        check_member("endpoint", check_endpoint, self.endpoint)
        time = self.expiration_time
        if time is not None and abs(time) > sys.float_info.max:
            raise ValueError("expirationTime: must be null or a plausible number")


class _Leaving(Struct, frozen=True):
    endpoint: str


def parse(body: bytes) -> Subscription:
    """Parse the subscription that a browser sends; raises `DecodingError` with the reason."""
    return from_json(body, Subscription)


def parse_endpoint(body: bytes) -> str:
    """Parse a request to unsubscribe and return its endpoint; raises `DecodingError`."""
    return from_json(body, _Leaving).endpoint


def check_endpoint(url: str) -> None:
    """Check that it is a push service's https URL outside this network; raises `ValueError`."""
    if len(url) > _ENDPOINT_CHARACTERS:
        raise ValueError(f"must have at most {_ENDPOINT_CHARACTERS:,} characters")
    if not url.startswith("https://"):
        raise ValueError("must be an https URL")
    host = check_http_url(url).lower().removesuffix(".")
    if host.startswith("["):
        outside = _is_outside(ipaddress.ip_address(host[1:-1]))
    elif re.fullmatch(r"[0-9.]+", host) and host.count(".") == 3:
        address = address_of(host)
        outside = address is not None and _is_outside(address)
    else:
        outside = _is_public_name(host)
    if not outside:
        raise ValueError("must be the address of a push service outside this network")


def _is_outside(address: Address) -> bool:
    return address.is_global and not address.is_multicast and not is_in(address, _IPV4_TUNNELS)


def _is_public_name(host: str) -> bool:
    labels = host.split(".")
    return (
        len(labels) > 1
        and all(map(_LABEL.fullmatch, labels))
        # Browsers and resolvers take a name that ends in a number for an IPv4 address.
        and _LAST_LABEL.fullmatch(labels[-1]) is not None
        and not labels[-1].startswith("0x")
        and labels[-1] not in _INNER_ENDINGS
        and not host.endswith(_INNER_NAMES)
    )


def _decoded(text: str) -> bytes:
    if not _BASE64URL.fullmatch(text) or ("=" in text and len(text) % 4):
        raise ValueError("must be base64url")
    bare = text.rstrip("=")
    if len(bare) % 4 == 1:
        raise ValueError("must be base64url")
    return base64.urlsafe_b64decode(bare + "=" * (-len(bare) % 4))


def _check_point(text: str) -> None:
    # The sender of a message notices if they are not a point on the curve.
    if len(_decoded(text)) != _POINT_BYTES:
        raise ValueError(f"must be {_POINT_BYTES} bytes")


def _check_auth(text: str) -> None:
    if len(_decoded(text)) != _AUTH_BYTES:
        raise ValueError(f"must be {_AUTH_BYTES} bytes")


class Subscriptions:
    """The file in the folder `data_dir`, created when the first browser subscribes."""

    def __init__(self, data_dir: Path) -> None:
        self.path = data_dir / FILE
        self._lock = threading.Lock()

    def add(self, subscription: Subscription) -> None:
        """Append a subscription durably; a full file that already has it stays unchanged.

        Raises `FullError`, or what `append_line` raises; nothing is stored then.
        """
        line = _line(subscription)
        # No other process adds lines, so checking the limits here is enough.
        with self._lock:
            data = self._read()
            lines = data.count(b"\n") + (not data.endswith(b"\n") and data != b"")
            if lines >= LIMIT_LINES or len(data) + len(line) + 2 > LIMIT_BYTES:
                if _by_endpoint(data).get(subscription.endpoint) == subscription:
                    return
                raise FullError(f"{self.path} has reached its limit of subscriptions")
            make_folder(self.path.parent)
            append_line(self.path, line, mode=MODE)

    def remove(self, endpoint: str) -> None:
        """Remove every line with `endpoint`; raises what `drop_lines` raises."""

        def unwanted(line: bytes) -> bool:
            found = _parsed(line)
            return found is not None and found.endpoint == endpoint

        drop_lines(self.path, unwanted, limit_bytes=_READ_BYTES, mode=MODE)

    def all(self) -> list[Subscription]:
        """The valid subscriptions, in the order of the file; raises `AccessError`."""
        return list(_by_endpoint(self._read()).values())

    def _read(self) -> bytes:
        try:
            return read_own(self.path, _READ_BYTES)
        except FileNotFoundError:
            return b""


def _line(subscription: Subscription) -> bytes:
    members = msgspec.to_builtins(subscription)
    return json.dumps(members, separators=(",", ":")).encode("ascii")


def _by_endpoint(data: bytes) -> dict[str, Subscription]:
    return {found.endpoint: found for line in data.split(b"\n") if (found := _parsed(line))}


def _parsed(line: bytes) -> Subscription | None:
    if not line.strip() or len(line) > BODY_LIMIT_BYTES:
        return None
    try:
        return parse(line)
    except DecodingError:
        return None
