"""The phases of setup, which order the actions of a plan."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

from platform_common.message import Sentence


class Phase(IntEnum):
    """The phases, in order (docs/reference/setting-up.md)."""

    SYSTEM = 1
    SELECTION = 2
    KEYS = 3
    BACKUP = 4
    SSH = 5
    MESH_VPN = 6
    TUNNEL = 7
    FIREWALL = 8
    GATEWAY = 9


TITLES: Mapping[Phase, Sentence] = {
    Phase.SYSTEM: Sentence("Name and time zone"),
    Phase.SELECTION: Sentence("Profile and provider"),
    Phase.KEYS: Sentence("Provider key"),
    Phase.BACKUP: Sentence("Backup"),
    Phase.SSH: Sentence("SSH keys"),
    Phase.MESH_VPN: Sentence("Private network"),
    Phase.TUNNEL: Sentence("Tunnel"),
    Phase.FIREWALL: Sentence("Firewall"),
    Phase.GATEWAY: Sentence("Gateway"),
}
