"""Setup files: saved on the review page, and read on the first page, completely or not at all."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from tests.support.devices import Device
from tests.support.forms import opened
from tests.support.markup import parse_errors
from tests.support.small_steps import WORD
from tests.support.wizard_files import ANSWERS
from tests.wizard_app.conftest import MakeWizard

LIMIT = 256 << 10
# The beginning of a form part that is not a file.
_PART = b'--x\r\nContent-Disposition: form-data; name="file"\r\n\r\n'


def _file(answers: Any, **members: Any) -> bytes:
    return json.dumps({"version": 2, "answers": answers} | members).encode()


def _send(client: FlaskClient, data: bytes, **fields: str) -> TestResponse:
    form = {"file": (io.BytesIO(data), "setup.json"), **fields}
    return client.post("/wizard/import", data=form, content_type="multipart/form-data")


def _state(state_file: Path) -> dict[str, Any]:
    state: dict[str, Any] = json.loads(state_file.read_bytes())
    return state


def test_the_answers_are_saved_to_a_file_named_after_the_device(client: FlaskClient) -> None:
    client.post("/wizard/system", data={"hostname": "kitchen-agent", "timezone": "UTC"})
    client.post("/wizard/mesh-vpn", data={"authkey": WORD})
    saved = client.get("/wizard/answers.json")
    assert saved.content_type == "application/json"
    assert saved.headers["Content-Disposition"] == (
        'attachment; filename="setup-kitchen-agent.json"'
    )
    assert json.loads(saved.data) == {
        "version": 2,
        "answers": {"hostname": "kitchen-agent", "timezone": "UTC", "mesh_vpn_enabled": True},
    }
    assert WORD not in saved.text


def test_the_name_of_the_file_is_plain_for_any_device(client: FlaskClient, device: Device) -> None:
    for name in ('a"b; filename=evil', "Ünïcode/../x", "a\tb"):
        device.put("/etc/hostname", f"{name}\n")
        header = client.get("/wizard/answers.json").headers["Content-Disposition"]
        assert re.fullmatch(r'attachment; filename="setup-[a-z0-9.-]+\.json"', header)


def test_a_saved_file_answers_for_another_device(wizard: MakeWizard, state_file: Path) -> None:
    client = wizard()
    taken = _send(client, _file(ANSWERS))
    assert (taken.status_code, taken.location) == (302, "/wizard/review")
    assert _state(state_file)["answers"] == ANSWERS
    assert _state(state_file)["step"] == "review"
    review = client.get("/wizard/review").text
    assert "Answers imported: 8" in review
    assert "a setup file does not contain them" in review
    assert json.loads(client.get("/wizard/answers.json").data)["answers"] == ANSWERS


def test_setup_continues_where_the_file_ends(client: FlaskClient, state_file: Path) -> None:
    answers = {"profile": "openclaw", "hostname": "a", "timezone": "UTC", "ssh_keys": []}
    assert _send(client, _file(answers)).location == "/wizard/provider"
    assert _state(state_file)["step"] == "provider"
    assert client.get("/wizard").location == "/wizard/provider"
    assert "Answers imported: 3" in client.get("/wizard/provider").text


def test_members_that_no_step_asks_for_are_omitted_even_secrets(
    wizard: MakeWizard, small: FlaskClient, state_file: Path
) -> None:
    file = _file({"colour": "red", "api_key": WORD, "word": WORD}, step="done", secrets=[WORD])
    assert _send(small, file).location == "/wizard/word"
    assert _state(state_file)["answers"] == {"colour": "red"}
    assert WORD.encode() not in state_file.read_bytes()
    # The state file of another device is a setup file, too.
    assert _send(small, state_file.read_bytes(), replace="1").location == "/wizard/word"
    # Such members are not saved to a file either.
    odd = {"answers": {"api_key": WORD, "timezone": "UTC"}, "step": "profile"}
    state_file.write_text(json.dumps(_state(state_file) | odd))
    saved = json.loads(wizard().get("/wizard/answers.json").data)
    assert saved == {"version": 2, "answers": {}}


NOT_ACCEPTED = {
    "nothing": (b"", "Select a setup file"),
    "not JSON": (b"colour: red", "This is not a setup file: not valid JSON"),
    "a picture": (b"\x89PNG\r\n\x1a\n\0\0", "This is not a setup file: the JSON is not UTF-8"),
    "BOM": (b"\xef\xbb\xbf" + _file({"colour": "red"}), "byte-order mark"),
    "twice": (b'{"version": 2, "version": 2}', "twice in one object"),
    "nested": (b"[" * 50_000, "nested too deeply"),
    "list": (b"[]", "expected object, got array"),
    "no version": (b'{"answers": {}}', "missing required field version"),
    "version 1": (_file({"colour": "red"}, version=1), "is version 1, but this device reads"),
    "version 3": (_file({"colour": "red"}, version=3), "is version 3, but this device reads"),
    "version true": (_file({"colour": "red"}, version=True), "version: expected int, got bool"),
    "no answers": (b'{"version": 2}', "missing required field answers"),
    "answers are a list": (_file([]), "answers: expected object, got array"),
    "nothing known": (_file({"color": "red"}), "This setup file contains no answers"),
    "wrong type": (_file({"colour": 1}), "Colour: answers.colour: expected str, got int"),
    "breaks a rule": (_file({"colour": "none"}), "Colour: answers.colour: must be a colour"),
    "unfit here": (_file({"colour": "mauve"}), "Colour: Mauve is gone"),
    "unfit together": (_file({"colour": "black", "has_word": True}), "Word: Black takes no word"),
    "markup": (_file({"colour": "red"}) + b"<script>alert(1)</script>", "not valid JSON"),
    "half right": (_file({"colour": "red", "has_word": 1}), "Word: answers.has_word: expected"),
}


@pytest.mark.parametrize("file", NOT_ACCEPTED)
def test_a_wrong_file_is_refused_with_a_message(
    small: FlaskClient, state_file: Path, file: str
) -> None:
    data, words = NOT_ACCEPTED[file]
    refused = _send(small, data)
    assert refused.status_code == 200
    assert '<div class="error">' in refused.text
    assert words in refused.text
    assert "<script>alert" not in refused.text
    assert "Nothing was changed" in refused.text
    assert parse_errors(refused.text) == []
    assert not state_file.exists()


def test_every_step_that_refuses_its_answer_is_named(client: FlaskClient) -> None:
    answers = ANSWERS | {"timezone": "Mars/Olympus", "profile": "gone", "channels": ["a b"]}
    text = _send(client, _file(answers)).text
    assert "Channels: answers.channels[0]: must be lower-case letters" in text
    text = _send(client, _file(answers | {"channels": []})).text
    assert "Device: This device no longer knows the time zone" in text
    assert "Profile: " in text


def test_answers_are_only_replaced_if_that_is_ticked(small: FlaskClient, state_file: Path) -> None:
    assert 'name="replace"' not in small.get("/wizard/colour").text
    small.post("/wizard/word", data={"word": WORD})
    before = state_file.read_bytes()
    refused = _send(small, _file({"colour": "red"}))
    assert "Tick the box to replace the answers given so far" in refused.text
    assert 'name="replace"' in refused.text
    assert state_file.read_bytes() == before
    assert 'name="replace"' in small.get("/wizard/colour").text
    assert _send(small, _file({"colour": "red"}), replace="1").location == "/wizard/word"
    assert _state(state_file)["answers"] == {"colour": "red"}


def test_a_secret_is_kept_with_its_answer_and_deleted_with_another(small: FlaskClient) -> None:
    small.post("/wizard/word", data={"word": WORD})
    _send(small, _file({"colour": "red", "has_word": True}), replace="1")
    assert "Entered, kept in memory only" in small.get("/wizard/review").text
    _send(small, _file({"has_word": False}), replace="1")
    _send(small, _file({"has_word": True}), replace="1")
    assert "No longer in memory – enter again" in small.get("/wizard/review").text


def test_a_form_opened_before_the_file_was_read_is_stale(small: FlaskClient) -> None:
    form = opened(small, "/wizard/colour", colour="blue")
    _send(small, _file({"colour": "red"}))
    assert small.post("/wizard/colour", data=form).status_code == 409


def test_a_file_of_256_kib_is_read_and_a_larger_one_refused(
    small: FlaskClient, state_file: Path
) -> None:
    data = _file({"colour": "red"})
    too_large = _send(small, data.ljust(LIMIT + 1))
    assert too_large.status_code == 413
    assert "A setup file can be up to 256 KiB" in too_large.text
    much = {"data": _PART.ljust(LIMIT * 20), "content_type": "multipart/form-data; boundary=x"}
    assert small.post("/wizard/import", **much).status_code == 413
    assert not state_file.exists()
    assert _send(small, data.ljust(LIMIT)).status_code == 302


def test_a_request_without_a_file_gets_the_form(small: FlaskClient, state_file: Path) -> None:
    for body, kind in (
        (b"", None),
        (b"file=x", "application/x-www-form-urlencoded"),
        (_file({"colour": "red"}), "application/json"),
        (b"--x\r\n\r\n", "multipart/form-data"),
        (b"no part", "multipart/form-data; boundary=x"),
        (_PART + b"red\r\n--x--\r\n", "multipart/form-data; boundary=x"),
    ):
        answer = small.post("/wizard/import", data=body, content_type=kind)
        assert answer.status_code in (200, 400), body
    assert not state_file.exists()


def test_a_file_that_cannot_be_saved_changes_nothing(small: FlaskClient, state_file: Path) -> None:
    state_file.parent.mkdir(parents=True)
    state_file.mkdir()
    refused = _send(small, _file({"colour": "red"}))
    assert refused.status_code == 500
    assert "This could not be saved" in refused.text
    assert "Not answered yet" in small.get("/wizard/review").text


def test_only_the_first_page_offers_to_read_a_file(small: FlaskClient) -> None:
    assert "Do you have a setup file?" in small.get("/wizard/colour").text
    for page in ("word", "colour?return=review", "review"):
        assert "Do you have a setup file?" not in small.get(f"/wizard/{page}").text
    page = small.get("/wizard/import").text
    assert 'type="file"' in page
    assert parse_errors(page) == []
