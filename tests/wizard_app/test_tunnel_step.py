"""The step that lets the device be reached from the internet."""

from __future__ import annotations

import io
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from platform_common.decoding import DecodingError, shaped
from tests.support.tunnel_credentials import BAD_NAMES, CANARY, GOOD, ID, ODD, credentials
from tests.support.wizard_secrets import files, found, held
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


@pytest.mark.parametrize("choice", ["skip", "quick"])
def test_a_choice_without_credentials_is_taken(
    client: FlaskClient, state_file: Path, choice: str
) -> None:
    # What was typed for another choice counts for nothing.
    answer = client.post(URL, data={"choice": choice, "credentials": "no JSON"})
    assert (answer.status_code, answer.location) == (302, "/wizard/backup")
    assert answers(state_file) == {"tunnel_choice": choice, "tunnel_name": ""}
    assert held(client, "tunnel") == {}


@pytest.mark.parametrize(
    "fields",
    [{}, {"choice": ""}, {"choice": "other"}, {"choice": "NAMED"}, {"credentials": credentials()}],
)
def test_no_choice_of_the_three_is_refused(
    client: FlaskClient, state_file: Path, fields: dict[str, str]
) -> None:
    answer = client.post(URL, data=fields)
    assert answer.status_code == 200
    assert answer.text.count("Select how this device is reached") == 2
    assert '<a href="#choice">' in answer.text
    assert not state_file.exists()


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


def test_tun_01_there_are_enough_odd_ones() -> None:
    assert len(ODD) >= 40


@pytest.mark.parametrize(
    ("data", "error"),
    [
        pytest.param(b"\xff\xfe{\0}\0", "the JSON is not UTF-8 (byte 0)", id="utf-16"),
        pytest.param(b'{"TunnelID": "a\xff"}', "the JSON is not UTF-8 (byte 15)", id="latin-1"),
        pytest.param(b'{"TunnelID": "\xed\xa0\x80"}', "not UTF-8", id="surrogate"),
        pytest.param(b"\xef\xbb\xbf{}", "byte-order mark", id="byte-order-mark"),
        pytest.param(bytes(70000), "64 KiB or smaller", id="zeros"),
        pytest.param(b"\x7fELF\x02", "not valid JSON", id="program"),
        pytest.param(b"[" * 65536, "nested too deeply", id="nested"),
    ],
)
def test_tun_01_odd_files_are_refused_in_words(
    client: FlaskClient, state_file: Path, data: bytes, error: str
) -> None:
    answer = client.post(URL, data=uploaded(data))
    assert answer.status_code == 200
    assert answer.text.count(error) == 2
    assert not state_file.exists()


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({**NAMED, "credentials": "[" * (1 << 20)}, id="typed"),
        pytest.param(uploaded(bytes(300_000)), id="file"),
    ],
)
def test_tun_01_what_is_larger_than_a_form_may_be_has_its_page(
    client: FlaskClient, state_file: Path, fields: dict[str, Any]
) -> None:
    assert client.post(URL, data=fields).status_code == 413
    assert not state_file.exists()


def test_credentials_come_as_a_file_too(client: FlaskClient, state_file: Path) -> None:
    assert 'enctype="multipart/form-data"' in client.get(URL).text
    text = credentials(TunnelName="kitchen", note="ü")
    answer = client.post(URL, data=uploaded(text.encode(), credentials="\r\n "))
    assert answer.status_code == 302
    assert answers(state_file)["tunnel_name"] == "kitchen"
    assert held(client, "tunnel") == {"credentials": text}


