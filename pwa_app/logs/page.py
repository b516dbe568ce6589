"""The log pages: show, follow and download the logs of the gateway and other units."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

import msgspec
from flask import Blueprint, Response, render_template, request
from msgspec import Struct

from platform_common.control_answers import Status
from platform_common.message import Sentence
from platform_common.web.errors import error_page
from platform_common.web.factory import request_language, translate
from pwa_app.context import context
from pwa_app.control_client import Slice
from pwa_app.logs.journal import Extract, JournalError, Reading, Units, place_of
from pwa_app.logs.journal_entries import Entry, count_levels
from pwa_app.logs.rows import PAGE_BYTES, PRIORITIES, Filters, Row, newest, rows_of
from pwa_app.overview import STATUS

# A browser that missed more lines gets the newest ones, and a note that some are missing.
_MOST_NEW_LINES = 500

blueprint = Blueprint("logs", __name__)


class Page(Struct, frozen=True):
    """The content of the log page."""

    status: Slice[Status]
    units: Units
    filters: Filters
    rows: Sequence[Row] = ()
    read: int = 0
    matching: int = 0
    counts: tuple[int, int, int] = (0, 0, 0)
    cursor: str = ""
    notes: Sequence[Sentence] = ()
    failure: Sentence | None = None


@blueprint.get("/app/logs")
def logs() -> str:
    """Show the last lines of a unit, or why they cannot be read."""
    status = context().load(STATUS)
    units = context().journal.remember_units(status)
    filters = Filters.of(request.args, units)
    try:
        reading = context().journal.read(filters.extract)
    except JournalError as error:
        page = Page(status, units, filters, failure=error.said)
    else:
        page = _page(status, units, filters, reading)
    return render_template("pwa/logs.html", page=page, priorities=PRIORITIES)


@blueprint.get("/app/logs/tail")
def tail() -> Response:
    """The lines after a cursor, as JSON; 204 if there are none."""
    filters = Filters.of(request.args, _units())
    cursor = request.args.get("cursor", "")
    try:
        answer = _after(filters, cursor)
    except JournalError as error:
        answer = {"cursor": cursor, "lines": (), "gap": False, "problem": translate(error.said)}
    if answer is None:
        return Response(status=204)
    answer["unit"] = filters.unit
    return Response(msgspec.json.encode(answer), content_type="application/json")


@blueprint.get("/app/logs/download")
def download() -> Response:
    """Download the same lines as a file."""
    filters = Filters.of(request.args, _units())
    try:
        reading = context().journal.read(filters.extract)
    except JournalError as error:
        return error_page(503, what=error.said)
    matches = zip(reading.entries, filters.matching(reading.entries), strict=True)
    entries = [entry for entry, matching in matches if matching]
    if request.args.get("format") == "json":
        ending, kind, data = "json", "application/json", msgspec.json.encode([*map(_fact, entries)])
    else:
        ending, kind, data = "txt", "text/plain; charset=utf-8", _text(entries).encode()
    response = Response(data, content_type=kind)
    name = filters.unit.removesuffix(".service").translate({ord("@"): "-", ord(":"): "-"})
    stamp = datetime.now().astimezone().strftime("%Y%m%d-%H%M%S")
    response.headers.set("Content-Disposition", "attachment", filename=f"{name}-{stamp}.{ending}")
    return response


def _units() -> Units:
    """The units that the control CLI named last, because polling must not call it."""
    return context().journal.last_units(lambda: context().load(STATUS))


def _page(status: Slice[Status], units: Units, filters: Filters, reading: Reading) -> Page:
    entries = reading.entries
    matching = rows_of(entries, filters, boot="", day=datetime.now().astimezone().date())
    rows = newest(matching, PAGE_BYTES)
    notes = []
    if reading.lines < filters.lines:
        notes.append(
            Sentence(
                "Only {count} lines were read because some are very long.", count=reading.lines
            )
        )
    if len(rows) < len(matching):
        notes.append(
            Sentence(
                "Older lines are not shown ({count}) because they would make this page too large.",
                count=len(matching) - len(rows),
            )
        )
    return Page(
        status,
        units,
        filters,
        rows=rows,
        read=len(entries),
        matching=len(matching),
        counts=count_levels(entries),
        cursor=entries[-1].cursor if entries else "",
        notes=notes,
    )


def _after(filters: Filters, cursor: str) -> dict[str, Any] | None:
    """The new lines; None if there are none. An unknown cursor gives the last lines."""
    now = datetime.now().astimezone()
    place = place_of(cursor)
    reading = _read_after(filters, cursor) if place else None
    if place and reading:
        day = (Entry("", stamp_us=place.stamp_us).time() or now).date()
        return _update(filters, reading, boot=place.boot, day=day, gap=False)
    lines = min(filters.lines, _MOST_NEW_LINES)
    last = context().journal.read(Extract(filters.unit, lines, filters.boot))
    return _update(filters, last, boot="", day=now.date(), gap=bool(cursor))


def _update(
    filters: Filters, reading: Reading, *, boot: str, day: date, gap: bool
) -> dict[str, Any] | None:
    """The lines to add after one of that boot and day; `gap` if some between them are missing."""
    entries = reading.entries
    # Lines without a cursor come from a stand-in, which prints the same lines each time.
    if not entries or not entries[-1].cursor:
        return None
    rows = rows_of(entries, filters, boot=boot, day=day)
    kept = newest(rows, PAGE_BYTES)
    return {
        "cursor": entries[-1].cursor,
        "lines": [
            msgspec.structs.replace(row, day=row.day and request_language().day(row.day))
            for row in kept
        ],
        "gap": gap or len(kept) < len(rows),
    }


def _read_after(filters: Filters, cursor: str) -> Reading | None:
    """The lines after `cursor`; None if they are too many, or it is not of this journal."""
    extract = Extract(filters.unit, _MOST_NEW_LINES + 1, filters.boot, cursor)
    try:
        reading = context().journal.read(extract)
    except JournalError:
        # Perhaps the cursor is from another journal; the next read, without it, will show that.
        return None
    return reading if len(reading.entries) < reading.lines else None


def _text(entries: Sequence[Entry]) -> str:
    return "".join(
        " ".join(filter(None, (_iso(entry), entry.level and f"{entry.level:7}", entry.text))) + "\n"
        for entry in entries
    )


def _fact(entry: Entry) -> dict[str, str]:
    return {"at": _iso(entry), "level": entry.level, "text": entry.text, "boot": entry.boot}


def _iso(entry: Entry) -> str:
    when = entry.time()
    return when.isoformat(timespec="milliseconds") if when else ""
