"""What has been answered so far: flat in the file, one shape for each step in the code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from platform_common.decoding import DecodingError, shaped

A = TypeVar("A", bound=Struct)


class Answers:
    """The answers by member (spec, wizard state); never changed, `with_answer` makes others."""

    __slots__ = ("values",)

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = dict(values)

    def of(self, shape: type[A]) -> A | None:
        """What one step was answered; None when it was not."""
        try:
            return shaped(self.values, shape)
        except DecodingError:
            return None

    def with_answer(self, answer: Struct) -> Answers:
        """These, with the members of `answer` in place of what was there."""
        return Answers({**self.values, **msgspec.to_builtins(answer)})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Answers) and self.values == other.values

    def __hash__(self) -> int:
        return hash(frozenset(self.values))
