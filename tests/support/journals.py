"""Real journals, made by systemd's own program, for the real `journalctl` to read."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

# Debian's package systemd-journal-remote.
_WRITER = "/lib/systemd/systemd-journal-remote"
UNIT = "openclaw.service"
BOOT, NEXT_BOOT = "a" * 32, "b" * 32
# 2026-11-20 12:00:00 UTC, in microseconds.
NOON_US = 1_795_176_000_000_000


@dataclass(frozen=True)
class Logged:
    """One entry; `after_s` is its time after noon, counted up when it is not given."""

    message: str | bytes | None
    priority: int | None = 6
    unit: str = UNIT
    boot: str = BOOT
    after_s: float | None = None


@dataclass
class RealJournal:
    """A folder that `PLATFORM_JOURNAL_DIR` can name."""

    folder: Path
    _count: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)

    @property
    def environment(self) -> dict[str, str]:
        """What makes the dashboard read it."""
        return {"PLATFORM_JOURNAL_DIR": str(self.folder)}

    def write(self, *entries: Logged | str | bytes) -> None:
        """Append entries, as the services of the device would have."""
        whole = [entry if isinstance(entry, Logged) else Logged(entry) for entry in entries]
        subprocess.run(
            [_WRITER, "--output", str(self.folder / "system.journal"), "-"],
            input=b"".join(self._exported(whole)),
            capture_output=True,
            check=True,
            timeout=60,
        )

    def _exported(self, entries: Iterable[Logged]) -> Iterable[bytes]:
        """The entries in the format of `journalctl --output=export`."""
        for entry in entries:
            self._count += 1
            after_s = self._count if entry.after_s is None else entry.after_s
            fields = {
                "__REALTIME_TIMESTAMP": str(NOON_US + round(after_s * 1e6)),
                "__MONOTONIC_TIMESTAMP": str(1_000_000 + self._count * 1_000),
                "_BOOT_ID": entry.boot,
                "_MACHINE_ID": "c" * 32,
                "_TRANSPORT": "stdout",
                "_SYSTEMD_UNIT": entry.unit,
            }
            if entry.priority is not None:
                fields["PRIORITY"] = str(entry.priority)
            yield "".join(f"{name}={value}\n" for name, value in fields.items()).encode()
            if entry.message is not None:
                message = entry.message
                data = message.encode() if isinstance(message, str) else message
                yield b"MESSAGE\n" + struct.pack("<Q", len(data)) + data + b"\n"
            yield b"\n"
