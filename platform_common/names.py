"""Names that records hold: what an id, a variable or a unit may be called.

Each check raises `ValueError` with what is wrong.
"""

from __future__ import annotations

import re

_LONGEST_ID = 64
_ID = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{0,63}")
_REGION = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)+")
_UNIT = re.compile(r"(?!-)[A-Za-z0-9:_.@-]{1,247}\.service")
# What the loader, a shell, an interpreter or this system reads: a key never goes there.
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


def check_id(name: str) -> None:
    """An id of ours: of a provider, a profile, a channel."""
    if len(name) > _LONGEST_ID or not _ID.fullmatch(name):
        raise ValueError("must be lower-case letters and digits, in parts joined by hyphens")


def check_variable(name: str) -> None:
    """A variable of `secrets.env`, which becomes one of a gateway's environment."""
    if not _VARIABLE.fullmatch(name):
        raise ValueError("must be the name of a variable: capital letters, digits, underscores")
    if name in _TAKEN or name.startswith(_TAKEN_STARTS):
        raise ValueError("must not be a variable that the system itself reads")


def check_region(name: str) -> None:
    """A region of a cloud, which becomes part of a host's name."""
    if len(name) > _LONGEST_ID or not _REGION.fullmatch(name):
        raise ValueError("must be the name of a region, such as us-east-1")


def check_unit(name: str) -> None:
    """A service of systemd, safe as an argument."""
    if not _UNIT.fullmatch(name):
        raise ValueError("must be the name of a systemd service, such as x-gateway.service")
