"""The text on the console: the link and, beside its QR code, what to do."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from wizard_app.launch import qr_code
from wizard_app.setup.serving_file import Serving

# Fewer than the four of the standard, so that it fits on 25 rows; every reader that we
# tried can read it.
_QUIET = 2
_GAP, _LEAST_COLUMNS, _MOST_COLUMNS = 2, 33, 60
# Two lines for the link above the code, and agetty's login prompt.
_OTHER_ROWS = 3
# A device with many networks, such as those of containers, has many addresses.
_MOST_OTHERS = 4

_TITLE = "Set up this device"
_HOW = "Scan the code or open the address above in the same network. It works once, in one browser."
_TYPING = "To type it: one line, no blanks, digits and the letters a to f."
_NO_CODE = (
    "Open the address above in the same network. It works once, in one browser. (This screen is"
    " too small for a QR code, or its font has no characters for one.)"
)
_NO_NETWORK = (
    "This device has no network address yet. Plug in a cable, or connect it to a"
    " wireless network. This text then changes by itself."
)
_CERTIFICATE = "Browsers warn about this certificate. Continue if its SHA-256 fingerprint is"
USED = """\
The link to set up this device was used. For a new one, log in and run
  sudo wizard-app new-token --production
"""


class Screen(NamedTuple):
    """Rows and columns, and whether its font has half blocks."""

    rows: int = 24
    columns: int = 80
    halves: bool = True


def text(serving: Serving, token: str, screen: Screen, *, connected: bool = True) -> str:
    """The text for such a screen; `connected` says whether there is a network."""
    url, *_ = serving.urls(token)
    code = _code(url, screen) if connected else []
    gap = len(code[0]) + _GAP if code else 0
    how = (_HOW if code else _NO_CODE) if connected else _NO_NETWORK
    hosts = [base.partition("://")[2] for base in serving.bases[1:] if connected]
    width = min(screen.columns - gap - 1, _MOST_COLUMNS)
    notes = list(_notes(how, hosts, serving.fingerprint, width))
    lines = [qr_code.dressed(line) + " " * _GAP for line in code]
    lines += [" " * gap] * (len(notes) - len(lines))
    notes += [""] * (len(lines) - len(notes))
    return "".join(f"{line}\n" for line in (url, *map("".join, zip(lines, notes, strict=True))))


def _code(url: str, screen: Screen) -> list[str]:
    """The lines of the QR code; empty if it does not fit or cannot be shown."""
    lines = qr_code.lines(url, halves=screen.halves, quiet=_QUIET)
    fits = (
        len(lines) + _OTHER_ROWS <= screen.rows
        and len(lines[0]) + _GAP + _LEAST_COLUMNS < screen.columns
    )
    return lines if fits else []


def _notes(how: str, hosts: Iterable[str], fingerprint: str, width: int) -> Iterator[str]:
    said = [_TITLE, how, _TYPING]
    # Nobody types an IPv6 address.
    if others := [host for host in hosts if "[" not in host]:
        said.append(f"Or with {' or '.join(others[:_MOST_OTHERS])}")
    if fingerprint:
        said.append(_CERTIFICATE)
    for paragraph in said:
        yield from textwrap.wrap(paragraph, width)
        if paragraph is not _CERTIFICATE:
            yield ""
    pairs = width // 3 * 3
    for start in range(0, len(fingerprint), pairs):
        yield fingerprint[start : start + pairs]
