"""The key test of the provider step: its outcomes in words, held keys, and that no key leaks."""

from __future__ import annotations

import base64
import logging
import socket
from collections.abc import Callable, Mapping
from itertools import repeat
from pathlib import Path
from urllib.parse import quote

import pytest
from flask.testing import FlaskClient

from platform_common.key_check import BusyError
from platform_common.key_verdict import Outcome
from platform_common.records.catalogue import Provider
from platform_common.secret import Secret
from tests.support.catalogues import entry, form, install, of_each_kind
from tests.support.devices import Device
from tests.support.key_tests import CANARY, KINDS, SECRET_CANARY
from tests.support.raw_server import RawServer, Request, response, serving
from tests.wizard_app.conftest import MakeWizard
from tests.wizard_app.test_provider_step import PAGE, answers, held
from wizard_app.key_hints import looks_like
from wizard_app.steps import STEPS
from wizard_app.steps.provider import ProviderStep

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
TRY_AGAIN = "Try again, or tick “Continue without testing”."


def sending(data: bytes, *, times: int = 1) -> RawServer:
    """A server that answers everything with the same bytes."""

    def answer(_: Request, connection: socket.socket) -> None:
        for piece in repeat(data, times):
            connection.sendall(piece)

    return RawServer(answer)


def said(status: str, **headers: str) -> bytes:
    """An answer that holds every secret in every place."""
    everything = f"{CANARY} {SECRET_CANARY}"
    more = {"X-Key": everything, "Location": f"http://{CANARY}/?key={CANARY}", **headers}
    return response(everything.encode(), f"{status} {everything}", more)


FAILURES: Mapping[str, Callable[[], RawServer]] = {
    **{
        status: lambda status=status: sending(said(status))  # type: ignore[misc]  # its default binds it
        for status in ("301", "400", "401", "403", "404", "429", "500", "503")
    },
    "compressed": lambda: sending(said("200", **{"Content-Encoding": CANARY})),
    "no-http": lambda: sending(CANARY.encode() + b"\r\n\r\n"),
    "odd-status": lambda: sending(f"HTTP/1.1 {CANARY}\r\n\r\n{{}}".encode()),
    "cut": lambda: sending(HEAD + b"Content-Length: 999\r\n\r\n" + CANARY.encode()),
    "hung-up": lambda: sending(b""),
    "endless": lambda: sending(HEAD + b"\r\n" + CANARY.encode() * 4096, times=64),
}
SHAPES = {
    shape
    for secret in (CANARY, SECRET_CANARY)
    for shape in (
        *(secret, secret.lower(), quote(secret, safe=""), quote(secret)),
        base64.b64encode(secret.encode()).decode(),
    )
}


def leaks(text: str) -> set[str]:
    """The shapes of a secret that are in a text."""
    return {shape for shape in SHAPES if shape in text}


