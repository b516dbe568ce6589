"""Addresses to listen on: parses them and checks whether they are free."""

from __future__ import annotations

import errno
import os
import re
import socket
from pathlib import Path

from platform_common.errors import AccessError, PlatformError, WrongUsageError

_TCP = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9.-]+)):([0-9]{1,5})")
_UNIX = re.compile(r"unix:(?://)?(/\S+)")
_ELSEWHERE = "Give another address with --bind."
# sd_listen_fds(3): the first descriptor that systemd passes, and its variables.
_FIRST_PASSED = 3
_PROCESS, _COUNT = "LISTEN_PID", "LISTEN_FDS"
_PASSED = (_PROCESS, _COUNT, "LISTEN_FDNAMES", "LISTEN_PIDFDID")
_NUMBER = re.compile(r"[0-9]{1,9}")
_IN_UNIT = "Its unit needs ListenStream= and Accept=no for each of its sockets."


def addresses(bind: str) -> list[str]:
    """The addresses of the sockets that systemd passed, or else `bind`.

    Variables for another process's sockets are removed. Raises `WrongUsageError` if a passed
    descriptor is not a listening socket, and what `check_bind` raises.
    """
    count = _passed()
    if not count:
        check_bind(bind)
        return [bind]
    return [_address_of(_FIRST_PASSED + number) for number in range(count)]


def _passed() -> int:
    """The number of sockets passed to this process."""
    count = os.environ.get(_COUNT, "")
    if os.environ.get(_PROCESS) != str(os.getpid()) or count == "0":
        for name in _PASSED:
            os.environ.pop(name, None)
        return 0
    if not _NUMBER.fullmatch(count):
        raise WrongUsageError(f"{_COUNT} is {count!a}, which is not a number of sockets")
    # gunicorn removes the other variables, but not these.
    for name in _PASSED[2:]:
        os.environ.pop(name, None)
    return int(count)


def _address_of(descriptor: int) -> str:
    """The address of a passed socket, which must be suitable for serving."""
    try:
        passed = socket.socket(fileno=descriptor)
    except OSError as error:
        raise _useless(descriptor, "is not a socket") from error
    try:
        name, kind = passed.getsockname(), passed.type
        listens = passed.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    finally:
        # The descriptor stays open, for gunicorn.
        passed.detach()
    if not listens or kind != socket.SOCK_STREAM:
        raise _useless(descriptor, "does not listen for connections")
    match name:
        case (str(host), int(port), *_):
            return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        case str():
            return f"unix:{name}"
        case bytes():
            # Linux has abstract socket names, which are not paths.
            return f"unix:@{name[1:].decode('ascii', 'backslashreplace')}"
        case _:
            raise _useless(descriptor, "is of an unsupported kind")


def _useless(descriptor: int, what: str) -> WrongUsageError:
    return WrongUsageError(f"Descriptor {descriptor} that systemd passed {what}", hint=_IN_UNIT)


def check_bind(bind: str) -> None:
    """Raise if a server could not listen on `bind`.

    Addresses are `HOST:PORT`, `[IPV6]:PORT` and `unix:/PATH`. Raises `WrongUsageError` for an
    invalid one, and `AccessError` for one that is not available.
    """
    tcp, unix = _TCP.fullmatch(bind), _UNIX.fullmatch(bind)
    if tcp and int(tcp[3]) < 1 << 16:
        _try_tcp(bind, tcp[1] or tcp[2], int(tcp[3]))
    elif unix:
        _try_unix(bind, Path(unix[1]))
    else:
        raise WrongUsageError(
            f"{bind!a} is not an address to listen on",
            hint="Give HOST:PORT, such as 127.0.0.1:8089, or unix:/PATH.",
        )


def _try_tcp(bind: str, host: str, port: int) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            # Bind without listening: clients that wait for the server must not connect to this.
            probe.bind((host, port))
    except socket.gaierror as error:
        raise AccessError(f"There is no address for {host}", hint=_ELSEWHERE) from error
    except OSError as error:
        raise _unavailable(bind, error) from error


def _try_unix(bind: str, path: Path) -> None:
    if path.exists() and not path.is_socket():
        raise WrongUsageError(f"{path} is a file, not a socket", hint=_ELSEWHERE)
    if not path.parent.is_dir():
        raise AccessError(f"{path.parent} is not a folder", hint=_ELSEWHERE)
    try:
        with socket.socket(socket.AF_UNIX) as probe:
            probe.connect(str(path))
    except OSError as error:
        # Nobody answers there, so gunicorn will replace the file by its socket.
        if error.errno not in (errno.ENOENT, errno.ECONNREFUSED):
            raise _unavailable(bind, error) from error
    else:
        raise _unavailable(bind, OSError(errno.EADDRINUSE, ""))


def _unavailable(bind: str, error: OSError) -> PlatformError:
    match error.errno:
        case errno.EADDRINUSE:
            return AccessError(f"Another program already listens on {bind}", hint=_ELSEWHERE)
        case errno.EADDRNOTAVAIL:
            return AccessError(f"{bind} is not an address of this machine", hint=_ELSEWHERE)
        case _:
            return AccessError.of(bind, error)
