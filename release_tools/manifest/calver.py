"""Calendar versions: `Y.M.D` with an optional suffix (docs/reference/manifest.md, "Versions")."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from platform_common.errors import PlatformError

_PATTERN = re.compile(r"([0-9]{4})\.([0-9]{1,2})\.([0-9]{1,2})(?:-([a-z0-9.-]+))?")


class CalVerError(PlatformError):
    """A text that is not a version."""


@dataclass(frozen=True, slots=True, order=True)
class CalVer:
    """A version; `text` is how it was written, the other fields decide the order.

    Numbers compare as numbers and suffixes as text; a version without a suffix is newer than
    the same version with one. `2026.01.1` and `2026.1.1` are equal.
    """

    text: str = field(compare=False)
    parts: tuple[int, int, int]
    is_final: bool
    suffix: str

    @classmethod
    def parse(cls, text: str) -> CalVer:
        """Parse `text`; raises `CalVerError`."""
        match = _PATTERN.fullmatch(text)
        if match is None:
            raise CalVerError(
                f"{text!a} is not a version",
                hint="Write Y.M.D with an optional suffix, such as 2026.11.1 or 2026.11.1-rc1.",
            )
        year, month, day, suffix = match.groups()
        return cls(text, (int(year), int(month), int(day)), suffix is None, suffix or "")

    def __str__(self) -> str:
        return self.text


def compare(a: CalVer, b: CalVer) -> int:
    """Return -1, 0 or 1 if `a` is older than, equal to or newer than `b`."""
    return (a > b) - (a < b)
