"""A provider of each kind, with credentials, for tests of the key test."""

from __future__ import annotations

from typing import get_args

from platform_common.records.catalogue import Kind, Provider
from platform_common.secret import Secret

KINDS: tuple[Kind, ...] = get_args(Kind)
CANARY = "sk-CaNaRy/+0123456789"
SECRET_CANARY = "SeCrEtCaNaRy/+abcdef0123456789"


def provider(kind: Kind = "chat-compatible", *, key_env_var: str = "TEST_API_KEY") -> Provider:
    """A provider without its own address."""
    return Provider(
        id="test",
        display_name="Test Cloud",
        kind=kind,
        endpoint_default="",
        key_env_var=key_env_var,
        key_format="",
    )


def credentials(kind: Kind = "chat-compatible", key: str = CANARY) -> dict[str, Secret]:
    """The credentials that such a provider needs, by variable."""
    found = {"TEST_API_KEY": Secret(key)}
    if kind == "signed-cloud":
        found |= {"AWS_SECRET_ACCESS_KEY": Secret(SECRET_CANARY), "AWS_REGION": Secret("eu-west-1")}
    return found
