"""Changing values in a TOML file that people edit too: all else stays as they wrote it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from typing import Any

from platform_common.formats.decode import DecodingError, utf8

Value = str | bool | int | float
# The time that tomlkit takes grows with the square of this.
_LIMIT_BYTES = 64 << 10
_BY_HAND = "Change it with an editor."


def edited(
    data: bytes, values: Mapping[tuple[str, str], Value], parse: Callable[[bytes], object]
) -> bytes:
    """Like `with_values`, for a record that `parse` reads, before the change and after it."""
    parse(data)
    after = with_values(data, values)
    parse(after)
    return after


def with_values(data: bytes, values: Mapping[tuple[str, str], Value]) -> bytes:
    """The TOML `data` with the value of each `(section, key)`, which are made if need be.

    Comments, order, line ends and every other value stay. Raises `DecodingError`
    for what is no TOML, or where that cannot be done.
    """
    # Here, for it takes as long to import as a short command may.
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    if len(data) > _LIMIT_BYTES:
        raise DecodingError(
            f"the file is larger than {_LIMIT_BYTES:,} bytes, too large to be changed by program",
            hint=_BY_HAND,
        )
    before = utf8(data)
    try:
        document = tomlkit.parse(before)
        for (section, key), value in values.items():
            if section not in document:
                document[section] = tomlkit.table()
            document[section][key] = value
        after = _with_line_ends_of(before, document.as_string())
        kept = _others(after, values) == _others(before, values)
    except (TOMLKitError, tomllib.TOMLDecodeError) as error:
        raise DecodingError(f"not valid TOML: {error}") from None
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError):
        kept = False
    if not kept:
        names = ", ".join(f"[{section}] {key}" for section, key in values)
        raise DecodingError(
            f"the file is of a form in which {names} cannot be changed by program",
            hint=_BY_HAND,
        )
    return after.encode()


def _with_line_ends_of(before: str, after: str) -> str:
    if "\r\n" in before and not re.search(r"(?<!\r)\n", before):
        return re.sub(r"(?<!\r)\n", "\r\n", after)
    return after


def _others(text: str, values: Mapping[tuple[str, str], Value]) -> Any:
    """All that the TOML `text` says but those values and the sections that hold nothing else."""
    # Numbers as they are written: NaN is not equal to itself.
    tree = tomllib.loads(text, parse_float=str)
    for section, key in values:
        tree[section] = {name: v for name, v in tree.get(section, {}).items() if name != key}
    return tree
