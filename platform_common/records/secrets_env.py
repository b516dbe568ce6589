"""The keys of the gateways: `/etc/platform/secrets.env`, which systemd reads too.

We read it line by line. systemd allows values over several lines (`parse_env_file_internal` in
its `env-file.c`), and one bad byte makes it refuse the whole file. So before writing, we check
that systemd will see the value.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate

from platform_common.errors import PlatformError
from platform_common.secret import Secret

_BLANKS = b" \t\r\n"
# One token for systemd, complete or cut off by the end of the file. Its versions differ about
# the line after a comment that ends in a backslash.
_ENTRY = re.compile(
    rb"""
      [#;] (?: [^\\\r\n] | \\[^\r\n] )*+ (?: \\ .* )?
    | (?P<assignment>
        [^\ \t\r\n#;] [^=\r\n]*+ =
        (?: [\ \t] | '[^']*+'? | "(?: [^"\\] | \\.? )*+"? )*+
        (?: (?: [^\ \t\r\n'"\\] | \\.? ) (?: [^\r\n\\] | \\.? )*+ )?
      )
    | [^\ \t\r\n#;] [^\r\n]*+
    """,
    re.DOTALL | re.VERBOSE,
)


class InvisibleValueError(PlatformError):
    """A value that systemd would not see, or that would change other values."""


class SecretsEnv:
    """The file; its `repr` shows no value."""

    __slots__ = ("_by_name", "_lines")

    def __init__(self, lines: Sequence[bytes]) -> None:
        self._lines = tuple(lines)
        # If a name occurs twice, the last line counts, as for systemd.
        self._by_name = {_name(line): line for line in lines}

    def get(self, name: str) -> Secret | None:
        """The value of the variable `name`; None if it is missing or empty."""
        line = self._by_name.get(name.encode())
        return None if line is None else _value(line)

    def all_values(self) -> tuple[Secret, ...]:
        """The values of all lines, even if a later line overrides them."""
        values = (_value(line) for line in self._lines if _name(line))
        return tuple(value for value in values if value is not None)

    def with_value(self, name: str, secret: Secret) -> SecretsEnv:
        """Return a copy that sets `name` to `secret`, on all lines with it or on a new last line.

        All other lines stay. Raises `InvisibleValueError`.
        """
        lines = list(self._lines)
        own = [number for number, line in enumerate(lines) if _name(line) == name.encode()]
        if not own:
            if lines:
                lines[-1] = _content(lines[-1]) + (_ending(lines[-1]) or b"\n")
            own = [len(lines)]
            lines.append(name.encode() + b"=\n")
        _refuse_unseen(lines, own)
        for number in own:
            ending = _ending(lines[number]) or b"\n"
            lines[number] = name.encode() + b"=" + secret.reveal().encode() + ending
        return SecretsEnv(lines)

    def render(self) -> bytes:
        """Return the bytes of the file."""
        return b"".join(self._lines)

    def __repr__(self) -> str:
        return f"SecretsEnv({len(self._lines)} lines)"


def parse(data: bytes) -> SecretsEnv:
    """Parse `data`; lines that are not assignments count as comments."""
    return SecretsEnv(data.splitlines(keepends=True))


def _name(line: bytes) -> bytes | None:
    """The variable that a line sets; None for a comment or a line without `=`."""
    name, equals, _ = line.partition(b"=")
    name = name.strip(_BLANKS)
    return name if equals and not name.startswith(b"#") else None


def _value(line: bytes) -> Secret | None:
    value = line.partition(b"=")[2].strip(_BLANKS)
    if len(value) > 1 and value[:1] == value[-1:] and value[:1] in (b'"', b"'"):
        value = value[1:-1]
    return Secret(value.decode("utf-8", "replace")) if value else None


def _content(line: bytes) -> bytes:
    return line.rstrip(b"\r\n")


def _ending(line: bytes) -> bytes:
    return line[len(_content(line)) :]


def _refuse_unseen(lines: Sequence[bytes], own: Sequence[int]) -> None:
    """Raise `InvisibleValueError` unless systemd reads each of the lines `own` as an assignment."""
    data = b"".join(lines)
    if b"\0" in data:
        raise _unseen(data, data.index(b"\0"), "holds a NUL, which makes systemd refuse the file")
    starts, ends = _spans(lines, own)
    for entry in _ENTRY.finditer(data):
        touched = range(bisect_right(ends, entry.start()), bisect_left(starts, entry.end()))
        for number in touched:
            swallowed = data[ends[number] : entry.end()].strip(_BLANKS)
            if entry.start() < starts[number] or swallowed:
                raise _unseen(
                    data,
                    entry.start(),
                    "continues on the following lines (an open quote, or a backslash at its"
                    " end), so systemd would not see the new value",
                )
        if not touched and entry["assignment"] is not None and not _is_text(entry[0]):
            raise _unseen(
                data, entry.start(), "is not UTF-8, which makes systemd refuse the whole file"
            )


def _spans(lines: Sequence[bytes], own: Sequence[int]) -> tuple[list[int], list[int]]:
    """The start and end of each of the lines `own` in the file."""
    positions = [0, *accumulate(map(len, lines))]
    starts = [positions[number] for number in own]
    return starts, [positions[number] + len(_content(lines[number])) for number in own]


def _is_text(data: bytes) -> bool:
    """Whether systemd accepts `data` as UTF-8, without surrogates and noncharacters."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return not any(ord(c) & 0xFFFE == 0xFFFE or "\ufdd0" <= c <= "\ufdef" for c in text)


def _unseen(data: bytes, position: int, problem: str) -> InvisibleValueError:
    number = len(data[: position + 1].splitlines())
    return InvisibleValueError(
        f"line {number} {problem}", hint="Repair or remove that line, then try again."
    )
