"""The key test through the wizard's pages, with real servers that check keys and signatures.

Other responses, and how check_key handles them, are in test_key_check_nginx.py.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from platform_common.provider_key.request import build_request
from platform_common.secret import Secret
from tests.interop.conftest import Running
from tests.interop.test_key_check_nginx import LISTING, LOCATIONS, bad
from tests.support.catalogues import form, install, of_each_kind
from tests.support.devices import Device
from tests.support.key_servers import (
    Amazon,
    OpenAiProxy,
    amazon,
    botocore_signatures,
    openai_proxy,
)
from tests.support.key_tests import CANARY, KINDS, SECRET_CANARY, credentials, provider
from tests.support.nginx import Nginx, make_certificate, nginx
from tests.support.raw_server import RawServer, Request, serving
from tests.support.web_servers import Served
from tests.support.wizard_visits import Answer, visitor_of
from tests.wizard_app.conftest import MakeWizard

PAGE = "/wizard/provider"


def ask(app: Served, path: str, data: Mapping[str, str] | None = None) -> Answer:
    """Send a form to the wizard, or load one of its pages."""
    return visitor_of(app).ask(path, None if data is None else data.items())


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenAiProxy]:
    with openai_proxy(tmp_path_factory.mktemp("proxy")) as started:
        yield started


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Amazon]:
    with amazon(tmp_path_factory.mktemp("cloud")) as started:
        yield started


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nginx]:
    folder = tmp_path_factory.mktemp("nginx")
    with nginx(folder, folder / "own", LOCATIONS) as started:
        yield started


@pytest.mark.long
def test_a_key_that_a_real_server_accepts_leads_on_and_a_wrong_one_does_not(
    proxy: OpenAiProxy, device: Device, tmp_path: Path, running: Running
) -> None:
    right = form("own", api_key=proxy.key, endpoint=proxy.endpoint)
    wrong = right | {"api_key": "sk-wrong-0123456789"}
    bare = right | {"endpoint": proxy.endpoint.removesuffix("/v1")}
    install(device, of_each_kind(""))
    with running() as app:
        rejected = ask(app, PAGE, wrong)
        assert rejected.status == 200
        assert "own provider rejected this key (HTTP 403)" in rejected.body
        assert "There is no OpenAI-style service at this address" in ask(app, PAGE, bare).body
        taken = ask(app, PAGE, right)
        assert (taken.status, taken.location) == (302, "/wizard/channels")
        assert "The key works. 2 models available." in ask(app, PAGE).body
        pages = [rejected.body, ask(app, PAGE).body, ask(app, "/wizard/review").body]
    left = [file for file in (tmp_path / "dev-out").rglob("*") if file.is_file()]
    written = "".join([*pages, *(file.read_text() for file in [*left, app.log])])
    assert proxy.key not in written
    assert "sk-wrong" not in written


@pytest.mark.long
@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, "has a problem (HTTP 500)"),
        ({"secret_access_key": SECRET_CANARY}, "rejected this key (HTTP 403)"),
        ({"api_key": "AKIAUNKNOWN0123456"}, "rejected this key (HTTP 403)"),
    ],
    ids=["right", "wrong-secret", "unknown-key"],
)
def test_a_signature_is_checked_by_another_implementation(
    cloud: Amazon, wizard: MakeWizard, device: Device, changed: dict[str, str], said: str
) -> None:
    # moto checks the signature first, and has no list of models.
    install(device, of_each_kind(cloud.endpoint))
    keys = {"api_key": cloud.access_key, "secret_access_key": cloud.secret_key}
    answer = wizard().post(PAGE, data=form("signed-cloud", **(keys | changed)))
    assert said in answer.text
    assert not any(value in answer.text for value in (*keys.values(), *changed.values()))


PLACES = {
    "amazon": ("https://bedrock-runtime.us-east-1.amazonaws.com", "us-east-1"),
    "another-region": ("https://bedrock-runtime.us-east-1.amazonaws.com", "eu-west-1"),
    "loopback": ("http://127.0.0.1:4000/some/base", "us-gov-west-1"),
    "custom": ("https://cloud.example:8443", "ap-south-2"),
}


@pytest.mark.long
def test_the_signature_matches_amazons_own_library() -> None:
    ours, asked = {}, {}
    for name, (endpoint, region) in PLACES.items():
        found = credentials("signed-cloud") | {"AWS_REGION": Secret(region)}
        request = build_request(provider("signed-cloud"), found, endpoint=endpoint)
        ours[name] = request.headers["Authorization"]
        asked[name] = {
            "url": request.url,
            "headers": {"x-amz-content-sha256": request.headers["x-amz-content-sha256"]},
            "at": request.headers["x-amz-date"],
            "access_key": found["TEST_API_KEY"].reveal(),
            "secret_key": found["AWS_SECRET_ACCESS_KEY"].reveal(),
            "region": region,
        }
    assert ours == botocore_signatures(asked)


@pytest.mark.parametrize("kind", KINDS)
def test_a_refusal_is_shown_and_a_list_of_models_leads_on(
    web: Nginx, wizard: MakeWizard, device: Device, kind: str
) -> None:
    install(device, of_each_kind(f"{web.url}/401"))
    answer = wizard().post(PAGE, data=form(kind))
    assert (answer.status_code, "HTTP 401" in answer.text) == (200, True)
    assert CANARY not in answer.text
    install(device, of_each_kind(f"{web.url}/200"))
    assert wizard().post(PAGE, data=form(kind)).status_code == 302


@pytest.mark.parametrize("good", [True, False])
def test_the_certificate_is_checked_before_a_key_is_sent(
    wizard: MakeWizard, device: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, good: bool
) -> None:
    folder = tmp_path / "certificate"
    certificate = make_certificate(folder) if good else bad("not-yet-valid", folder)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate.authority))
    with nginx(tmp_path, tmp_path / "nginx", LOCATIONS, certificate=certificate) as server:
        install(device, of_each_kind(f"{server.url}/200"))
        answer = wizard().post(PAGE, data=form("chat-compatible"))
        assert len(server.requests) == int(good)
    assert answer.status_code == (302 if good else 200)
    said = "is not valid yet, or the device&#39;s clock is wrong" in answer.text
    assert said is not good


def test_key_05_proxies_and_password_files_change_nothing(
    device: Device, tmp_path: Path, running: Running
) -> None:
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login other password other\n")
    (tmp_path / ".netrc").chmod(0o600)
    with serving({}) as other, serving({"/models": LISTING.encode()}) as server:
        proxies = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY")
        variables = dict.fromkeys(proxies, other.url)
        variables |= {"HOME": str(tmp_path), "NETRC": str(tmp_path / ".netrc"), "no_proxy": ""}
        install(device, of_each_kind(server.url))
        with running(**variables) as app:
            assert ask(app, PAGE, form("chat-compatible")).status == 302
    assert other.requests == []
    (asked,) = server.requests
    assert asked.headers["authorization"] == f"Bearer {CANARY}"


def healthz(app: Served) -> float:
    """How long `/healthz` takes."""
    began = time.monotonic()
    assert ask(app, "/healthz") == (200, "", "ok")
    return time.monotonic() - began


def test_key_07_four_slow_tests_delay_no_other_page_and_further_tests_must_wait(
    device: Device, running: Running
) -> None:
    release, lock = threading.Event(), threading.Lock()
    inside, most = 0, 0

    def answer(_: Request, connection: object) -> None:
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
        release.wait(30)
        with lock:
            inside -= 1

    with RawServer(answer) as server, ThreadPoolExecutor(20) as pool:
        install(device, of_each_kind(server.url))
        with running() as app:
            asked = [pool.submit(ask, app, PAGE, form("chat-compatible")) for _ in range(20)]
            times = [healthz(app)]
            while sum(one.done() for one in asked) < 16:
                times.append(healthz(app))
            pages = [ask(app, path).status for path in (PAGE, "/wizard/system", "/wizard/review")]
            other = ask(app, "/wizard/system", {"hostname": "agent", "timezone": "UTC"})
            assert sum(one.done() for one in asked) == 16
            release.set()
            statuses = sorted(one.result().status for one in asked)
            told = next(one.result().body for one in asked if one.result().status == 429)
            assert app.process.poll() is None
    assert (most, pages, other.status) == (4, [200] * 3, 302)
    assert statuses == [200] * 4 + [429] * 16
    assert max(times) < 2
    assert "Other keys are being tested" in told
    assert "Choose your AI provider" in told
