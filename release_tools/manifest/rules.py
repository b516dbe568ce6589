"""The rules of a valid manifest: the JSON Schema, and what a schema cannot express.

Each problem is a text `<address>: <what is wanted and what was found>`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any
from urllib.parse import urlsplit

from jsonschema import Draft202012Validator

from platform_common.resources import schema
from release_tools.manifest.date_time import parse_date_time

MOST_PROBLEMS = 10_000
TYPE_NAMES = {
    dict: "an object",
    list: "an array",
    str: "a string",
    bool: "true or false",
    int: "an integer",
    float: "a number",
    type(None): "null",
}


def all_problems(document: Mapping[str, Any]) -> list[str]:
    """Return every problem of `document`, sorted by address, up to a limit.

    The limit is for `inspect`, which reads unsigned manifests: a hostile one must not keep it
    busy for hours.
    """
    problems = {
        problem
        for found in (_schema_problems(document), _code_problems(document))
        for problem in islice(found, MOST_PROBLEMS + 1)
    }
    listed = sorted(problems, key=_in_order)
    if len(listed) > MOST_PROBLEMS:
        listed[MOST_PROBLEMS:] = [f"manifest: has more than {MOST_PROBLEMS:,} problems"]
    return listed


def _schema_problems(document: Mapping[str, Any]) -> Iterator[str]:
    validator = Draft202012Validator(schema("manifest.v1"))
    incomplete = None
    for error in validator.iter_errors(document):
        address = _address(error.absolute_path)
        if error.validator == "required":
            # jsonschema reports one such error per missing member, but not the member's name.
            if address != incomplete:
                incomplete = address
                for name in error.validator_value:
                    if name not in error.instance:
                        yield f"{address}.{name}".lstrip(".") + ": is missing"
            continue
        yield f"{address or 'manifest'}: {_sentence(error)}"


def _in_order(problem: str) -> tuple[tuple[int, str], ...]:
    """Sort `artefacts[10]` after `artefacts[9]`."""
    return tuple(
        (int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"([0-9]+)", problem)
    )


def _address(path: Sequence[str | int]) -> str:
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{_plain(part)}"
    return text.lstrip(".")


def _plain(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) else shown(name)


def _sentence(error: Any) -> str:
    seen, wanted = shown(error.instance), error.validator_value
    match error.validator:
        case "type":
            names = {"object": dict, "array": list, "string": str, "integer": int}
            return f"must be {TYPE_NAMES[names[wanted]]}, not {seen}"
        case "enum":
            return f"must be one of {', '.join(wanted)}, not {seen}"
        case "minItems":
            return "must have at least one entry"
        case "minLength":
            return "must not be empty"
        case "maxLength":
            return f"must have at most {wanted} characters"
        case "minimum":
            return f"must be {wanted} or more, not {seen}"
    name = error.absolute_path[-1] if error.absolute_path else ""
    return f"must be {_PATTERN_MEANS.get(name, 'well-formed')}, not {seen}"


_PATTERN_MEANS = {
    "release_version": "a version Y.M.D with an optional suffix",
    "filename": "a plain file name (no slash, backslash, control character, leading dot or '..')",
    "sha256": "64 lower-case hexadecimal digits",
}


def shown(value: Any) -> str:
    """Return `value` for a message: in ASCII, shortened if it is long."""
    text = ascii(value) if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 80 else text[:77] + "…"


def _code_problems(document: Mapping[str, Any]) -> Iterator[str]:
    """Check what a JSON Schema cannot; wrong types are left to the schema."""
    released_at = document.get("released_at")
    if isinstance(released_at, str):
        try:
            parse_date_time(released_at)
        except ValueError:
            yield (
                "released_at: must be an RFC 3339 date-time with an offset,"
                f" not {shown(released_at)}"
            )
    artefacts = document.get("artefacts")
    if isinstance(artefacts, list):
        yield from _artefact_problems(artefacts)


def _artefact_problems(artefacts: Sequence[Any]) -> Iterator[str]:
    triples: dict[tuple[str, ...], int] = {}
    names: dict[str, int] = {}
    for index, entry in enumerate(artefacts):
        if not isinstance(entry, dict):
            continue
        where = f"artefacts[{index}]"
        size, filename = entry.get("size_bytes"), entry.get("filename")
        # A JSON Schema accepts 1.0 as an integer.
        if isinstance(size, float) and size.is_integer():
            yield f"{where}.size_bytes: must be an integer, not {shown(size)}"
        yield from _url_problems(where, entry)
        of_kind = [entry.get(name) for name in ("target", "profile", "format")]
        triple = tuple(part for part in of_kind if isinstance(part, str))
        if len(triple) == 3 and (first := triples.setdefault(triple, index)) != index:
            yield f"{where}: has the target, profile and format of artefacts[{first}]"
        if isinstance(filename, str):
            if (first := names.setdefault(filename, index)) != index:
                yield f"{where}.filename: is that of artefacts[{first}]"
            if len(filename) <= 255 < len(filename.encode()):
                yield f"{where}.filename: must have at most 255 bytes"


def _url_problems(where: str, entry: Mapping[str, Any]) -> Iterator[str]:
    for name in ("minisig_url", "url"):
        text = entry.get(name)
        if not isinstance(text, str) or not text:
            continue
        try:
            scheme = urlsplit(text).scheme
        except ValueError:
            scheme = None
        if scheme is None or any(c <= " " or c == "\x7f" or c == "\\" for c in text):
            yield f"{where}.{name}: must be a URL, not {shown(text)}"
        elif name == "minisig_url" and scheme not in ("", "https", "file"):
            yield f"{where}.{name}: must be relative, https: or file:, not {shown(text)}"
