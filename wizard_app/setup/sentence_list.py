"""Several things in one sentence."""

from __future__ import annotations

from collections.abc import Sequence

from platform_common.message import Sentence


def listed(items: Sequence[Sentence | str]) -> Sentence:
    """One or several, with commas between them."""
    whole = Sentence("{some}", some=items[0])
    for item in items[1:]:
        whole = Sentence("{some}, {another}", some=whole, another=item)
    return whole
