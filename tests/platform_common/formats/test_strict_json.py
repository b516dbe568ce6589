"""The strict reader of JSON."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from platform_common.formats.strict_json import JsonError, load_strict
from tests.support.manifests import HOSTILE_JSON
from tests.support.properties import examples

_texts = st.text(st.characters(exclude_categories=["Cs"]))
_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | _texts,
    lambda inner: st.lists(inner) | st.dictionaries(_texts, inner),
    max_leaves=20,
)


@examples(60)
@given(_values, st.booleans())
def test_written_json_is_read_back_unchanged(value: Any, ascii_only: bool) -> None:
    assert load_strict(json.dumps(value, ensure_ascii=ascii_only).encode()) == value


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b" [1, -0, 1.5, 1e3, 1E-3] \r\n\t", [1, 0, 1.5, 1000.0, 0.001]),
        (rb'"\ud83d\ude00"', "😀"),
        (rb'"\\ud800"', r"\ud800"),
        (rb'"\u0000"', "\0"),
        (b'"\xef\xbb\xbf"', "\ufeff"),
        (b'{"a": {"a": 1}}', {"a": {"a": 1}}),
        (b"1" * 4300, int("1" * 4300)),
        (b"[" * 100 + b"]" * 100, None),
    ],
    ids=lambda value: ascii(value)[:20],
)
def test_edge_cases_of_json_are_read(data: bytes, value: Any) -> None:
    found = load_strict(data)
    assert value is None or found == value


_NOT_JSON = {name: case for name, case in HOSTILE_JSON.items() if "must be" not in case[1]}


@pytest.mark.parametrize(("data", "fragment"), _NOT_JSON.values(), ids=_NOT_JSON)
def test_rel_08_hostile_json_is_refused(data: bytes, fragment: str) -> None:
    with pytest.raises(JsonError) as caught:
        load_strict(data)
    assert fragment in caught.value.message
    assert caught.value.message.isprintable()


def test_arrays_and_objects_share_one_nesting_limit() -> None:
    for begin, end, times in ((b"[", b"]", 101), (b'{"a":', b"}", 101), (b'[{"a":', b"}]", 51)):
        with pytest.raises(JsonError, match="nested too deeply"):
            load_strict(begin * times + b"1" + end * times)


def test_a_repeated_member_after_many_others_is_found_quickly() -> None:
    members = ",".join(f'"m{index}":0' for index in range(100_000))
    began = time.process_time()
    with pytest.raises(JsonError, match="the member 'last' twice"):
        load_strict(f'{{{members},"last":1,"last":2}}'.encode())
    assert time.process_time() - began < 10
