"""Sessions that end, secrets that are wiped, and a host name that changes during setup."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from flask import Flask

from tests.support.wizard_apply import Commands, wizard_with
from tests.support.wizard_states import ANSWERS, SECRETS, TOKEN, answer

APPLY = "/wizard/review/apply"
_LONGEST_S = 120


@pytest.fixture
def make(environment: dict[str, str]) -> Callable[[Commands], Flask]:
    """Make a wizard that asks for its token."""
    locked = environment | {"WIZARD_NO_TOKEN": "", "WIZARD_TOKEN": TOKEN}
    return lambda commands: wizard_with(commands, locked)


def _apply_and_sign_out(app: Flask, commands: Commands) -> str | None:
    """Start applying, then sign out and wipe all secrets; return where the form redirects."""
    client = app.test_client()
    assert client.get(f"/?token={TOKEN}").status_code == 302
    for slug, fields in ANSWERS.items():
        assert client.post(f"/wizard/{slug}", data=fields).status_code == 302
    led: list[str | None] = []
    pressing = threading.Thread(target=lambda: led.append(client.post(APPLY).location))
    pressing.start()
    assert commands.is_waiting.wait(_LONGEST_S)
    other = app.test_client()
    cookie = client.get_cookie("platform-session")
    assert cookie is not None
    other.set_cookie(cookie.key, cookie.value)
    assert other.post("/wizard/sign-out").status_code == 200
    assert other.get("/wizard/apply/status").status_code == 401
    app.extensions["wizard_app"].forget_secrets()
    commands.go_on.set()
    pressing.join(_LONGEST_S)
    assert not pressing.is_alive()
    return led[0]


def test_wiz_07_a_running_setup_continues_and_lost_secrets_are_asked_for(
    make: Callable[[Commands], Flask], out: Path
) -> None:
    commands = Commands(slow="hostnamectl", failing="tailscale")
    app = make(commands)
    assert _apply_and_sign_out(app, commands) is None
    assert SECRETS[0] in (out / "etc/platform/secrets.env").read_text()
    lost = {lack.step.slug for lack in app.extensions["wizard_app"].snapshot().lost()}
    assert lost == {"mesh-vpn", "tunnel"}
    assert not (out / "etc/platform/tunnel/credentials.json").exists()


def test_wiz_07_a_running_setup_continues_to_its_end(make: Callable[[Commands], Flask]) -> None:
    commands = Commands(slow="hostnamectl")
    assert _apply_and_sign_out(make(commands), commands) == "/wizard/done"


def test_wiz_13_a_browser_at_the_old_host_name_gets_the_last_page(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as before:
        before.setattr(socket, "gethostname", lambda: "Old-Name")
        app = wizard_with(Commands(), environment)
    answer(app, ANSWERS)
    client, here = app.test_client(), "http://old-name:8088/"
    assert client.get("/wizard/review", base_url=here).status_code == 200
    leads = client.post(APPLY, base_url=here).location
    assert leads == "/wizard/done"
    assert client.get(leads, base_url=here).status_code == 200
    # The new host name works as well, but no other.
    assert client.get(leads, base_url=f"http://{socket.gethostname()}:8088/").status_code == 200
    assert client.get(leads, base_url="http://another-name:8088/").status_code == 421
