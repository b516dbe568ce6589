"""The provider catalogue: `/etc/platform/providers.json`."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from platform_common.formats.decode import DecodingError, check_member, from_json, shaped
from platform_common.validation import check_base_url, check_id, check_variable

Kind = Literal[
    "chat-compatible",
    "chat-reference",
    "messages-header",
    "query-key",
    "signed-cloud",
    "hosted-inference",
]

# Every signature needs these beside the access key id, even if an entry does not name them.
_SIGNED_CLOUD_ENV = ("AWS_SECRET_ACCESS_KEY", "AWS_REGION")


class Provider(Struct, frozen=True):
    """One provider of models, and how its key is named and tested.

    `extra_env` names further variables of its credentials; `models_public` means that its list
    of models proves nothing about a key; `requires_model` that there is no default model;
    `offline_only` that it is only offered on offline builds.
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
        """Refuse invalid names, addresses and variables."""
        check_member("id", check_id, self.id)
        if not self.display_name:
            raise ValueError("display_name: must not be empty")
        if self.endpoint_default:
            check_member("endpoint_default", check_base_url, self.endpoint_default)
        check_member("key_env_var", check_variable, self.key_env_var)
        for number, name in enumerate(self.extra_env):
            check_member(f"extra_env[{number}]", check_variable, name)

    @property
    def variables(self) -> tuple[str, ...]:
        """Every variable of `secrets.env` that it needs, that of the key first."""
        usual = _SIGNED_CLOUD_ENV if self.kind == "signed-cloud" else ()
        return (self.key_env_var, *(self.extra_env or usual))

    @property
    def takes_address(self) -> bool:
        """Whether its variable holds the address of a server that needs no key."""
        return self.key_env_var.endswith("_BASE_URL")


class Catalogue(Struct, frozen=True):
    """All usable providers, in the order in which they are offered.

    `problems` has a line for each entry that was left out: `<place>: <what is wrong>`.
    """

    providers: tuple[Provider, ...]
    problems: tuple[str, ...] = ()

    def offered(self, *, offline: bool) -> tuple[Provider, ...]:
        """The providers that an offline build offers, or any other build."""
        return tuple(p for p in self.providers if offline or not p.offline_only)


class _File(Struct, frozen=True):
    providers: tuple[Any, ...]


def parse(data: bytes) -> Catalogue:
    """Parse the JSON `data`; entries that cannot be used are left out.

    Raises `DecodingError` if `data` is not a catalogue at all.
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
            problems.append(f"providers[{number}].id: {provider.id} occurs twice")
        else:
            found[provider.id] = provider
    return Catalogue(tuple(found.values()), tuple(problems))
