"""The link of the wizard on the screen of the device, until that is set up.

It is a part of what agetty shows before it asks who logs in (/etc/issue.d), and not a text
that is printed once: so it is there on a screen that was cleared, on serial lines and after
each log-out, changes with the address and the link, and nothing fails where there is no
console. The text is in memory alone (/run), for root alone, and in no log.
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

from platform_common.errors import PlatformError, unreadable
from platform_common.paths import SETUP_COMPLETE, Place
from platform_common.process.run import ProcessError, run
from platform_common.storage.atomic_write import make_folder, write_atomic
from wizard_app.launch import console_text, launch_url
from wizard_app.launch.console_text import USED, Screen
from wizard_app.setup.serving_file import ServingFile
from wizard_app.setup.settings import WizardSettings

ISSUE = Place("/run/platform-wizard.issue")
# Agetty looks into the second folder only without the file beside the first.
_MAIN_ISSUE = Place("/etc/issue")
_SCREEN = "/dev/tty1"
_EVERY_S = 1.0
_RELOAD_S = 10.0
_TOKEN = re.compile(r"[0-9A-Fa-f]{1,128}")
# GIO_UNIMAP of console_ioctl(2): how many characters of the font are told of, and where.
_CHARACTERS, _ASKED, _MOST = 0x4B66, struct.Struct("H0PP"), 4096
_HALVES = {0x2580, 0x2584}


def keep_shown(settings: WizardSettings) -> None:
    """Show the link on the console until the device is set up, or a signal ends this process.

    Raises `PlatformError` where nothing can be written.
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
    """Put it in place of one that is there already; raises `UnreadableError`."""
    with unreadable(link):
        with contextlib.suppress(FileNotFoundError):
            link.unlink()
        link.symlink_to(target)


def _text(settings: WizardSettings) -> str:
    """What the console is to show; nothing while no wizard is served."""
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
    """Have every agetty that asks who logs in show its text anew, where there is one."""
    if settings.production and settings.paths.is_machine:
        with contextlib.suppress(ProcessError):
            run(("agetty", "--reload"), timeout_s=_RELOAD_S)


def screen(path: str) -> Screen:
    """What a screen is like; where there is none, a serial line as most are."""
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
    """Whether the font of a screen has halves of blocks, which many of Debian's lack."""
    pairs = (ctypes.c_ushort * 2 * _MOST)()
    asked = _ASKED.pack(_MOST, ctypes.addressof(pairs))
    try:
        count, _ = _ASKED.unpack(fcntl.ioctl(descriptor, _CHARACTERS, asked))
    except OSError:
        # No screen of the kernel's: what draws it has more characters than we need.
        return True
    return _HALVES.issubset(character for character, _ in pairs[:count])