@pytest.mark.parametrize("name", FAILURES)
def test_key_01_a_test_that_fails_leaks_no_key(
    wizard: MakeWizard,
    device: Device,
    out: Path,
    name: str,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    with FAILURES[name]() as server:
        install(device, of_each_kind(server.url))
        here = wizard()
        for kind in KINDS:
            failed = here.post(PAGE, data=form(kind))
            assert failed.status_code == 200
            assert '<div class="error">' in failed.text
            assert 'id="api-key-error"' in failed.text
            assert TRY_AGAIN in failed.text
            assert leaks(failed.text) == set()
        assert len(server.requests) == len(KINDS)
    files = [file for file in out.rglob("*") if file.is_file()]
    assert not any(leaks(file.read_text("utf-8", "replace")) for file in files)
    assert (
        leaks("".join([caplog.text, *capfd.readouterr(), here.get("/wizard/review").text])) == set()
    )
    assert held(here) == {}


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_key_01_a_server_that_is_not_there_is_told_without_the_key(
    wizard: MakeWizard, device: Device, state_file: Path, scheme: str
) -> None:
    install(device, of_each_kind(f"{scheme}://127.0.0.1:9"))
    client = wizard()
    for kind in KINDS:
        failed = client.post(PAGE, data=form(kind))
        assert "refused the connection" in failed.text, kind
        assert leaks(failed.text) == set()
    assert not state_file.exists()


@pytest.mark.parametrize("kind", [*KINDS, "own"])
def test_a_key_that_is_held_is_on_no_page_and_in_no_file(
    wizard: MakeWizard, device: Device, out: Path, kind: str
) -> None:
    install(device, of_each_kind("http://127.0.0.1:9"))
    here = wizard()
    more = {"endpoint": "http://127.0.0.1:9"} if kind == "own" else {}
    assert here.post(PAGE, data=form(kind, skip_validation="1", **more)).status_code == 302
    pages = [here.get(address).text for address in (PAGE, "/wizard/review", "/wizard/channels")]
    files = [file.read_text() for file in out.rglob("*") if file.is_file()]
    assert leaks("".join(pages + files)) == set()
    assert CANARY in held(here).values()


OUTCOMES: Mapping[bytes, tuple[str, str]] = {
    response(b"", "401 No"): ("rejected this key (HTTP 401)", "Check that it is whole"),
    response(b"", "404 No"): ("answered, but not as a", "Check the base URL"),
    response(b"", "429 No"): ("accepted the key, but it is over its limit", "raise the limit"),
    response(b"", "503 No"): ("has a problem (HTTP 503)", "Try again later."),
    response(b"", "301 No", {"Location": "https://x.example/"}): (
        "leads to https://x.example, and no key is sent there",
        "put it in as the address",
    ),
    b"SSH-2.0-OpenSSH\r\n": ("answers with something that is not HTTP", "Check the address"),
    HEAD + b"\r\n" + bytes(2 << 20): ("sends more than a list of models can be", TRY_AGAIN),
}


@pytest.mark.parametrize(
    ("sent", "message", "hint"),
    [(sent, *told) for sent, told in OUTCOMES.items()],
    ids=["rejected", "not-found", "over-limit", "broken", "redirect", "no-http", "too-much"],
)
def test_every_outcome_has_its_sentence_and_its_next_step(
    wizard: MakeWizard, device: Device, state_file: Path, sent: bytes, message: str, hint: str
) -> None:
    with sending(sent) as server:
        host = server.url.removeprefix("http://")
        install(device, of_each_kind(server.url))
        failed = wizard().post(PAGE, data=form("chat-compatible"))
    assert failed.status_code == 200
    assert failed.text.count(message) == 2  # In the summary, and at the field.
    assert hint in failed.text
    assert "Technical details" in failed.text
    assert f"<code>{host}</code>" in failed.text
    assert not state_file.exists()


def test_a_test_that_is_not_passed_is_told_in_the_language_of_the_page(
    wizard: MakeWizard, device: Device
) -> None:
    german = {"Accept-Language": "de"}
    with sending(said("401")) as server:
        install(device, of_each_kind(server.url))
        page = wizard().post(PAGE, data=form("chat-compatible"), headers=german).text
    assert "hat diesen Schlüssel abgelehnt (HTTP 401)" in page
    assert "Prüfen, ob er vollständig, von diesem Anbieter und noch gültig ist" in page
    assert "rejected this key" not in page


def test_of_an_own_server_the_address_is_blamed_unless_it_speaks_of_the_key(
    wizard: MakeWizard, device: Device
) -> None:
    install(device, of_each_kind(""))
    blamed = {"401": "api-key", "429": "api-key", "404": "endpoint", "500": "endpoint"}
    for status, field in blamed.items():
        with sending(response(b"", f"{status} No")) as server:
            failed = wizard().post(PAGE, data=form("own", endpoint=server.url))
        assert f'<a href="#{field}">' in failed.text, status


def test_key_08_an_answer_that_is_no_list_of_models_passes_with_a_warning(
    wizard: MakeWizard, device: Device
) -> None:
    for body in (b"<h1>It works!</h1>", b'{"error": "no"}', b"", b"7"):
        with serving({"/models": body}) as server:
            install(device, of_each_kind(server.url))
            here = wizard()
            assert here.post(PAGE, data=form("chat-compatible")).status_code == 302
        following = here.get(PAGE).text
        assert "accepted the request, but not with a list of models" in following
        assert 'class="flash warn"' in following


def test_key_04_a_redirect_is_not_followed(wizard: MakeWizard, device: Device) -> None:
    with serving({}) as other:
        moved = response(b"", "307 Away", {"Location": f"{other.url}/models?key=x"})
        with sending(moved) as server:
            install(device, of_each_kind(server.url))
            here = wizard()
            for kind in KINDS:
                assert f"leads to {other.url}" in here.post(PAGE, data=form(kind)).text
        assert other.requests == []


# Addresses that are legal as text, and that nothing is sent to.
REFUSED = [
    *("169.254.169.254", "169.254.0.1:8000", "2852039166", "0xa9fea9fe", "0251.0376.0251.0376"),
    *("169.254.43518", "[fe80::1]", "[::ffff:169.254.169.254]", "[::169.254.169.254]"),
    *("[fd00:ec2::254]", "100.100.100.200", "192.0.0.192", "168.63.129.16", "224.0.0.1"),
    *("255.255.255.255", "240.0.0.1", "[ff02::1]", "[64:ff9b::a9fe:a9fe]", "[2002:a9fe:a9fe::1]"),
    *("127.0.0.1:8088", "127.0.0.1:8089", "localhost:8088", "0.0.0.0:8089", "[::1]:8088"),
    *("127.1:8088", "2130706433:8089", "[::ffff:127.0.0.1]:8088", "0:8088"),
]


@pytest.mark.parametrize("chosen", ["own", "local"])
def test_key_03_an_address_that_is_no_providers_is_sent_nothing(
    wizard: MakeWizard, device: Device, state_file: Path, chosen: str
) -> None:
    install(device, of_each_kind("http://127.0.0.1:9"))
    client = wizard()
    for host in REFUSED:
        failed = client.post(PAGE, data=form(chosen, endpoint=f"http://{host}/v1"))
        assert failed.status_code == 200
        words = ("No key is sent to", "is a web page of this device")
        assert any(one in failed.text for one in words), host
        assert 'id="endpoint-error"' in failed.text
    assert not state_file.exists()


def test_key_03_what_a_server_says_is_not_shown(wizard: MakeWizard, device: Device) -> None:
    with sending(response(b"instance-secret", "403 instance-secret")) as server:
        install(device, of_each_kind(""))
        failed = wizard().post(PAGE, data=form("own", endpoint=server.url))
    assert "instance-secret" not in failed.text


def test_key_07_a_test_too_many_is_a_429_with_the_page(wizard: MakeWizard, device: Device) -> None:
    def busy(
        provider: Provider, credentials: Mapping[str, Secret], *, endpoint: str, model: str
    ) -> Outcome:
        raise BusyError("Other keys are being tested", hint="Try again in a few seconds.")

    install(device, of_each_kind("http://127.0.0.1:9"))
    steps = [ProviderStep(busy) if step.slug == "provider" else step for step in STEPS]
    data = form("own", model="m", endpoint="http://127.0.0.1:9")
    answer = wizard(steps=steps).post(PAGE, data=data)
    assert answer.status_code == 429
    assert "Other keys are being tested. Try again in a few seconds." in answer.text
    assert 'value="http://127.0.0.1:9"' in answer.text
    assert CANARY not in answer.text


@pytest.fixture
def kept(wizard: MakeWizard, device: Device) -> FlaskClient:
    """A wizard that holds the key of a provider, not tested."""
    install(device, of_each_kind("http://127.0.0.1:9"))
    here = wizard()
    assert here.post(PAGE, data=form("signed-cloud", skip_validation="1")).status_code == 302
    return here


def test_what_is_held_can_be_kept(kept: FlaskClient, device: Device) -> None:
    before = held(kept)
    assert 'name="keep"' in kept.get(PAGE).text
    data = {"provider": "signed-cloud", "keep": "1", "model": "another", "skip_validation": "1"}
    assert kept.post(PAGE, data=data).status_code == 302
    assert held(kept) == before
    with serving({"/foundation-models": b'{"modelSummaries": [{}]}'}) as server:
        install(device, of_each_kind(server.url))
        data = {"provider": "signed-cloud", "keep": "1"}
        assert kept.post(PAGE, data=data).status_code == 302
        assert len(server.requests) == 1  # Kept, and tested once more.
    assert held(kept) == before
    assert "Key works. 1 model available." in kept.get("/wizard/review").text
    # Kept without a test, it is still known to work.
    assert kept.post(PAGE, data=data | {"skip_validation": "1"}).status_code == 302
    assert "Key works. 1 model available." in kept.get("/wizard/review").text
    # One of several values can be changed.
    data |= {"region": "us-east-2", "skip_validation": "1"}
    assert kept.post(PAGE, data=data).status_code == 302
    assert held(kept) == before | {"AWS_REGION": "us-east-2"}


def test_a_held_key_that_fails_its_test_stays_held(kept: FlaskClient) -> None:
    before = held(kept)
    failed = kept.post(PAGE, data={"provider": "signed-cloud", "keep": "1"})
    assert "refused the connection" in failed.text
    assert 'name="keep"' in failed.text
    assert held(kept) == before


def test_nothing_is_kept_unasked_or_for_another_provider(
    kept: FlaskClient, state_file: Path
) -> None:
    for data in ({"provider": "signed-cloud"}, {"provider": "chat-compatible", "keep": "1"}):
        refused = kept.post(PAGE, data=data | {"skip_validation": "1"})
        assert (refused.status_code, '<div class="error">' in refused.text) == (200, True)
        assert "AWS_REGION" in held(kept)
    assert kept.post(PAGE, data=form("chat-reference", skip_validation="1")).status_code == 302
    assert held(kept) == {"CHAT_REFERENCE_KEY": CANARY}
    assert answers(state_file)["provider"] == "chat-reference"


def test_after_a_restart_every_value_is_asked_for_again(
    kept: FlaskClient, wizard: MakeWizard
) -> None:
    assert "enter again" not in kept.get("/wizard/review").text
    again = wizard()
    review = again.get("/wizard/review").text
    for name in ("Access key id", "Secret access key", "Region"):
        assert f"{name} – enter again" in review
    page = again.get(PAGE).text
    assert 'name="keep"' not in page
    assert again.post(PAGE, data={"provider": "signed-cloud", "keep": "1"}).status_code == 200


def provider(id_: str, key_format: str, endpoint: str = "https://api.example") -> Provider:
    return Provider(id_, id_.title(), "chat-compatible", endpoint, "A_KEY", key_format)


OTHERS = [
    provider("openrouter", "sk-or-v1-..."),
    provider("anthropic", "sk-ant-..."),
    provider("openai", "sk-..."),
    provider("moonshot", "sk-..."),
    provider("bedrock", "AKIA..., with a secret access key and a region"),
    provider("zai", "Any text"),
    provider("custom", "What the server asks for", ""),
]


def test_whose_key_it_may_be() -> None:
    for chosen, key, names in (
        ("openai", "sk-ant-api03-x", ("Anthropic",)),
        ("openai", "sk-or-v1-x", ("Openrouter",)),
        ("anthropic", "sk-proj-x", ("Openai", "Moonshot")),
        ("openai", "AKIAIOSFODNN7EXAMPLE", ("Bedrock",)),
        ("zai", "sk-ant-x", ("Anthropic",)),
        *(("openai", "sk-proj-x", ()), ("moonshot", "sk-x", ()), ("anthropic", "sk-ant-x", ())),
        *(("openai", "nothing-known", ()), ("custom", "sk-ant-x", ())),
    ):
        (one,) = [found for found in OTHERS if found.id == chosen]
        assert looks_like(Secret(key), one, OTHERS) == names


def test_a_key_of_another_provider_is_recognised_when_it_fails(
    wizard: MakeWizard, device: Device
) -> None:
    with sending(response(b"", "401 No")) as server:
        entries = [
            entry("first", server.url, key_format="aa-..."),
            entry("second", server.url, key_format="bb-..."),
        ]
        install(device, entries)
        here = wizard()
        other = here.post(PAGE, data={"provider": "first", "api_key": "bb-0123"}).text
        own = here.post(PAGE, data={"provider": "first", "api_key": "aa-0123"}).text
    assert "This looks like a key of second provider." in other
    assert "This looks like a key" not in own
