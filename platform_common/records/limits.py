"""What the device can do, and what it cannot: `/etc/platform/limits.json`."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from platform_common.formats.decode import DecodingError, from_json, shaped

Tier = Literal["low", "standard", "high"]
_REQUIRED = (
    *("target", "tier", "ram_mb", "ram_class", "storage_class"),
    *("capabilities", "limitations"),
)


class Capabilities(Struct, frozen=True):
    """What the device can do; `channels_disabled_by_ram` need more memory than it has."""

    local_llm: bool = False
    voice_wake_word: bool = False
    voice_tts: bool = False
    clamav_daemon: bool = False
    channels_heavy: tuple[str, ...] = ()
    channels_disabled_by_ram: tuple[str, ...] = ()


class Limitation(Struct, frozen=True):
    """One thing that it cannot do, why, and what would change that."""

    id: str
    reason: str
    unblock: str = ""


class Limits(Struct, frozen=True):
    """The limits of one device.

    Every member has a default, for a device without a readable record; in the record itself, most
    are required.
    """

    target: str = ""
    tier: Tier = "standard"
    ram_mb: int = 0
    ram_class: Tier = "standard"
    storage_class: Literal["sd", "ssd", "nvme", "block", "qcow2", "ntfs"] = "ssd"
    capabilities: Capabilities = Capabilities()
    limitations: tuple[Limitation, ...] = ()
    cloud: str = ""
    airgap_supported: bool = False
    airgap_max_tier: Literal["lean", "standard", "rich"] | None = None

    def __post_init__(self) -> None:
        """Refuse a negative amount of memory."""
        if self.ram_mb < 0:
            raise ValueError("ram_mb: must not be negative")


def parse(data: bytes) -> Limits:
    """Parse the JSON `data`; raises `DecodingError`."""
    tree = from_json(data, dict[str, Any])
    limits = shaped(tree, Limits)
    for name in _REQUIRED:
        if name not in tree:
            raise DecodingError(f"object missing required field {name}")
    if not limits.target:
        raise DecodingError("target: must not be empty")
    return limits
