"""Chat turns prepared for a page."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from markupsafe import Markup

from wizard_app.chat.history import Turn
from wizard_app.chat.markdown import Renderer, plain


class Shown(NamedTuple):
    """A turn for a page; `when` is None if its time is unknown."""

    turn: Turn
    body: Markup
    when: datetime | None


def shown(turns: Sequence[Turn]) -> list[Shown]:
    """Prepare turns for the page; a turn without a time counts as old."""
    renderer = Renderer()
    return [_shown(turn, renderer) for turn in reversed(turns)][::-1]


def _shown(turn: Turn, renderer: Renderer) -> Shown:
    is_answer = turn.role == "assistant" and not turn.error
    body = renderer.answer(turn.content) if is_answer else plain(turn.content)
    return Shown(turn, body, _when(turn.at))


def _when(at: str) -> datetime | None:
    """The moment in the time zone of this device."""
    try:
        when = datetime.fromisoformat(at)
        return when.astimezone() if when.tzinfo else None
    except (ValueError, OverflowError):
        return None
