"""The provider step: what it offers, asks for and accepts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import html5lib
import pytest

from tests.support.catalogues import PLACE, entry, form, install, of_each_kind
from tests.support.devices import Device
from tests.support.key_tests import CANARY, KINDS, SECRET_CANARY
from tests.support.raw_server import RawServer, serving
from tests.wizard_app.conftest import MakeStep
from tests.wizard_app.step_pages import StepPage

SLUG = "provider"
LISTING = b'{"data": [{"id": "a"}, {"id": "b"}]}'
CLOUDS = [
    *("openrouter", "anthropic", "openai", "google-ai-studio", "bedrock", "nous-portal"),
    *("nvidia-nim", "ollama-cloud", "zai-glm", "kimi-moonshot", "minimax", "xiaomi-mimo"),
    "huggingface",
]


@pytest.fixture
def server() -> Iterator[RawServer]:
    """A provider that accepts every key, at the addresses of all kinds."""
    paths = ("/models", "/v1/models", "/foundation-models", f"/models?key={CANARY}")
    quoted = CANARY.replace("/", "%2F").replace("+", "%2B")
    with serving(dict.fromkeys((*paths, f"/models?key={quoted}"), LISTING)) as running:
        yield running


@pytest.fixture
def here(steps: MakeStep, device: Device, server: RawServer) -> StepPage:
    """The page of a wizard with a provider of each kind, all at that server."""
    install(device, of_each_kind(server.url))
    return steps()


def radios(page: str) -> list[str]:
    """The ids of the offered providers, in order."""
    tags = re.findall(r'<input [^>]*name="provider"[^>]*>', page)
    return [re.findall(r' value="([^"]*)"', tag)[0] for tag in tags]


def test_a_providers_name_is_in_the_language_of_the_page_wherever_it_is_shown(
    steps: MakeStep,
) -> None:
    page = steps().client.get("/wizard/provider", headers={"Accept-Language": "de"}).text
    assert "Anderer Server" in page
    assert "Another server" not in page


def test_providers_are_offered_in_two_groups_and_openrouter_is_preselected(
    steps: MakeStep, device: Device
) -> None:
    page = steps().text
    assert radios(page) == [*CLOUDS, "custom"]
    assert page.index("Cloud</legend>") < page.index('value="huggingface"')
    assert page.index("Your own server</legend>") < page.index('value="custom"')
    for words in ("OpenRouter", "The Claude models.", "https://api.anthropic.com", "sk-ant-..."):
        assert words in page
    (checked,) = re.findall(r"<input [^>]* checked[^>]*>", page)
    assert 'value="openrouter"' in checked
    install(device, [entry("another", "https://api.example/v1")])
    assert " checked" not in steps().text


def test_only_offline_builds_offer_a_local_model(steps: MakeStep, device: Device) -> None:
    step = steps()
    assert "local-ollama" not in step.text
    own = {"provider": "local-ollama", "api_key": "http://127.0.0.1:9"}
    assert "Select a provider" in step.refuse(own)
    device.put("/etc/platform/airgap.flag", "")
    assert radios(steps().text) == [*CLOUDS, "local-ollama", "custom"]


def test_an_unknown_provider_is_refused(step: StepPage) -> None:
    for chosen in ("", "nobody", "local-ollama", "OPENAI", "--help", "../openai", "a\n-x", "a\0b"):
        step.refuse({"provider": chosen}, "Select a provider", "Enter your API key")


@pytest.mark.parametrize("extra", [{}, {"skip_validation": "1"}, {"keep": "1"}], ids=str)
def test_every_provider_needs_a_key(steps: MakeStep, device: Device, extra: dict[str, str]) -> None:
    device.put("/etc/platform/airgap.flag", "")
    said = {
        "bedrock": "Enter your access key id",
        "local-ollama": "Enter the base URL of your server",
    }
    step = steps()
    for chosen in (*CLOUDS, "custom", "local-ollama"):
        words = said.get(chosen, "Enter your API key")
        assert words in step.refuse({"provider": chosen, "api_key": " ", **extra})


@pytest.mark.parametrize("kind", KINDS)
def test_a_working_key_is_held_in_memory(here: StepPage, server: RawServer, kind: str) -> None:
    assert here.accept(form(kind)) == "/wizard/channels"
    assert len(server.requests) == 1
    expected = {f"{kind.replace('-', '_').upper()}_KEY": CANARY}
    if kind == "signed-cloud":
        expected |= {"AWS_SECRET_ACCESS_KEY": SECRET_CANARY, "AWS_REGION": "eu-west-1"}
    assert list(here.held.items()) == list(expected.items())
    model = "owner/name" if kind == "hosted-inference" else ""
    assert here.stored == {"provider": kind, "model": model, "endpoint": ""}
    # The result is shown once on the next page, and always on the review page.
    following = here.text
    assert "The key works. 2 models available." in following
    assert "The key works." not in here.text
    assert "The key works. 2 models available." in here.review
    assert CANARY not in following + here.review + here.state_file.read_text()


def test_a_public_list_of_models_does_not_prove_the_key(
    steps: MakeStep, device: Device, server: RawServer
) -> None:
    install(device, [entry("open", server.url, models_public=True)])
    here = steps()
    here.accept(form("open"))
    for page in (here.text, here.review):
        assert "so the key could not be proved" in page


@pytest.mark.parametrize("kind", [*KINDS, "own"])
def test_a_key_is_not_tested_on_request(here: StepPage, server: RawServer, kind: str) -> None:
    more = {"endpoint": server.url} if kind == "own" else {}
    here.accept(form(kind, skip_validation="1", **more))
    assert server.requests == []
    assert "Not tested" in here.review


UNUSUAL = [
    *(f"{CANARY}{more}" for more in ("\nB=c", "\rx", "\0x", " x", "…", "🔑", "\u00a0x", "Ａ", '"')),
    *(f"'{CANARY}'", f"{CANARY}`", f"{CANARY}\\", CANARY + "x" * 65536),
]


@pytest.mark.parametrize("skip", ["", "1"], ids=["tested", "untested"])
def test_key_02_env_01_env_02_an_invalid_key_is_refused_before_any_request(
    here: StepPage, server: RawServer, skip: str
) -> None:
    for key in UNUSUAL:
        for kind in KINDS:
            page = here.refuse(form(kind, api_key=key, skip_validation=skip))
            assert "copy it again, without the text around it" in page
            assert CANARY not in page
        signed = form("signed-cloud", secret_access_key=key, skip_validation=skip)
        assert "Secret access key can have at most 4,096" in here.refuse(signed)
    assert server.requests == []


def test_blanks_around_a_key_are_removed(here: StepPage) -> None:
    for typed in (f" {CANARY}", f"{CANARY}\r\n", f"\t{CANARY} \n", CANARY):
        here.accept(form("chat-compatible", api_key=typed))
        assert here.held == {"CHAT_COMPATIBLE_KEY": CANARY}


def test_key_09_key_10_every_value_is_required_before_any_request(
    here: StepPage, server: RawServer
) -> None:
    here.refuse(form("signed-cloud", api_key=""), "Enter your access key id")
    here.refuse(form("signed-cloud", secret_access_key=""), "Enter your secret access key")
    here.refuse(form("signed-cloud", region=""), "Enter a region, like us-east-1")
    assert "Enter the id of a model" in here.refuse(form("hosted-inference", model=""))
    assert server.requests == []


def test_all_mistakes_are_reported_at_once(here: StepPage) -> None:
    data = {"provider": "signed-cloud", "endpoint": "nowhere", "model": "two words"}
    page = here.refuse(data)
    for field in ("api-key", "secret-access-key", "region", "endpoint", "model"):
        assert f'<a href="#{field}">' in page
        assert f'id="{field}-error"' in page
    assert 'value="nowhere"' in page
    assert 'value="two words"' in page


RULES: Mapping[str, tuple[str, list[str], list[str], str]] = {
    # The provider, good values, bad values, and the message about the bad ones.
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
        "The id of a model can have at most 200 characters and no spaces",
    ),
    "endpoint": (
        "own",
        ["{url}", "{url}/", "http://192.168.1.20:8000/v1", "https://[fd12::1]/v1"],
        [
            *("localhost:8000", "ftp://127.0.0.1/v1", "http://", "javascript:alert(1)"),
            *("http://user:word@127.0.0.1/v1", "http://127.0.0.1/v1?key=1", "http://a/#b"),
            *("http://a b/", "http://a:99999/", "http://é.example/", "http://a\nb/"),
        ],
        "Enter the full base URL, such as http://192.168.1.20:8000/v1",
    ),
}


@pytest.mark.parametrize("field", RULES)
def test_a_value_is_accepted_or_refused_by_the_rule_of_its_field(
    here: StepPage, server: RawServer, field: str
) -> None:
    chosen, good, bad, said = RULES[field]
    for value in bad:
        page = here.refuse(form(chosen, skip_validation="1", **{field: value}))
        assert said in page, value
    for value in (one.replace("{url}", server.url) for one in good):
        here.accept(form(chosen, skip_validation="1", **{field: value}))
        stored = here.held["AWS_REGION"] if field == "region" else here.stored[field]
        assert stored == value


def test_a_server_without_keys_needs_an_address(here: StepPage, server: RawServer) -> None:
    for typed in ("sk-no-address", "ftp://a/", "http://user:word@a/", "http://a b"):
        page = here.refuse({"provider": "local", "api_key": typed})
        assert 'id="endpoint-error"' in page
        assert typed not in page
    for field in ("api_key", "endpoint"):
        for skip in ("", "1"):
            server.requests.clear()
            here.accept({"provider": "local", field: server.url, "skip_validation": skip})
            assert here.held == {"LOCAL_BASE_URL": server.url}
            assert here.stored == {"provider": "local", "model": "", "endpoint": ""}
            assert len(server.requests) == (not skip)


def test_an_own_server_needs_an_address(here: StepPage, server: RawServer) -> None:
    assert "Enter the base URL of your server" in here.refuse(form("own"))
    here.accept(form("own", endpoint=server.url))
    assert len(server.requests) == 1


def test_a_chosen_address_replaces_that_of_the_catalogue(
    steps: MakeStep, device: Device, server: RawServer
) -> None:
    install(device, [entry("cloud", "http://127.0.0.1:9/v1")])
    here = steps()
    here.accept(form("cloud", endpoint=server.url))
    assert here.stored["endpoint"] == server.url


def test_a_secret_typed_for_one_provider_is_not_sent_to_another(
    here: StepPage, server: RawServer
) -> None:
    with serving({"/models": LISTING}) as own:
        here.accept(form("own", endpoint=own.url, model="small"))
        # The fields of one provider are still filled in after another one is chosen.
        here.accept(form("chat-compatible", endpoint=own.url, model="small"))
        assert len(own.requests) == 1
    assert len(server.requests) == 1
    assert here.stored == {"provider": "chat-compatible", "model": "", "endpoint": ""}


def test_fs_09_a_provider_that_disappeared_is_refused_and_reported(
    here: StepPage, device: Device
) -> None:
    assert 'value="chat-compatible"' in here.text
    here.accept(form("chat-compatible"))
    install(device, [entry("another", "https://api.example/v1")])
    assert "Select a provider" in here.refuse(form("chat-compatible"))
    for page in (here.text, here.review):
        assert "Select another provider: this device does not offer chat-compatible" in page


def test_env_03_d8_an_unusable_entry_is_reported(steps: MakeStep, device: Device) -> None:
    address = "https://api.example/v1"
    entries = {
        variable: (entry("odd", address, key_env_var=variable), "providers[0].key_env_var")
        for variable in ("LD_PRELOAD", "PATH", "A\nB", "A=B", "a", "", "PYTHONPATH", "A" * 65)
    }
    # A provider whose variables have no fields is reported, too.
    for kind, more in (("chat-compatible", "AB"), ("signed-cloud", "A"), ("signed-cloud", "ABC")):
        names = ", ".join(["ODD_KEY", *more])
        said = f"odd provider: setup has no fields for {names}"
        entries[names] = entry("odd", address, kind=kind, extra_env=list(more)), said
    for odd, said in entries.values():
        install(device, [odd, entry("good", address)])
        here = steps()
        assert radios(here.text) == ["good"], odd
        assert said in here.text
        assert "Select a provider" in here.refuse(form("odd"))


def test_d8_an_unreadable_catalogue_is_reported(steps: MakeStep, device: Device) -> None:
    for catalogue in ("", "{", "[]", '{"providers": 7}', "\ufeff{}", "[" * 9999):
        device.put(PLACE, catalogue)
        here = steps()
        assert "no catalogue of providers that it can use" in here.text
        assert "providers.json" in here.text
        assert "Select a provider" in here.send(form("openai")).text


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
def test_http_14_texts_of_the_catalogue_are_escaped(
    steps: MakeStep, device: Device, payload: str, kind: str
) -> None:
    address = "http://127.0.0.1:9/v1"
    own = {"endpoint": address} if kind == "own" else {}
    more = dict.fromkeys(SINKS, payload) | ({} if own else {"kind": kind})
    install(device, [entry("x", "" if own else address, requires_model=True, **more)])
    here = steps()
    data = form(kind, provider="x", model="m", **own)
    pages = [
        here.text,
        here.refuse({"provider": payload, "endpoint": payload, "model": payload}),
        here.refuse(data),
        here.send(data, skip_validation="1").text,
        here.text,
        here.review,
    ]
    for page in pages:
        assert _foreign(page) == []
    assert payload in _text(pages[0])


def _foreign(page: str) -> list[str]:
    """Elements and attributes that our pages do not contain."""
    tree = html5lib.parse(page, namespaceHTMLElements=False)
    elements = [element for element in tree.iter() if isinstance(element.tag, str)]
    own_scripts = [one for one in elements if one.tag == "script" and one.get("src")]
    return [
        *(one.tag for one in elements if one.tag in ("script", "img", "b")),
        *(name for one in elements for name in one.attrib if name.startswith(("on", "autofocus"))),
    ][len(own_scripts) :]


def _text(page: str) -> str:
    return "".join(html5lib.parse(page, namespaceHTMLElements=False).itertext())
