"""The routes of Web Push."""

from __future__ import annotations

import http.client
import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from pwa_app.push.subscriptions import FILE
from tests.pwa_app.conftest import Dashboard
from tests.pwa_app.push.test_subscriptions import BAD_BODIES, GOOD, at
from tests.support.control_cli import FakeCtl
from tests.support.devices import Device
from tests.support.odd_files import make
from tests.support.web_servers import served

TEXT = "text/plain; charset=utf-8"
FOLDER = "/var/lib/platform"


@pytest.fixture
def kept(device: Device) -> Path:
    """The file with the subscriptions."""
    return device.path(f"{FOLDER}/{FILE}")


def post(
    client: FlaskClient,
    body: Any,
    *,
    to: str = "subscribe",
    address: str = "127.0.0.1",
    **more: Any,
) -> TestResponse:
    return client.post(
        f"/app/push/{to}",
        data=body if isinstance(body, bytes) else json.dumps(body),
        environ_base={"REMOTE_ADDR": address},
        **{"content_type": "application/json", **more},
    )


def said(response: TestResponse) -> tuple[int, str, str]:
    return response.status_code, response.headers["Content-Type"], response.text


def test_each_subscription_is_one_line_until_it_ends(client: FlaskClient, kept: Path) -> None:
    def lines() -> list[Any]:
        return [json.loads(line) for line in kept.read_bytes().splitlines()]

    other = at("https://push.example.com/other")
    for body in (GOOD, other, GOOD):
        assert said(post(client, body)) == (201, TEXT, "ok")
    assert lines() == [GOOD, other, GOOD]
    assert stat.S_IMODE(kept.stat().st_mode) == 0o640
    for leaving in ({"endpoint": GOOD["endpoint"]}, GOOD):
        assert said(post(client, leaving, to="unsubscribe")) == (200, TEXT, "ok")
        assert lines() == [other]


def test_a_variable_moves_the_folder_of_the_data(
    dashboard: Dashboard, tmp_path: Path, device: Device
) -> None:
    client = dashboard(PWA_DATA_DIR=str(tmp_path / "data"))
    assert post(client, GOOD).status_code == 201
    assert client.get("/app/push/vapid-public").text
    names = {path.name for path in (tmp_path / "data").iterdir()}
    assert {FILE, "vapid.pem"} <= names
    assert not any(device.root.rglob("*"))


@pytest.mark.parametrize(
    "body",
    [
        *(pytest.param(BAD_BODIES[name], id=name) for name in ("nothing", "no-keys", "escape")),
        pytest.param(json.dumps(at("https://192.168.1.1/x")).encode(), id="inside-the-network"),
    ],
)
def test_push_01_and_03_an_invalid_subscription_is_400_with_a_reason_and_not_stored(
    client: FlaskClient, kept: Path, body: bytes
) -> None:
    status, kind, reason = said(post(client, body))
    assert (status, kind) == (400, TEXT)
    assert reason.isprintable()
    assert reason
    assert not kept.exists()


@pytest.mark.parametrize("to", ["subscribe", "unsubscribe"])
def test_d7_another_content_type_is_415(client: FlaskClient, kept: Path, to: str) -> None:
    for kind in (
        *(None, "", "text/plain", "application/x-www-form-urlencoded"),
        "multipart/form-data; boundary=x",
    ):
        assert post(client, GOOD, to=to, content_type=kind).status_code == 415
    assert not kept.exists()
    assert post(client, GOOD, to=to, content_type="Application/JSON; charset=utf-8").text == "ok"


@pytest.mark.parametrize("to", ["subscribe", "unsubscribe"])
def test_d7_a_body_over_16_kib_is_413(client: FlaskClient, to: str) -> None:
    body = json.dumps(GOOD).encode()
    most = 16 << 10
    good = 201 if to == "subscribe" else 200
    assert post(client, body.ljust(most), to=to).status_code == good
    for length in (most + 1, 1 << 20):
        assert post(client, body.ljust(length), to=to).status_code == 413


def test_d7_too_many_requests_from_one_address_are_429(client: FlaskClient, kept: Path) -> None:
    for number in range(10):
        body = at(f"https://push.example.com/{number}")
        assert post(client, body, address="192.0.2.7").status_code == 201
    for to in ("subscribe", "unsubscribe"):
        refused = post(client, at("https://push.example.com/more"), to=to, address="192.0.2.7")
        assert refused.status_code == 429
        assert 0 < int(refused.headers["Retry-After"]) <= 60
    assert post(client, at("https://push.example.com/else"), address="192.0.2.8").status_code == 201
    for _ in range(30):
        assert post(client, GOOD).status_code == 201
    assert len(kept.read_bytes().splitlines()) == 41


def test_d7_a_full_file_is_507(client: FlaskClient, kept: Path) -> None:
    kept.write_bytes(b"{}\n" * 1000)
    status, kind, reason = said(post(client, GOOD))
    assert (status, kind) == (507, TEXT)
    assert "store any more subscriptions" in reason
    assert kept.read_bytes() == b"{}\n" * 1000


