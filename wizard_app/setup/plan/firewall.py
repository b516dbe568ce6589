"""The rules of the device's firewall, as `nft -f` reads them.

They are in a table of their own, which one transaction replaces, so other programs' rules
stay. Protocols are numbers, because small systems lack /etc/protocols.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from platform_common import ports
from platform_common.message import Sentence
from wizard_app.setup.sentence_list import listed

# The file of the rules.
RULES = "/etc/nftables.d/platform.nft"
# Ports that must stay open for setup, and their purposes.
ALWAYS: Mapping[str, Sentence] = {
    "22/tcp": Sentence("SSH"),
    f"{ports.WIZARD}/tcp": Sentence("this setup"),
    f"{ports.DASHBOARD}/tcp": Sentence("dashboard"),
}
# ICMP, IGMP, without which switches stop passing on mDNS, and ICMPv6.
_MESSAGES = "1, 2, 58"
_FRAME = """\
# What may reach this device; made by the setup, which replaces it.
table inet platform
delete table inet platform
table inet platform {{
  chain input {{
    type filter hook input priority 0; policy drop;
    iif "lo" accept
    ct state established,related accept
    ct state invalid drop
    meta l4proto {{ {messages} }} accept
    # DHCP, of IPv4 and of IPv6, and the names that end in .local.
    udp sport 67 udp dport 68 accept
    udp sport 547 udp dport 546 accept
    udp dport 5353 accept
{ports}  }}
}}
"""


def ruleset(ports: Iterable[str]) -> str:
    """The rules that allow the usual ports and `ports`, such as `443/tcp`."""
    lines = []
    wanted = {(port.partition("/")[2], int(port.partition("/")[0])) for port in ports}
    for protocol in ("tcp", "udp"):
        numbers = sorted(number for name, number in wanted if name == protocol)
        if numbers:
            lines.append(f"    {protocol} dport {{ {', '.join(map(str, numbers))} }} accept\n")
    return _FRAME.format(messages=_MESSAGES, ports="".join(lines))


def ports_note(ports: Mapping[str, Sentence | None]) -> Sentence:
    """A sentence with the open ports and, if known, their purposes."""
    in_order = sorted(ports.items(), key=lambda port: int(port[0].partition("/")[0]))
    return Sentence(
        "Ports open to the network: {ports}",
        ports=listed(
            [
                Sentence("{port} ({purpose})", port=port, purpose=purpose) if purpose else port
                for port, purpose in in_order
            ]
        ),
    )
