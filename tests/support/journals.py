"""Real journals, written by systemd's own program, for the real `journalctl` to read."""

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
    """One entry; `after_s` is its time after noon, by default one more than before."""

    message: str | bytes | None
    priority: int | None = 6
    unit: str = UNIT
    boot: str = BOOT
    after_s: float | None = None


@dataclass
class RealJournal:
    """A folder for the variable `PLATFORM_JOURNAL_DIR`."""

    folder: Path
    _count: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)

    @property
    def environment(self) -> dict[str, str]:
        """The environment with which the dashboard reads it."""
        return {"PLATFORM_JOURNAL_DIR": str(self.folder)}

    def clear(self) -> None:
        """Remove the journal, as if it never existed."""
        for path in self.folder.iterdir():
            path.unlink()
        self.folder.rmdir()

    def write(self, *entries: Logged | str | bytes) -> None:
        """Append entries, as the services of the device would."""
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


# Text that people and programs have put into logs to attack their readers.
HOSTILE: dict[str, str | bytes] = {
    "script": "<script>alert(1)</script>",
    "end-of-pre": "</pre><script>alert(1)</script><pre>",
    "image": "<img src=x onerror=alert(1)>",
    "attribute": '"\' onfocus=alert(1) autofocus x="',
    "comment": "<!-- --> <![CDATA[ ]]> <!--",
    "textarea": "</textarea></title></style><svg onload=alert(1)>",
    "entity": "&lt;script&gt; &#0; &amp;amp;",
    "template": "{{7*7}} {% raw %} %(x)s {n} ${x}",
    "colour": "\x1b[31;1mred\x1b[0m \x1b[38;2;1;2;3mrgb",
    "screen": "\x1b[2J\x1b[H\x1bc\x1b]0;title\x07 cleared",
    "link": "\x1b]8;;http://evil.example\x1b\\text\x1b]8;;\x1b\\ \x1b]open",
    "carriage": "good\rbad",
    "bell": "a\x07b\x00c\x08d\x7fe\x9bf",
    "bidi": "user \u202egnp.exe\u202c \u2066x\u2069 \u200f",
    "unseen": "a\u200bb\ufeffc\u2028d\U000e0041e\ufffff",
    "bytes": b"\xff\xfe\xc3( bin\x00\xf0\x9f",
    "lines": "one\n  two\n\tthree\n",
    "nine-kib": "n" * 9_000,
    "one-mib": "m" * (1 << 20),
    "empty": "",
    "emoji": "🛠️ fertig – 完了 ✔ 👩‍💻",
}