def test_one_of_two_ways_to_give_credentials_is_asked_for(client: FlaskClient) -> None:
    data = uploaded(credentials().encode(), credentials=credentials())
    answer = client.post(URL, data=data)
    assert "Paste the credentials or choose their file, not both" in answer.text
    assert held(client, "tunnel") == {}


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param(NAMED, id="nothing"),
        pytest.param({**NAMED, "credentials": " \r\n"}, id="blanks"),
        pytest.param({**NAMED, "keep": "1"}, id="nothing-to-keep"),
        pytest.param(uploaded(b""), id="empty-file"),
    ],
)
def test_a_named_tunnel_needs_credentials(client: FlaskClient, fields: dict[str, Any]) -> None:
    answer = client.post(URL, data=fields)
    assert answer.status_code == 200
    assert answer.text.count("Paste the credentials of your tunnel, or choose their file") == 2
    assert '<a href="#credentials">' in answer.text


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


def test_credentials_that_are_given_take_the_place_of_those_to_be_kept(
    client: FlaskClient, state_file: Path
) -> None:
    client.post(URL, data={**NAMED, "credentials": credentials()})
    other = credentials(TunnelName="kitchen")
    client.post(URL, data={**NAMED, "keep": "1", "credentials": other})
    assert answers(state_file)["tunnel_name"] == "kitchen"
    assert held(client, "tunnel") == {"credentials": other}


def test_credentials_of_another_choice_are_let_go(client: FlaskClient) -> None:
    client.post(URL, data={**NAMED, "credentials": credentials()})
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


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        ("skip", "Not reachable"),
        ("quick", "Open to the internet: everybody who learns its public address can reach"),
        ("named", "Open to the internet, at the address of your own tunnel"),
    ],
)
def test_tun_06_the_review_page_says_what_is_open_to_the_internet(
    client: FlaskClient, choice: str, words: str
) -> None:
    client.post(URL, data={"choice": choice, "credentials": credentials()})
    assert words in client.get("/wizard/review").text


def test_tun_06_the_choice_of_a_quick_tunnel_says_so_too(client: FlaskClient) -> None:
    assert (
        "Opens the assistant of this device to the internet under a public address"
        in client.get(URL).text
    )


@pytest.mark.parametrize("name", BAD_NAMES)
def test_tun_02_no_state_file_can_name_such_a_tunnel(name: str) -> None:
    with pytest.raises(DecodingError, match="tunnel_name"):
        shaped({"tunnel_choice": "named", "tunnel_name": name}, TunnelAnswer)


@pytest.mark.parametrize(
    ("stored", "place"),
    [
        ({"tunnel_choice": "other"}, "tunnel_choice"),
        ({"tunnel_choice": ""}, "tunnel_choice"),
        ({"tunnel_choice": None}, "tunnel_choice"),
        ({"tunnel_choice": "skip", "tunnel_name": "a"}, "tunnel_name"),
        ({"tunnel_choice": "quick", "tunnel_name": "a"}, "tunnel_name"),
        ({"tunnel_choice": "named"}, "tunnel_name"),
        ({"tunnel_name": "a"}, "tunnel_choice"),
    ],
)
def test_a_stored_answer_that_cannot_be_is_refused(stored: dict[str, Any], place: str) -> None:
    with pytest.raises(DecodingError, match=place):
        shaped(stored, TunnelAnswer)


@pytest.mark.parametrize("choice", ["skip", "quick"])
def test_a_stored_answer_without_a_name_is_read(choice: str) -> None:
    assert shaped({"tunnel_choice": choice}, TunnelAnswer) == TunnelAnswer(choice)


def test_leak_01_credentials_are_in_memory_alone(
    client: FlaskClient, out: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    good, bad = credentials(), credentials()[:-1]
    pages = [
        client.post(URL, data={**NAMED, "credentials": bad}).text,
        client.post(URL, data=uploaded(bad.encode())).text,
        client.post(URL, data=uploaded(good.encode(), credentials=good)).text,
        client.post(URL, data={**NAMED, "credentials": good}).text,
        client.post(URL, data={**NAMED, "credentials": good, "revision": "other"}).text,
        client.get(URL).text,
        client.get("/wizard/review").text,
    ]
    assert "Entered, kept in memory only" in pages[-1]
    assert found(CANARY, caplog.text, *pages, *files(out)) == []
