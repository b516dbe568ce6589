"""The turns of the chat as a page has them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from markupsafe import Markup

from wizard_app.chat.history import Turn
from wizard_app.chat.markdown import Renderer, plain


class Shown(NamedTuple):
    """A turn as a page has it; `when` is None where nobody wrote down a time."""

    turn: Turn
    body: Markup
    when: datetime | None


def shown(turns: Sequence[Turn]) -> list[Shown]:
    """The same turns with what is on the page; what there is no time for is old."""
    renderer = Renderer()
    return [_shown(turn, renderer) for turn in reversed(turns)][::-1]


def _shown(turn: Turn, renderer: Renderer) -> Shown:
    is_answer = turn.role == "assistant" and not turn.error
    body = renderer.answer(turn.content) if is_answer else plain(turn.content)
    return Shown(turn, body, _when(turn.at))


def _when(at: str) -> datetime | None:
    """The moment as the clock of this device shows it."""
    try:
        when = datetime.fromisoformat(at)
        return when.astimezone() if when.tzinfo else None
    except (ValueError, OverflowError):
        return None
