"""A sentence for people that is put into their language only where it is shown."""

from __future__ import annotations

from collections.abc import Callable


class Sentence:
    """`text` with named places in braces, and what goes there; values are not translated."""

    __slots__ = ("text", "values")

    def __init__(self, text: str, **values: object) -> None:
        self.text = text
        self.values = values

    def said(self, translate: Callable[[str], str]) -> str:
        """The sentence as `translate`, of a catalogue, puts its text."""
        text = translate(self.text)
        return text.format_map(self.values) if self.values else text

    def __str__(self) -> str:
        return self.said(str)

    def __repr__(self) -> str:
        return f"Sentence({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sentence) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))
