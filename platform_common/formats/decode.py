"""Decodes untrusted bytes into typed values; errors name the place.

Shapes are `msgspec.Struct` classes: names, types, defaults, and rules in `__post_init__`,
which raise `ValueError("<member>: <what is wrong>")`. Unknown members are ignored.
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
from platform_common.message import Sentence

T = TypeVar("T")
_PLACE = re.compile(r"(?P<problem>.*) - at `(?:key in )?\$?\.?(?P<place>.*)`", re.DOTALL)
# Our own rules in `__post_init__` may name the member themselves.
_MEMBER = re.compile(r"(?P<member>[a-z][a-z0-9_]*(?:\[[0-9]+\])?): ")
# The two usual messages of msgspec.
_EXPECTED = re.compile(r"Expected `(?P<wanted>[^`]+)`, got `(?P<found>[^`]+)`")
_MISSING = re.compile(r"Object missing required field `(?P<name>[^`]+)`")
_LONGEST = 200
_learning = threading.Lock()
_learnt: set[type[Any]] = set()


class DecodingError(PlatformError):
    """Invalid content: `<place>: <what is wrong>`."""


def from_json(data: bytes, shape: type[T]) -> T:
    """Decode strict JSON as a `shape`; raises `DecodingError`."""
    try:
        return shaped(load_strict(data), shape)
    except JsonError as error:
        raise DecodingError(error.said) from None


def from_toml(data: bytes, shape: type[T]) -> T:
    """Decode TOML as a `shape`; raises `DecodingError`."""
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
    """Decode UTF-8; raises `DecodingError` for another encoding or a byte-order mark."""
    if data.startswith(b"\xef\xbb\xbf"):
        raise DecodingError("the file starts with a byte-order mark")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DecodingError(f"line {line} is not UTF-8") from None


def shaped(tree: Any, shape: type[T], at: str = "") -> T:
    """Convert the parsed JSON or TOML `tree` to a `shape`; raises `DecodingError`.

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
    """Let msgspec inspect `shape` in one thread.

    It does so at first use, and versions 0.20 to 0.22 crash the process if another thread uses a
    half-inspected type.
    """
    with _learning:
        msgspec.json.Decoder(shape)
        _learnt.add(shape)


def check_member(name: str, check: Callable[[str], None], value: str) -> None:
    """Run `check` and put the member `name` in front of its error."""
    try:
        check(value)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _sentence(text: str, at: str) -> Sentence | str:
    """Put the place before msgspec's message: `providers[3].kind: expected str, got int`."""
    found = _PLACE.fullmatch(text)
    words = found["problem"] if found else text
    places = [at, found["place"] if found else ""]
    if match := _EXPECTED.fullmatch(words):
        return _placed(places, Sentence("expected {wanted}, got {found}", **match.groupdict()))
    if match := _MISSING.fullmatch(words):
        return _placed(places, Sentence("object missing required field {name}", name=match["name"]))
    problem = words.replace("`", "")
    if own := _MEMBER.match(problem):
        places.append(own["member"])
        problem = problem[own.end() :]
    if problem[1:2].islower():
        problem = problem[0].lower() + problem[1:]
    if len(problem) > _LONGEST:
        problem = problem[:_LONGEST] + "…"
    return _placed(places, problem)


def _placed(places: list[str], problem: Sentence | str) -> Sentence | str:
    place = ".".join(filter(None, places)).replace(".[", "[")
    return Sentence("{place}: {problem}", place=place, problem=problem) if place else problem
