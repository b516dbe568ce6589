"""The provider catalogue: what ships, and what remains of a damaged one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from platform_common.formats.decode import DecodingError
from platform_common.records.catalogue import Catalogue, parse
from platform_common.resources import data_path
from tests.support.record_cases import GOOD, HOSTILE_VARIABLES, changed

SHIPPED = parse(data_path("providers.json").read_bytes())
_ENTRIES = ("openrouter", "anthropic", "openai")


def _parsed(*place: str | int, value: Any) -> Catalogue:
    return parse(json.dumps(changed(GOOD["providers"], place, value)).encode())


def _ids(catalogue: Catalogue) -> list[str]:
    return [provider.id for provider in catalogue.providers]


def test_fifteen_providers_ship_in_the_order_of_the_wizard() -> None:
    assert _ids(SHIPPED) == [
        *("openrouter", "anthropic", "openai", "google-ai-studio", "bedrock", "nous-portal"),
        *("nvidia-nim", "ollama-cloud", "local-ollama", "zai-glm", "kimi-moonshot", "minimax"),
        *("xiaomi-mimo", "huggingface", "custom"),
    ]
    assert not SHIPPED.problems


def test_every_kind_ships_and_each_shipped_provider_is_described() -> None:
    assert len({provider.kind for provider in SHIPPED.providers}) == 6
    assert all(provider.key_format for provider in SHIPPED.providers)
    assert all(provider.supported_models_hint for provider in SHIPPED.providers)
    assert len({provider.key_env_var for provider in SHIPPED.providers}) == 15


def test_entries_that_need_a_model_or_an_address_are_marked() -> None:
    without_model = {p.id for p in SHIPPED.providers if not p.default_model}
    assert without_model == {p.id for p in SHIPPED.providers if p.requires_model}
    assert [p.id for p in SHIPPED.providers if not p.endpoint_default] == ["custom"]
    assert [p.id for p in SHIPPED.providers if p.takes_address] == ["local-ollama"]


def test_only_an_offline_build_offers_the_model_on_the_device() -> None:
    online = [provider.id for provider in SHIPPED.offered(offline=False)]
    assert SHIPPED.offered(offline=True) == SHIPPED.providers
    assert set(_ids(SHIPPED)) - set(online) == {"local-ollama"}


def test_d8_every_bad_entry_is_reported_and_the_good_ones_remain() -> None:
    good = GOOD["providers"]["providers"]
    bad = [{**good[0], "id": "x", "kind": "magic"}, 1, {}, None]
    catalogue = _parsed("providers", value=[*bad, *good, good[0]])
    assert _ids(catalogue) == list(_ENTRIES)
    assert catalogue.problems[0] == "providers[0].kind: invalid enum value 'magic'"
    # Of two entries with the same id, the first counts.
    assert catalogue.problems[4] == "providers[7].id: openrouter occurs twice"
    places = [problem.partition(":")[0] for problem in catalogue.problems[1:4]]
    assert places == ["providers[1]", "providers[2]", "providers[3]"]


@pytest.mark.parametrize("name", HOSTILE_VARIABLES, ids=ascii)
@pytest.mark.parametrize("place", [("key_env_var",), ("extra_env", 1)], ids=["key", "extra"])
def test_env_03_a_hostile_variable_name_is_refused(name: str, place: tuple[str | int, ...]) -> None:
    first: dict[str, Any] = {**GOOD["providers"]["providers"][0], "extra_env": ["A", "B"]}
    data = json.dumps({"providers": [changed(first, place, name)]}).encode()
    catalogue = parse(data)
    assert not catalogue.providers
    assert len(catalogue.problems) == 1


@pytest.mark.parametrize("data", [b"[]", b"{}", b"null", b"", b'{"providers": {}}', b"\xff"])
def test_a_file_that_is_not_a_catalogue_is_an_error(data: bytes) -> None:
    with pytest.raises(DecodingError):
        parse(data)
