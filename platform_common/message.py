"""A sentence for people that is put into their language only where it is shown."""

from __future__ import annotations

from collections.abc import Callable


class Sentence:
    """`text` with named places in braces, and what goes there.

    Values are not translated, but for those that are sentences. What goes to the place
    `why` is what a program said, in English.
    """

    __slots__ = ("text", "values")

    def __init__(self, text: str, **values: object) -> None:
        self.text = text
        self.values = values

    def said(self, translate: Callable[[str], str]) -> str:
        """The sentence as `translate`, of a catalogue, puts its text."""
        text = translate(self.text)
        if not self.values:
            return text
        return text.format_map(
            {
                name: value.said(translate) if isinstance(value, Sentence) else value
                for name, value in self.values.items()
            }
        )

    def __str__(self) -> str:
        return self.said(str)

    def __repr__(self) -> str:
        return f"Sentence({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sentence) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


def quoted(words: str) -> Sentence:
    """What a program said, as a sentence of its own."""
    return Sentence("{why}", why=words)
