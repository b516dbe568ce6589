"""Text for people on a terminal: nothing that we did not write reaches it raw."""

from __future__ import annotations

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def printable(text: str) -> str:
    """`text` with every control or unprintable character shown as an escape, a tab as a blank."""
    shown = text.replace("\t", " ")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in shown)


def human_size(size_bytes: int) -> str:
    """`size_bytes` in the binary unit that a person would choose, such as `1.5 GiB`."""
    size = float(size_bytes)
    for unit in _UNITS[:-1]:
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} {_UNITS[-1]}"
