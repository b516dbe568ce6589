"""The key test against real servers that check keys and signatures."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from platform_common.key_check import check_key
from platform_common.key_request import build_request
from platform_common.key_verdict import KeyCheck
from platform_common.secret import Secret
from tests.support.devices import Device
from tests.support.key_servers import Amazon, OpenAiProxy, amazon, botocore_signature, openai_proxy
from tests.support.key_tests import SECRET_CANARY, credentials, provider


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenAiProxy]:
    with openai_proxy(tmp_path_factory.mktemp("proxy")) as running:
        yield running


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Amazon]:
    with amazon(tmp_path_factory.mktemp("cloud")) as running:
        yield running


def test_the_right_key_works_and_the_models_are_counted(proxy: OpenAiProxy) -> None:
    check = check_key(provider(), credentials(key=proxy.key), endpoint=proxy.endpoint).check
    assert (check.ok, check.proved, check.http_status) == (True, True, 200)
    assert check.message == "Key works. 2 models available"


def test_a_wrong_key_is_rejected(proxy: OpenAiProxy) -> None:
    check = check_key(provider(), credentials(key="sk-wrong"), endpoint=proxy.endpoint).check
    assert (check.ok, check.http_status) == (False, 403)
    assert check.message == "Test Cloud rejected this key (HTTP 403)"


def test_a_base_url_without_its_version_is_told(proxy: OpenAiProxy) -> None:
    endpoint = proxy.endpoint.removesuffix("/v1")
    check = check_key(provider(), credentials(key=proxy.key), endpoint=endpoint).check
    assert (check.ok, check.http_status) == (False, 404)
    assert "not as a chat-compatible service" in check.message


def test_the_program_tests_the_stored_key(proxy: OpenAiProxy, device: Device) -> None:
    device.put("/etc/platform/secrets.env", f"OPENAI_API_KEY={proxy.key}\n", mode=0o600)
    device.put("/etc/platform/active-provider", "openai\n")
    device.put("/etc/platform/active-endpoint", f"{proxy.endpoint}\n")
    done = device.ctl("model", "test")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "Key works. 2 models available."


def signed(cloud: Amazon, **changed: str) -> KeyCheck:
    values = {"TEST_API_KEY": cloud.access_key, "AWS_SECRET_ACCESS_KEY": cloud.secret_key}
    found = {name: Secret(value) for name, value in (values | changed).items()}
    return check_key(
        provider("signed-cloud"), credentials("signed-cloud") | found, endpoint=cloud.endpoint
    ).check


def test_a_right_signature_passes_the_check_of_another_implementation(cloud: Amazon) -> None:
    # moto checks the signature first, and then has no list of models to give.
    assert signed(cloud).http_status == 500


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"AWS_SECRET_ACCESS_KEY": SECRET_CANARY}, id="wrong-secret"),
        pytest.param({"TEST_API_KEY": "AKIAUNKNOWN0123456"}, id="unknown-access-key"),
    ],
)
def test_a_wrong_signature_is_rejected(cloud: Amazon, changed: dict[str, str]) -> None:
    check = signed(cloud, **changed)
    assert (check.ok, check.http_status) == (False, 403)
    assert check.message == "Test Cloud rejected this key (HTTP 403)"


@pytest.mark.parametrize(
    ("endpoint", "region"),
    [
        ("https://bedrock-runtime.us-east-1.amazonaws.com", "us-east-1"),
        ("https://bedrock-runtime.us-east-1.amazonaws.com", "eu-west-1"),
        ("http://127.0.0.1:4000/some/base", "us-gov-west-1"),
        ("https://cloud.example:8443", "ap-south-2"),
    ],
    ids=["amazon", "another-region", "loopback", "custom"],
)
def test_the_signature_is_that_of_amazons_own_library(endpoint: str, region: str) -> None:
    found = credentials("signed-cloud") | {"AWS_REGION": Secret(region)}
    request = build_request(provider("signed-cloud"), found, endpoint=endpoint)
    expected = botocore_signature(
        request.url,
        {"x-amz-content-sha256": request.headers["x-amz-content-sha256"]},
        at=request.headers["x-amz-date"],
        access_key=found["TEST_API_KEY"].reveal(),
        secret_key=found["AWS_SECRET_ACCESS_KEY"].reveal(),
        region=region,
    )
    assert request.headers["Authorization"] == expected
