"""Checks the `Host` header against the names of this machine, as a defence against DNS rebinding.

A foreign site can point its own name at our address, but it cannot use our names.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Collection

from platform_common.errors import WrongUsageError
from platform_common.net.networks import address_of

_LOCAL_ENDINGS = (".localhost", ".local")
_PORT = re.compile(r"[0-9]{1,5}")
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_LONGEST_NAME = 253
ALLOWED_HOSTS_VARIABLE = "PLATFORM_ALLOWED_HOSTS"


def allowed_hosts(value: str) -> frozenset[str]:
    """Parse `PLATFORM_ALLOWED_HOSTS`, names separated by commas or blanks.

    Ports are ignored. Raises `WrongUsageError` for anything but names, such as URLs and patterns.
    """
    names = {entry: name_of(entry) for entry in re.split(r"[\s,]+", value) if entry}
    for entry, name in names.items():
        if name is None:
            raise WrongUsageError(
                f"{ALLOWED_HOSTS_VARIABLE} contains {entry!a}, which is not a host name",
                hint="Give names such as dashboard.example.org, separated by commas.",
            )
    return frozenset(filter(None, names.values()))


def host_is_ours(
    header: str, allowed: Collection[str], own_name: Callable[[], str] = socket.gethostname
) -> bool:
    """Whether a request with this `Host` header is meant for us (ADR 17).

    Allowed are addresses, because another site's name cannot be one; names of loopback and of
    the local network; the machine's own name; and those in `allowed`.
    """
    name = name_of(header)
    if name is None:
        return False
    if _is_address(name):
        return True
    if name == "localhost" or name.endswith(_LOCAL_ENDINGS) or name in allowed:
        return True
    return name == own_name().lower().rstrip(".")


def name_of(header: str) -> str | None:
    """The name or address in a `Host` header; None if it is not valid."""
    if header.startswith("["):
        name, closed, rest = header[1:].partition("]")
        if not closed or (rest and not _is_port(rest)) or ":" not in name:
            return None
        return name if _is_address(name) else None
    name, colon, port = header.partition(":")
    if colon and not _is_port(f":{port}"):
        return None
    name = name.lower().removesuffix(".")
    if len(name) > _LONGEST_NAME or not all(map(_LABEL.fullmatch, name.split("."))):
        return None
    return name


def _is_port(text: str) -> bool:
    return _PORT.fullmatch(text[1:]) is not None and text[0] == ":" and int(text[1:]) < 1 << 16


def _is_address(name: str) -> bool:
    # Zone ids (`fe80::1%eth0`) are local to this machine; browsers do not send them.
    return address_of(name) is not None and "%" not in name
