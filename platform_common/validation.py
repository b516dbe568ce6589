"""Checks of names and addresses in records: ids, variables, units, URLs.

Each check raises `ValueError` with what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import urlsplit

_LONGEST_ID = 64
_ID = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{0,63}")
_REGION = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)+")
_UNIT = re.compile(r"(?!-)[A-Za-z0-9:_.@-]{1,247}\.service")
# Variables that the loader, a shell, an interpreter or this system reads: never used for a key.
_TAKEN = frozenset(
    [
        *("PATH", "HOME", "SHELL", "USER", "LOGNAME", "PWD", "OLDPWD", "TERM", "LANG", "TZ"),
        *("ENV", "IFS", "CDPATH", "PS4", "SHELLOPTS", "TMPDIR", "TMP", "TEMP"),
        *("HOSTALIASES", "LOCPATH", "NLSPATH", "RES_OPTIONS", "LOCALDOMAIN"),
        *("JAVA_TOOL_OPTIONS", "RUBYOPT", "RUBYLIB", "PERLLIB", "PERL5LIB", "PERL5OPT"),
        *("PERL5DB", "EDITOR", "VISUAL", "PAGER", "SSLKEYLOGFILE", "REQUESTS_CA_BUNDLE"),
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "NOTIFY_SOCKET"),
    ]
)
_TAKEN_STARTS = (
    *("LD_", "DYLD_", "LC_", "BASH", "PYTHON", "NODE_", "NPM_", "PIP_", "UV_", "GIT_", "SSL_"),
    *("OPENSSL_", "CURL_", "GCONV_", "GLIBC_", "MALLOC_", "SYSTEMD_", "DBUS_", "XDG_", "LISTEN_"),
    *("PLATFORM_", "WIZARD_", "PWA_"),
)
_LONGEST_URL = 2048
_URL = re.compile(
    r"https?://(?P<user>[^/?#@]*@)?(?P<host>[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])"
    r"(?::(?P<port>[1-9][0-9]{0,4}))?(?:[/?#][!-~]*)?"
)
_HIGHEST_PORT = 65535
_LOOPBACK = re.compile(r"127(?:\.[0-9]{1,3}){3}|localhost|\[::1\]")


def passes(check: Callable[[str], object], text: str) -> bool:
    """Whether `check` accepts `text`."""
    try:
        check(text)
    except ValueError:
        return False
    return True


def check_id(name: str) -> None:
    """Check an id of a provider, profile or channel."""
    if len(name) > _LONGEST_ID or not _ID.fullmatch(name):
        raise ValueError("must be lower-case letters and digits, in parts joined by hyphens")


def check_variable(name: str) -> None:
    """Check a variable of `secrets.env`, which becomes an environment variable of a gateway."""
    if not _VARIABLE.fullmatch(name):
        raise ValueError("must be the name of a variable: capital letters, digits, underscores")
    if name in _TAKEN or name.startswith(_TAKEN_STARTS):
        raise ValueError("must not be a variable that the system itself reads")


def check_region(name: str) -> None:
    """Check a cloud region, which becomes part of a host name."""
    if len(name) > _LONGEST_ID or not _REGION.fullmatch(name):
        raise ValueError("must be the name of a region, such as us-east-1")


def check_unit(name: str) -> None:
    """Check the name of a systemd service, safe as an argument."""
    if not _UNIT.fullmatch(name):
        raise ValueError("must be the name of a systemd service, such as x-gateway.service")


def check_http_url(url: str) -> str:
    """Check a URL with a host and without a user name, and return the host.

    It must not contain anything that a log or a page must not show, such as a password.
    """
    found = _URL.fullmatch(url) if len(url) <= _LONGEST_URL else None
    if found is None or int(found["port"] or 1) > _HIGHEST_PORT:
        raise ValueError("must be an http or https URL in plain ASCII")
    if found["user"]:
        raise ValueError("must not hold a user name or a password")
    try:
        urlsplit(url)
    except ValueError:  # The text in brackets is not an address.
        raise ValueError("must be an http or https URL in plain ASCII") from None
    return found["host"]


def check_base_url(url: str) -> None:
    """Like `check_http_url`, for an address to which paths are added."""
    check_http_url(url)
    if "?" in url or "#" in url:
        raise ValueError("must end with its path, without ? and #")


def check_loopback_url(url: str) -> None:
    """Like `check_http_url`, for an address on this device."""
    if not _LOOPBACK.fullmatch(check_http_url(url)):
        raise ValueError("must be an address of this device, such as http://127.0.0.1:8080/")
