"""Shows the wizard's link on the screen of the device until it is set up.

The link is part of the text that agetty shows before a login (/etc/issue.d), not a text that
is printed once. So it is still there on a cleared screen, on serial lines and after each
log-out, it follows the address and the link, and nothing fails without a console. The text
is only in memory (/run), readable by root, and in no log.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import re
import struct
import termios
import time
from pathlib import Path

from platform_common.errors import PlatformError, access_error
from platform_common.paths import SETUP_COMPLETE, Place
from platform_common.process.run import ProcessError, run
from platform_common.storage.atomic_write import make_folder, write_atomic
from wizard_app.launch import console_text, launch_url
from wizard_app.launch.console_text import USED, Screen
from wizard_app.setup.serving_file import ServingFile
from wizard_app.setup.settings import WizardSettings

ISSUE = Place("/run/platform-wizard.issue")
# agetty only reads the second folder if the file beside the first does not exist.
_MAIN_ISSUE = Place("/etc/issue")
_SCREEN = "/dev/tty1"
_EVERY_S = 1.0
_RELOAD_S = 10.0
_TOKEN = re.compile(r"[0-9A-Fa-f]{1,128}")
# GIO_UNIMAP of console_ioctl(2): the number of entries, and a pointer to them.
_CHARACTERS, _ASKED, _MOST = 0x4B66, struct.Struct("H0PP"), 4096
_HALVES = {0x2580, 0x2584}


def keep_shown(settings: WizardSettings) -> None:
    """Show the link on the console until the device is set up, or a signal ends this process.

    Raises `PlatformError` if nothing can be written.
    """
    paths = settings.paths
    place = paths.on_device(ISSUE.device)
    folder = "/etc/issue.d" if paths.has(_MAIN_ISSUE) else "/run/issue.d"
    link = paths.on_device(folder) / place.name
    shown = ""
    try:
        make_folder(place.parent)
        make_folder(link.parent)
        _put_link(link, ISSUE.device)
        while not paths.has(SETUP_COMPLETE):
            text = _text(settings)
            if text != shown:
                write_atomic(place, text.encode(), mode=0o600)
                _show_again(settings)
                shown = text
            time.sleep(_EVERY_S)
    finally:
        for path in (link, place):
            with contextlib.suppress(OSError):
                path.unlink()
        _show_again(settings)


def _put_link(link: Path, target: str) -> None:
    """Create the link, replacing an existing one; raises `AccessError`."""
    with access_error(link):
        with contextlib.suppress(FileNotFoundError):
            link.unlink()
        link.symlink_to(target)


def _text(settings: WizardSettings) -> str:
    """The text for the console; empty while no wizard runs."""
    try:
        serving = ServingFile(settings.token_file).read()
        token = launch_url.waiting_token(settings.token_file)
    except PlatformError:
        return ""
    if serving is None or not serving.bases:
        return ""
    if not _TOKEN.fullmatch(token):
        return USED
    connected = bool(launch_url.network_addresses())
    return console_text.text(serving.now(), token, screen(_SCREEN), connected=connected)


def _show_again(settings: WizardSettings) -> None:
    """Make every agetty that waits for a login show its text again."""
    if settings.production and settings.paths.is_machine:
        with contextlib.suppress(ProcessError):
            run(("agetty", "--reload"), timeout_s=_RELOAD_S)


def screen(path: str) -> Screen:
    """The size and font of the screen; without one, a typical serial line."""
    usual = Screen()
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return usual
    try:
        rows, columns = termios.tcgetwinsize(descriptor)
        return Screen(rows or usual.rows, columns or usual.columns, _has_halves(descriptor))
    except (OSError, termios.error):
        return usual
    finally:
        os.close(descriptor)


def _has_halves(descriptor: int) -> bool:
    """Whether the font of the screen has half blocks, which many of Debian's do not."""
    pairs = (ctypes.c_ushort * 2 * _MOST)()
    asked = _ASKED.pack(_MOST, ctypes.addressof(pairs))
    try:
        count, _ = _ASKED.unpack(fcntl.ioctl(descriptor, _CHARACTERS, asked))
    except OSError:
        # Not a kernel console: its terminal has all the characters that we need.
        return True
    return _HALVES.issubset(character for character, _ in pairs[:count])
