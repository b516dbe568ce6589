"""A secret as it was typed or pasted: what a step takes of it, or what to do about it."""

from __future__ import annotations

from platform_common.message import Sentence
from platform_common.secret import Secret, SecretError, parse_secret


def typed_secret(text: str, name: Sentence) -> Secret | Sentence:
    """The secret in `text`, called `name` on the page; else what is wrong, without the value."""
    try:
        return parse_secret(text)
    except SecretError:
        return Sentence(
            "{name} can have at most 4,096 letters, digits and symbols, without spaces, "
            "quotes, backslashes or backticks: copy it again, without the text around it",
            name=name,
        )
