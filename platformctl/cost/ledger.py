"""The cost ledger: one line of JSON for each message that a model answered.

Other programs write it, and it may contain anything: an unreadable line is counted
and never stops the sum. Amounts are added in whole nano-dollars, so that fifty
times 0.1 is 5. Days and months are in UTC.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from platform_common.storage.reverse_lines import LINE_BYTES

NANO = 1_000_000_000
DAYS = 30
DEAREST = 10
# A file with more unreadable lines is not a ledger, and reading on would take too long.
MOST_UNREADABLE = 1_000_000
# Lines may be out of order by this much, because the clock may have been set back.
_SLACK_DAYS = 1

Tokens = Annotated[int, Meta(ge=0, le=10**12)]
Usd = Annotated[float, Meta(ge=0, le=10**6)]
Price = Callable[[str, int, int], float | None]


class Message(Struct, frozen=True):
    """One line of the ledger; None for members that are absent or null."""

    timestamp: Annotated[datetime, Meta(tz=True)]
    provider: str
    model: str | None = None
    input_tokens: Tokens | None = None
    output_tokens: Tokens | None = None
    cost_usd: Usd | None = None
    request_id: str | None = None


class Priced(Struct, frozen=True):
    """A message and its cost; `cost_usd` is 0 if that is unknown."""

    message: Message
    cost_usd: float
    estimated: bool = False
    cost_unknown: bool = False


class Spent(Struct, frozen=True):
    """The cost of the messages of a ledger, in nano-dollars.

    `days` are the last `DAYS`, oldest first and today last; `month` is the
    calendar month so far. `unknown` messages have no known cost, and `dearest`
    are the most expensive ones, both within `days`. `unreadable` counts invalid lines,
    `future` those with a day in the future.
    """

    days: tuple[tuple[date, int], ...]
    month: int
    unknown: int
    dearest: tuple[Priced, ...]
    unreadable: int
    future: int


_decode = msgspec.json.Decoder(Message).decode


def parse(line: bytes) -> Message | None:
    """Parse one line; None for one that is torn, invalid or too long."""
    if len(line) > LINE_BYTES:
        return None
    try:
        return _decode(line)
    except (ValueError, RecursionError):
        return None


def priced(message: Message, price: Price) -> Priced:
    """Return the message with its cost, estimated by `price` (None: unknown) if absent."""
    if message.cost_usd is not None:
        return Priced(message, message.cost_usd)
    usd = price(message.provider, message.input_tokens or 0, message.output_tokens or 0)
    return Priced(message, usd or 0.0, estimated=usd is not None, cost_unknown=usd is None)


def spent(blocks: Iterable[Sequence[bytes]], now: datetime, price: Price) -> Spent:
    """Sum up the lines of a ledger, which come in blocks, the last block first.

    Stops at a block that is older than every window, and after `MOST_UNREADABLE` invalid
    lines.
    """
    sums = _Sums(now, price)
    for lines in blocks:
        days = [day for line in lines if (day := sums.add(line)) is not None]
        if (days and max(days) < -_SLACK_DAYS) or sums.unreadable > MOST_UNREADABLE:
            break
    return sums.spent()


class _Sums:
    """Running sums by day, counted from the first day of any window."""

    def __init__(self, now: datetime, price: Price) -> None:
        today = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        month = today.replace(day=1)
        self._begin = min(today - timedelta(days=DAYS - 1), month)
        self._month = (month - self._begin).days
        self._last = (today - self._begin).days
        self._shown = self._last + 1 - DAYS
        self._price = price
        self._nano = [0] * (self._last + 1)
        self._unknown = self.unreadable = self._future = 0
        # A heap of the dearest; the number stops the comparison of two entries there.
        self._dearest: list[tuple[float, datetime, int, Message]] = []

    def add(self, line: bytes) -> int | None:
        """Count a line and return its day, or None if it is unreadable."""
        message = parse(line)
        if message is None:
            self.unreadable += 1
            return None
        day = (message.timestamp - self._begin).days
        if 0 <= day <= self._last:
            usd = message.cost_usd
            if usd is None:
                estimate = priced(message, self._price)
                usd = estimate.cost_usd
                self._unknown += estimate.cost_unknown and day >= self._shown
            self._nano[day] += nano(usd)
            if usd and day >= self._shown:
                self._offer(usd, message)
        elif day > self._last:
            self._future += 1
        return day

    def _offer(self, usd: float, message: Message) -> None:
        dearest = self._dearest
        if len(dearest) < DEAREST:
            heapq.heappush(dearest, (usd, message.timestamp, len(dearest), message))
        elif usd > dearest[0][0]:
            # It takes the number of the entry that it replaces, so no two have the same.
            heapq.heapreplace(dearest, (usd, message.timestamp, dearest[0][2], message))

    def spent(self) -> Spent:
        """Return the result."""
        return Spent(
            days=tuple(
                ((self._begin + timedelta(days=day)).date(), self._nano[day])
                for day in range(self._shown, self._last + 1)
            ),
            month=sum(self._nano[self._month :]),
            unknown=self._unknown,
            dearest=tuple(
                Priced(message, usd, estimated=message.cost_usd is None)
                for usd, _, _, message in sorted(self._dearest, reverse=True)
            ),
            unreadable=self.unreadable,
            future=self._future,
        )


def nano(usd: float) -> int:
    """Convert an amount to whole nano-dollars."""
    return int(usd * NANO + 0.5)
