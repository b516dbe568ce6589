"""The result of the last `doctor`: `/run/platform/doctor.json`, which a reboot removes."""

from __future__ import annotations

from msgspec import Struct, json

from platform_common.formats.decode import from_json
from platform_common.paths import Place

LAST_DOCTOR = Place("/run/platform/doctor.json")


class LastDoctor(Struct, frozen=True):
    """When `doctor` last ran (RFC 3339, UTC), and how many checks failed."""

    checked_at: str
    fails: int

    def __post_init__(self) -> None:
        """Refuse a negative number."""
        if self.fails < 0:
            raise ValueError("fails: must not be negative")


def parse(data: bytes) -> LastDoctor:
    """Parse the JSON `data`; raises `DecodingError`."""
    return from_json(data, LastDoctor)


def render(last: LastDoctor) -> bytes:
    """Return the record as JSON."""
    return json.encode(last) + b"\n"
