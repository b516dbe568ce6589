"""The answers so far: flat in the file, one type for each step in the code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from platform_common.formats.decode import DecodingError, shaped

A = TypeVar("A", bound=Struct)


class Answers:
    """The answers by member; immutable, the methods return new ones."""

    __slots__ = ("_found", "values")

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = dict(values)
        # Parsed answers by step, because an answer may have many lines to check.
        self._found: dict[type[Struct], Any] = {}

    def of(self, shape: type[A]) -> A | None:
        """The answer to one step, or None."""
        if shape not in self._found:
            try:
                self._found[shape] = shaped(self.values, shape)
            except DecodingError:
                self._found[shape] = None
        found: A | None = self._found[shape]
        return found

    def with_answer(self, answer: Struct) -> Answers:
        """Return a copy in which the members of `answer` replace the old ones."""
        return Answers({**self.values, **msgspec.to_builtins(answer)})

    def only(self, shapes: Iterable[type[Struct]]) -> Answers:
        """Return a copy with only the members of these types."""
        names = {name for shape in shapes for name in members(shape)}
        return Answers({name: value for name, value in self.values.items() if name in names})

    def without(self, shapes: Iterable[type[Struct]]) -> Answers:
        """Return a copy without the members of these types."""
        known = self.only(shapes).values
        return Answers({name: value for name, value in self.values.items() if name not in known})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Answers) and self.values == other.values

    def __hash__(self) -> int:
        return hash(frozenset(self.values))


def members(shape: type[Struct], *, required: bool = False) -> list[str]:
    """The names of a type's members in the file; with `required`, only those without a default."""
    fields = msgspec.structs.fields(shape)
    return [field.encode_name for field in fields if field.required or not required]
