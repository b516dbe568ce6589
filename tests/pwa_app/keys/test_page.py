"""The pages about keys, without changes to any key."""

from __future__ import annotations

import threading
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit
from xml.etree.ElementTree import Element

import html5lib
import pytest
from flask.testing import FlaskClient

from tests.pwa_app.conftest import Dashboard
from tests.support import key_states
from tests.support.control_cli import FakeCtl
from tests.support.devices import Device
from tests.support.key_states import HOSTILE, MODELS, STATES
from tests.support.web_servers import served

XHTML = "{http://www.w3.org/1999/xhtml}"


def page(client: FlaskClient, path: str = "/app/keys") -> Element:
    """The page at `path`, which must be valid."""
    answer = client.get(path)
    assert answer.status_code == 200
    found: Element = html5lib.HTMLParser(strict=True).parse(answer.text)
    return found


def all_of(tree: Element, tag: str) -> list[Element]:
    return list(tree.iter(XHTML + tag))


def text(element: Element) -> str:
    return " ".join("".join(element.itertext()).split())


def cards(tree: Element) -> dict[str, Element]:
    """The cards of the page, by the name of their provider."""
    return {text(next(card.iter(f"{XHTML}h3"))): card for card in all_of(tree, "article")}


def test_every_provider_has_a_form_that_rotates_its_key(client: FlaskClient, ctl: FakeCtl) -> None:
    key_states.several(ctl)
    tree = page(client)
    forms = [form for form in all_of(tree, "form") if form.get("action") == "/app/keys/rotate"]
    fields = [{i.get("name"): i.get("value") for i in form.iter(f"{XHTML}input")} for form in forms]
    assert sorted(map(str, fields)) == sorted(
        str({"provider": model["id"], "api_key": None}) for model in MODELS
    )
    assert {form.get("method") for form in forms} == {"post"}
    assert ctl.words() == ["model list --json"]


def test_cards_list_the_providers_with_the_active_one_first(
    client: FlaskClient, ctl: FakeCtl
) -> None:
    key_states.several(ctl)
    found = {name: text(card) for name, card in cards(page(client)).items()}
    assert list(found) == [
        *("Anthropic", "OpenAI", "Amazon Bedrock"),
        *("OpenRouter", "Google AI Studio", "Ollama on this device"),
    ]
    for name, state, shown in (
        ("Anthropic", "● Active", "ANTHROPIC_API_KEY · sk-ant…"),
        ("OpenAI", "● Key set", "OPENAI_API_KEY · sk-pro…"),
        ("Amazon Bedrock", "▲ Incomplete", "AWS_ACCESS_KEY_ID · AKI…"),
        ("OpenRouter", "○ No key", "OPENROUTER_API_KEY"),
        ("Ollama on this device", "○ No address", "LOCAL_OLLAMA_BASE_URL · no key needed"),
    ):
        assert state in found[name]
        assert shown in found[name]


@pytest.mark.parametrize("state", STATES)
def test_the_page_is_valid_in_every_state(client: FlaskClient, ctl: FakeCtl, state: str) -> None:
    STATES[state](ctl)
    tree = page(client)
    ids = [element.get("id") for element in tree.iter() if element.get("id")]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("failed", ["stub", "providers.json: not valid JSON", "could not list the providers."]),
        (
            "nonsense",
            ["stub", "model list --json did not answer as", "could not list the providers."],
        ),
        ("empty", ["The catalogue of this device contains no providers."]),
    ],
)
def test_without_providers_the_page_says_why(
    client: FlaskClient, ctl: FakeCtl, state: str, said: list[str]
) -> None:
    STATES[state](ctl)
    shown = text(page(client))
    assert [words for words in said if words not in shown] == []
    assert ("stub" in shown) == ("stub" in said)
    if "stub" in said:
        assert "stub" in text(page(client, "/app/keys/openai"))


def test_dev_stub_mode_shows_sample_providers_and_starts_no_program(
    dashboard: Dashboard, ctl: FakeCtl
) -> None:
    client = dashboard(PWA_DEV_STUB="1")
    tree = page(client)
    assert cards(tree)
    assert "dev-stub mode" in text(tree)
    assert "dev-stub mode" in text(page(client, "/app/keys/openai"))
    assert client.get("/app/keys/none").status_code == 404
    assert ctl.calls() == []


def test_without_a_control_cli_samples_are_shown(dashboard: Dashboard) -> None:
    tree = page(dashboard(PLATFORM_CTL="/nowhere/ctl"))
    assert cards(tree)
    assert "stub" in text(tree)


