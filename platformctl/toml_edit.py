"""Changes values in a TOML file that people also edit; everything else stays unchanged."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from typing import Any

from platform_common.formats.decode import DecodingError, utf8

Value = str | bool | int | float
# tomlkit's time grows with the square of the size.
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
    """Return the TOML `data` with the value of each `(section, key)`, created if necessary.

    Comments, order, line ends and all other values stay. Raises `DecodingError` for invalid
    TOML, or if that is not possible.
    """
    # Imported here: at the top it makes `platformctl cost --json` miss its benchmark.
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    if len(data) > _LIMIT_BYTES:
        raise DecodingError(
            f"the file is larger than {_LIMIT_BYTES:,} bytes, too large to be changed by a program",
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
            f"the file is written in a way in which a program cannot change {names}",
            hint=_BY_HAND,
        )
    return after.encode()


def _with_line_ends_of(before: str, after: str) -> str:
    if "\r\n" in before and not re.search(r"(?<!\r)\n", before):
        return re.sub(r"(?<!\r)\n", "\r\n", after)
    return after


def _others(text: str, values: Mapping[tuple[str, str], Value]) -> Any:
    """The TOML `text` without those values, and without sections that contain nothing else."""
    # Numbers as text, because NaN is not equal to itself.
    tree = tomllib.loads(text, parse_float=str)
    for section, key in values:
        tree[section] = {name: v for name, v in tree.get(section, {}).items() if name != key}
    return tree
