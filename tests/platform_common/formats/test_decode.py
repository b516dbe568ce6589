"""From foreign bytes to typed values: what is refused, and how errors name the place."""

from __future__ import annotations

import subprocess
import sys

import pytest
from msgspec import Struct

from platform_common.formats.decode import DecodingError, check_member, from_json, from_toml, shaped


class _Item(Struct, frozen=True):
    size: int = 0
    share: float = 0.0

    def __post_init__(self) -> None:
        if self.size < 0:
            raise ValueError("size: must not be negative")
        if self.size > 100:
            raise ValueError("the item is too large: 100 is the most")


class _Box(Struct, frozen=True):
    name: str
    items: tuple[_Item, ...] = ()
    by_name: dict[str, _Item] = {}


_JSON = {
    "": "not valid JSON (line 1, column 1)",
    '{"name": "x"': "not valid JSON (line 1, column 13)",
    "[]": "expected object, got array",
    "{}": "object missing required field name",
    '{"name": 1}': "name: expected str, got int",
    '{"name": "x", "items": [{}, {"size": "1"}]}': "items[1].size: expected int, got str",
    '{"name": "x", "items": [{"size": -1}]}': "items[0].size: must not be negative",
    '{"name": "x", "items": [{"size": 101}]}': "items[0]: the item is too large: 100 is the most",
    '{"name": "x", "by_name": {"a": {"size": -1}}}': "by_name[...].size: must not be negative",
    '{"name": "x", "name": "y"}': "the member 'name' twice",
    '{"name": "x", "n": NaN}': "contains NaN",
    '{"name": "x", "items": [{"share": true}]}': "expected float",
    '{"name": "x", "items": [{"size": 1.5}]}': "expected int",
}


@pytest.mark.parametrize(("data", "message"), _JSON.items())
def test_an_error_in_json_names_the_place(data: str, message: str) -> None:
    with pytest.raises(DecodingError) as error:
        from_json(data.encode(), _Box)
    assert message in error.value.message


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(b"name = ", "not valid TOML: Invalid value (at end of document)", id="cut"),
        pytest.param(b"name = 1\nname = 2\n", "not valid TOML: Cannot overwrite", id="twice"),
        pytest.param(b"\xef\xbb\xbfname = 'x'", "starts with a byte-order mark", id="bom"),
        pytest.param(b"name = 'x'\n# \xff\n", "line 2 is not UTF-8", id="latin-1"),
        pytest.param(b"name = 'x'\0", "not valid TOML", id="nul"),
        pytest.param(b"a = " + b"[" * 50_000, "nested too deeply", id="deep"),
        pytest.param(b"a = " + b"9" * 5000, "number with too many digits", id="long-number"),
        pytest.param(b"name = 1979-05-27", "name: expected str, got date", id="a-date"),
        pytest.param(b"name = 'x'\n[[items]]\nsize = inf", "items[0].size: expected int", id="inf"),
    ],
)
def test_an_error_in_toml_names_the_place(data: bytes, message: str) -> None:
    with pytest.raises(DecodingError) as error:
        from_toml(data, _Box)
    assert message in error.value.message


def test_unknown_members_are_ignored() -> None:
    assert from_json(b'{"name": "x", "other": [1]}', _Box) == _Box("x")
    assert from_toml(b"name = 'x'\nother = 1979-05-27\n", _Box) == _Box("x")


def test_the_place_of_an_error_includes_where_the_part_begins() -> None:
    for tree, place in (({"size": "1"}, "a[3].size"), ({"size": -1}, "a[3].size"), (1, "a[3]")):
        with pytest.raises(DecodingError) as error:
            shaped(tree, _Item, at="a[3]")
        assert error.value.message.startswith(f"{place}: ")


def test_a_failed_check_names_the_member() -> None:
    def never(value: str) -> None:
        raise ValueError(f"must not be {value}")

    with pytest.raises(ValueError, match=r"^colour: must not be red$"):
        check_member("colour", never, "red")


def test_a_message_does_not_grow_with_the_value() -> None:
    from platform_common.records.catalogue import parse

    entry = b'{"id": "x", "kind": "%s"}' % (b"k" * 100_000)
    assert len(parse(b'{"providers": [%s]}' % entry).problems[0]) < 300


# Shapes that no other test has used, each used by several threads at once.
FIRST_USES = """
import sys, threading
from msgspec import defstruct
from platform_common.formats.decode import shaped
sys.setswitchinterval(1e-6)
for _ in range(150):
    parts = [defstruct(f"Part{n}", [(f"a{m}", str, "") for m in range(8)], frozen=True)
             for n in range(6)]
    whole = defstruct("Whole", [(f"part{n}", part, part()) for n, part in enumerate(parts)],
                      frozen=True)
    tree = {f"part{n}": {"a0": "x"} for n in range(6)}
    together = threading.Barrier(6)
    def use():
        together.wait()
        shaped(tree, whole)
    threads = [threading.Thread(target=use) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


def test_threads_that_use_a_shape_for_the_first_time_do_not_end_the_program() -> None:
    finished = subprocess.run(
        [sys.executable, "-c", FIRST_USES], capture_output=True, timeout=60, check=False
    )
    assert (finished.returncode, finished.stderr) == (0, b"")
