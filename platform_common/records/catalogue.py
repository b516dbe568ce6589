"""The provider catalogue: `/etc/platform/providers.json`."""

from __future__ import annotations

import re
from typing import Any, Literal

from msgspec import Struct

from platform_common.decoding import DecodingError, check_member, from_json, shaped
from platform_common.endpoints import check_base_url

Kind = Literal[
    "chat-compatible",
    "chat-reference",
    "messages-header",
    "query-key",
    "signed-cloud",
    "hosted-inference",
]
_ID = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_LONGEST_ID = 64
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{0,63}")
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


class Provider(Struct, frozen=True):
    """One vendor of models, and how its key is named and tested.

    `extra_env` names further variables that its credentials need;
    `models_public` says that its list of models shows nothing about a key;
    `requires_model` that there is no model to fall back on; `offline_only` that
    it is offered on offline builds alone.
    """

    id: str
    display_name: str
    kind: Kind
    endpoint_default: str
    key_env_var: str
    key_format: str
    default_model: str = ""
    supported_models_hint: str = ""
    extra_env: tuple[str, ...] = ()
    models_public: bool = False
    requires_model: bool = False
    offline_only: bool = False

    def __post_init__(self) -> None:
        """Refuse what cannot be a name, an address or a variable."""
        if len(self.id) > _LONGEST_ID or not _ID.fullmatch(self.id):
            raise ValueError("id: must be lower-case letters and digits, in parts joined by hyphens")
        if not self.display_name:
            raise ValueError("display_name: must not be empty")
        if self.endpoint_default:
            check_member("endpoint_default", check_base_url, self.endpoint_default)
        check_member("key_env_var", check_variable, self.key_env_var)
        for number, name in enumerate(self.extra_env):
            check_member(f"extra_env[{number}]", check_variable, name)

    @property
    def variables(self) -> tuple[str, ...]:
        """Every variable of `secrets.env` that it needs, the key's first."""
        return (self.key_env_var, *self.extra_env)

    @property
    def takes_address(self) -> bool:
        """Whether its variable holds the address of a server that asks for no key."""
        return self.key_env_var.endswith("_BASE_URL")


class Catalogue(Struct, frozen=True):
    """All usable providers, in the order in which they are offered.

    `problems` tells of each entry that was left out: `<place>: <what is wrong>`.
    """

    providers: tuple[Provider, ...]
    problems: tuple[str, ...] = ()

    def offered(self, *, offline: bool) -> tuple[Provider, ...]:
        """The providers to choose from on an offline build, or on any other."""
        return tuple(p for p in self.providers if offline or not p.offline_only)

    def get(self, provider_id: str) -> Provider | None:
        """The provider of that id."""
        return next((p for p in self.providers if p.id == provider_id), None)


class _File(Struct, frozen=True):
    providers: tuple[Any, ...]


def parse(data: bytes) -> Catalogue:
    """The catalogue in the JSON `data`, without the entries that cannot be used.

    Raises `DecodingError` when `data` is no catalogue at all.
    """
    found: dict[str, Provider] = {}
    problems = []
    for number, entry in enumerate(from_json(data, _File).providers):
        try:
            provider = shaped(entry, Provider, at=f"providers[{number}]")
        except DecodingError as error:
            problems.append(error.message)
            continue
        if provider.id in found:
            problems.append(f"providers[{number}].id: {provider.id} is there already")
        else:
            found[provider.id] = provider
    return Catalogue(tuple(found.values()), tuple(problems))


def check_variable(name: str) -> None:
    """Raise `ValueError` unless `name` may be that of a variable in `secrets.env`."""
    if not _VARIABLE.fullmatch(name):
        raise ValueError("must be the name of a variable: capital letters, digits, underscores")
    if name in _TAKEN or name.startswith(_TAKEN_STARTS):
        raise ValueError("must not be a variable that the system itself reads")
