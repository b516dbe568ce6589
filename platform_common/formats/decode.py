"""From bytes that we did not write to typed values; an error names the place.

Shapes are `msgspec.Struct` classes: names, types, defaults, and what must hold
of a value in `__post_init__`, as a `ValueError("<member>: <what is wrong>")`.
Members that a shape does not name are ignored.
"""

from __future__ import annotations

import re
import threading
import tomllib
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from platform_common.errors import PlatformError
from platform_common.formats.strict_json import JsonError, load_strict

T = TypeVar("T")
_PLACE = re.compile(r"(?P<problem>.*) - at `(?:key in )?\$?\.?(?P<place>.*)`", re.DOTALL)
# A rule of our own, in `__post_init__`, may name the member that it is about.
_MEMBER = re.compile(r"(?P<member>[a-z][a-z0-9_]*(?:\[[0-9]+\])?): ")
_LONGEST = 200
_learning = threading.Lock()
_learnt: set[type[Any]] = set()


class DecodingError(PlatformError):
    """Bytes that are not what they should be: `<place>: <what is wrong>`."""


def from_json(data: bytes, shape: type[T]) -> T:
    """The value of type `shape` that strict JSON `data` holds; raises `DecodingError`."""
    try:
        return shaped(load_strict(data), shape)
    except JsonError as error:
        raise DecodingError(error.message) from None


def from_toml(data: bytes, shape: type[T]) -> T:
    """The value of type `shape` that TOML `data` holds; raises `DecodingError`."""
    try:
        tree = tomllib.loads(utf8(data))
    except tomllib.TOMLDecodeError as error:
        raise DecodingError(f"not valid TOML: {error}") from None
    except RecursionError:
        raise DecodingError("the TOML is nested too deeply") from None
    except ValueError:
        raise DecodingError("the TOML holds a number with too many digits") from None
    return shaped(tree, shape)


def utf8(data: bytes) -> str:
    """The text of a file; raises `DecodingError` for another encoding or a byte-order mark."""
    if data.startswith(b"\xef\xbb\xbf"):
        raise DecodingError("the file starts with a byte-order mark")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DecodingError(f"line {line} is not UTF-8") from None


def shaped(tree: Any, shape: type[T], at: str = "") -> T:
    """`tree`, as JSON or TOML gives it, as a `shape`; raises `DecodingError`.

    `at` is the place of `tree` in its file, such as `providers[3]`.
    """
    if shape not in _learnt:
        _learn(shape)
    try:
        return msgspec.convert(tree, shape)
    except msgspec.ValidationError as error:
        raise DecodingError(_sentence(str(error), at)) from None
    except RecursionError:
        raise DecodingError("nested too deeply") from None


def _learn(shape: type[Any]) -> None:
    """Let msgspec find out what `shape` is made of, in one thread.

    It does so at first use, and ends the process (0.20 to 0.22) when another thread
    uses what it has only half found out.
    """
    with _learning:
        msgspec.json.Decoder(shape)
        _learnt.add(shape)


def check_member(name: str, check: Callable[[str], None], value: str) -> None:
    """Run `check`; its error then says that it is about the member `name`."""
    try:
        check(value)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _sentence(text: str, at: str) -> str:
    """Msgspec's words, with the place in front: `providers[3].kind: expected str, got int`."""
    found = _PLACE.fullmatch(text)
    problem = (found["problem"] if found else text).replace("`", "")
    places = [at, found["place"] if found else ""]
    if own := _MEMBER.match(problem):
        places.append(own["member"])
        problem = problem[own.end() :]
    if problem[1:2].islower():
        problem = problem[0].lower() + problem[1:]
    if len(problem) > _LONGEST:
        problem = problem[:_LONGEST] + "…"
    place = ".".join(filter(None, places)).replace(".[", "[")
    return f"{place}: {problem}" if place else problem
