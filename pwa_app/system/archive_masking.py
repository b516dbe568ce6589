"""Masks text that leaves the device: secrets, and anything that might be an encoded secret.

The redactor knows the usual shapes of keys. Text for strangers also gets anything masked that
looks like a code, because in base64 or hexadecimal a key has no recognisable shape.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from platform_common.redaction import MASK

Redact = Callable[[str], str]
_SHORTEST = 20
# A run of characters of keys, plain, in base64, hexadecimal or URL encoding; and characters
# that are all written as numbers.
_RUN = re.compile(rf"[A-Za-z0-9+/_%=-]{{{_SHORTEST},}}+")
_NUMBERED = re.compile(r"(?:\\(?:u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2})){6,}+")
_ESCAPED = re.compile(r"%[0-9A-Fa-f]{2}")
_UUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_SEGMENT = re.compile(rf"[A-Za-z0-9]{{{_SHORTEST},}}+")
# Compound words, such as the names of errors.
_CAMEL_CASE = re.compile(r"[a-z]{0,30}+(?:[A-Z]{1,6}+[a-z]{2,19}+)*+[A-Z]{0,6}+")
_KINDS = tuple(map(re.compile, ("[a-z]", "[A-Z]", "[0-9]")))


def masked(text: str, redact: Redact) -> str:
    """`text` without secrets, and without anything that might be an encoded one."""
    return _RUN.sub(_without_code, _NUMBERED.sub(MASK, redact(text)))


def _without_code(found: re.Match[str]) -> str:
    begin = found.start()
    path = found[0].startswith("/") or found.string[max(0, begin - 2) : begin] == "/."
    return MASK if _is_code(found[0], path=path) else found[0]


def _is_code(run: str, *, path: bool) -> bool:
    if _ESCAPED.search(run) or _UUID.search(run):
        return True
    if any(not _CAMEL_CASE.fullmatch(segment) for segment in _SEGMENT.findall(run)):
        return True
    # A path may look like base64, but has no + or =.
    parts = run.split("/") if path and "+" not in run and "=" not in run else [run]
    return any(
        len(part) >= _SHORTEST and all(kind.search(part) for kind in _KINDS) for part in parts
    )


def cleaned(tree: Any, redact: Redact) -> Any:
    """The JSON value `tree` with `masked` strings; member names are ours and stay."""
    match tree:
        case str():
            return masked(tree, redact)
        case dict():
            return {name: cleaned(branch, redact) for name, branch in tree.items()}
        case list() | tuple():
            return [cleaned(branch, redact) for branch in tree]
    return tree
