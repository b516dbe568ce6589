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

_DEPTH_LIMIT = 100
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


class JsonError(PlatformError):
    """The bytes are not one strict JSON document."""


class DuplicateMemberError(JsonError):
    """An object has the same member twice; the message has its name."""


def load_strict(data: bytes) -> Any:
    """Parse exactly one JSON value; raises `JsonError`."""
    if data.startswith(b"\xef\xbb\xbf"):
        raise JsonError("the JSON starts with a byte-order mark")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise JsonError(f"the JSON is not UTF-8 (byte {error.start})") from None
    try:
        value = json.loads(
            text, object_pairs_hook=_members, parse_constant=_refuse_constant, parse_float=_finite
        )
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise JsonError(f"not valid JSON: {error.msg} ({where})") from None
    except RecursionError:
        raise JsonError("the JSON is nested too deeply") from None
    except ValueError:
        raise JsonError("the JSON holds a number with too many digits") from None
    if _deeper_than(_DEPTH_LIMIT, value):
        raise JsonError("the JSON is nested too deeply")
    if _SURROGATE.search(data):
        _refuse_lone_surrogates(value)
    return value


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise DuplicateMemberError(f"the JSON has the member {name!a} twice in one object")
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
    raise JsonError(f"the JSON holds {word}, which is not a JSON number")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise JsonError("the JSON holds a number that is too large")
    return number


def _refuse_lone_surrogates(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise JsonError("the JSON holds half of a surrogate pair") from None
