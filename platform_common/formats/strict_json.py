"""The project's one loader for untrusted JSON.

Python's own parser accepts NaN, keeps the last of two equal members, and accepts lone
surrogates, which cannot be encoded again. Here each of these is an error (RFC 8259, I-JSON
RFC 7493).
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

from platform_common.errors import PlatformError
from platform_common.message import Sentence

_DEPTH_LIMIT = 100
_TOO_DEEP = Sentence("the JSON is nested too deeply")
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


class JsonError(PlatformError):
    """The bytes are not one strict JSON document."""


class DuplicateMemberError(JsonError):
    """An object has the same member twice; the message has its name."""


def load_strict(data: bytes) -> Any:
    """Parse exactly one JSON value; raises `JsonError`."""
    if data.startswith(b"\xef\xbb\xbf"):
        raise JsonError(Sentence("the JSON starts with a byte-order mark"))
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise JsonError(Sentence("the JSON is not UTF-8 (byte {at})", at=error.start)) from None
    try:
        value = json.loads(
            text, object_pairs_hook=_members, parse_constant=_refuse_constant, parse_float=_finite
        )
    except json.JSONDecodeError as error:
        raise JsonError(
            Sentence(
                "not valid JSON (line {line}, column {column})",
                line=error.lineno,
                column=error.colno,
            )
        ) from None
    except RecursionError:
        raise JsonError(_TOO_DEEP) from None
    except ValueError:
        raise JsonError(Sentence("the JSON contains a number with too many digits")) from None
    if _deeper_than(_DEPTH_LIMIT, value):
        raise JsonError(_TOO_DEEP)
    if _SURROGATE.search(data):
        _refuse_lone_surrogates(value)
    return value


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise DuplicateMemberError(
                    Sentence("the JSON has the member {name} twice in one object", name=ascii(name))
                )
            seen.add(name)
    return members


def _deeper_than(limit: int, value: Any) -> bool:
    """Whether `value` is nested so deeply that copying or showing it might fail."""
    level: list[Any] = [[value]]
    for _ in range(limit + 1):
        level = [
            child
            for parent in level
            for child in (parent.values() if isinstance(parent, dict) else parent)
            if isinstance(child, dict | list)
        ]
        if not level:
            return False
    return True


def _refuse_constant(word: str) -> NoReturn:
    raise JsonError(Sentence("the JSON contains {word}, which is not a JSON number", word=word))


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise JsonError(Sentence("the JSON contains a number that is too large"))
    return number


def _refuse_lone_surrogates(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise JsonError(Sentence("the JSON contains half of a surrogate pair")) from None
