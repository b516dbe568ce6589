"""Checks a secret that was typed or pasted, and says what to do if it is invalid."""

from __future__ import annotations

from platform_common.message import Sentence
from platform_common.secret import Secret, SecretError, parse_secret


def typed_secret(text: str, name: Sentence) -> Secret | Sentence:
    """The secret in `text`, which the page calls `name`, or what is wrong, without the value."""
    try:
        return parse_secret(text)
    except SecretError:
        return Sentence(
            "{name} can have at most 4,096 letters, digits and symbols, without spaces, "
            "quotes, backslashes or backticks: copy it again, without the text around it",
            name=name,
        )
