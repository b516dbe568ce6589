"""The voice page, and switching voice from it."""

from __future__ import annotations

import re
from collections.abc import Hashable
from concurrent.futures import ThreadPoolExecutor

import pytest
from flask.testing import FlaskClient

from tests.pwa_app.conftest import Dashboard
from tests.support import system_states
from tests.support.control_cli import FakeCtl
from tests.support.system_states import NO_MICROPHONE, STATES, WORKING_MICROPHONE, voice
from tests.support.waiting import wait_until

CONSENT = {"consent": "1"}
CHECK, ENABLE, DISABLE = "voice check --json", "voice enable --yes", "voice disable"
HINTED = "warning: x\nerror: This device has no voice: it is too slow\nhint: Buy another\n"


@pytest.fixture
def fine(ctl: FakeCtl) -> FakeCtl:
    """A control CLI of a device that supports voice, which is off."""
    system_states.fine(ctl)
    return ctl


def page(client: FlaskClient) -> str:
    answer = client.get("/app/voice")
    assert answer.status_code == 200
    return answer.text


def said(client: FlaskClient, action: str, **form: str) -> str:
    """The message on the page after the action."""
    answer = client.post(f"/app/voice/{action}", data=form)
    assert (answer.status_code, answer.headers["Location"]) == (302, "/app/voice")
    shown = page(client)
    return shown.partition('class="flash')[2].partition("</div>")[0]


@pytest.mark.parametrize(
    ("state", "there", "not_there"),
    [
        (
            "fine",
            ["Off", "jeeves", "whisper-base.en", "plughw:1,0", 'action="/app/voice/enable"'],
            ['action="/app/voice/disable"'],
        ),
        (
            "voice-listening",
            ["Listening", 'action="/app/voice/disable"'],
            ['action="/app/voice/enable"', 'action="/app/voice/check"', "systemctl"],
        ),
        (
            "voice-on-but-not-running",
            ["On, but not running", "systemctl status platform-voice-relay.service"],
            ['action="/app/voice/enable"'],
        ),
        (
            "voice-off-but-running",
            ["Off, but still running", 'action="/app/voice/disable"'],
            ['action="/app/voice/check"'],
        ),
        (
            "without-voice",
            ["Not on this device", "Its processor is too slow", "Use voice on rpi5."],
            ["<form", "jeeves"],
        ),
        ("without-members", ["Not on this device", "do not include voice"], ["<form"]),
        ("failing", ["Unknown", 'class="stub"'], ["<form", "Not on this device"]),
        ("hostile", ["&lt;script&gt;alert"], ["<script>alert"]),
    ],
)
def test_the_page_shows_the_voice_settings_and_offers_changes(
    client: FlaskClient, ctl: FakeCtl, state: str, there: list[str], not_there: list[str]
) -> None:
    STATES[state](ctl)
    shown = page(client)
    assert [text for text in there if text not in shown] == []
    assert [text for text in not_there if text in shown] == []
    assert ctl.words() == ["voice status --json"]


@pytest.mark.parametrize(
    ("heard", "sentence"),
    [
        (WORKING_MICROPHONE, "The microphone works. The loudest sound was 12 dB below"),
        ({"ok": True}, "The microphone works."),
        (NO_MICROPHONE, "The microphone does not work: There is no microphone at plughw:1,0"),
        ({"device": "default"}, "The microphone does not work: default"),
        ("nonsense", "The microphone could not be checked: "),
    ],
    ids=["works", "works-without-a-level", "none", "no-reason", "no-answer"],
)
def test_a_check_shows_the_result_and_changes_nothing(
    client: FlaskClient, fine: FakeCtl, heard: object, sentence: str
) -> None:
    fine.answer(CHECK, heard, status=0 if heard == WORKING_MICROPHONE else 1)
    assert sentence in said(client, "check")
    assert fine.words() == [CHECK, "voice status --json"]


def test_consent_and_a_microphone_switch_voice_on(client: FlaskClient, fine: FakeCtl) -> None:
    assert "Voice is on." in said(client, "enable", **CONSENT)
    fine.answer("voice status --json", voice(enabled=True, active=True))
    assert "Listening" in page(client)
    assert "Voice is off." in said(client, "disable")
    shown = "voice status --json"
    assert fine.words() == [CHECK, ENABLE, shown, shown, DISABLE, shown]


