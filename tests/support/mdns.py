"""Questions by multicast DNS (RFC 6762), as a phone in the same network asks them."""

from __future__ import annotations

import contextlib
import secrets
import socket
import struct
import time
from collections.abc import Iterator
from typing import NamedTuple

from tests.support.network_namespaces import Network

_GROUP = ("224.0.0.251", 5353)
_TYPES = {"A": 1, "PTR": 12, "SRV": 33}
_WAIT_S = 0.3
_HEADER = struct.Struct("!6H")
_RECORD = struct.Struct("!HHIH")


class Record(NamedTuple):
    """What was answered: a name, its type, and an address, a name, or `HOST:PORT`."""

    name: str
    kind: int
    value: str


def ask(network: Network, address: str, name: str, kind: str) -> set[str]:
    """What those in the network of `address`, which is ours, say that `name` is."""
    number = secrets.randbelow(1 << 16)
    labels = b"".join(bytes([len(part)]) + part.encode() for part in _labels(name))
    question = _HEADER.pack(number, 0, 1, 0, 0, 0) + labels + b"\0"
    found = set()
    with network.socket(socket.SOCK_DGRAM, bound=(address, 0)) as asker:
        asker.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(address))
        asker.sendto(question + struct.pack("!HH", _TYPES[kind], 1), _GROUP)
        deadline = time.monotonic() + _WAIT_S
        with contextlib.suppress(TimeoutError):
            while (left_s := deadline - time.monotonic()) > 0:
                asker.settimeout(left_s)
                found |= {
                    record.value
                    for record in _records(asker.recv(9000))
                    if record.name.lower() == name.lower() and record.kind == _TYPES[kind]
                }
    return found


def _labels(name: str) -> list[str]:
    """The parts of a name; what stands before `._` is one, whatever it is."""
    first, separator, rest = name.partition("._")
    return [first, *f"_{rest}".split(".")] if separator else name.split(".")


def _records(message: bytes) -> Iterator[Record]:
    _, _, questions, *counts = _HEADER.unpack_from(message)
    place = _HEADER.size
    for _ in range(questions):
        _, place = _name(message, place)
        place += 4
    for _ in range(sum(counts)):
        name, place = _name(message, place)
        kind, _, _, length = _RECORD.unpack_from(message, place)
        place += _RECORD.size
        yield Record(name, kind, _value(message, place, kind, length))
        place += length


def _value(message: bytes, place: int, kind: int, length: int) -> str:
    if kind == _TYPES["A"]:
        return socket.inet_ntoa(message[place : place + length])
    if kind == _TYPES["PTR"]:
        return _name(message, place)[0]
    if kind == _TYPES["SRV"]:
        (port,) = struct.unpack_from("!H", message, place + 4)
        return f"{_name(message, place + 6)[0]}:{port}"
    return ""


def _name(message: bytes, place: int) -> tuple[str, int]:
    """A name and the place behind it; a part of it may be elsewhere in the message."""
    parts = []
    after = 0
    while length := message[place]:
        if length >= 0xC0:
            after = after or place + 2
            place = struct.unpack_from("!H", message, place)[0] & 0x3FFF
            continue
        parts.append(message[place + 1 : place + 1 + length].decode())
        place += 1 + length
    return ".".join(parts), after or place + 1
