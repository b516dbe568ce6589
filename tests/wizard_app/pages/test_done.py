"""The last page: the next steps, the state of the gateway, the record, and signing out."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from tests.support.devices import Device
from tests.support.markup import parse_errors
from tests.support.raw_server import serving
from tests.support.wizard_states import SECRETS, SSH_KEY
from tests.wizard_app.conftest import MakeReady, MakeWizard
from wizard_app.app import create_app
from wizard_app.launch import launch_url
from wizard_app.pages import done
from wizard_app.setup.settings import WizardSettings

APPLY, DONE, GATEWAY = "/wizard/review/apply", "/wizard/done", "/wizard/done/gateway"
RECORD, SIGN_OUT = "/wizard/record.json", "/wizard/sign-out"
PROFILE = """
[profile]
id = "openclaw"
display_name = "OpenClaw"
pinned_version = "2026.2.1"
[paths]
data_dir = "~/.openclaw"
[service]
unit = "openclaw-gateway.service"
[health]
http_check = "http://127.0.0.1:{port}/health"
[channels]
supported = ["telegram"]
"""


def finished(ready: MakeReady, device: Device, port: int = 1) -> FlaskClient:
    """A client of a completed wizard whose gateway is at `port`."""
    device.put("/etc/platform/profiles/openclaw.toml", PROFILE.format(port=port))
    client = ready()
    assert client.post(APPLY).location == DONE
    return client


def page(client: FlaskClient, base: str = "http://192.0.2.9:8088") -> str:
    """The last page, requested at `base`."""
    answer = client.get(DONE, base_url=base)
    assert answer.status_code == 200
    assert answer.headers["Cache-Control"] == "no-store"
    assert parse_errors(answer.text) == []
    return answer.text


def test_before_the_end_these_pages_redirect_to_the_current_step(client: FlaskClient) -> None:
    for path in (DONE, GATEWAY, RECORD):
        assert client.get(path).location == "/wizard/system"


def test_the_page_says_what_comes_next(
    ready: MakeReady, device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch_url, "network_addresses", lambda: ["192.0.2.9"])
    client = finished(ready, device)
    text = page(client)
    assert "<h1>agent-kitchen is ready</h1>" in text
    assert 'href="/chat"' in text
    assert re.findall(r'<li><a href="([^"]+)"', text) == [
        "http://agent-kitchen.local:8089",
        "http://192.0.2.9:8089",
    ]
    assert 'src="data:image/svg+xml' in text
    assert "ssh agent@agent-kitchen.local" in text
    assert "your tunnel kitchen" in text
    assert "has joined your private network" in text
    # In dev mode the dashboard on this machine is mentioned, too.
    monkeypatch.setattr(launch_url, "network_addresses", list)
    text = page(client, "http://127.0.0.1:8088")
    assert re.findall(r'<li><a href="([^"]+)"', text)[0] == "http://127.0.0.1:8089"


def test_parts_that_were_not_chosen_are_not_mentioned(ready: MakeReady) -> None:
    client = ready()
    client.post("/wizard/ssh", data={"ssh_keys": ""})
    client.post("/wizard/mesh-vpn", data={"skip": "1"})
    client.post("/wizard/tunnel", data={"choice": "quick"})
    assert client.post(APPLY).location == DONE
    text = page(client)
    assert "ssh agent@" not in text
    assert "has joined your private network" not in text
    assert "public address changes at every restart" in text


def test_a_gateway_that_answers_is_ready(ready: MakeReady, device: Device) -> None:
    with serving({"/health": b"ok"}) as gateway:
        client = finished(ready, device, int(gateway.url.rpartition(":")[2]))
        assert "Ready" in page(client)
        part = client.get(GATEWAY).text
    assert "Ready" in part
    assert "data-poll" not in part


def test_a_gateway_without_an_answer_is_starting_and_later_not_answering(
    ready: MakeReady, device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = finished(ready, device)
    text = page(client)
    assert "Starting" in text
    assert 'http-equiv="refresh"' in text
    assert f'data-poll="{GATEWAY}"' in client.get(GATEWAY).text
    monkeypatch.setattr(done, "_STARTING_S", 0)
    text = page(client)
    assert "Not answering yet" in text
    assert "View logs" in text
    assert 'http-equiv="refresh"' not in text
    # A profile that was removed causes no failure.
    device.put("/etc/platform/profiles/openclaw.toml", PROFILE.replace("openclaw", "another"))
    assert "Its profile is no longer installed." in page(client)


def test_the_record_contains_the_answers_and_the_actions(ready: MakeReady, device: Device) -> None:
    client = finished(ready, device)
    answer = client.get(RECORD)
    assert answer.content_type == "application/json"
    assert "attachment" in answer.headers["Content-Disposition"]
    assert "setup-record-agent-kitchen.json" in answer.headers["Content-Disposition"]
    record = json.loads(answer.data)
    assert record["device"] == record["answers"]["hostname"] == "agent-kitchen"
    assert record["answers"]["ssh_keys"] == [SSH_KEY]
    assert record["software"]["profile"] == "2026.2.1"
    assert {action["state"] for action in record["actions"]} == {"done"}
    assert len(record["actions"]) == 17
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", record["completed_at"])
    assert [secret for secret in SECRETS if secret in answer.text] == []


def test_wiz_19_an_unset_clock_is_reported_and_a_time_in_1970_is_never_trusted(
    ready: MakeReady, wizard: MakeWizard, device: Device, state_file: Path
) -> None:
    client = finished(ready, device)
    for is_set in (False, True):
        if is_set:
            device.put("/run/systemd/timesync/synchronized", "")
        assert json.loads(client.get(RECORD).data)["clock_synchronised"] is is_set
        assert ("times in the record may be wrong" in page(client)) is not is_set
    state = json.loads(state_file.read_text())
    state_file.write_text(json.dumps(state | {"completed_at": "1970-01-01T00:00:07Z"}))
    assert json.loads(wizard().get(RECORD).data)["clock_synchronised"] is False


def test_ses_13_signing_out_ends_one_session_and_others_continue(wizard: MakeWizard) -> None:
    tokens = ("ab" * 32, "cd" * 32)
    client = wizard(WIZARD_TOKEN=tokens[0], WIZARD_NO_TOKEN="0")
    assert client.get(f"/wizard/system?token={tokens[0]}").status_code == 200
    client.application.extensions["wizard_gate"].tokens.write(tokens[1])
    other = client.application.test_client()
    other.get(f"/?token={tokens[1]}")
    session = client.get_cookie("platform-session")
    assert session is not None
    answer = client.post(SIGN_OUT)
    assert answer.status_code == 200
    assert "You are signed out" in answer.text
    assert "Max-Age=0" in answer.headers["Set-Cookie"]
    assert client.get("/wizard/system").status_code == 401
    client.set_cookie("platform-session", session.value)
    for path in ("/wizard/system", "/chat"):
        assert client.get(path).status_code == 401
    assert other.get("/wizard/system").status_code == 200
    # The session of the request itself ends, too.
    client = wizard(WIZARD_TOKEN=tokens[0], WIZARD_NO_TOKEN="0")
    assert "You are signed out" in client.post(f"{SIGN_OUT}?token={tokens[0]}").text
    assert client.get("/wizard/system").status_code == 401


def test_the_page_shows_the_end_of_the_session_and_signing_out_works_without_sessions(
    environment: dict[str, str], device: Device, ready: MakeReady
) -> None:
    answer = finished(ready, device).post(SIGN_OUT)
    assert "Nobody is signed in here" in answer.text
    assert "Set-Cookie" not in answer.headers
    locked = environment | {"WIZARD_NO_TOKEN": "", "WIZARD_TOKEN": "ab" * 32}
    client = create_app(WizardSettings.from_env(locked)).test_client()
    text = client.get(f"{DONE}?token={'ab' * 32}").text
    assert re.search(r"setup session ends at \d\d:\d\d", text)
    assert "Sign out" in text
