"""The output of `platformctl … --json` matches its schema and what the apps read."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from dev.distributions import ROOT
from platform_common import control_answers
from platform_common.control_answers import VoiceCheck, VoiceStatus, to_json
from platform_common.formats.decode import DecodingError, from_json
from platform_common.formats.strict_json import JsonError
from platform_common.records.limits import Limits
from platform_common.records.profiles import Profile
from platformctl.answers import Ledger, ModelSet, SetupPlan, SetupStatus
from platformctl.cli import main
from platformctl.device import ProfileVerdict
from platformctl.services.install import ServicesInstall, ServicesRemove, ServiceState
from pwa_app.overview import read_models
from tests.support.devices import KEYS, Device, set_up
from tests.support.properties import examples
from tests.support.setups import STARTED, put_answers, put_journal

SCHEMAS = ROOT / "schemas/control"


@dataclass(frozen=True)
class Call:
    """One call: its arguments, the shape of its answer, what it needs and how it ends."""

    arguments: tuple[str, ...]
    shape: Any
    stdin: str = ""
    status: int = 0
    # Whether the answer has members that no shape names.
    open: bool = False


@dataclass(frozen=True)
class Printed:
    """The output of a call for programs and for people."""

    name: str
    as_json: subprocess.CompletedProcess[str]
    for_people: subprocess.CompletedProcess[str]


CALLS: Mapping[str, Call] = {
    "status": Call(("status",), control_answers.Status),
    "version": Call(("version",), control_answers.Version),
    "limits": Call(("limits",), Limits, open=True),
    "cost": Call(("cost",), control_answers.Cost),
    "cost-ledger": Call(("cost", "ledger"), Ledger),
    # Everyone may read its keys.
    "doctor": Call(("doctor",), control_answers.Verdict, status=1),
    "profile-list": Call(("profile", "list"), tuple[control_answers.InstalledProfile, ...]),
    "profile-show": Call(("profile", "show", "khoj"), Profile),
    "profile-validate": Call(("profile", "validate"), tuple[ProfileVerdict, ...]),
    "voice-status": Call(("voice", "status"), VoiceStatus),
    # No machine that runs the tests has a microphone.
    "voice-check": Call(("voice", "check"), VoiceCheck, status=1),
    "setup-plan": Call(("setup", "plan"), SetupPlan),
    "setup-status": Call(("setup", "status"), SetupStatus),
    "services-install": Call(("services", "install", "--files-only"), ServicesInstall),
    "services-remove": Call(("services", "remove"), ServicesRemove),
    "services-list": Call(("services", "list"), tuple[ServiceState, ...]),
    "model-list": Call(("model", "list"), tuple[control_answers.Model, ...]),
    # The key is refused before any provider is asked.
    "model-test": Call(
        ("model", "test", "--provider", "anthropic"), control_answers.ModelTest, status=1
    ),
    "model-set": Call(
        ("model", "set", "--provider", "openai", "--key-from-stdin", "--yes"),
        ModelSet,
        stdin="sk-new-key-0123456789\n",
    ),
}
NAMES = list(CALLS)
# The calls that the apps read.
READERS = {
    name: call.shape
    for name, call in CALLS.items()
    if not name.startswith(("profile-s", "profile-v"))
}


@pytest.fixture(scope="module", params=CALLS)
def printed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Printed:
    """The output of each call in turn, printed once for programs and once for people."""
    call = CALLS[request.param]
    devices = [being_applied_again(tmp_path_factory.mktemp(request.param)) for _ in range(2)]
    options = (("--json",), ())
    return Printed(
        request.param,
        *(
            device.ctl(*call.arguments, *more, stdin=call.stdin)
            for device, more in zip(devices, options, strict=True)
        ),
    )


def being_applied_again(root: Path) -> Device:
    """A configured device whose answers are being applied again."""
    device = Device(root)
    set_up(device)
    # On any machine that runs the tests, some check of `doctor` fails.
    device.path("/etc/platform/secrets.env").chmod(0o644)
    put_answers(device)
    put_journal(device, {"action": 0, "at": STARTED, "state": "failed", "why": "no room"})
    return device


def schema(name: str) -> dict[str, Any]:
    return cast("dict[str, Any]", json.loads((SCHEMAS / f"{name}.schema.json").read_text("utf-8")))


def objects(tree: Any) -> Iterator[dict[str, Any]]:
    """Every schema of an object inside `tree`."""
    if isinstance(tree, dict):
        if "properties" in tree:
            yield tree
        for branch in tree.values():
            yield from objects(branch)
    elif isinstance(tree, list):
        for branch in tree:
            yield from objects(branch)


def test_the_output_matches_the_schema_and_a_reader_accepts_it(printed: Printed) -> None:
    call, done = CALLS[printed.name], printed.as_json
    assert done.returncode == call.status, done.stderr
    said = json.loads(done.stdout)
    Draft202012Validator(schema(printed.name)).validate(said)
    read = json.loads(json.dumps(to_json(from_json(done.stdout.encode(), call.shape))))
    # A record may omit members that have a default, and have members that we do not know.
    assert ({**said, **read} == {**read, **said}) if call.open else read == said


def test_no_answer_shows_a_key(printed: Printed) -> None:
    keys = {*KEYS.values(), CALLS[printed.name].stdin.strip()} - {""}
    for done in (printed.as_json, printed.for_people):
        assert [key for key in keys if key in done.stdout + done.stderr] == []


def test_text_for_people_is_plain_in_a_pipe(printed: Printed) -> None:
    done = printed.for_people
    assert done.returncode == CALLS[printed.name].status
    assert (done.stdout + done.stderr).strip()
    assert "\x1b" not in done.stdout + done.stderr
    assert [line for line in done.stdout.splitlines() if line != line.rstrip()] == []


@pytest.mark.parametrize("name", NAMES)
def test_wrong_usage_is_64_and_prints_no_answer(name: str) -> None:
    done = CliRunner().invoke(main, [*CALLS[name].arguments, "--nonsense", "--json"])
    assert (done.exit_code, done.stdout) == (64, "")
    assert "No such option" in done.stderr


# Records, and an invalid content for each.
RECORDS = (
    *("active-profile", "active-provider", "active-model", "version", "update-url"),
    *("secrets.env", "cost.toml", "cost-defaults.json", "limits.json", "providers.json"),
    "voice.toml",
)
BROKEN = b"\xff\x00[{"
# The records without which a call has no answer. The other calls may answer with less, and warn.
NEEDS = {
    "limits": {"limits.json"},
    "cost": {"active-profile", "cost.toml", "cost-defaults.json"},
    "cost-ledger": {"active-profile", "cost-defaults.json"},
    "model-list": {"providers.json"},
    "model-test": {"providers.json"},
    "model-set": {"providers.json", "secrets.env"},
    "voice-status": {"voice.toml", "limits.json"},
    "voice-check": {"voice.toml"},
}
# It still lists the profiles, and ends with 1.
USES = NEEDS | {"profile-list": {"active-profile"}}


@pytest.mark.parametrize("name", NAMES)
def test_a_call_works_without_the_records_that_it_does_not_need(name: str, tmp_path: Path) -> None:
    device = being_applied_again(tmp_path)
    for record in RECORDS:
        if record not in USES.get(name, set()):
            device.put(f"/etc/platform/{record}", BROKEN)
    call = CALLS[name]
    done = device.ctl(*call.arguments, "--json", stdin=call.stdin)
    assert done.returncode == call.status, done.stderr
    Draft202012Validator(schema(name)).validate(json.loads(done.stdout))


@pytest.mark.parametrize(
    ("name", "record"), [(name, record) for name in NEEDS for record in sorted(NEEDS[name])]
)
def test_a_call_names_the_missing_record_that_it_needs_and_prints_no_answer(
    name: str, record: str, tmp_path: Path
) -> None:
    device = being_applied_again(tmp_path)
    device.put(f"/etc/platform/{record}", BROKEN)
    call = CALLS[name]
    done = device.ctl(*call.arguments, "--json", stdin=call.stdin)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"error: {device.root}/etc/platform/{record}: ")


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_names_every_member_of_its_shape_and_a_reader_has_a_default(name: str) -> None:
    document, shape = schema(name), CALLS[name].shape
    Draft202012Validator.check_schema(document)
    for node in () if CALLS[name].open else objects(document):
        assert node["additionalProperties"] is False
        assert node["required"] == list(node["properties"])
    (_,), shapes = msgspec.json.schema_components([shape])
    assert {frozenset(node["properties"]) for node in objects(document)} == {
        frozenset(node["properties"]) for node in shapes.values() if "properties" in node
    }
    if name in READERS:
        empty = b"[{}]" if getattr(shape, "__origin__", None) is tuple else b"{}"
        assert from_json(empty, shape)


def test_every_schema_belongs_to_a_call() -> None:
    files = {path.name.removesuffix(".schema.json") for path in SCHEMAS.glob("*.json")}
    assert files == set(NAMES)


def test_models_are_also_read_from_an_object() -> None:
    listed = [{"id": "openai"}]
    assert read_models({"providers": listed}) == read_models(listed)


# What a program other than ours might print.

_LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from([10**308, -0.0, "x" * 10_000, [[[[]]]], {"a": {"b": {}}}]),
)


@st.composite
def _changed(draw: st.DrawFn, tree: Any) -> Any:
    """`tree` with some branches replaced, left out or added."""
    if draw(st.integers(0, 9)) == 0:
        return draw(_LEAVES)
    if isinstance(tree, dict):
        kept = {
            name: draw(_changed(branch)) for name, branch in tree.items() if draw(st.booleans())
        }
        return kept | draw(st.dictionaries(st.text(max_size=5), _LEAVES, max_size=1))
    if isinstance(tree, list):
        return [draw(_changed(branch)) for branch in tree[:3]]
    return tree


def whole(shape: Any) -> Any:
    """An answer with every member of the shape."""
    empty = getattr(shape, "__origin__", None) is tuple
    return [to_json(shape.__args__[0]())] if empty else to_json(shape())


def is_a_view_or_a_decoding_error(said: bytes, shape: Any) -> None:
    try:
        view = from_json(said, shape)
    except DecodingError:
        return
    json.dumps(to_json(view))


@examples(150)
@given(data=st.data())
def test_cli_14_any_output_is_a_view_or_a_decoding_error(data: st.DataObject) -> None:
    shape = READERS[data.draw(st.sampled_from(sorted(READERS)))]
    is_a_view_or_a_decoding_error(json.dumps(data.draw(_changed(whole(shape)))).encode(), shape)


@pytest.mark.long
@pytest.mark.parametrize("shape", READERS.values(), ids=READERS)
@examples(100)
@given(data=st.data())
def test_cli_14_each_reader_returns_a_view_or_a_decoding_error(
    shape: Any, data: st.DataObject
) -> None:
    is_a_view_or_a_decoding_error(json.dumps(data.draw(_changed(whole(shape)))).encode(), shape)


@pytest.mark.parametrize("name", READERS)
def test_cli_04_an_invalid_answer_is_a_decoding_error(name: str) -> None:
    for said in (
        *(b"", b"null", b"1", b'"text"', b"[1]", b"[[]]", b"{", b"not JSON", b"NaN", b'{"a": NaN}'),
        *(b'{"a": 1, "a": 2}', b"\xff", b"\xef\xbb\xbf{}", b"{}{}", b'{"a": "\\ud800"}'),
        *(b"[" * 100_000, b'{"a":' * 100_000, b"1" * 5_000, b'{"a": 1e999}', b"\0", b"<html>"),
    ):
        with pytest.raises((DecodingError, JsonError)):
            from_json(said, READERS[name])