@pytest.mark.parametrize("to", ["subscribe", "unsubscribe"])
def test_fs_02_a_failed_write_is_a_500_page_and_the_next_one_works(
    client: FlaskClient, kept: Path, caplog: pytest.LogCaptureFixture, to: str
) -> None:
    make("folder", kept)
    refused = post(client, GOOD, to=to)
    assert said(refused)[:2] == (500, "text/html; charset=utf-8")
    assert "could not write the subscription" in refused.text
    assert GOOD["endpoint"] not in refused.text
    (line,) = caplog.messages
    assert f"{kept} is not a regular file" in line
    assert GOOD["endpoint"] not in line
    kept.rmdir()
    assert post(client, GOOD).status_code == 201
    assert post(client, GOOD, to=to).status_code in (200, 201)


def test_fs_01_a_full_disk_is_500_and_leaves_no_part_of_a_line(
    client: FlaskClient, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert post(client, GOOD).status_code == 201
    before = kept.read_bytes()
    write = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda file, data: write(file, data[:20]))
        refused = post(client, at("https://push.example.com/2"))
    assert (refused.status_code, refused.mimetype) == (500, "text/html")
    assert kept.read_bytes() == before
    assert post(client, at("https://push.example.com/2")).status_code == 201


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b"{}", b'{"endpoint": null}', b'{"endpoint": ["x"]}'],
    ids=["nothing", "cut", "array", "null", "empty", "endpoint-null", "endpoint-array"],
)
def test_unsubscribing_requires_an_endpoint(client: FlaskClient, body: bytes) -> None:
    status, kind, reason = said(post(client, body, to="unsubscribe"))
    assert (status, kind) == (400, TEXT)
    assert reason


# The key.


def test_push_07_the_public_key_is_text_or_empty(client: FlaskClient, device: Device) -> None:
    status, kind, key = said(client.get("/app/push/vapid-public"))
    assert (status, kind, len(key)) == (200, TEXT, 87)
    assert client.get("/app/push/vapid-public").text == key
    path = device.path(f"{FOLDER}/vapid.pem")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_text("nothing of use")
    assert said(client.get("/app/push/vapid-public")) == (200, TEXT, "")


def test_push_08_no_page_shows_key_or_subscriptions(client: FlaskClient, device: Device) -> None:
    client.get("/app/push/vapid-public")
    post(client, GOOD)
    lines = device.path(f"{FOLDER}/vapid.pem").read_text().splitlines()
    secrets = [*lines, GOOD["endpoint"], GOOD["keys"]["auth"], GOOD["keys"]["p256dh"]]
    rules = [rule for rule in client.application.url_map.iter_rules() if not rule.arguments]
    pages = [rule.rule for rule in rules if "GET" in (rule.methods or ())]
    assert {"/app/notifications", "/app/push/vapid-public", "/sw.js"} <= set(pages)
    for page in [*pages, "/vapid.pem", "/static/vapid.pem", "/app/push/vapid.pem"]:
        text = client.get(page).get_data(as_text=False).decode("utf-8", "replace")
        assert not [secret for secret in secrets if secret in text], page


def test_http_12_only_the_address_of_the_key_creates_a_file(
    client: FlaskClient, device: Device
) -> None:
    for page in ("/app/notifications", "/offline", "/sw.js", "/manifest.webmanifest"):
        assert client.get(page).status_code == 200
    assert not any(device.root.rglob("*"))
    client.get("/app/push/vapid-public")
    files = [path for path in device.root.rglob("*") if not path.is_dir()]
    assert [path.name for path in files] == ["vapid.pem"]


# With the real server.


def test_d7_the_served_app_limits_a_body_without_a_length_and_handles_many_requests_at_once(
    device: Device, ctl: FakeCtl, tmp_path: Path, kept: Path
) -> None:
    environment = ctl.environment | {"PLATFORM_ROOT": str(device.root)}
    bodies = [json.dumps(at(f"https://push.example.com/{number}")) for number in range(65)]
    with served("pwa-app", environment, tmp_path / "log") as app:

        def ask(method: str, path: str, body: Any = None, **options: Any) -> tuple[int, str]:
            connection = http.client.HTTPConnection("127.0.0.1", app.port, timeout=60)
            headers = {"Content-Type": "application/json"}
            connection.request(method, f"/app/push/{path}", body, headers, **options)
            answer = connection.getresponse()
            text = answer.read().decode()
            connection.close()
            return answer.status, text

        for length, status in ((0, 201), (17 << 10, 413)):
            chunks = iter([bodies[64].encode(), b" " * length])
            assert ask("POST", "subscribe", chunks, encode_chunked=True)[0] == status
        with ThreadPoolExecutor(64) as pool:
            keys = list(pool.map(lambda _: ask("GET", "vapid-public"), range(100)))
            answers = list(pool.map(lambda body: ask("POST", "subscribe", body), bodies[:64]))
    assert len(set(keys)) == 1
    assert len(keys[0][1]) == 87
    assert answers == [(201, "ok")] * 64
    found = [json.loads(line)["endpoint"] for line in kept.read_bytes().splitlines()]
    assert sorted(found) == sorted(json.loads(body)["endpoint"] for body in bodies)
