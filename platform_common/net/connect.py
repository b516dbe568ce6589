"""TCP connections to addresses that a user typed, with a deadline and refused destinations.

This machine and its network are allowed, for models run at home. Link-local and reserved
addresses, where clouds keep the secrets of their machines, and our own web pages are not.
"""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import threading
import time
from collections.abc import Collection, Iterator
from queue import Empty, SimpleQueue
from typing import Any

from platform_common import ports
from platform_common.errors import PlatformError
from platform_common.message import Sentence
from platform_common.net.networks import IPV4_SUFFIXES, REFUSED, Address, is_in

_SocketAddress = tuple[socket.AddressFamily, tuple[Any, ...]]

OWN_PORTS = frozenset({ports.WIZARD, ports.DASHBOARD})
# Documentation addresses; connecting a datagram socket to them sends nothing.
_OUTSIDE = {socket.AF_INET: "192.0.2.1", socket.AF_INET6: "2001:db8::1"}
FAMILIES = frozenset(_OUTSIDE)


class RefusedAddressError(PlatformError):
    """An address to which nothing is sent."""


def connect(host: str, port: int, deadline: float, *, loopback: bool = False) -> socket.socket:
    """Connect to the first address of `host` that accepts, before `deadline`.

    With `loopback`, all its addresses must be this machine's own. Nothing has been sent when
    this returns. Raises `RefusedAddressError`, and `OSError` and `UnicodeError` of sockets. The
    deadline is on the monotonic clock.
    """
    addresses = list(_resolved(host, port, deadline))
    for _, (ip, *_) in addresses:
        if loopback and not ipaddress.ip_address(ip).is_loopback:
            raise RefusedAddressError(
                Sentence(
                    "{host} leads to {address}, which is not this device", host=host, address=ip
                )
            )
        if is_refused(ip):
            raise RefusedAddressError(
                Sentence(
                    "Nothing is sent to {address}: it is a link-local or reserved address",
                    address=ip,
                )
            )
        if port in OWN_PORTS and _is_this_machine(ip):
            raise _own_page(host, port)
    failures = []
    for tried, address in enumerate(addresses):
        try:
            connection = _connected(address, left(deadline) / (len(addresses) - tried))
        except OSError as error:
            failures.append(error)
            continue
        if port in OWN_PORTS and connection.getpeername()[0] == connection.getsockname()[0]:
            connection.close()
            raise _own_page(host, port)
        return connection
    # The system puts the most promising address first.
    raise failures[0]


def left(deadline: float) -> float:
    """The seconds until `deadline`; raises `TimeoutError` if there are none."""
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise TimeoutError
    return seconds


def is_refused(ip: str) -> bool:
    """Whether nothing may be sent to the address `ip`, however it is written."""
    return any(is_in(reading, REFUSED) for reading in _readings(ip))


def own_addresses(families: Collection[socket.AddressFamily] = FAMILIES) -> list[str]:
    """The addresses that this machine uses for other hosts, at most one of each family."""
    found = []
    for family, outside in _OUTSIDE.items():
        if family in families:
            with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect((outside, 9))
                found.append(str(probe.getsockname()[0]))
    return found


def is_offline() -> bool:
    """Whether this device has no route to any other host."""
    return not own_addresses()


def _resolved(host: str, port: int, deadline: float) -> Iterator[_SocketAddress]:
    """Look up `host` in a thread, because the system's resolver has no time limit of its own."""
    answers: SimpleQueue[list[_SocketAddress] | OSError | UnicodeError] = SimpleQueue()

    def look_up() -> None:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            answers.put(error)
        else:
            answers.put([(family, address) for family, _, _, _, address in found])

    threading.Thread(target=look_up, daemon=True).start()
    try:
        answer = answers.get(timeout=left(deadline))
    except Empty:
        answer = socket.gaierror(socket.EAI_AGAIN, "the resolver does not answer")
    if isinstance(answer, Exception):
        raise answer
    yield from answer


def _connected(address: _SocketAddress, timeout_s: float) -> socket.socket:
    family, socket_address = address
    connection = socket.socket(family, socket.SOCK_STREAM)
    try:
        connection.settimeout(timeout_s)
        connection.connect(socket_address)
    except OSError:
        connection.close()
        raise
    return connection


def _own_page(host: str, port: int) -> RefusedAddressError:
    return RefusedAddressError(
        Sentence(
            "Port {port} of {host} is one of this device's own web pages", port=port, host=host
        )
    )


def _is_this_machine(ip: str) -> bool:
    return any(reading.is_loopback or reading.is_unspecified for reading in _readings(ip))


def _readings(ip: str) -> Iterator[Address]:
    """The address `ip`, and the IPv4 address embedded in it, if any."""
    address = ipaddress.ip_address(ip)
    yield address
    if isinstance(address, ipaddress.IPv6Address):
        if is_in(address, IPV4_SUFFIXES):
            yield ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
        if address.sixtofour is not None:
            yield address.sixtofour
