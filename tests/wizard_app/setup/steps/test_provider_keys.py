"""The key test of the provider step: its messages, held keys, and that no key leaks."""

from __future__ import annotations

import base64
import logging
import socket
from collections.abc import Callable, Mapping
from itertools import repeat
from pathlib import Path
from urllib.parse import quote

import pytest

from platform_common.provider_key.check import BusyError
from platform_common.provider_key.result import Outcome
from platform_common.records.catalogue import Provider
from platform_common.secret import Secret
from tests.support.catalogues import entry, form, install, of_each_kind
from tests.support.devices import Device
from tests.support.key_tests import CANARY, KINDS, SECRET_CANARY
from tests.support.raw_server import RawServer, Request, response, serving
from tests.wizard_app.conftest import MakeStep, MakeWizard
from tests.wizard_app.step_pages import StepPage
from wizard_app.setup.steps import STEPS
from wizard_app.setup.steps.key_prefixes import looks_like
from wizard_app.setup.steps.provider import ProviderStep

SLUG = "provider"
NOWHERE = "http://127.0.0.1:9"
CHAT = form("chat-compatible")
MakeHere = Callable[[str], StepPage]
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
TRY_AGAIN = "Try again, or tick “Continue without testing”."


def sending(data: bytes, *, times: int = 1) -> RawServer:
    """A server that answers every request with the same bytes."""

    def answer(_: Request, connection: socket.socket) -> None:
        for piece in repeat(data, times):
            connection.sendall(piece)

    return RawServer(answer)


def said(status: str, **headers: str) -> bytes:
    """A response with every secret in every place."""
    everything = f"{CANARY} {SECRET_CANARY}"
    more = {"X-Key": everything, "Location": f"http://{CANARY}/?key={CANARY}", **headers}
    return response(everything.encode(), f"{status} {everything}", more)


