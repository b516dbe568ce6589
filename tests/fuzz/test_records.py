"""Damaged or changed read-only records are either usable, or refused with a sentence."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from platform_common.control_answers import to_json
from platform_common.errors import PlatformError
from platform_common.paths import Paths
from platform_common.records import catalogue, limits, profiles, record_file
from platform_common.resources import data_path, schema
from platformctl.cost import price_sheet
from tests.fuzz.conftest import Fuzz
from tests.support.mutations import documents, mutations, places, texts_of
from tests.support.record_cases import CASES, GOOD, changed, toml


def _use_catalogue(data: bytes) -> bool:
    found = catalogue.parse(data)
    for provider in found.providers:
        assert all(name.isascii() and name.isupper() for name in provider.variables)
    assert len({provider.id for provider in found.providers}) == len(found.providers)
    assert set(found.offered(offline=False)) <= set(found.offered(offline=True))
    assert all(problem.startswith("providers[") for problem in found.problems)
    return not found.problems


def _use_sheet(data: bytes) -> bool:
    sheet = price_sheet.parse(data)
    for provider in sheet.providers:
        cost = sheet.cost(provider, 10**6, 10**6)
        assert cost is not None
        assert 0 <= cost <= 2_000_000
    return True


def _use_limits(data: bytes) -> bool:
    limits.parse(data)
    return True


def _use_profile(data: bytes) -> bool:
    profile = profiles.parse(data, "x")
    assert json.loads(json.dumps(to_json(profile)))["id"] == "x"
    assert Paths.from_env({"PLATFORM_ROOT": "/r"}).on_device(profile.data_dir).parts[1] == "r"
    return True


_USES: dict[str, Callable[[bytes], bool]] = {
    "providers": _use_catalogue,
    "cost-defaults": _use_sheet,
    "limits": _use_limits,
    "profile": _use_profile,
}
_SHIPPED = {
    "providers": ["providers.json"],
    "cost-defaults": ["cost-defaults.json"],
    "limits": ["limits/vultr.json", "limits/rpi5.json"],
    "profile": ["profiles/khoj.toml", "profiles/hermes.toml"],
}


def _encoded(record: str, document: Any) -> bytes:
    return (toml(document) if record == "profile" else json.dumps(document)).encode()


def _seeds(record: str) -> list[bytes]:
    return [_encoded(record, GOOD[record]), *(data_path(n).read_bytes() for n in _SHIPPED[record])]


def _usable(record: str, data: bytes) -> bool:
    """Whether the record is accepted; any error except our own fails the test."""
    try:
        return _USES[record](data)
    except PlatformError as error:
        words = error.message
    assert 0 < len(words) < 1000
    return False


@pytest.mark.parametrize("record", _USES)
def test_a_damaged_record_is_refused_or_usable(fuzz: Fuzz, record: str) -> None:
    words = [f'"{name}"'.encode() for name in _names(GOOD[record])]

    @fuzz(300, mutations(_seeds(record), words))
    def check(data: bytes) -> None:
        _usable(record, data)


def _names(document: Any) -> Iterator[str]:
    if isinstance(document, dict):
        yield from document
    for child in document.values() if isinstance(document, dict) else document:
        if isinstance(child, dict | list):
            yield from _names(child)


# These include text on which schema and code may disagree: only Python knows what is printable.
_values = documents(
    st.booleans() | st.integers() | st.sampled_from([0, -1, 1.5, 65535, 65536]), texts_of(CASES)
)


@pytest.mark.parametrize("record", _USES)
def test_schema_and_code_agree_about_other_values(fuzz: Fuzz, record: str) -> None:
    validator = Draft202012Validator(schema(record))
    # Such a text can be drawn for another place, too.
    beyond_schemas = [
        case.value for case in CASES if case.schema_cannot and isinstance(case.value, str)
    ]

    @fuzz(300, st.sampled_from(list(places(GOOD[record]))), _values)
    def check(place: tuple[str | int, ...], value: Any) -> None:
        document = changed(GOOD[record], place, value)
        if place[-1] == "id" or value in beyond_schemas:
            return
        assert _usable(record, _encoded(record, document)) == validator.is_valid(document)


def test_a_one_line_file_is_printable_or_refused(fuzz: Fuzz) -> None:
    @fuzz(200, st.binary(max_size=60))
    def check(data: bytes) -> None:
        try:
            line = record_file.parse_line(data)
        except PlatformError:
            return
        assert line
        assert line.isprintable()