@pytest.mark.parametrize("path", ["/app/keys", "/app/keys/fine"])
def test_http_14_hostile_text_of_providers_is_escaped(
    client: FlaskClient, ctl: FakeCtl, path: str
) -> None:
    key_states.hostile(ctl)
    tree = page(client, path)
    assert HOSTILE in text(tree)
    for script in all_of(tree, "script"):
        assert (script.get("src") or "").startswith("/static/app.js?")
        assert script.text is None
    assert all_of(tree, "img") == []
    for element in tree.iter():
        assert not [name for name in element.attrib if name.startswith("on")]
    for link in all_of(tree, "a"):
        address = urlsplit(link.get("href") or "")
        assert (address.scheme, address.netloc) == ("", "")
        if address.path.startswith("/app/keys/"):
            assert address.path in {"/app/keys/fine", "/app/keys/nameless"}
    for form in all_of(tree, "form"):
        (provider,) = [i for i in form.iter(f"{XHTML}input") if i.get("name") == "provider"]
        assert provider.get("value") in {"fine", "nameless"}


@pytest.mark.parametrize(
    ("provider", "names"),
    [
        ("openai", ["provider", "api_key", "test"]),
        ("bedrock", ["provider", "api_key", "secret_access_key", "region", "test"]),
        ("local-ollama", ["provider", "api_key", "test"]),
    ],
)
def test_the_page_of_a_provider_asks_for_the_values_of_its_kind(
    client: FlaskClient, ctl: FakeCtl, provider: str, names: list[str]
) -> None:
    key_states.several(ctl)
    tree = page(client, f"/app/keys/{provider}")
    form = next(f for f in all_of(tree, "form") if f.get("action") == "/app/keys/rotate")
    fields = {i.get("name"): i for i in form.iter(f"{XHTML}input")}
    assert list(fields) == names
    assert "checked" in fields["test"].attrib
    # A local model needs an address.
    assert (fields["api_key"].get("type") == "password") == (provider != "local-ollama")
    assert ctl.words() == ["model list --json"]


def test_the_page_of_a_provider_describes_the_format_of_its_key(
    client: FlaskClient, ctl: FakeCtl
) -> None:
    key_states.several(ctl)
    shown = text(page(client, "/app/keys/openai"))
    for said in ("sk-...", "https://api.openai.example/v1", "OpenAI becomes the active provider"):
        assert said in shown
    assert "becomes the active provider" not in text(page(client, "/app/keys/anthropic"))


@pytest.mark.parametrize("state", ["several", "plain", "one", "hostile"])
def test_no_field_for_a_secret_is_filled_in(client: FlaskClient, ctl: FakeCtl, state: str) -> None:
    STATES[state](ctl)
    links = [a.get("href") or "" for a in all_of(page(client), "a")]
    for path in ["/app/keys", *(link for link in links if link.startswith("/app/keys/"))]:
        inputs = all_of(page(client, path), "input")
        assert inputs
        for field in inputs:
            assert field.get("name") in {"provider", "test"} or "value" not in field.attrib


@pytest.mark.parametrize(
    "name", ["nobody", "OpenAI", "--help", "..%2Fx", "x" * 3000, "a%20b", "%00", "%E2%80%AE"]
)
def test_an_unknown_provider_has_no_page(client: FlaskClient, ctl: FakeCtl, name: str) -> None:
    key_states.several(ctl)
    assert client.get(f"/app/keys/{name}").status_code == 404


def test_a_message_is_shown_once_on_whichever_page(client: FlaskClient, ctl: FakeCtl) -> None:
    key_states.several(ctl)
    for path in ("/app/keys", "/app/keys/openai"):
        answer = client.post("/app/keys/rotate", data={"provider": "openai"})
        assert answer.status_code == 302
        client.head(path)
        client.get(path, headers={"Sec-Purpose": "prefetch;prerender"})
        assert "Provider and key are both required." in text(page(client, path))
        assert "are both required" not in text(page(client, path))


def test_key_16_exactly_one_of_200_requests_gets_the_message(
    ctl: FakeCtl, device: Device, tmp_path: Path
) -> None:
    key_states.several(ctl)
    environment = ctl.environment | {"PLATFORM_ROOT": str(device.root)}
    with served("pwa-app", environment, tmp_path / "log") as app:
        barrier = threading.Barrier(200)

        def look(_: int) -> str:
            barrier.wait(60)
            with urllib.request.urlopen(f"{app.url}/app/keys", timeout=60) as answer:
                shown: str = answer.read().decode()
                return shown

        post = urllib.request.Request(f"{app.url}/app/keys/rotate", data=b"provider=openai")
        opener = urllib.request.build_opener(_NoRedirect)
        with pytest.raises(urllib.request.HTTPError, match="302"):
            opener.open(post, timeout=30)
        with ThreadPoolExecutor(200) as pool:
            seen = list(pool.map(look, range(200)))
    assert sum("are both required" in shown for shown in seen) == 1
    assert all("Anthropic" in shown for shown in seen)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Does not follow redirects."""

    def redirect_request(self, *_: object) -> None:
        return None
