"""The chart of daily costs: an SVG without style attributes and scripts."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from msgspec import Struct

from platform_common.control_answers import Day
from platform_common.message import Sentence
from platform_common.web.language import Language

_WIDTH = 300
_HEIGHT = 72
_GAP = 0.25
# The minimum height of a bar, so that small costs are visible.
_LEAST = 1.0
_LONGEST_DATE = 32


class Chart(Struct, frozen=True):
    """An SVG, a sentence that describes it, and the same data as rows of text, newest first."""

    svg: str
    label: str
    first: str
    last: str
    rows: tuple[tuple[str, str], ...]
    cap_is_drawn: bool


def cost_chart(days: tuple[Day, ...], cap_usd: float | None, language: Language) -> Chart:
    """Draw `days`, oldest first; the cap is a line if it is within the height of the bars."""
    amounts = [max(day.usd, 0.0) for day in days]
    top = max(amounts, default=0.0)
    cap = cap_usd if cap_usd and 0 < cap_usd <= top else None
    rows = [(language.day(day.date[:_LONGEST_DATE]), language.money(day.usd + 0.0)) for day in days]
    first, last = (rows[0][0], rows[-1][0]) if rows else ("", "")
    label = Sentence(
        "Cost per day from {first} to {last}: {total} in total, {most} at most.",
        first=first,
        last=last,
        total=language.money(sum(amounts)),
        most=language.money(top),
    ).said(language.gettext)
    return Chart(
        svg=_svg(amounts, top, cap, label, [f"{day}: {amount}" for day, amount in rows]),
        label=label,
        first=first,
        last=last,
        rows=tuple(reversed(rows)),
        cap_is_drawn=cap is not None,
    )


def _svg(
    amounts: Sequence[float], top: float, cap: float | None, label: str, titles: Sequence[str]
) -> str:
    size = f'viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}"'
    parts = [
        f'<svg class="chart" {size} role="img" aria-label="{escape(label)}">',
        f'<path class="axis" d="M0 {_HEIGHT - 0.5}H{_WIDTH}"/>',
    ]
    step = _WIDTH / max(len(amounts), 1)
    for number, (usd, title) in enumerate(zip(amounts, titles, strict=True)):
        height = _high(usd, top)
        parts.append(
            f'<rect class="bar-of" x="{number * step + step * _GAP / 2:.2f}"'
            f' y="{_HEIGHT - 1 - height:.1f}" width="{step * (1 - _GAP):.2f}"'
            f' height="{height:.1f}"><title>{escape(title)}</title></rect>'
        )
    if cap is not None:
        level = _HEIGHT - 1 - _high(cap, top)
        parts.append(f'<path class="cap" stroke-dasharray="4 3" d="M0 {level:.1f}H{_WIDTH}"/>')
    return "".join([*parts, "</svg>"])


def _high(usd: float, top: float) -> float:
    """The height of a bar; the highest one fills the chart."""
    return max(usd / top * (_HEIGHT - 2), _LEAST) if usd > 0 else 0.0
