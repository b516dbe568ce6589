"""The tunnel step: how the device can be reached from the internet."""

from __future__ import annotations

import io
from typing import Any

import pytest

from platform_common.formats.decode import DecodingError, shaped
from tests.support.tunnel_credentials import BAD_NAMES, CANARY, GOOD, ID, ODD, credentials
from tests.support.wizard_secrets import found
from tests.wizard_app.step_pages import StepPage
from wizard_app.setup.steps.tunnel import TunnelAnswer

SLUG = "tunnel"
NAMED = {"choice": "named"}


def uploaded(data: bytes, **fields: str) -> dict[str, Any]:
    """A form as a browser sends it with a file."""
    return {**NAMED, **fields, "credentials_file": (io.BytesIO(data), "credentials.json")}


def test_only_the_three_choices_are_accepted(step: StepPage) -> None:
    for form in (
        *({}, {"choice": ""}, {"choice": "other"}, {"choice": "NAMED"}),
        {"credentials": credentials()},
    ):
        assert '<a href="#choice">' in step.refuse(
            form, ("Select how you want to reach this device")
        )
    for choice in ("skip", "quick"):
        # Text for another choice is ignored.
        assert step.accept({"choice": choice, "credentials": "no JSON"}) == "/wizard/backup"
        assert step.stored == {"tunnel_choice": choice, "tunnel_name": ""}
        assert step.held == {}


def test_tun_01_credentials_are_accepted_whole_typed_or_as_a_file(step: StepPage) -> None:
    for text, name in GOOD.values():
        assert step.accept(NAMED, credentials=text) == "/wizard/backup"
        assert step.stored == {"tunnel_choice": "named", "tunnel_name": name}
        assert step.held == {"credentials": text}
    assert 'enctype="multipart/form-data"' in step.text
    text = credentials(TunnelName="kitchen", note="ü")
    step.accept(uploaded(text.encode(), credentials="\r\n "))
    assert step.stored["tunnel_name"] == "kitchen"
    assert step.held == {"credentials": text}


def test_tun_01_odd_credentials_are_refused_with_a_message(step: StepPage) -> None:
    for text, error in ODD.values():
        assert found(CANARY, step.refuse(NAMED, error, credentials=text)) == []


def test_tun_01_odd_files_are_refused_with_a_message(step: StepPage) -> None:
    for data, error in (
        (b"\xff\xfe{\0}\0", "the JSON is not UTF-8 (byte 0)"),
        (b'{"TunnelID": "a\xff"}', "the JSON is not UTF-8 (byte 15)"),
        (b'{"TunnelID": "\xed\xa0\x80"}', "not UTF-8"),
        (b"\xef\xbb\xbf{}", "byte-order mark"),
        (bytes(70000), "64 KiB or smaller"),
        (b"\x7fELF\x02", "not valid JSON"),
        (b"[" * 65536, "nested too deeply"),
    ):
        step.refuse(uploaded(data), error)
    assert found(CANARY, step.refuse(uploaded(credentials().encode()[:-1]))) == []
    # Forms over the limit get their own page, typed or as a file.
    for form in ({**NAMED, "credentials": "[" * (1 << 20)}, uploaded(bytes(300_000))):
        assert step.send(form).status_code == 413
    assert step.stored == {}


def test_a_named_tunnel_needs_credentials_in_exactly_one_form(step: StepPage) -> None:
    missing = "Paste your tunnel&#39;s credentials or choose the credentials file"
    for form in (NAMED, {**NAMED, "credentials": " \r\n"}, {**NAMED, "keep": "1"}, uploaded(b"")):
        assert '<a href="#credentials">' in step.refuse(form, missing)
    page = step.refuse(uploaded(credentials().encode(), credentials=credentials()))
    assert "Paste the credentials or choose the credentials file, not both" in page
    assert found(CANARY, page) == []


def test_for_held_credentials_the_tunnel_is_shown(step: StepPage) -> None:
    step.accept(NAMED, credentials=credentials())
    assert f"They belong to the tunnel {ID}" in step.text
    step.accept(NAMED, keep="1", credentials="")
    assert step.stored["tunnel_name"] == ID
    step.accept(NAMED, keep="1", credentials=credentials(TunnelName="kitchen"))
    assert step.stored["tunnel_name"] == "kitchen"
    # Another choice deletes them.
    step.accept({"choice": "skip", "keep": "1"})
    assert step.held == {}


def test_credentials_of_a_different_tunnel_than_the_answer_do_not_count(step: StepPage) -> None:
    step.accept(NAMED, credentials=credentials())
    here = step.client.application.extensions["wizard_app"]
    tunnel, snapshot = here.steps["tunnel"], here.snapshot()
    asked = snapshot.asked(tunnel)
    assert tunnel.needs(snapshot.answer(tunnel), asked) == ()
    assert tunnel.needs(TunnelAnswer("named", "kitchen"), asked) != ()


def test_tun_06_the_page_says_what_is_open_to_the_internet(step: StepPage) -> None:
    assert "Temporary public address (Cloudflare quick tunnel)" in step.text
    assert "Anyone who knows it can reach this device's assistant" in step.text
    for choice, words in {
        "skip": "Not reachable",
        "quick": "Open to the internet: anyone who knows its public address can reach",
        "named": "Open to the internet, at the address of your own tunnel",
    }.items():
        step.accept({"choice": choice, "credentials": credentials()})
        assert words in step.review


def test_tun_02_invalid_answers_in_a_state_file_are_refused() -> None:
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
