"""How property tests run: the same examples each time, and no limit on a slow machine's clock."""

from __future__ import annotations

from hypothesis import settings

steady = settings(derandomize=True, deadline=None)


def examples(count: int) -> settings:
    """`steady` with `count` examples."""
    return settings(steady, max_examples=count)
