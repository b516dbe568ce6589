"""Catalogues for a wizard with one provider of each kind, at any address."""

from __future__ import annotations

import json
from typing import Any

from tests.support.devices import Device
from tests.support.key_tests import CANARY, KINDS, SECRET_CANARY

PLACE = "/etc/platform/providers.json"


def entry(id_: str, endpoint: str, **more: Any) -> dict[str, Any]:
    """A provider as an entry of a catalogue."""
    return {
        "id": id_,
        "display_name": f"{id_} provider",
        "kind": "chat-compatible",
        "endpoint_default": endpoint,
        "key_env_var": f"{id_.replace('-', '_').upper()}_KEY",
        "key_format": "",
        **more,
    }


def of_each_kind(endpoint: str) -> list[dict[str, Any]]:
    """A provider of each kind, named after the kind, and an own server of either sort."""
    return [
        *(entry(kind, endpoint, kind=kind) for kind in KINDS),
        entry("own", ""),
        entry("local", endpoint, key_env_var="LOCAL_BASE_URL"),
    ]


def install(device: Device, entries: list[dict[str, Any]]) -> None:
    """Install a catalogue with these entries on `device`."""
    device.put(PLACE, json.dumps({"providers": entries}))


def form(id_: str, **more: str) -> dict[str, str]:
    """A complete form for such a provider, with canaries as secrets."""
    fields = {"provider": id_, "api_key": CANARY}
    if id_ == "signed-cloud":
        fields |= {"secret_access_key": SECRET_CANARY, "region": "eu-west-1"}
    if id_ == "hosted-inference":
        fields["model"] = "owner/name"
    return fields | more
