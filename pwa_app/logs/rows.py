"""The filters of a log page, and journal entries as rows."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from urllib.parse import urlencode

from msgspec import Struct

from pwa_app.logs.journal import USUAL_LINES, Extract, Units, number_of_lines
from pwa_app.logs.journal_entries import LEVELS, Entry, visible

# Each level includes the worse ones.
PRIORITIES = ("error", "warning", "notice", "info")
_LONGEST_SEARCH = 200
# So that a page stays below 1 MiB, with everything around the rows.
PAGE_BYTES = 960 << 10
_BYTES_AROUND = 160


class Filters(Struct, frozen=True):
    """The unit, the number of lines, and the filters."""

    unit: str
    lines: int = USUAL_LINES
    prio: str = ""
    q: str = ""
    boot: bool = False

    @classmethod
    def of(cls, query: Mapping[str, str], units: Units) -> Filters:
        """Parse a query; invalid values count as absent."""
        prio = query.get("prio", "")
        return cls(
            unit=units.choose(query.get("unit", "")),
            lines=number_of_lines(query.get("lines", "")),
            prio=prio if prio in PRIORITIES else "",
            q=visible(query.get("q", "")).strip()[:_LONGEST_SEARCH],
            boot=query.get("boot", "") not in ("", "0"),
        )

    @property
    def active(self) -> bool:
        """Whether lines may be hidden."""
        return bool(self.prio or self.q)

    @property
    def extract(self) -> Extract:
        """The part of the journal to search."""
        return Extract(self.unit, self.lines, self.boot)

    @property
    def query(self) -> str:
        """The filters as a URL query."""
        values = {"unit": self.unit, "lines": str(self.lines), "prio": self.prio, "q": self.q}
        values["boot"] = "1" if self.boot else ""
        return urlencode({name: value for name, value in values.items() if value})

    def matching(self, entries: Iterable[Entry]) -> list[bool]:
        """Whether each entry is shown."""
        worst = LEVELS.index(self.prio) if self.prio else None
        search = self.q.casefold()
        return [
            (worst is None or (entry.priority is not None and entry.priority <= worst))
            and search in entry.text.casefold()
            for entry in entries
        ]


class Row(Struct, frozen=True, omit_defaults=True):
    """One line; `boot` is the time of a device start before it, `day` a new day that it starts."""

    at: str
    level: str
    text: str
    boot: str = ""
    day: str = ""

    @property
    def kind(self) -> str:
        """Its CSS class."""
        if self.level in LEVELS[:4]:
            return "err"
        return "warning" if self.level == "warning" else ""


def rows_of(entries: Sequence[Entry], filters: Filters, *, boot: str, day: date) -> list[Row]:
    """The matching entries, oldest first; `boot` and `day` are those of the preceding row."""
    rows = []
    restarted = ""
    for entry, shown in zip(entries, filters.matching(entries), strict=True):
        when = entry.time()
        at = when.strftime("%H:%M:%S") if when else ""
        if entry.boot and boot and entry.boot != boot:
            restarted = at
        boot = entry.boot or boot
        if not shown:
            continue
        begins = when is not None and when.date() != day
        day = when.date() if when else day
        rows.append(Row(at, entry.level, entry.text, restarted, day.isoformat() if begins else ""))
        restarted = ""
    return rows


def newest(rows: Sequence[Row], limit_bytes: int) -> list[Row]:
    """As many of the last rows as fit into `limit_bytes` of a page."""
    kept = 0
    for row in reversed(rows):
        limit_bytes -= len(html.escape(row.text).encode("utf-8", "replace")) + _BYTES_AROUND
        if limit_bytes < 0:
            break
        kept += 1
    return list(rows[len(rows) - kept :])
