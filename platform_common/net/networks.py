"""Networks of IP addresses that mean something to us."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def networks(*texts: str) -> tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]:
    """Parse networks."""
    return tuple(map(ipaddress.ip_network, texts))


# Nothing is ever sent to these.
REFUSED = networks(
    *("169.254.0.0/16", "fe80::/10"),  # Link-local.
    *("224.0.0.0/4", "240.0.0.0/4", "ff00::/8"),  # Multicast, reserved, broadcast.
    # Metadata services of clouds outside the link-local networks.
    *("fd00:ec2::254/128", "100.100.100.200/32", "192.0.0.192/32", "168.63.129.16/32"),
)
# This machine and its network.
LOCAL = networks(
    *("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10"),
    *("::1/128", "fc00::/7"),
)
# IPv6 addresses whose last 32 bits are an IPv4 address.
IPV4_SUFFIXES = networks("::/96", "::ffff:0:0/96", "64:ff9b::/96")


def address_of(text: str) -> Address | None:
    """Parse an IP address, IPv4 if it is mapped into IPv6; None if it is not one."""
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found


def is_in(
    address: Address, networks: Iterable[ipaddress.IPv4Network | ipaddress.IPv6Network]
) -> bool:
    """Whether `address` is in one of `networks`."""
    return any(address in network for network in networks)
