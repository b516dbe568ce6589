"""The step that lets the device be reached from the internet."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from platform_common.decoding import DecodingError, shaped
from tests.support.tunnel_credentials import BAD_NAMES, CANARY, GOOD, ID, ODD, credentials
from tests.support.wizard_secrets import found, held
from tests.wizard_app.conftest import MakeWizard
from wizard_app.steps.tunnel import TunnelAnswer

URL = "/wizard/tunnel"
NAMED = {"choice": "named"}
LOST = "Tunnel credentials – enter again"


def answers(state_file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(state_file.read_bytes())["answers"]
    return found


def uploaded(data: bytes, **fields: str) -> dict[str, Any]:
    """A form as a browser sends it with a file."""
    return {**NAMED, **fields, "credentials_file": (io.BytesIO(data), "credentials.json")}


def test_one_of_the_three_choices_is_taken_and_nothing_else(
    client: FlaskClient, state_file: Path
) -> None:
    for fields in (
        *({}, {"choice": ""}, {"choice": "other"}, {"choice": "NAMED"}),
        {"credentials": credentials()},
    ):
        answer = client.post(URL, data=fields)
        assert answer.status_code == 200
        assert answer.text.count("Select how this device is reached") == 2
        assert '<a href="#choice">' in answer.text
    assert not state_file.exists()
    for choice in ("skip", "quick"):
        # What was typed for another choice counts for nothing.
        answer = client.post(URL, data={"choice": choice, "credentials": "no JSON"})
        assert (answer.status_code, answer.location) == (302, "/wizard/backup")
        assert answers(state_file) == {"tunnel_choice": choice, "tunnel_name": ""}
        assert held(client, "tunnel") == {}


def test_tun_01_credentials_are_taken_whole(client: FlaskClient, state_file: Path) -> None:
    for text, name in GOOD.values():
        answer = client.post(URL, data={**NAMED, "credentials": text})
        assert (answer.status_code, answer.location) == (302, "/wizard/backup")
        assert answers(state_file) == {"tunnel_choice": "named", "tunnel_name": name}
        assert held(client, "tunnel") == {"credentials": text}


def test_tun_01_odd_credentials_are_refused_in_words(client: FlaskClient, state_file: Path) -> None:
    for case, (text, error) in ODD.items():
        answer = client.post(URL, data={**NAMED, "credentials": text})
        assert answer.status_code == 200, case
        assert '<div class="error">' in answer.text, case
        assert answer.text.count(error) == 2, case
        assert found(CANARY, answer.text) == [], case
    assert not state_file.exists()
    assert held(client, "tunnel") == {}


def test_tun_01_odd_files_are_refused_in_words(client: FlaskClient, state_file: Path) -> None:
    for data, error in (
        (b"\xff\xfe{\0}\0", "the JSON is not UTF-8 (byte 0)"),
        (b'{"TunnelID": "a\xff"}', "the JSON is not UTF-8 (byte 15)"),
        (b'{"TunnelID": "\xed\xa0\x80"}', "not UTF-8"),
        (b"\xef\xbb\xbf{}", "byte-order mark"),
        (bytes(70000), "64 KiB or smaller"),
        (b"\x7fELF\x02", "not valid JSON"),
        (b"[" * 65536, "nested too deeply"),
    ):
        answer = client.post(URL, data=uploaded(data))
        assert answer.status_code == 200
        assert answer.text.count(error) == 2, data[:20]
    cut = client.post(URL, data=uploaded(credentials().encode()[:-1]))
    assert found(CANARY, cut.text) == []
    # What is larger than a form may be has its page, typed or as a file.
    for fields in ({**NAMED, "credentials": "[" * (1 << 20)}, uploaded(bytes(300_000))):
        assert client.post(URL, data=fields).status_code == 413
    assert not state_file.exists()


def test_credentials_come_as_a_file_too(client: FlaskClient, state_file: Path) -> None:
    assert 'enctype="multipart/form-data"' in client.get(URL).text
    text = credentials(TunnelName="kitchen", note="ü")
    answer = client.post(URL, data=uploaded(text.encode(), credentials="\r\n "))
    assert answer.status_code == 302
    assert answers(state_file)["tunnel_name"] == "kitchen"
    assert held(client, "tunnel") == {"credentials": text}


def test_a_named_tunnel_needs_credentials_in_one_way(client: FlaskClient) -> None:
    for fields in (
        *(NAMED, {**NAMED, "credentials": " \r\n"}, {**NAMED, "keep": "1"}, uploaded(b"")),
    ):
        answer = client.post(URL, data=fields)
        assert answer.status_code == 200
        assert answer.text.count("Paste the credentials of your tunnel, or choose their file") == 2
        assert '<a href="#credentials">' in answer.text
    data = uploaded(credentials().encode(), credentials=credentials())
    answer = client.post(URL, data=data)
    assert "Paste the credentials or choose their file, not both" in answer.text
    assert found(CANARY, answer.text) == []
    assert held(client, "tunnel") == {}


def test_credentials_that_are_held_can_be_kept(client: FlaskClient, state_file: Path) -> None:
    assert 'name="keep"' not in client.get(URL).text
    client.post(URL, data={**NAMED, "credentials": credentials()})
    page = client.get(URL).text
    assert 'name="keep" type="checkbox" value="1" checked' in page
    assert f"They are for the tunnel {ID}" in page
    assert client.post(URL, data={**NAMED, "keep": "1", "credentials": ""}).status_code == 302
    assert answers(state_file)["tunnel_name"] == ID
    assert held(client, "tunnel") == {"credentials": credentials()}
    # Without the box they are asked for, and still held.
    assert "Paste the credentials" in client.post(URL, data=NAMED).text
    assert held(client, "tunnel") == {"credentials": credentials()}
    # Those that are given take their place, and another choice lets them go.
    other = credentials(TunnelName="kitchen")
    client.post(URL, data={**NAMED, "keep": "1", "credentials": other})
    assert answers(state_file)["tunnel_name"] == "kitchen"
    assert held(client, "tunnel") == {"credentials": other}
    client.post(URL, data={"choice": "skip", "keep": "1"})
    assert held(client, "tunnel") == {}


def test_credentials_are_asked_for_after_a_restart(wizard: MakeWizard) -> None:
    wizard().post(URL, data={**NAMED, "credentials": credentials()})
    again = wizard()
    for page in (URL, "/wizard/review"):
        assert LOST in again.get(page).text
    again.post(URL, data={**NAMED, "credentials": credentials()})
    assert LOST not in again.get("/wizard/review").text


def test_credentials_of_another_tunnel_than_the_answer_do_not_count(
    client: FlaskClient, state_file: Path
) -> None:
    client.post(URL, data={**NAMED, "credentials": credentials()})
    here = client.application.extensions["wizard_app"]
    step, standing = here.steps["tunnel"], here.standing()
    asked = standing.asked(step)
    assert step.needs(standing.answer(step), asked) == ()
    assert step.needs(TunnelAnswer("named", "kitchen"), asked) != ()


def test_tun_06_what_is_open_to_the_internet_is_said(client: FlaskClient) -> None:
    opens = "Opens the assistant of this device to the internet under a public address"
    assert opens in client.get(URL).text
    for choice, words in {
        "skip": "Not reachable",
        "quick": "Open to the internet: everybody who learns its public address can reach",
        "named": "Open to the internet, at the address of your own tunnel",
    }.items():
        client.post(URL, data={"choice": choice, "credentials": credentials()})
        assert words in client.get("/wizard/review").text


def test_tun_02_no_state_file_can_hold_such_an_answer() -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        *(({"tunnel_choice": choice}, "tunnel_choice") for choice in ("other", "", None)),
        *(({"tunnel_choice": "named", "tunnel_name": name}, "tunnel_name") for name in BAD_NAMES),
        ({"tunnel_choice": "skip", "tunnel_name": "a"}, "tunnel_name"),
        ({"tunnel_choice": "quick", "tunnel_name": "a"}, "tunnel_name"),
        ({"tunnel_choice": "named"}, "tunnel_name"),
        ({"tunnel_name": "a"}, "tunnel_choice"),
    ]
    for stored, place in wrong:
        with pytest.raises(DecodingError, match=place):
            shaped(stored, TunnelAnswer)
    for choice in ("skip", "quick"):
        assert shaped({"tunnel_choice": choice}, TunnelAnswer) == TunnelAnswer(choice)
