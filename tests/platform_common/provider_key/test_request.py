"""The request that tests a key, by kind of provider."""

from __future__ import annotations

import msgspec
import pytest

from platform_common.errors import PlatformError
from platform_common.provider_key.request import build_request
from platform_common.records.catalogue import Kind
from platform_common.secret import Secret
from tests.support.key_tests import CANARY, KINDS, SECRET_CANARY, credentials, provider

BASE = "https://api.example/v1"


@pytest.mark.parametrize(
    ("kind", "url", "header"),
    [
        ("chat-compatible", f"{BASE}/models", ("Authorization", f"Bearer {CANARY}")),
        ("chat-reference", f"{BASE}/models", ("Authorization", f"Bearer {CANARY}")),
        ("hosted-inference", f"{BASE}/models", ("Authorization", f"Bearer {CANARY}")),
        ("messages-header", f"{BASE}/v1/models", ("x-api-key", CANARY)),
        ("query-key", f"{BASE}/models?key=sk-CaNaRy%2F%2B0123456789", ()),
    ],
)
def test_a_kind_puts_the_key_where_its_services_expect_it(
    kind: Kind, url: str, header: tuple[str, str] | tuple[()]
) -> None:
    request = build_request(provider(kind), credentials(), endpoint=BASE, model="m")
    assert request.url == url
    shown = {name: value for name, value in request.headers.items() if CANARY in value}
    assert shown == dict([header] if header else [])
    # Requests of the messages kind name the version of the interface.
    version = request.headers.get("anthropic-version")
    assert version == ("2023-06-01" if kind == "messages-header" else None)


_LOOK_ALIKE = "https://bedrock-runtime.us-east-1.amazonaws.com.evil.example"


@pytest.mark.parametrize(
    ("endpoint", "asked"),
    [
        ("https://bedrock-runtime.us-east-1.amazonaws.com", "bedrock.eu-west-1.amazonaws.com"),
        ("https://bedrock.us-east-1.amazonaws.com/", "bedrock.eu-west-1.amazonaws.com"),
        ("https://bedrock-runtime-fips.us-east-1.amazonaws.com",
         "bedrock-fips.eu-west-1.amazonaws.com"),
        ("https://bedrock-runtime.cn-north-1.amazonaws.com.cn",
         "bedrock.eu-west-1.amazonaws.com.cn"),
        ("https://127.0.0.1:4000", "127.0.0.1:4000"),
        (_LOOK_ALIKE, _LOOK_ALIKE.removeprefix("https://")),
    ],
    ids=["runtime", "control", "fips", "china", "loopback", "look-alike"],
)  # fmt: skip
def test_the_signed_kind_uses_the_control_host_of_the_chosen_region(
    endpoint: str, asked: str
) -> None:
    request = build_request(
        provider("signed-cloud"), credentials("signed-cloud"), endpoint=endpoint
    )
    assert request.url == f"https://{asked}/foundation-models"
    assert "/eu-west-1/bedrock/aws4_request" in request.headers["Authorization"]


@pytest.mark.parametrize("missing", ["TEST_API_KEY", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"])
def test_key_09_the_signed_kind_needs_all_three_variables(missing: str) -> None:
    found = {n: value for n, value in credentials("signed-cloud").items() if n != missing}
    with pytest.raises(PlatformError, match=f"^Test Cloud also needs {missing}$"):
        build_request(provider("signed-cloud"), found, endpoint=BASE)


@pytest.mark.parametrize("region", ["eu", "eu-west-1.evil.example", "EU-WEST-1", "eu_west_1", "-"])
def test_an_invalid_region_is_refused_without_being_shown(region: str) -> None:
    found = credentials("signed-cloud") | {"AWS_REGION": Secret(region)}
    with pytest.raises(PlatformError) as caught:
        build_request(provider("signed-cloud"), found, endpoint=BASE)
    assert str(caught.value) == "The region is not valid"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_an_entry_with_the_wrong_number_of_variables_is_reported(kind: Kind, count: int) -> None:
    further = tuple(f"FURTHER_{number}" for number in range(count))
    entry = msgspec.structs.replace(provider(kind), extra_env=further)
    found = {name: Secret("eu-west-1") for name in entry.variables}
    if kind == "signed-cloud" and count == 1:
        with pytest.raises(PlatformError, match="needs 3 variables"):
            build_request(entry, found, endpoint=BASE, model="m")
    else:
        assert build_request(entry, found, endpoint=BASE, model="m").endpoint == BASE


def test_key_10_hosted_inference_needs_a_model() -> None:
    with pytest.raises(PlatformError, match="needs the id of a model"):
        build_request(provider("hosted-inference"), credentials(), endpoint=BASE)


@pytest.mark.parametrize(
    "key",
    ["", " ", "Q Q", "a\nb", "a\rb", "a\0b", 'a"b', "a\\b", "a…b", "schlüssel", "🔑", "x" * 65536],
    ids=[
        *("empty", "blank", "inner-blank", "line-feed", "return", "nul", "quote", "backslash"),
        *("ellipsis", "umlaut", "emoji", "64-KiB"),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_key_02_an_invalid_key_is_refused_before_any_request(kind: Kind, key: str) -> None:
    with pytest.raises(PlatformError) as caught:
        build_request(provider(kind), credentials(kind, key), endpoint=BASE, model="m")
    assert not key.strip() or key not in str(caught.value)


def test_the_key_of_a_model_on_this_machine_is_its_address() -> None:
    home = provider(key_env_var="HOME_BASE_URL")
    found = {"HOME_BASE_URL": Secret("http://127.0.0.1:11434/v1/")}
    request = build_request(home, found, endpoint="https://elsewhere.example")
    assert request.url == "http://127.0.0.1:11434/v1/models"
    assert "Authorization" not in request.headers


def test_a_key_in_the_address_field_is_not_shown() -> None:
    home = provider(key_env_var="HOME_BASE_URL")
    with pytest.raises(PlatformError) as caught:
        build_request(home, {"HOME_BASE_URL": Secret(CANARY)})
    assert str(caught.value).startswith("HOME_BASE_URL must ")
    assert CANARY not in str(caught.value)


def test_a_provider_without_an_address_needs_one() -> None:
    with pytest.raises(PlatformError) as caught:
        build_request(provider(), credentials())
    assert str(caught.value) == "The address of Test Cloud is missing"


@pytest.mark.parametrize("kind", KINDS)
def test_key_01_a_request_shows_no_secret(kind: Kind) -> None:
    request = build_request(provider(kind), credentials(kind), endpoint=BASE, model="m")
    assert repr(request) == str(request) == f"KeyRequest({BASE!r})"
    assert SECRET_CANARY not in str(msgspec.structs.asdict(request))
