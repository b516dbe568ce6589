"""Settings of property tests: the same examples each time, and no deadlines."""

from __future__ import annotations

from hypothesis import settings

steady = settings(derandomize=True, deadline=None)


def examples(count: int) -> settings:
    """The settings `steady` with `count` examples."""
    return settings(steady, max_examples=count)
