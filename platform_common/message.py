"""A sentence for people that is translated where it is shown."""

from __future__ import annotations

from collections.abc import Callable


class Sentence:
    """`text` with placeholders in braces, and their values.

    Values are not translated unless they are sentences. The value of `why` is the output of a
    program, in English.
    """

    __slots__ = ("text", "values")

    def __init__(self, text: str, **values: object) -> None:
        self.text = text
        self.values = values

    def said(self, translate: Callable[[str], str]) -> str:
        """The sentence, with its text translated by `translate`."""
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
    """A program's message as a sentence of its own."""
    return Sentence("{why}", why=words)
