"""The key test against a real web server: every status, and every kind of bad certificate."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from platform_common.provider_key.check import check_key
from platform_common.provider_key.result import KeyCheck
from platform_common.records.catalogue import Kind
from tests.support.devices import Device
from tests.support.key_tests import CANARY, KINDS, credentials, provider
from tests.support.nginx import Certificate, Nginx, make_certificate, nginx

LISTING = '{"object": "list", "data": [{"id": "a"}, {"id": "b"}]}'
STATUSES = (400, 401, 403, 404, 429, 500, 503)
LOCATIONS = f"""
    location /200 {{ default_type application/json; return 200 '{LISTING}'; }}
    {"".join(f"location /{status} {{ return {status}; }}" for status in STATUSES)}
    location /moved {{ return 301 https://elsewhere.example$request_uri; }}
    location /slow {{ limit_rate 5; }}
    location /zipped {{ gzip on; gzip_types *; gzip_min_length 1; }}
    location /html {{ default_type text/html; return 200 '<h1>It works!</h1>'; }}
"""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("root")
    for name, content in {"slow": LISTING, "zipped": LISTING, "huge": " " * (2 << 20)}.items():
        (folder / name).mkdir()
        (folder / name / "models").write_text(content)
    return folder


@pytest.fixture(scope="module")
def server(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nginx]:
    with nginx(root, tmp_path_factory.mktemp("nginx"), LOCATIONS) as running:
        yield running


def ask(base: str, kind: Kind = "chat-compatible", *, ca_file: Path | None = None) -> KeyCheck:
    return check_key(
        provider(kind), credentials(kind), endpoint=base, model="m", limit_s=2, ca_file=ca_file
    ).check


@pytest.mark.parametrize("kind", KINDS)
def test_a_list_of_models_passes(kind: Kind, server: Nginx) -> None:
    check = ask(f"{server.url}/200", kind)
    assert (check.ok, check.http_status, check.models) == (True, 200, 2)
    assert check.message == "The key works. 2 models available"


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_other_status_fails_with_its_explanation(
    kind: Kind, status: int, server: Nginx
) -> None:
    check = ask(f"{server.url}/{status}", kind)
    assert (check.ok, check.http_status) == (False, status)
    assert f"HTTP {status}" in check.message
    assert CANARY not in repr(check)


@pytest.mark.parametrize(
    ("place", "ok", "said"),
    [
        (
            "moved",
            False,
            "redirects to https://elsewhere.example; the key was not sent there (HTTP 301)",
        ),
        ("slow", False, "did not answer within 2 s"),
        ("huge", False, "sent a response that is too large"),
        ("html", True, "accepted the request but did not return a list of models"),
        ("zipped", True, "The key works. 2 models available"),
    ],
)
def test_key_04_and_key_06_odd_responses_are_reported(
    place: str, ok: bool, said: str, server: Nginx
) -> None:
    check = ask(f"{server.url}/{place}")
    assert check.ok is ok
    assert check.message.endswith(said)


def bad(name: str, folder: Path) -> Certificate:
    """A certificate with the fault in `name`."""
    if name == "expired":
        return make_certificate(folder, made_on="2020-01-01")
    if name == "not-yet-valid":
        return make_certificate(folder, made_on="2037-01-01")
    if name == "wrong-name":
        return make_certificate(folder, "DNS:elsewhere.example")
    made = make_certificate(folder)
    if name == "self-signed":
        return Certificate(made.chain, made.authority, folder / "authority.key")
    return Certificate(make_certificate(folder / "another").authority, made.chain, made.key)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("expired", "is not trusted: it has expired"),
        ("not-yet-valid", "is not valid yet, or the device's clock is wrong ("),
        ("wrong-name", "is not trusted: it is for another address"),
        ("self-signed", "is not trusted: it is self-signed"),
        ("unknown", "is not trusted: it is signed by an authority that this device does not know"),
    ],
)
def test_a_bad_certificate_is_reported(name: str, why: str, root: Path, tmp_path: Path) -> None:
    certificate = bad(name, tmp_path)
    with nginx(root, tmp_path / "nginx", LOCATIONS, certificate=certificate) as server:
        check = ask(f"{server.url}/200", ca_file=certificate.authority)
        assert server.requests == []
    assert not check.ok
    assert check.message.startswith(f"The certificate of {server.url.removeprefix('https://')} ")
    assert why in check.message


def test_a_server_without_tls_is_reported(server: Nginx) -> None:
    check = ask(f"{server.url}/200".replace("http:", "https:"))
    host = server.url.removeprefix("http://")
    assert check.message == f"This device could not set up a TLS connection to {host}"
    assert "http://" in check.hint


def test_clk_01_a_wrong_clock_is_reported_instead_of_an_invalid_certificate(
    certificate: Certificate, root: Path, tmp_path: Path, device: Device
) -> None:
    device.put("/etc/platform/secrets.env", "OPENAI_API_KEY=sk-1\n", mode=0o600)
    device.put("/etc/platform/active-provider", "openai\n")
    device.environment["SSL_CERT_FILE"] = str(certificate.authority)
    with nginx(root, tmp_path / "nginx", LOCATIONS, certificate=certificate) as server:
        device.put("/etc/platform/active-endpoint", f"{server.url}/200\n")
        now = device.ctl("model", "test")
        then = device.ctl("model", "test", clock="1970-01-02 12:00:00")
    assert (now.returncode, now.stderr) == (0, "")
    assert then.returncode == 1
    assert "error: The device's clock is wrong (1970-01-02)\n" in then.stderr
