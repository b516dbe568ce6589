"""The JSON Schemas and the code accept and refuse the same documents."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from platform_common.formats.decode import DecodingError
from platform_common.records import catalogue, limits, profiles
from platform_common.resources import data_path, schema
from platformctl.cost import price_sheet
from tests.support.record_cases import CASES, GOOD, Case, toml

_RECORDS = tuple(GOOD)


def _providers(data: bytes) -> None:
    problems = catalogue.parse(data).problems
    if problems:
        raise DecodingError(problems[0])


_PARSERS: dict[str, Callable[[bytes], object]] = {
    "providers": _providers,
    "cost-defaults": price_sheet.parse,
    "limits": limits.parse,
    "profile": lambda data: profiles.parse(data, "x"),
}
_VALIDATORS = {record: Draft202012Validator(schema(record)) for record in _RECORDS}


def _encoded(record: str, document: Any) -> bytes:
    return toml(document).encode() if record == "profile" else json.dumps(document).encode()


def _accepted(record: str, document: Any) -> bool:
    try:
        _PARSERS[record](_encoded(record, document))
    except DecodingError:
        return False
    return True


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_code_and_schema_agree_with_the_table(case: Case) -> None:
    document = case.document()
    assert _accepted(case.record, document) == case.good
    assert _VALIDATORS[case.record].is_valid(document) == (case.good or case.schema_cannot)


@pytest.mark.parametrize("record", _RECORDS)
def test_a_schema_is_valid_with_valid_examples_and_described_members(record: str) -> None:
    Draft202012Validator.check_schema(schema(record))
    assert schema(record)["$id"] == f"urn:platform:{record}"
    for example in schema(record)["examples"]:
        _VALIDATORS[record].validate(example)
    undescribed = [
        name
        for name, member in _members(schema(record))
        if not member.keys() & {"description", "properties", "$ref"}
    ]
    assert undescribed in ([], ["providers"], ["limitations"])


def _members(node: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(node, dict):
        yield from node.get("properties", {}).items()
        for child in node.values():
            yield from _members(child)


_SHIPPED = {
    data_path("providers.json"): "providers",
    data_path("cost-defaults.json"): "cost-defaults",
    **dict.fromkeys(sorted(data_path("limits").iterdir()), "limits"),
    **dict.fromkeys(sorted(data_path("profiles").iterdir()), "profile"),
}


@pytest.mark.parametrize("file", _SHIPPED, ids=lambda file: file.stem)
def test_shipped_files_are_valid(file: Path) -> None:
    record, data = _SHIPPED[file], file.read_bytes()
    document = tomllib.loads(data.decode()) if record == "profile" else json.loads(data)
    _VALIDATORS[record].validate(document)
    if record == "profile":
        profiles.parse(data, file.stem)
    else:
        _PARSERS[record](data)
