"""How the last run of `doctor` went: `/run/platform/doctor.json`, gone after a reboot."""

from __future__ import annotations

from msgspec import Struct, json

from platform_common.formats.decode import from_json
from platform_common.paths import Place

LAST_DOCTOR = Place("/run/platform/doctor.json")


class LastDoctor(Struct, frozen=True):
    """When the device was last looked at (RFC 3339, UTC), and how many checks failed."""

    checked_at: str
    fails: int

    def __post_init__(self) -> None:
        """Refuse less than none."""
        if self.fails < 0:
            raise ValueError("fails: must not be negative")


def parse(data: bytes) -> LastDoctor:
    """The run in the JSON `data`; raises `DecodingError`."""
    return from_json(data, LastDoctor)


def render(last: LastDoctor) -> bytes:
    """The same as JSON."""
    return json.encode(last) + b"\n"
