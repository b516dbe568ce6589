"""The step that chooses a provider: what it offers, what it asks for, and what it takes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import html5lib
import pytest
from flask.testing import FlaskClient

from tests.support import wizard_secrets
from tests.support.catalogues import PLACE, entry, form, install, of_each_kind
from tests.support.devices import Device
from tests.support.key_tests import CANARY, KINDS, SECRET_CANARY
from tests.support.raw_server import RawServer, serving
from tests.wizard_app.conftest import MakeWizard

PAGE = "/wizard/provider"
LISTING = b'{"data": [{"id": "a"}, {"id": "b"}]}'
CLOUDS = [
    *("openrouter", "anthropic", "openai", "google-ai-studio", "bedrock", "nous-portal"),
    *("nvidia-nim", "ollama-cloud", "zai-glm", "kimi-moonshot", "minimax", "xiaomi-mimo"),
    "huggingface",
]


@pytest.fixture
def server() -> Iterator[RawServer]:
    """A provider that takes every key, at the addresses of all kinds."""
    paths = ("/models", "/v1/models", "/foundation-models", f"/models?key={CANARY}")
    quoted = CANARY.replace("/", "%2F").replace("+", "%2B")
    with serving(dict.fromkeys((*paths, f"/models?key={quoted}"), LISTING)) as running:
        yield running


@pytest.fixture
def here(wizard: MakeWizard, device: Device, server: RawServer) -> FlaskClient:
    """A wizard that offers a provider of each kind, all of them at that server."""
    install(device, of_each_kind(server.url))
    return wizard()


def held(client: FlaskClient) -> dict[str, str]:
    """The secrets that the wizard holds for this step, in their order."""
    return wizard_secrets.held(client, "provider")


def answers(state_file: Path) -> dict[str, str]:
    """What is stored of this step."""
    stored = json.loads(state_file.read_bytes())["answers"]
    return {name: stored[name] for name in ("provider", "model", "endpoint")}


def radios(page: str) -> list[str]:
    """The ids of the providers that a page offers, in their order."""
    tags = re.findall(r'<input [^>]*name="provider"[^>]*>', page)
    return [re.findall(r' value="([^"]*)"', tag)[0] for tag in tags]


def test_the_catalogue_is_offered_in_two_groups_and_openrouter_is_chosen(
    client: FlaskClient, wizard: MakeWizard, device: Device
) -> None:
    page = client.get(PAGE).text
    assert radios(page) == [*CLOUDS, "custom"]
    assert page.index("Cloud</legend>") < page.index('value="huggingface"')
    assert page.index("Your own server</legend>") < page.index('value="custom"')
    for words in ("OpenRouter", "The Claude models.", "https://api.anthropic.com", "sk-ant-..."):
        assert words in page
    (checked,) = re.findall(r"<input [^>]* checked[^>]*>", page)
    assert 'value="openrouter"' in checked
    install(device, [entry("another", "https://api.example/v1")])
    assert " checked" not in wizard().get(PAGE).text


def test_the_model_on_the_device_is_offered_on_an_offline_build_alone(
    client: FlaskClient, wizard: MakeWizard, device: Device
) -> None:
    assert "local-ollama" not in client.get(PAGE).text
    answer = client.post(PAGE, data={"provider": "local-ollama", "api_key": "http://127.0.0.1:9"})
    assert "Select a provider" in answer.text
    device.put("/etc/platform/airgap.flag", "")
    assert radios(wizard().get(PAGE).text) == [*CLOUDS, "local-ollama", "custom"]


def test_what_is_no_provider_is_refused(client: FlaskClient, state_file: Path) -> None:
    for chosen in ("", "nobody", "local-ollama", "OPENAI", "--help", "../openai", "a\n-x", "a\0b"):
        answer = client.post(PAGE, data={"provider": chosen})
        assert answer.status_code == 200
        assert '<div class="error"' in answer.text
        assert "Select a provider" in answer.text
        assert "Enter your API key" in answer.text
    assert not state_file.exists()


@pytest.mark.parametrize("extra", [{}, {"skip_validation": "1"}, {"keep": "1"}], ids=str)
def test_no_provider_is_answered_with_an_empty_key(
    wizard: MakeWizard, device: Device, state_file: Path, extra: dict[str, str]
) -> None:
    device.put("/etc/platform/airgap.flag", "")
    said = {
        "bedrock": "Enter your access key id",
        "local-ollama": "Enter the base URL of your server",
    }
    client = wizard()
    for chosen in (*CLOUDS, "custom", "local-ollama"):
        answer = client.post(PAGE, data={"provider": chosen, "api_key": " ", **extra})
        assert answer.status_code == 200
        assert '<div class="error"' in answer.text
        assert said.get(chosen, "Enter your API key") in answer.text, chosen
    assert not state_file.exists()


@pytest.mark.parametrize("kind", KINDS)
def test_a_key_that_works_is_held_in_memory_and_leads_on(
    here: FlaskClient, state_file: Path, server: RawServer, kind: str
) -> None:
    answer = here.post(PAGE, data=form(kind))
    assert (answer.status_code, answer.location) == (302, "/wizard/channels")
    assert len(server.requests) == 1
    expected = {f"{kind.replace('-', '_').upper()}_KEY": CANARY}
    if kind == "signed-cloud":
        expected |= {"AWS_SECRET_ACCESS_KEY": SECRET_CANARY, "AWS_REGION": "eu-west-1"}
    assert list(held(here).items()) == list(expected.items())
    model = "owner/name" if kind == "hosted-inference" else ""
    assert answers(state_file) == {"provider": kind, "model": model, "endpoint": ""}
    assert CANARY not in state_file.read_text()
    # What the test said is told once on the next page, and always on the last.
    following = here.get(PAGE).text
    assert "Key works. 2 models available." in following
    assert "Key works." not in here.get(PAGE).text
    review = here.get("/wizard/review").text
    assert "Key works. 2 models available." in review
    assert CANARY not in following + review


def test_a_public_list_of_models_proves_no_key(
    wizard: MakeWizard, device: Device, server: RawServer
) -> None:
    install(device, [entry("open", server.url, models_public=True)])
    here = wizard()
    assert here.post(PAGE, data=form("open")).status_code == 302
    assert "so the key could not be proved" in here.get(PAGE).text
    assert "so the key could not be proved" in here.get("/wizard/review").text


@pytest.mark.parametrize("kind", [*KINDS, "own"])
def test_a_key_is_not_tested_when_that_is_asked_for(
    here: FlaskClient, server: RawServer, kind: str
) -> None:
    more = {"endpoint": server.url} if kind == "own" else {}
    answer = here.post(PAGE, data=form(kind, skip_validation="1", **more))
    assert answer.status_code == 302
    assert server.requests == []
    assert "Not tested" in here.get("/wizard/review").text


UNUSUAL = [
    *(f"{CANARY}{more}" for more in ("\nB=c", "\rx", "\0x", " x", "…", "🔑", "\u00a0x", "Ａ", '"')),
    *(f"'{CANARY}'", f"{CANARY}`", f"{CANARY}\\", CANARY + "x" * 65536),
]


@pytest.mark.parametrize("skip", ["", "1"], ids=["tested", "untested"])
def test_key_02_env_01_env_02_what_no_key_can_be_is_refused_before_any_request(
    here: FlaskClient, server: RawServer, state_file: Path, skip: str
) -> None:
    for key in UNUSUAL:
        for kind in KINDS:
            answer = here.post(PAGE, data=form(kind, api_key=key, skip_validation=skip))
            assert answer.status_code == 200
            assert "copy it again, without what surrounds it" in answer.text
            assert CANARY not in answer.text
        signed = form("signed-cloud", secret_access_key=key, skip_validation=skip)
        assert "Secret access key must be" in here.post(PAGE, data=signed).text
    assert server.requests == []
    assert not state_file.exists()
    assert held(here) == {}


def test_blanks_around_a_key_are_no_part_of_it(here: FlaskClient) -> None:
    for typed in (f" {CANARY}", f"{CANARY}\r\n", f"\t{CANARY} \n", CANARY):
        assert here.post(PAGE, data=form("chat-compatible", api_key=typed)).status_code == 302
        assert held(here) == {"CHAT_COMPATIBLE_KEY": CANARY}


def test_key_09_key_10_each_value_that_is_needed_is_asked_for_before_the_handshake(
    here: FlaskClient, server: RawServer, state_file: Path
) -> None:
    for absent, said in {
        "api_key": "Enter your access key id",
        "secret_access_key": "Enter your secret access key",
        "region": "Enter a region, like us-east-1",
    }.items():
        answer = here.post(PAGE, data=form("signed-cloud", **{absent: ""}))
        assert answer.status_code == 200
        assert answer.text.count(said) == 2  # In the summary, and at the field.
    answer = here.post(PAGE, data=form("hosted-inference", model=""))
    assert "Enter the id of a model" in answer.text
    assert server.requests == []
    assert not state_file.exists()


def test_all_that_is_wrong_is_told_at_once(here: FlaskClient) -> None:
    data = {"provider": "signed-cloud", "endpoint": "nowhere", "model": "two words"}
    page = here.post(PAGE, data=data).text
    for field in ("api-key", "secret-access-key", "region", "endpoint", "model"):
        assert f'<a href="#{field}">' in page
        assert f'id="{field}-error"' in page
    assert 'value="nowhere"' in page
    assert 'value="two words"' in page


RULES: Mapping[str, tuple[str, list[str], list[str], str]] = {
    # The provider, values that are taken, values that are not, and what is said of those.
    "region": (
        "signed-cloud",
        ["us-east-1", "eu-west-3", "us-gov-west-1"],
        ["", "eu", "EU-WEST-1", "eu_west_1", "eu-west-1.evil.example", "eu west-1", "a/../b-1"],
        "Enter a region, like us-east-1",
    ),
    "model": (
        "hosted-inference",
        ["m", "owner/name", "llama3.2:3b", "m" * 200, "模型"],
        ["two words", "m" * 201, "a\nb", "a\0b", "a\u202eb", "a\u00a0b"],
        "The id of a model has no blanks, and 200 characters at most",
    ),
    "endpoint": (
        "own",
        ["{url}", "{url}/", "http://192.168.1.20:8000/v1", "https://[fd12::1]/v1"],
        [
            *("localhost:8000", "ftp://127.0.0.1/v1", "http://", "javascript:alert(1)"),
            *("http://user:word@127.0.0.1/v1", "http://127.0.0.1/v1?key=1", "http://a/#b"),
            *("http://a b/", "http://a:99999/", "http://é.example/", "http://a\nb/"),
        ],
        "Enter the whole base URL, such as http://192.168.1.20:8000/v1",
    ),
}


@pytest.mark.parametrize("field", RULES)
def test_what_breaks_the_rule_of_its_field_is_refused_and_what_follows_it_taken(
    here: FlaskClient, server: RawServer, state_file: Path, field: str
) -> None:
    chosen, good, bad, said = RULES[field]
    for value in bad:
        answer = here.post(PAGE, data=form(chosen, skip_validation="1", **{field: value}))
        assert answer.status_code == 200
        assert said in answer.text, value
    assert not state_file.exists()
    for value in (one.replace("{url}", server.url) for one in good):
        data = form(chosen, skip_validation="1", **{field: value})
        assert here.post(PAGE, data=data).status_code == 302
        stored = held(here)["AWS_REGION"] if field == "region" else answers(state_file)[field]
        assert stored == value


def test_a_server_without_keys_is_answered_with_its_address(
    here: FlaskClient, server: RawServer, state_file: Path
) -> None:
    for typed in ("sk-no-address", "ftp://a/", "http://user:word@a/", "http://a b"):
        answer = here.post(PAGE, data={"provider": "local", "api_key": typed})
        assert 'id="endpoint-error"' in answer.text
        assert typed not in answer.text
    assert not state_file.exists()
    for field in ("api_key", "endpoint"):
        for skip in ("", "1"):
            server.requests.clear()
            data = {"provider": "local", field: server.url, "skip_validation": skip}
            assert here.post(PAGE, data=data).status_code == 302
            assert held(here) == {"LOCAL_BASE_URL": server.url}
            assert answers(state_file) == {"provider": "local", "model": "", "endpoint": ""}
            assert len(server.requests) == (not skip)


def test_an_own_server_needs_to_be_found(here: FlaskClient, server: RawServer) -> None:
    assert "Enter the base URL of your server" in here.post(PAGE, data=form("own")).text
    assert here.post(PAGE, data=form("own", endpoint=server.url)).status_code == 302
    assert len(server.requests) == 1


def test_a_chosen_address_stands_in_for_that_of_the_catalogue(
    wizard: MakeWizard, device: Device, server: RawServer, state_file: Path
) -> None:
    install(device, [entry("cloud", "http://127.0.0.1:9/v1")])
    assert wizard().post(PAGE, data=form("cloud", endpoint=server.url)).status_code == 302
    assert answers(state_file)["endpoint"] == server.url


def test_what_was_typed_for_one_provider_is_not_sent_to_another(
    here: FlaskClient, server: RawServer, state_file: Path
) -> None:
    with serving({"/models": LISTING}) as own:
        data = form("own", endpoint=own.url, model="small")
        assert here.post(PAGE, data=data).status_code == 302
        # The fields are still filled in when another provider is chosen.
        filled = form("chat-compatible", endpoint=own.url, model="small")
        assert here.post(PAGE, data=filled).status_code == 302
        assert len(own.requests) == 1
    assert len(server.requests) == 1
    assert answers(state_file) == {"provider": "chat-compatible", "model": "", "endpoint": ""}


def test_fs_09_a_provider_that_went_away_is_refused_and_told_of(
    here: FlaskClient, device: Device
) -> None:
    assert 'value="chat-compatible"' in here.get(PAGE).text
    assert here.post(PAGE, data=form("chat-compatible")).status_code == 302
    install(device, [entry("another", "https://api.example/v1")])
    assert "Select a provider" in here.post(PAGE, data=form("chat-compatible")).text
    said = "Select a provider: this device does not offer chat-compatible"
    assert said in here.get(PAGE).text
    assert said in here.get("/wizard/review").text


def test_env_03_d8_an_entry_that_cannot_be_used_is_told_of_and_the_others_are_offered(
    wizard: MakeWizard, device: Device
) -> None:
    address = "https://api.example/v1"
    for variable in ("LD_PRELOAD", "PATH", "A\nB", "A=B", "a", "", "PYTHONPATH", "A" * 65):
        bad = entry("bad", address, key_env_var=variable)
        install(device, [bad, entry("good", address)])
        here = wizard()
        page = here.get(PAGE).text
        assert radios(page) == ["good"], variable
        assert "providers[0].key_env_var" in page
        assert "Select a provider" in here.post(PAGE, data=form("bad")).text
    # So is one whose variables have no fields.
    for kind, more in (("chat-compatible", "AB"), ("signed-cloud", "A"), ("signed-cloud", "ABC")):
        odd = entry("odd", address, kind=kind, extra_env=list(more))
        install(device, [odd, entry("good", address)])
        here = wizard()
        page = here.get(PAGE).text
        assert radios(page) == ["good"], kind
        names = ", ".join(["ODD_KEY", *more])
        assert f"odd provider: the setup has no field for each of {names}" in page
        assert here.post(PAGE, data=form("odd")).status_code == 200


def test_d8_a_catalogue_that_cannot_be_read_is_told_of(wizard: MakeWizard, device: Device) -> None:
    for catalogue in ("", "{", "[]", '{"providers": 7}', "\ufeff{}", "[" * 9999):
        device.put(PLACE, catalogue)
        answer = wizard().get(PAGE)
        assert answer.status_code == 200
        assert "no catalogue of providers that can be used" in answer.text
        assert "providers.json" in answer.text
        refused = wizard().post(PAGE, data=form("openai"))
        assert (refused.status_code, "Select a provider" in refused.text) == (200, True)


BREAKOUTS = [
    *("<script>alert(1)</script>", "\"'><img src=x onerror=alert(1)>"),
    *("</p></div></fieldset></form><script>alert(1)</script>", "{{ 7 * 7 }}{% raw %}"),
    *("' autofocus onfocus='alert(1)", "<svg/onload=alert(1)>", "--><!--<script>"),
    *("&lt;script&gt;&#60;", "{why}{0}%(names)s%s", "\u202e\u2066<b>"),
]
SINKS = ("display_name", "key_format", "supported_models_hint", "default_model")


@pytest.mark.parametrize("payload", BREAKOUTS)
@pytest.mark.parametrize(
    "kind",
    [
        "own",
        *(
            pytest.param(one, marks=pytest.mark.long)
            for one in ("signed-cloud", "hosted-inference")
        ),
    ],
)
def test_http_14_what_a_catalogue_says_is_text(
    wizard: MakeWizard, device: Device, payload: str, kind: str
) -> None:
    plain = entry("x", "" if kind == "own" else "http://127.0.0.1:9/v1")
    if kind != "own":
        plain["kind"] = kind
    plain["requires_model"] = True
    install(device, [plain | dict.fromkeys(SINKS, payload)])
    here = wizard()
    endpoint = {"endpoint": "http://127.0.0.1:9/v1"} if kind == "own" else {}
    data = form(kind, provider="x", model="m", **endpoint)
    pages = [
        here.get(PAGE).text,
        here.post(PAGE, data={"provider": payload, "endpoint": payload, "model": payload}).text,
        here.post(PAGE, data=data).text,
        here.post(PAGE, data={**data, "skip_validation": "1"}).text,
        here.get(PAGE).text,
        here.get("/wizard/review").text,
    ]
    for page in pages:
        assert _foreign(page) == []
    assert payload in _text(pages[0])


def _foreign(page: str) -> list[str]:
    """Elements and attributes that none of our pages has."""
    tree = html5lib.parse(page, namespaceHTMLElements=False)
    elements = [element for element in tree.iter() if isinstance(element.tag, str)]
    own_scripts = [one for one in elements if one.tag == "script" and one.get("src")]
    return [
        *(one.tag for one in elements if one.tag in ("script", "img", "b")),
        *(name for one in elements for name in one.attrib if name.startswith(("on", "autofocus"))),
    ][len(own_scripts) :]


def _text(page: str) -> str:
    return "".join(html5lib.parse(page, namespaceHTMLElements=False).itertext())
