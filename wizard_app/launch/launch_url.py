"""The launch URLs of the running wizard."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path

from platform_common.errors import PlatformError
from platform_common.net.connect import own_addresses
from wizard_app.access.token_file import TokenFile
from wizard_app.setup.serving_file import Serving, ServingFile, interface_addresses


def network_addresses() -> list[str]:
    """The IPv4 addresses by which others in the network reach this machine."""
    return own_addresses((socket.AF_INET,)) or interface_addresses()


@contextlib.contextmanager
def announced(token_file: Path, serving: Serving) -> Iterator[None]:
    """Write the address of the wizard to its file; on exit, remove it and the token.

    Raises `PlatformError`.
    """
    mine = os.getpid()
    try:
        ServingFile(token_file).write(serving)
        yield
    finally:
        # The forked worker leaves this block too, but must not remove the files.
        if os.getpid() == mine:
            ServingFile(token_file).clear(mine)
            TokenFile(token_file).clear()


def served(token_file: Path) -> Serving:
    """The address of the running wizard; raises `PlatformError` if none is running."""
    serving = ServingFile(token_file).read()
    if serving is None:
        raise PlatformError(
            "No wizard is running here",
            hint="Start one with wizard-app serve; with --production or --dev-out,"
            " give this command the same option.",
        )
    return serving.now()


def waiting_token(token_file: Path) -> str:
    """The unused token of the wizard, which may run as another user; empty without one.

    Raises `AccessError`.
    """
    return TokenFile(token_file, ServingFile(token_file).user()).read()