def test_an_answer_from_before_a_change_is_not_shown(client: FlaskClient, fine: FakeCtl) -> None:
    fine.answer("voice status --json", voice(), held=True)
    with ThreadPoolExecutor(1) as pool:
        early = pool.submit(page, client.application.test_client())
        wait_until(fine.begun)
        fine.answer("voice status --json", voice(enabled=True, active=True))
        client.post("/app/voice/enable", data=CONSENT)
        assert "Listening" in page(client)
        fine.release()
        assert "Listening" not in early.result()


@pytest.mark.parametrize("form", [{}, {"consent": ""}, {"consent": "0"}, {"consent": "on"}])
def test_without_consent_no_change_is_requested(
    client: FlaskClient, fine: FakeCtl, form: dict[str, str]
) -> None:
    assert "Voice stays off" in said(client, "enable", **form)
    assert fine.words() == ["voice status --json"]


@pytest.mark.parametrize(
    "heard", [NO_MICROPHONE, {**WORKING_MICROPHONE, "ok": False}, {}, "", "[]"], ids=ascii
)
def test_without_a_working_microphone_voice_stays_off(
    client: FlaskClient, fine: FakeCtl, heard: object
) -> None:
    fine.answer(CHECK, heard)
    assert "The microphone" in said(client, "enable", **CONSENT)
    assert ENABLE not in fine.words()


@pytest.mark.parametrize(
    ("action", "errors", "sentence"),
    [
        ("enable", HINTED, "Voice was not switched on: This device has no voice: it is too slow<"),
        (
            "disable",
            HINTED,
            "Voice was not switched off: This device has no voice: it is too slow<",
        ),
        ("disable", "", "Voice was not switched off: exit code 3"),
        ("disable", "one\ntwo\n", "Voice was not switched off: two"),
        ("disable", "error: <b>\x1b[1m\n", "not switched off: &lt;b&gt;\\x1b[1m"),
    ],
)
def test_a_failed_switch_is_reported_without_the_hint(
    client: FlaskClient, fine: FakeCtl, action: str, errors: str, sentence: str
) -> None:
    fine.answer(ENABLE if action == "enable" else DISABLE, status=3, errors=errors)
    told = said(client, action, **CONSENT)
    assert sentence in re.sub(r"</?span[^>]*>", "", told) + "<"
    assert "Buy another" not in told


@pytest.mark.parametrize(
    ("action", "sentence"),
    [
        ("check", "(dev-stub) would check the microphone"),
        ("enable", "(dev-stub) would switch voice on"),
        ("disable", "(dev-stub) would switch voice off"),
    ],
)
def test_in_dev_stub_mode_no_program_is_run(
    dashboard: Dashboard, fine: FakeCtl, action: str, sentence: str
) -> None:
    client = dashboard(PWA_DEV_STUB="1")
    assert sentence in said(client, action, **CONSENT)
    assert fine.words() == []


def test_two_concurrent_checks_share_one_recording(
    client: FlaskClient, fine: FakeCtl, joined: list[Hashable]
) -> None:
    fine.answer(CHECK, WORKING_MICROPHONE, held=True)
    app = client.application
    with ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(app.test_client().post, "/app/voice/check") for _ in range(2)]
        wait_until(lambda: len(joined) == 2)
        fine.release()
        assert [answer.result().status_code for answer in asked] == [302, 302]
    assert fine.words() == [CHECK]


@pytest.mark.parametrize(
    "address", ["voice/check", "voice/enable", "voice/disable", "keys/rotate", "keys/test"]
)
def test_http_12_a_get_request_changes_nothing(
    client: FlaskClient, fine: FakeCtl, address: str
) -> None:
    answer = client.get(f"/app/{address}")
    assert (answer.status_code, set(answer.allow) - {"OPTIONS"}) == (405, {"POST"})
    # An address that might belong to a provider is looked up.
    assert set(fine.words()) <= {"model list --json"}


def test_key_16_this_page_does_not_consume_messages_about_keys(client: FlaskClient) -> None:
    client.post("/app/keys/rotate", data={"provider": "openai"})
    assert "Provider and key are both required." not in client.get("/app/voice").text
    assert "Provider and key are both required." in client.get("/app/keys").text


def test_head_requests_and_prefetches_do_not_consume_a_message(client: FlaskClient) -> None:
    client.post("/app/voice/enable")
    client.head("/app/voice")
    client.get("/app/voice", headers={"Sec-Purpose": "prefetch"})
    assert "Voice stays off" in client.get("/app/voice").text
    assert "Voice stays off" not in client.get("/app/voice").text
