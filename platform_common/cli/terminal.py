"""Numbers for people on a terminal."""

from __future__ import annotations

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def human_size(size_bytes: int) -> str:
    """Format `size_bytes` in a suitable binary unit, such as `1.5 GiB`."""
    # Integers throughout, because a manifest may contain a size too large for a float.
    power = min(max(size_bytes.bit_length() - 1, 0) // 10, len(_UNITS) - 1)
    if not power:
        return f"{size_bytes} B"
    tenths = (size_bytes * 10 + (1 << (10 * power - 1))) >> (10 * power)
    return f"{tenths // 10}.{tenths % 10} {_UNITS[power]}"