FAILURES: Mapping[str, Callable[[], RawServer]] = {
    **{
        status: lambda status=status: sending(said(status))  # type: ignore[misc]  # its default binds it
        for status in ("301", "400", "401", "403", "404", "429", "500", "503")
    },
    "compressed": lambda: sending(said("200", **{"Content-Encoding": CANARY})),
    "not-http": lambda: sending(CANARY.encode() + b"\r\n\r\n"),
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
    """The forms of a secret that occur in a text."""
    return {shape for shape in SHAPES if shape in text}


@pytest.fixture
def here(steps: MakeStep, device: Device) -> MakeHere:
    """Make the page of a wizard with a provider of each kind, all at one address."""

    def make(url: str) -> StepPage:
        install(device, of_each_kind(url))
        return steps()

    return make


@pytest.mark.parametrize("name", FAILURES)
def test_key_01_a_failed_test_leaks_no_key(
    here: MakeHere,
    out: Path,
    name: str,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    with FAILURES[name]() as server:
        step = here(server.url)
        for kind in KINDS:
            page = step.refuse(form(kind))
            assert 'id="api-key-error"' in page
            assert TRY_AGAIN in page
            assert leaks(page) == set()
        assert len(server.requests) == len(KINDS)
    files = [file.read_text("utf-8", "replace") for file in out.rglob("*") if file.is_file()]
    assert leaks("".join([*files, caplog.text, *capfd.readouterr(), step.review])) == set()


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_key_01_an_absent_server_is_reported_without_the_key(here: MakeHere, scheme: str) -> None:
    step = here(f"{scheme}://127.0.0.1:9")
    for kind in KINDS:
        page = step.refuse(form(kind))
        assert "refused the connection" in page, kind
        assert leaks(page) == set()


OUTCOMES: Mapping[bytes, tuple[str, str]] = {
    response(b"", "401 No"): ("rejected this key (HTTP 401)", "Check that the key is complete"),
    response(b"", "404 No"): (
        "There is no OpenAI-style service at this address",
        "Check the base URL",
    ),
    response(b"", "429 No"): ("is limiting requests right now", "raise the limit"),
    response(b"", "503 No"): ("has a problem (HTTP 503)", "Try again later."),
    response(b"", "301 No", {"Location": "https://x.example/"}): (
        "redirects to https://x.example; the key was not sent there",
        "enter it as the address",
    ),
    b"SSH-2.0-OpenSSH\r\n": ("sent an answer that is not HTTP", "Check the address"),
    HEAD + b"\r\n" + bytes(2 << 20): ("sent a response that is too large", TRY_AGAIN),
}


def test_every_outcome_has_a_message_and_a_next_step(here: MakeHere) -> None:
    for sent, (message, hint) in OUTCOMES.items():
        with sending(sent) as server:
            host = server.url.removeprefix("http://")
            page = here(server.url).refuse(CHAT, message)
        assert hint in page
        assert "Technical details" in page
        assert f"<code>{host}</code>" in page


def test_a_failed_test_is_reported_in_the_language_of_the_page(here: MakeHere) -> None:
    with sending(said("401")) as server:
        client = here(server.url).client
        headers = {"Accept-Language": "de"}
        page = client.post("/wizard/provider", data=CHAT, headers=headers).text
    assert "hat diesen Schlüssel abgelehnt (HTTP 401)" in page
    assert "ob der Schlüssel vollständig ist, zu diesem Anbieter gehört und noch gültig ist" in page
    assert "rejected this key" not in page


def test_an_error_of_an_own_server_is_shown_at_its_address_or_key_without_its_text(
    here: MakeHere,
) -> None:
    step = here("")
    blamed = {"401": "api-key", "429": "api-key", "404": "endpoint", "500": "endpoint"}
    for status, field in blamed.items():
        with sending(response(b"instance-secret", f"{status} instance-secret")) as server:
            page = step.refuse(form("own", endpoint=server.url))
        assert f'<a href="#{field}">' in page, status
        assert "instance-secret" not in page


def test_key_08_a_response_without_a_list_of_models_passes_with_a_warning(here: MakeHere) -> None:
    for body in (b"<h1>It works!</h1>", b'{"error": "no"}', b"", b"7"):
        with serving({"/models": body}) as server:
            step = here(server.url)
            step.accept(CHAT)
        following = step.text
        assert "accepted the request but did not return a list of models" in following
        assert 'class="flash warn"' in following


def test_key_04_a_redirect_is_not_followed(here: MakeHere) -> None:
    with serving({}) as other:
        moved = response(b"", "307 Away", {"Location": f"{other.url}/models?key=x"})
        with sending(moved) as server:
            step = here(server.url)
            for kind in KINDS:
                assert f"redirects to {other.url}" in step.refuse(form(kind))
        assert other.requests == []


# Addresses that are valid as text, but to which nothing is sent.
REFUSED = [
    *("169.254.169.254", "169.254.0.1:8000", "2852039166", "0xa9fea9fe", "0251.0376.0251.0376"),
    *("169.254.43518", "[fe80::1]", "[::ffff:169.254.169.254]", "[::169.254.169.254]"),
    *("[fd00:ec2::254]", "100.100.100.200", "192.0.0.192", "168.63.129.16", "224.0.0.1"),
    *("255.255.255.255", "240.0.0.1", "[ff02::1]", "[64:ff9b::a9fe:a9fe]", "[2002:a9fe:a9fe::1]"),
    *("127.0.0.1:8088", "127.0.0.1:8089", "localhost:8088", "0.0.0.0:8089", "[::1]:8088"),
    *("127.1:8088", "2130706433:8089", "[::ffff:127.0.0.1]:8088", "0:8088"),
]


@pytest.mark.parametrize("chosen", ["own", "local"])
def test_key_03_nothing_is_sent_to_an_address_that_cannot_be_a_provider(
    here: MakeHere, chosen: str
) -> None:
    step = here(NOWHERE)
    for host in REFUSED:
        page = step.refuse(form(chosen, endpoint=f"http://{host}/v1"))
        words = ("Nothing is sent to", "is one of this device&#39;s own web pages")
        assert any(one in page for one in words), host
        assert 'id="endpoint-error"' in page


def test_key_07_one_test_too_many_is_a_429_with_the_page(
    wizard: MakeWizard, here: MakeHere
) -> None:
    def busy(
        provider: Provider, credentials: Mapping[str, Secret], *, endpoint: str, model: str
    ) -> Outcome:
        raise BusyError("Other keys are being tested", hint="Try again in a few seconds.")

    step = here(NOWHERE)
    client = wizard(steps=[ProviderStep(busy) if one.slug == SLUG else one for one in STEPS])
    answer = step._replace(client=client).send(form("own", model="m", endpoint=NOWHERE))
    assert answer.status_code == 429
    assert "Other keys are being tested. Try again in a few seconds." in answer.text
    assert f'value="{NOWHERE}"' in answer.text
    assert CANARY not in answer.text


@pytest.fixture
def kept(here: MakeHere) -> StepPage:
    """The page of a wizard that holds an untested key of a provider."""
    step = here(NOWHERE)
    step.accept(form("signed-cloud", skip_validation="1"))
    return step


KEEP = {"provider": "signed-cloud", "keep": "1"}
UNTESTED = {"skip_validation": "1"}


def test_kept_secrets_keep_the_result_of_their_test(kept: StepPage, device: Device) -> None:
    before = kept.held
    kept.accept(KEEP | UNTESTED, model="another")
    with serving({"/foundation-models": b'{"modelSummaries": [{}]}'}) as server:
        install(device, of_each_kind(server.url))
        kept.accept(KEEP)
        assert len(server.requests) == 1  # Kept, and tested again.
    assert kept.held == before
    assert "The key works. 1 model available." in kept.review
    # Kept without a test, the earlier result remains.
    kept.accept(KEEP | UNTESTED)
    assert "The key works. 1 model available." in kept.review
    # One of several values can be changed.
    kept.accept(KEEP | UNTESTED, region="us-east-2")
    assert kept.held == before | {"AWS_REGION": "us-east-2"}


def test_a_held_key_is_kept_after_a_failed_test(kept: StepPage) -> None:
    page = kept.refuse(KEEP)
    assert "refused the connection" in page
    assert 'name="keep"' in page


def test_secrets_are_only_kept_on_request_and_for_the_same_provider(kept: StepPage) -> None:
    kept.refuse({"provider": "signed-cloud"} | UNTESTED)
    kept.refuse({"provider": "chat-compatible", "keep": "1"} | UNTESTED)
    kept.accept(form("chat-reference", skip_validation="1"))
    assert kept.held == {"CHAT_REFERENCE_KEY": CANARY}
    assert kept.stored["provider"] == "chat-reference"


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


def test_a_key_with_the_format_of_other_providers_is_attributed_to_them() -> None:
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


def test_a_failing_key_of_another_provider_is_recognised(steps: MakeStep, device: Device) -> None:
    with sending(response(b"", "401 No")) as server:
        formats = {"first": "aa-...", "second": "bb-..."}
        install(device, [entry(id_, server.url, key_format=formats[id_]) for id_ in formats])
        step = steps()
        other = step.refuse({"provider": "first", "api_key": "bb-0123"})
        own = step.refuse({"provider": "first", "api_key": "aa-0123"})
    assert "This looks like a key for second provider." in other
    assert "This looks like a key" not in own
