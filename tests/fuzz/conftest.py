"""How fuzzing runs: briefly with fixed cases, or long with new cases each time."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import pytest
from hypothesis import given, seed, settings
from hypothesis.strategies import SearchStrategy

_FEW = 25
_T = TypeVar("_T")


class Fuzz:
    """Runs checks with drawn values."""

    def __init__(self, *, few: bool) -> None:
        self._few = few

    def __call__(
        self, count: int, *drawn: SearchStrategy[Any]
    ) -> Callable[[Callable[..., None]], None]:
        """Run the decorated check `count` times, or a few times in the short version."""

        def run(check: Callable[..., None]) -> None:
            if self._few:
                how = settings(
                    max_examples=min(_FEW, count // 10),
                    derandomize=True,
                    deadline=None,
                    database=None,
                )
                how(given(*drawn)(check))()
                return
            # Printed with a failure; set the variable to draw the same cases again.
            number = int(os.environ.get("FUZZ_SEED") or random.SystemRandom().getrandbits(32))
            print(f"FUZZ_SEED={number}")
            how = settings(max_examples=count, deadline=None, database=None, print_blob=True)
            how(seed(number)(given(*drawn)(check)))()

        return run

    def some(self, values: Sequence[_T]) -> Sequence[_T]:
        """All of `values`, or some of them in the short version."""
        return values[:: len(values) // 6] if self._few else values


@pytest.fixture(params=["few", pytest.param("many", marks=pytest.mark.long)])
def fuzz(request: pytest.FixtureRequest) -> Fuzz:
    """The runner of checks, short or long."""
    return Fuzz(few=request.param == "few")
