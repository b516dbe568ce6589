"""Replacing and testing a key through the dashboard."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import quote

import html5lib
import msgspec
import pytest
import requests
from flask import Flask
from flask.testing import FlaskClient

from pwa_app.app import create_app
from pwa_app.keys import rotation
from pwa_app.settings import PwaSettings
from tests.pwa_app.conftest import Dashboard
from tests.support import key_states
from tests.support.control_cli import FakeCtl
from tests.support.devices import Device
from tests.support.key_servers import Amazon, OpenAiProxy, amazon, openai_proxy
from tests.support.key_states import HOSTILE
from tests.support.network import free_port
from tests.support.process_watch import watched
from tests.support.raw_server import RawServer, response
from tests.support.releases import program
from tests.support.waiting import wait_until
from tests.support.web_servers import served
from tests.support.wizard_secrets import found

# Used by these tests only, because they search the whole machine for them.
CANARY = "sk-canary-rotation-0123456789"
SECRET_CANARY = "SeCrEtCaNaRy/+rotation0123456789"
SET = "model set --provider openai --key-from-stdin --yes"
TEST = "model test --provider openai --key-from-stdin --json"
TEST_STORED = "model test --provider openai --json"
LIST = key_states.LIST
SECRETS = "/etc/platform/secrets.env"
REQUIRED = "Provider and key are both required."


@pytest.fixture
def ready(ctl: FakeCtl) -> FakeCtl:
    """A stand-in that lists providers, and stores any key of OpenAI."""
    key_states.several(ctl)
    ctl.answer(SET, "Stored\n")
    return ctl


def rotate(client: FlaskClient, provider: str = "openai", key: str = CANARY, **more: str) -> str:
    """Post the form; return the message on the next page."""
    data = {"provider": provider, "api_key": key, **more}
    answer = client.post("/app/keys/rotate", data=data)
    assert (answer.status_code, answer.headers["Location"]) == (302, "/app/keys")
    return flash(client)


def flash(client: FlaskClient, path: str = "/app/keys") -> str:
    """The message on the next page without its first word; empty without a message."""
    page = client.get(path).text
    assert CANARY not in page
    tree = html5lib.parse(page, namespaceHTMLElements=False)
    box = next((d for d in tree.iter("div") if "flash" in d.get("class", "").split()), None)
    if box is None:
        return ""
    said = " ".join("".join(box.itertext()).split())
    return said.removeprefix("Done ").removeprefix("Not done ")


def changes(ctl: FakeCtl) -> list[str]:
    """The calls except those that list the providers."""
    return [words for words in ctl.words() if words != LIST]


def test_a_key_is_passed_to_the_control_cli_without_surrounding_blanks(
    client: FlaskClient, ready: FakeCtl
) -> None:
    assert rotate(client, key=f" \t{CANARY}\r\n") == "Rotated openai successfully."
    (call,) = [call for call in ready.calls() if call["words"] != LIST.split()]
    assert " ".join(call["words"]) == SET
    assert call["stdin"] == f"{CANARY}\n"
    assert flash(client) == ""


@pytest.mark.parametrize("mode", [{}, {"PWA_DEV_STUB": "1"}], ids=["real", "dev-stub"])
def test_both_fields_are_required(
    dashboard: Dashboard, ready: FakeCtl, mode: dict[str, str]
) -> None:
    client = dashboard(**mode)
    both = {"provider": "openai", "api_key": CANARY}
    for data in (
        *({}, {"provider": "openai"}, {"api_key": CANARY}, both | {"provider": ""}),
        *(both | {"api_key": ""}, both | {"api_key": " \t\r\n"}, both | {"provider": " "}),
    ):
        assert client.post("/app/keys/rotate", data=data).status_code == 302
        assert flash(client) == REQUIRED
    # A body that is not a form has neither.
    assert client.post("/app/keys/rotate", json=both).status_code == 302
    assert flash(client) == REQUIRED
    assert changes(ready) == []


def test_dev_stub_mode_says_what_it_would_do_and_starts_no_program(
    dashboard: Dashboard, ctl: FakeCtl
) -> None:
    client = dashboard(PWA_DEV_STUB="1")
    assert rotate(client) == "(dev-stub) would rotate openai …"
    assert rotate(client, test="1") == "(dev-stub) would rotate openai …"
    client.post("/app/keys/test", data={"provider": "openai"})
    assert flash(client, "/app/keys/openai").startswith("(dev-stub) would test")
    assert ctl.calls() == []


IDS = ["--help", "../x", "openai\n", "OpenAI", "a b", "é", "\0", "-", "o" * 10_000, "openai;id"]


def test_key_11_an_invalid_id_never_becomes_an_argument(
    client: FlaskClient, ready: FakeCtl
) -> None:
    for provider in IDS:
        for test in ("", "1"):
            said = rotate(client, provider, test=test)
            assert said == "Rotation failed: there is no provider with that id."
        answer = client.post("/app/keys/test", data={"provider": provider})
        assert answer.headers["Location"] == "/app/keys"
        assert flash(client) == "There is no provider with that id."
    assert changes(ready) == []


def test_key_11_an_unknown_provider_is_refused(client: FlaskClient, ctl: FakeCtl) -> None:
    said = "error: There is no provider of that id on this device\nhint: See which there are\n"
    ctl.answer("model set --provider nobody --key-from-stdin --yes", status=64, errors=said)
    assert rotate(client, "nobody") == (
        "Rotation failed: There is no provider of that id on this device"
    )


def test_an_invalid_key_is_refused_without_a_call(client: FlaskClient, ready: FakeCtl) -> None:
    for key, why in (
        *((CANARY + more, "no key has") for more in (" x", "\nAWS_REGION=x", "…", "\0")),
        *((f"'{CANARY}'", "no key has"), (CANARY * 200, "is longer than 4,096 characters")),
    ):
        said = rotate(client, key=key, test="1")
        assert said.startswith("Rotation failed: The key ")
        assert why in said
        assert "canary" not in said
    assert changes(ready) == []


def holds(data: bytes, *secrets: str) -> bool:
    """Whether `data` contains a secret in any usual form."""
    return any(found(secret, data) for secret in secrets)


def test_key_12_no_argument_contains_the_key(
    client: FlaskClient, ready: FakeCtl, tmp_path: Path
) -> None:
    ready.answer(SET, takes_s=0.5)
    ready.answer(TEST, {"ok": True, "http_status": 200}, takes_s=0.5)
    with watched(tmp_path / "processes"):
        assert rotate(client, test="1").startswith("Rotated openai successfully.")
    assert changes(ready) == [TEST, SET]
    seen = [[call["words"], call["environment"]] for call in ready.calls()]
    assert not holds(json.dumps(seen).encode(), CANARY)
    assert not holds((tmp_path / "processes").read_bytes(), CANARY)


def impatient(client: FlaskClient) -> FlaskClient:
    """A client of the same dashboard with half a second for each call."""
    settings: PwaSettings = client.application.extensions["pwa_app"].settings
    return create_app(msgspec.structs.replace(settings, call_limit_s=0.5)).test_client()


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        pytest.param({"reads": False, "status": 3}, "exit code 3", id="reads-nothing-and-dies"),
        pytest.param({"status": 1, "errors": "gone\n"}, "gone", id="dies"),
        pytest.param({"takes_s": 60}, "did not finish in 0.5 s", id="hangs"),
        pytest.param({"takes_s": 60, "reads": False}, "did not finish", id="hangs-without-reading"),
        pytest.param({"errors": "x" * (2 << 20)}, "printed more than", id="floods"),
        pytest.param(None, "could not be started: No such file", id="missing"),
    ],
)
def test_key_13_a_program_that_misbehaves_is_reported_without_hanging(
    client: FlaskClient, ctl: FakeCtl, answer: dict[str, Any] | None, why: str
) -> None:
    if answer is None:
        ctl.program.unlink()
    else:
        ctl.answer(SET, **answer)
    if answer and "takes_s" in answer:
        client = impatient(client)
    began = time.monotonic()
    said = rotate(client, key="sk-" + "x" * 4_000)
    assert time.monotonic() - began < 30
    assert said.startswith("Rotation failed: ")
    assert why in said


def real(device: Device, **environment: str) -> Flask:
    """A dashboard of that device with the real control CLI."""
    variables = {"PLATFORM_CTL": program("platformctl"), "PLATFORM_ROOT": str(device.root)}
    settings = PwaSettings.from_env(variables | environment)
    # More calls at once than people make, on a machine that is busy with other tests.
    return create_app(msgspec.structs.replace(settings, call_limit_s=120.0))


def test_key_14_twenty_simultaneous_rotations_of_two_providers_lose_no_key(device: Device) -> None:
    app = real(device)
    keys = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}

    def post(number: int) -> int:
        provider = list(keys)[number % 2]
        data = {"provider": provider, "api_key": f"sk-{provider}-{number:02}"}
        return app.test_client().post("/app/keys/rotate", data=data).status_code

    with ThreadPoolExecutor(20) as pool:
        assert set(pool.map(post, range(20))) == {302}
    assert flash(app.test_client()).endswith("successfully.")
    stored = dict(line.split("=") for line in device.path(SECRETS).read_text().splitlines())
    assert stored.keys() == set(keys.values())
    for provider, name in keys.items():
        assert stored[name].startswith(f"sk-{provider}-")


def test_key_15_the_programs_message_is_shown_as_short_text(
    client: FlaskClient, ctl: FakeCtl
) -> None:
    forms = (
        *(CANARY, quote(CANARY), base64.b64encode(CANARY.encode()).decode()),
        f"Authorization: Bearer {CANARY}",
    )
    for form in forms:
        ctl.answer(SET, status=1, errors=f"first\nerror: {form} {HOSTILE} \x1b[31m\u202e\n")
        client.post("/app/keys/rotate", data={"provider": "openai", "api_key": CANARY})
        page = client.get("/app/keys").data
        assert not holds(page, CANARY)
        assert b"<script>alert" not in page
        assert b"&lt;script&gt;alert(1)" in page
        assert b"\x1b" not in page
        assert "\u202e".encode() not in page
    ctl.answer(SET, status=1, errors=f"error: {'long ' * 1000}{CANARY}\n")
    assert len(rotate(client)) <= len("Rotation failed: ") + 200


def test_leak_01_even_a_short_key_is_masked(client: FlaskClient, ctl: FakeCtl) -> None:
    for key in ("x", "abcdefg", CANARY):
        ctl.answer(SET, status=1, errors=f"error: 0123 {key} 4567\n")
        assert rotate(client, key=key) == "Rotation failed: 0123 ••• 4567"


def test_leak_08_the_message_in_memory_contains_no_key(client: FlaskClient, ctl: FakeCtl) -> None:
    ctl.answer(SET, status=1, errors=f"error: {CANARY}\n")
    ctl.answer(TEST, {"error": CANARY})
    for more in ({}, {"test": "1"}):
        data = {"provider": "openai", "api_key": CANARY, **more}
        client.post("/app/keys/rotate", data=data)
        message = client.application.extensions["pwa_app"].flash.take()
        assert CANARY not in repr(message) + repr(message.sentence.values)


OUTCOMES = [
    pytest.param({"ok": True, "http_status": 200}, True, "tested first and works.", id="works"),
    pytest.param(
        {"ok": True, "http_status": 200, "warning": "not proved"},
        *(True, "The new key was not checked: not proved"),
        id="not-proved",
    ),
    pytest.param(
        {"http_status": 401, "error": "OpenAI rejected this key (HTTP 401)"},
        *(False, "Rotation failed: OpenAI rejected this key (HTTP 401). Nothing was stored."),
        id="rejected",
    ),
    pytest.param({"http_status": 404, "error": "no service"}, False, "Nothing was", id="404"),
    pytest.param({"http_status": 429, "error": "over"}, True, "was not checked: over", id="429"),
    pytest.param({"http_status": 503, "error": "ill"}, True, "was not checked: ill", id="503"),
    pytest.param(
        {"http_status": None, "error": "no way"}, True, "was not checked: no way", id="offline"
    ),
    pytest.param({}, True, "was not checked: exit code 1", id="empty"),
    pytest.param("", True, "was not checked: No such option", id="cannot-test"),
    pytest.param("[1]", True, "was not checked: No such option", id="nonsense"),
]


@pytest.mark.parametrize(("found", "stored", "said"), OUTCOMES)
def test_a_key_that_is_tested_first_is_stored_unless_it_is_rejected(
    client: FlaskClient, ready: FakeCtl, found: object, stored: bool, said: str
) -> None:
    status = 0 if isinstance(found, dict) and found.get("ok") else 1
    ready.answer(TEST, found, status=status, errors="error: No such option\n")
    message = rotate(client, test="1")
    assert said in message
    assert message.startswith("Rotated openai successfully.") == stored
    assert changes(ready) == ([TEST, SET] if stored else [TEST])
    assert ready.calls()[0]["stdin"] == f"{CANARY}\n"


def test_a_test_that_hangs_leaves_the_key_unchecked(
    client: FlaskClient, ready: FakeCtl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rotation, "TEST_LIMIT_S", 0.5)
    ready.answer(TEST, takes_s=60)
    assert "was not checked: " in rotate(client, test="1")
    assert changes(ready) == [SET]


def test_a_test_can_take_longer_than_other_calls(client: FlaskClient, ready: FakeCtl) -> None:
    ready.answer(TEST_STORED, {"ok": True, "http_status": 200}, takes_s=1.5)
    patient = impatient(client)
    patient.post("/app/keys/test", data={"provider": "openai"})
    assert flash(patient, "/app/keys/openai") == "openai accepts the stored key."


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({"ok": True, "http_status": 200}, "openai accepts the stored key."),
        ({"http_status": 403, "error": "no"}, "The stored key does not work: no"),
        ({"http_status": 500, "error": "ill"}, "The stored key could not be checked: ill"),
        ({"ok": True, "warning": "public"}, "The stored key could not be checked: public"),
        ("", "The stored key could not be checked: away"),
    ],
    ids=["works", "rejected", "provider-error", "public", "no-answer"],
)
def test_the_stored_key_is_tested_and_its_page_shows_the_result(
    client: FlaskClient, ready: FakeCtl, found: object, said: str
) -> None:
    ready.answer(TEST_STORED, found, status=1, errors="error: away\n")
    answer = client.post("/app/keys/test", data={"provider": "openai"})
    assert (answer.status_code, answer.headers["Location"]) == (302, "/app/keys/openai")
    assert flash(client, "/app/keys/openai") == said
    assert changes(ready) == [TEST_STORED]
    assert ready.calls()[0]["stdin"] == ""


SET_AMAZON = "model set --provider bedrock {}--key-from-stdin --yes"
AMAZON = {
    SET_AMAZON.format(""): f"{CANARY}\n",
    SET_AMAZON.format("--variable AWS_SECRET_ACCESS_KEY "): f"{SECRET_CANARY}\n",
    SET_AMAZON.format("--variable AWS_REGION "): "eu-west-1\n",
}


def test_all_values_that_providers_need_are_tested_and_stored(
    client: FlaskClient, ready: FakeCtl
) -> None:
    test = "model test --provider bedrock --key-from-stdin --json"
    ready.answer(test, {"ok": True, "http_status": 200})
    for words in AMAZON:
        ready.answer(words, "Stored\n")
    more = {"secret_access_key": SECRET_CANARY, "region": "eu-west-1", "test": "1"}
    assert rotate(client, "bedrock", **more).startswith("Rotated bedrock successfully.")
    sent = {" ".join(call["words"]): call["stdin"] for call in ready.calls()}
    assert sent.pop(test) == (
        f"{CANARY}\nAWS_SECRET_ACCESS_KEY={SECRET_CANARY}\nAWS_REGION=eu-west-1\n"
    )
    sent.pop(LIST)
    assert sent == AMAZON


def test_values_stored_before_a_failure_are_reported(client: FlaskClient, ready: FakeCtl) -> None:
    ready.answer(SET_AMAZON.format(""), "Stored\n")
    said = f"error: not {SECRET_CANARY}\n"
    ready.answer(SET_AMAZON.format("--variable AWS_SECRET_ACCESS_KEY "), status=1, errors=said)
    assert rotate(client, "bedrock", secret_access_key=SECRET_CANARY) == (
        "Rotation failed: not ••• (already stored: the key)"
    )


@pytest.mark.parametrize(
    ("provider", "more", "why"),
    [
        ("openai", {"region": "eu-west-1"}, "only needs its key"),
        ("nobody", {"region": "eu-west-1"}, "only needs its key"),
        ("bedrock", {"secret_access_key": "a b"}, "AWS_SECRET_ACCESS_KEY contains a character"),
        ("bedrock", {"region": "eu\nAWS_REGION=x"}, "AWS_REGION contains a character"),
    ],
    ids=["not-its-own", "unknown", "blank", "second-line"],
)
def test_an_invalid_additional_value_stops_the_rotation(
    client: FlaskClient, ready: FakeCtl, provider: str, more: dict[str, str], why: str
) -> None:
    assert why in rotate(client, provider, **more)
    assert changes(ready) == []


@pytest.mark.parametrize("name", ["--help", "PATH", "a b", ""])
def test_key_11_an_invalid_variable_name_never_becomes_an_argument(
    client: FlaskClient, ready: FakeCtl, name: str
) -> None:
    ready.answer(LIST, [key_states.AMAZON | {"variables": ["AWS_ACCESS_KEY_ID", name]}])
    assert "the name of a variable must" in rotate(client, "bedrock", secret_access_key="s")
    assert changes(ready) == []


def test_simultaneous_rotations_in_two_tabs_are_both_stored_with_one_message(
    client: FlaskClient, ready: FakeCtl
) -> None:
    ready.answer(SET, held=True)
    keys = ["sk-one-0123456789", "sk-two-0123456789"]

    def post(key: str) -> int:
        tab = client.application.test_client()
        data = {"provider": "openai", "api_key": key}
        return tab.post("/app/keys/rotate", data=data).status_code

    with ThreadPoolExecutor(2) as pool:
        posted = [pool.submit(post, key) for key in keys]
        wait_until(lambda: ready.begun() == [SET, SET])
        ready.release()
        assert [answer.result() for answer in posted] == [302, 302]
    assert sorted(call["stdin"] for call in ready.calls()) == [f"{key}\n" for key in keys]
    assert [flash(client), flash(client)] == ["Rotated openai successfully.", ""]


def test_the_page_after_a_rotation_shows_the_new_key(client: FlaskClient, ready: FakeCtl) -> None:
    """A list that was requested before the change is not reused for requests after it."""
    ready.answer(LIST, [key_states.OPENAI | {"masked_key_prefix": "old…"}], held=True)
    with ThreadPoolExecutor(1) as pool:
        early = pool.submit(client.application.test_client().get, "/app/keys")
        wait_until(ready.begun)
        ready.answer(LIST, [key_states.OPENAI | {"masked_key_prefix": "new…"}])
        client.post("/app/keys/rotate", data={"provider": "openai", "api_key": CANARY})
        assert "new…" in client.get("/app/keys").text
        ready.release()
        assert "old…" in early.result().text


def install_catalogue(device: Device, kind: str, endpoint: str) -> None:
    """Install a catalogue with `mine` as the only provider."""
    entry = {
        "id": "mine",
        "display_name": "Mine",
        "kind": kind,
        "endpoint_default": endpoint,
        "key_env_var": "MINE_API_KEY",
        "key_format": "",
    }
    device.put("/etc/platform/providers.json", json.dumps({"providers": [entry]}))


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenAiProxy]:
    with openai_proxy(tmp_path_factory.mktemp("proxy")) as running:
        yield running


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Amazon]:
    with amazon(tmp_path_factory.mktemp("cloud")) as running:
        yield running


@pytest.mark.long
def test_with_a_real_program_and_server_a_wrong_key_does_not_replace_the_right_one(
    device: Device, proxy: OpenAiProxy
) -> None:
    install_catalogue(device, "chat-compatible", proxy.endpoint)
    client = real(device).test_client()
    assert rotate(client, "mine", proxy.key, test="1") == (
        "Rotated mine successfully. The new key was tested first and works."
    )
    assert device.path(SECRETS).read_text() == f"MINE_API_KEY={proxy.key}\n"
    assert rotate(client, "mine", "sk-wrong-0123456789", test="1") == (
        "Rotation failed: Mine rejected this key (HTTP 403). Nothing was stored."
    )
    assert device.path(SECRETS).read_text() == f"MINE_API_KEY={proxy.key}\n"
    assert "Active" in client.get("/app/keys").text
    client.post("/app/keys/test", data={"provider": "mine"})
    assert flash(client, "/app/keys/mine") == "mine accepts the stored key."
    assert rotate(client, "mine", "sk-wrong-0123456789") == "Rotated mine successfully."
    client.post("/app/keys/test", data={"provider": "mine"})
    assert flash(client, "/app/keys/mine").startswith("The stored key does not work: Mine rejected")


@pytest.mark.long
def test_with_a_real_program_and_cloud_all_three_values_are_stored(
    device: Device, cloud: Amazon
) -> None:
    install_catalogue(device, "signed-cloud", cloud.endpoint)
    client = real(device).test_client()
    more = {"secret_access_key": cloud.secret_key, "region": "us-east-1", "test": "1"}
    # moto checks the signature first, and has no list of models.
    signed = "The new key was not checked: Mine has a problem (HTTP 500)"
    assert rotate(client, "mine", cloud.access_key, **more).endswith(signed)
    assert device.path(SECRETS).read_text() == (
        f"MINE_API_KEY={cloud.access_key}\n"
        f"AWS_SECRET_ACCESS_KEY={cloud.secret_key}\nAWS_REGION=us-east-1\n"
    )
    wrong = rotate(client, "mine", cloud.access_key, secret_access_key="wrong", test="1")
    assert wrong.startswith("Rotation failed: Mine rejected this key")
    # Values that are left empty are replaced by the stored ones, in the test too.
    assert rotate(client, "mine", cloud.access_key, test="1").endswith(signed)


def test_the_key_of_an_unreachable_provider_is_stored_unchecked(device: Device) -> None:
    install_catalogue(device, "chat-compatible", f"http://127.0.0.1:{free_port()}/v1")
    client = real(device).test_client()
    assert rotate(client, "mine", test="1").startswith(
        "Rotated mine successfully. The new key was not checked: "
    )
    assert device.path(SECRETS).read_text() == f"MINE_API_KEY={CANARY}\n"


# The status with which a provider answers the requests of a turn.
ANSWERS = ("200 OK", "401 No", "500 Ill")
KINDS = ("chat-compatible", "query-key", "signed-cloud")


@pytest.mark.parametrize(
    "turns",
    [
        pytest.param([*zip(KINDS, ANSWERS, strict=True)], id="some"),
        pytest.param([*product(KINDS, ANSWERS)], id="all", marks=pytest.mark.long),
    ],
)
def test_leak_01_a_rotation_leaves_the_key_in_its_file_and_nowhere_else(
    device: Device, tmp_path: Path, turns: list[tuple[str, str]]
) -> None:
    """The installed program, over HTTP, with a provider that echoes everything it receives."""

    def echo(request: Any, connection: Any) -> None:
        said = f"{request.headers} {CANARY} {SECRET_CANARY}"
        connection.sendall(response(said.encode(), status[0], {"X-Said": said}))

    status = ["200 OK"]
    environment = {"PLATFORM_CTL": program("platformctl"), "PLATFORM_ROOT": str(device.root)}
    pages: list[bytes] = []
    with (
        RawServer(echo) as server,
        served("pwa-app", environment, tmp_path / "log") as app,
        watched(tmp_path / "processes"),
        requests.Session() as session,
    ):
        session.trust_env = False
        for kind, status[0] in turns:
            install_catalogue(device, kind, server.url)
            for test in ("", "1"):
                data = {"provider": "mine", "api_key": CANARY, "test": test}
                if kind == "signed-cloud":
                    data |= {"secret_access_key": SECRET_CANARY, "region": "eu-west-1"}
                pages.append(session.post(f"{app.url}/app/keys/rotate", data).content)
            pages.append(session.post(f"{app.url}/app/keys/test", {"provider": "mine"}).content)
            assert b"flash" in pages[-1]
    assert not any(holds(page, CANARY, SECRET_CANARY) for page in pages)
    for seen in ("log", "processes"):
        assert not holds((tmp_path / seen).read_bytes(), CANARY, SECRET_CANARY)
    holders = [
        path.name
        for path in device.root.rglob("*")
        if path.is_file() and holds(path.read_bytes(), CANARY, SECRET_CANARY)
    ]
    assert holders == ["secrets.env"]
