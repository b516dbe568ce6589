"""The provider catalogue: `/etc/platform/providers.json`."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from platform_common.decoding import from_json

Kind = Literal[
    "chat-compatible",
    "chat-reference",
    "messages-header",
    "query-key",
    "signed-cloud",
    "hosted-inference",
]


class Provider(Struct, frozen=True):
    """One vendor of models, and how its key is named and tested.

    `extra_env` names further variables that its credentials need;
    `models_public` says that its list of models shows nothing about a key.
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


class Catalogue(Struct, frozen=True):
    """All providers, in the order in which they are offered."""

    providers: tuple[Provider, ...]


def parse(data: bytes) -> Catalogue:
    """The catalogue in the JSON `data`; raises `DecodingError`."""
    return from_json(data, Catalogue)
