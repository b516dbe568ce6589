"""Separate networks: created in this process, connected by a cable, entered to open sockets.

Needs root, and `ip`.
"""

from __future__ import annotations

import contextlib
import ctypes
import http.client
import os
import socket
import struct
import time
from collections.abc import Iterator

from tests.support.running import printed
from tests.support.waiting import wait_until
from tests.support.web_servers import unverified

_NEW_NETWORK = 0x40000000
_OWN = "/proc/thread-self/ns/net"
_TIMEOUT_S = 20
_ANSWER_S = 90
_LIBC = ctypes.CDLL(None, use_errno=True)
_ECHO = {socket.AF_INET: (8, 0, socket.IPPROTO_ICMP), socket.AF_INET6: (128, 129, 58)}
_IP_HEADER_BYTES = 20


class Network:
    """A network namespace, as a descriptor."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        """In the block, sockets that this thread opens belong to this network, and remain in it."""
        own = os.open(_OWN, os.O_RDONLY)
        try:
            _checked(_LIBC.setns(self.descriptor, _NEW_NETWORK))
            try:
                yield
            finally:
                _checked(_LIBC.setns(own, _NEW_NETWORK))
        finally:
            os.close(own)

    def socket(
        self,
        kind: socket.SocketKind = socket.SOCK_STREAM,
        family: socket.AddressFamily = socket.AF_INET,
        protocol: int = 0,
        *,
        bound: tuple[str, int] | None = None,
        timeout_s: float = _TIMEOUT_S,
    ) -> socket.socket:
        """A socket in this network."""
        with self.inside():
            found = socket.socket(family, kind, protocol)
        found.settimeout(timeout_s)
        if bound is not None:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            found.bind(bound)
        return found

    def ip(self, *words: str) -> None:
        """Run `ip` in this network."""
        enter = ("nsenter", f"--net=/proc/self/fd/{self.descriptor}")
        printed(*enter, "ip", *words, pass_fds=[self.descriptor])

    def connects(self, address: str, port: int, timeout_s: float = _TIMEOUT_S) -> bool:
        """Whether a connection is accepted; False if nothing answers at all."""
        with self.socket(family=family_of(address), timeout_s=timeout_s) as probe:
            try:
                probe.connect((address, port))
            except TimeoutError:
                return False
        return True

    def asks(
        self,
        address: str,
        port: int,
        *,
        from_port: int = 0,
        timeout_s: float = _TIMEOUT_S,
    ) -> bool:
        """Whether a datagram to a port is answered; `address` may be a broadcast address."""
        family = family_of(address)
        anywhere = ("::" if family == socket.AF_INET6 else "0.0.0.0", from_port)
        with self.socket(socket.SOCK_DGRAM, family, bound=anywhere, timeout_s=timeout_s) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            # The address may name an interface, which belongs to this network.
            with self.inside():
                probe.sendto(b"hello", (address, port))
            try:
                return probe.recv(64) == b"hello"
            except TimeoutError:
                return False

    def pings(self, address: str, timeout_s: float = _TIMEOUT_S) -> bool:
        """Whether an echo request is answered."""
        family = family_of(address)
        request, reply, protocol = _ECHO[family]
        with self.socket(socket.SOCK_RAW, family, protocol, timeout_s=timeout_s) as probe:
            probe.sendto(_echo(request), (address, 0))
            try:
                while True:
                    found = probe.recv(256)
                    if family == socket.AF_INET:
                        found = found[_IP_HEADER_BYTES:]
                    if found[0] == reply:
                        return True
            except TimeoutError:
                return False


def family_of(address: str) -> socket.AddressFamily:
    """The address family of an address."""
    return socket.AF_INET6 if ":" in address else socket.AF_INET


@contextlib.contextmanager
def network_of(process: int) -> Iterator[Network]:
    """The network of a process, until the block ends."""
    descriptor = os.open(f"/proc/{process}/ns/net", os.O_RDONLY)
    try:
        yield Network(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def new_network(*, up: bool = False) -> Iterator[Network]:
    """An empty network, which is removed when the block ends.

    If it is `up`, it has loopback addresses for IPv4 and IPv6.
    """
    own = os.open(_OWN, os.O_RDONLY)
    try:
        _checked(_LIBC.unshare(_NEW_NETWORK))
        try:
            descriptor = os.open(_OWN, os.O_RDONLY)
        finally:
            _checked(_LIBC.setns(own, _NEW_NETWORK))
    finally:
        os.close(own)
    try:
        made = Network(descriptor)
        if up:
            made.ip("link", "set", "lo", "up")
        yield made
    finally:
        os.close(descriptor)


def connected(family: int, address: str | tuple[str, int]) -> socket.socket:
    """A connection from here, once something listens at the address."""
    deadline = time.monotonic() + _ANSWER_S
    while True:
        found = socket.socket(family)
        found.settimeout(_ANSWER_S)
        try:
            found.connect(address)
        except OSError:
            found.close()
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return found


def join(one: Network, other: Network, addresses: dict[str, str]) -> None:
    """Connect two networks by a cable.

    `addresses` maps an address of `one` to the corresponding address of `other`, with prefix
    lengths.
    """
    end = f"/proc/{os.getpid()}/fd/{other.descriptor}"
    one.ip("link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns", end)
    for near, far in addresses.items():
        # Do not wait for the detection of duplicate addresses.
        more = ("nodad",) if ":" in near else ()
        one.ip("address", "add", near, "dev", "cable", *more)
        other.ip("address", "add", far, "dev", "cable", *more)
    for network in (one, other):
        network.ip("link", "set", "lo", "up")
        network.ip("link", "set", "cable", "up")


def wait_for_port(network: Network, address: str, port: int) -> None:
    """Wait until something listens there."""

    def listens() -> bool:
        try:
            return network.connects(address, port, 1)
        except OSError:
            return False

    wait_until(listens)


class Connection(http.client.HTTPConnection):
    """An HTTP connection from a network, opened on demand.

    With `tls` the server may have any certificate.
    """

    def __init__(self, network: Network, host: str, port: int, *, tls: bool = False) -> None:
        super().__init__(host, port, timeout=_ANSWER_S)
        self._network = network
        self._tls = tls

    def connect(self) -> None:
        plain = self._network.socket(timeout_s=_ANSWER_S)
        try:
            plain.connect((self.host, self.port))
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.sock = unverified().wrap_socket(plain) if self._tls else plain
        except OSError:
            plain.close()
            raise


def _echo(kind: int) -> bytes:
    """An echo request, with the checksum that IPv4 needs; the kernel adds that of IPv6."""
    words = (kind << 8, 0, os.getpid() & 0xFFFF, 1)
    total = sum(words)
    total = (total & 0xFFFF) + (total >> 16)
    return struct.pack("!4H", words[0], ~total & 0xFFFF, *words[2:])


def _checked(status: int) -> None:
    if status != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
