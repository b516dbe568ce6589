"""Addresses to listen on: whether a text is one, and whether it can be had."""

from __future__ import annotations

import errno
import os
import re
import socket
from pathlib import Path

from platform_common.errors import PlatformError, UnreadableError, WrongUsageError

_TCP = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9.-]+)):([0-9]{1,5})")
_UNIX = re.compile(r"unix:(?://)?(/\S+)")
_ELSEWHERE = "Give another address with --bind."
# sd_listen_fds(3): the first socket that systemd passes on.
_FIRST_PASSED = 3


def address(bind: str) -> str:
    """Where a server is to listen: on the socket that systemd passed, or else on `bind`.

    Raises what `check_bind` raises, for an address that is used.
    """
    if os.environ.get("LISTEN_PID") != str(os.getpid()):
        check_bind(bind)
        return bind
    with socket.socket(fileno=os.dup(_FIRST_PASSED)) as passed:
        name = passed.getsockname()
    match name:
        case (str(host), int(port), *_):
            return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        case _:
            return f"unix:{name}"


def check_bind(bind: str) -> None:
    """Raise where a server could not listen on `bind`.

    `HOST:PORT`, `[IPV6]:PORT` and `unix:/PATH` are addresses. Raises `WrongUsageError`
    for what is none, and `UnreadableError` for one that cannot be had.
    """
    tcp, unix = _TCP.fullmatch(bind), _UNIX.fullmatch(bind)
    if tcp and int(tcp[3]) < 1 << 16:
        _try_tcp(bind, tcp[1] or tcp[2], int(tcp[3]))
    elif unix:
        _try_unix(bind, Path(unix[1]))
    else:
        raise WrongUsageError(
            f"{bind!a} is no address to listen on",
            hint="Give HOST:PORT, such as 127.0.0.1:8089, or unix:/PATH.",
        )


def _try_tcp(bind: str, host: str, port: int) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            # Without listening: whoever waits for the server must not meet this.
            probe.bind((host, port))
    except socket.gaierror as error:
        raise UnreadableError(f"No address is known for {host}", hint=_ELSEWHERE) from error
    except OSError as error:
        raise _unavailable(bind, error) from error


def _try_unix(bind: str, path: Path) -> None:
    if path.exists() and not path.is_socket():
        raise WrongUsageError(f"{path} is a file, and no socket", hint=_ELSEWHERE)
    if not path.parent.is_dir():
        raise UnreadableError(f"{path.parent} is no folder", hint=_ELSEWHERE)
    try:
        with socket.socket(socket.AF_UNIX) as probe:
            probe.connect(str(path))
    except OSError as error:
        # Nobody answers there: gunicorn puts its socket in that place.
        if error.errno not in (errno.ENOENT, errno.ECONNREFUSED):
            raise _unavailable(bind, error) from error
    else:
        raise _unavailable(bind, OSError(errno.EADDRINUSE, ""))


def _unavailable(bind: str, error: OSError) -> PlatformError:
    match error.errno:
        case errno.EADDRINUSE:
            return UnreadableError(f"Another program already listens on {bind}", hint=_ELSEWHERE)
        case errno.EADDRNOTAVAIL:
            return UnreadableError(f"{bind} is no address of this machine", hint=_ELSEWHERE)
        case _:
            return UnreadableError.of(bind, error)
