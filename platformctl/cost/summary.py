"""What was spent, and how close that is to the caps, from the device's files."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

from msgspec import Struct

from platform_common.control_answers import Cost, CostState, Day, Expense
from platform_common.errors import AccessError
from platform_common.paths import COST_CAPS, COST_DEFAULTS, COST_LEDGER_VARIABLE, Paths
from platform_common.records import record_file
from platform_common.records.installed_profiles import active_profile
from platform_common.storage.append_log import put_aside
from platform_common.storage.atomic_write import ROOT
from platform_common.storage.reverse_lines import blocks_from_end
from platformctl.answers import Ledger, LedgerEntry
from platformctl.cost import caps as cost_caps
from platformctl.cost import ledger as cost_ledger
from platformctl.cost import price_sheet
from platformctl.cost.caps import Changes, CostCaps
from platformctl.cost.ledger import MOST_UNREADABLE, NANO, Message, Priced, Spent

_LEDGER = "cost-ledger.jsonl"


class Summary(Struct, frozen=True):
    """The answer to `cost`, and details for people.

    `ledger` is empty without a profile; `unreadable` and `future` count lines that are
    invalid or have a day in the future.
    """

    cost: Cost
    caps: CostCaps
    ledger: str
    unreadable: int
    future: int


def summary(paths: Paths, now: datetime | None = None) -> Summary:
    """Add up the cost until now; raises `PlatformError`."""
    caps = read_caps(paths)
    path = ledger_path(paths)
    spent = cost_ledger.spent(_blocks(path), now or datetime.now(UTC), _sheet(paths).cost)
    _refuse_junk(path, spent.unreadable)
    ledger = str(path or "")
    return Summary(_cost(spent, caps), caps, ledger, spent.unreadable, spent.future)


def read_caps(paths: Paths) -> CostCaps:
    """Read the caps of this device, or the defaults; raises `RecordError`."""
    return record_file.read_or(paths.find(COST_CAPS), cost_caps.parse, CostCaps())


def ledger_path(paths: Paths) -> Path | None:
    """The path of the active profile's ledger; None without a profile."""
    if named := paths.named(COST_LEDGER_VARIABLE):
        return named
    profile = active_profile(paths)
    return paths.on_device(profile.data_dir) / _LEDGER if profile else None


def newest(paths: Paths, count: int) -> Ledger:
    """The last `count` messages of the ledger; raises `PlatformError`."""
    price = _sheet(paths).cost
    path = ledger_path(paths)
    found: list[Message] = []
    unreadable = 0
    for line in chain.from_iterable(map(reversed, _blocks(path))):
        if len(found) == count:
            break
        message = cost_ledger.parse(line)
        if message is None:
            unreadable += 1
            _refuse_junk(path, unreadable)
        else:
            found.append(message)
    return Ledger(
        tuple(_entry(cost_ledger.priced(message, price)) for message in reversed(found)),
        unreadable,
    )


def set_caps(paths: Paths, changes: Changes) -> CostCaps:
    """Change the given caps and return all of them; raises `PlatformError`."""
    path = paths.path_of(COST_CAPS)
    record_file.edit(path, lambda before: cost_caps.edited(before, changes), mode=0o644, owner=ROOT)
    return read_caps(paths)


def reset(paths: Paths, now: datetime | None = None) -> Path | None:
    """Rename the ledger; return its new path, None if there was none; raises `PlatformError`."""
    path = ledger_path(paths)
    if path is None:
        return None
    when = (now or datetime.now(UTC)).astimezone(UTC)
    aside = path.with_name(f"{path.stem}.{when:%Y%m%dT%H%M%S.%fZ}{path.suffix}")
    return aside if put_aside(path, aside) else None


def window_state(spent_nano: int, cap_usd: float, warn_at_pct: float) -> tuple[float, CostState]:
    """The percentage of a cap that was spent, and its state; 0 means no cap."""
    if cap_usd <= 0:
        return 0.0, "ok"
    cap = max(cost_ledger.nano(cap_usd), 1)
    pct = 100 * spent_nano / cap
    if spent_nano >= cap:
        return pct, "tripped"
    return pct, "warn" if pct >= warn_at_pct else "ok"


def _cost(spent: Spent, caps: CostCaps) -> Cost:
    today = spent.days[-1][1]
    warn_at = caps.behaviour.warn_at_pct
    daily_pct, daily_state = window_state(today, caps.caps.daily_usd, warn_at)
    monthly_pct, monthly_state = window_state(spent.month, caps.caps.monthly_usd, warn_at)
    return Cost(
        today_usd=today / NANO,
        month_usd=spent.month / NANO,
        daily_cap_usd=caps.caps.daily_usd,
        monthly_cap_usd=caps.caps.monthly_usd,
        daily_pct=daily_pct,
        monthly_pct=monthly_pct,
        daily_state=daily_state,
        monthly_state=monthly_state,
        tripped="tripped" in (daily_state, monthly_state),
        unknown_messages=spent.unknown,
        days=tuple(Day(day.isoformat(), nano / NANO) for day, nano in spent.days),
        recent_expensive=tuple(
            Expense(
                _utc(one.message.timestamp),
                one.message.provider,
                one.message.model or "",
                one.cost_usd,
            )
            for one in spent.dearest
        ),
    )


def _entry(one: Priced) -> LedgerEntry:
    message = one.message
    return LedgerEntry(
        timestamp=_utc(message.timestamp),
        provider=message.provider,
        model=message.model or "",
        input_tokens=message.input_tokens or 0,
        output_tokens=message.output_tokens or 0,
        cost_usd=one.cost_usd,
        estimated=one.estimated,
        cost_unknown=one.cost_unknown,
        request_id=message.request_id or "",
    )


def _utc(moment: datetime) -> str:
    try:
        return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
    except OverflowError:
        # In the year 1 or 9999, the same time in UTC may be outside the range of datetime.
        return moment.isoformat()


def _sheet(paths: Paths) -> price_sheet.CostSheet:
    return record_file.read(paths.find(COST_DEFAULTS), price_sheet.parse)


def _blocks(path: Path | None) -> Iterator[list[bytes]]:
    if path is None:
        return
    try:
        yield from blocks_from_end(path)
    except FileNotFoundError:
        return


def _refuse_junk(path: Path | None, unreadable: int) -> None:
    if unreadable > MOST_UNREADABLE:
        raise AccessError(
            f"{path} is not a ledger: more than {MOST_UNREADABLE:,} of its lines are not messages",
            hint="Start a new one with: platformctl cost reset",
        )
