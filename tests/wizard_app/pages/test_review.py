"""The review page: all answers, what is missing, what will change, and the progress."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import html5lib
import pytest
from flask.testing import FlaskClient

from platform_common.message import Sentence
from tests.support.markup import parse_errors
from tests.support.small_steps import WORD, ColourAnswer, ColourStep
from tests.support.wizard_apply import Commands, PowerCutError
from tests.support.wizard_files import ANSWERS, GOOD
from tests.support.wizard_states import ANSWERS as FORMS
from tests.support.wizard_states import SECRETS, answer
from tests.wizard_app.conftest import MakeReady, MakeWizard
from wizard_app.setup.plan.actions import Planned, RunCommand, write
from wizard_app.setup.plan.phases import Phase
from wizard_app.setup.settings import COMMANDS
from wizard_app.setup.steps import STEPS
from wizard_app.setup.steps.base import Question

APPLY, STATUS = "/wizard/review/apply", "/wizard/apply/status"


def _review(client: FlaskClient) -> Element:
    page = client.get("/wizard/review")
    assert page.status_code == 200
    assert parse_errors(page.text) == []
    tree: Element = html5lib.parse(page.text, namespaceHTMLElements=False)
    return tree


def _text(element: Element) -> str:
    return " ".join("".join(element.itertext()).split())


def _rows(tree: Element) -> dict[str, str]:
    return {
        _text(label): _text(value)
        for rows in tree.iter("dl")
        for label, value in zip(rows.iter("dt"), rows.iter("dd"), strict=True)
    }


def _missing(tree: Element) -> dict[str, str]:
    """The missing answers: text of each link to its address."""
    return {
        _text(link): link.attrib["href"]
        for box in tree.iter("section")
        if "error" in box.attrib.get("class", "").split()
        for link in box.iter("a")
    }


def test_the_page_shows_every_answer_under_its_label(small: FlaskClient) -> None:
    small.post("/wizard/colour", data={"colour": "red & <b>"})
    small.post("/wizard/word", data={"word": WORD})
    assert _rows(_review(small)) == {
        "Colour": "red & <b>",
        "Secret word": "Entered, kept in memory only",
        "Remark": "Not provided",
    }
    assert _missing(_review(small)) == {}


def test_the_answers_have_four_headings_and_links_to_change_them(
    client: FlaskClient, small: FlaskClient
) -> None:
    tree = _review(client)
    links = {_text(link): link.attrib["href"] for link in tree.iter("a")}
    for step in STEPS:
        assert links[f"Change {step.short}"] == f"/wizard/{step.slug}?return=review"
    headings = [_text(heading) for heading in tree.iter("h2")]
    assert headings == ["Something is still missing", "Device", "AI", "Access", "Backup"]
    # Without all answers there is an explanation instead of the button.
    assert "Set up this device" not in _text(tree)
    assert "You can set up this device once nothing is missing" in _text(tree)
    assert "Not answered yet" in client.post(APPLY).text
    # A step without one of the headings has its own.
    headings = [_text(heading) for heading in _review(small).iter("h2")]
    assert headings == ["Something is still missing", "Colour", "Word"]


def test_what_is_missing_is_listed_first_with_links(small: FlaskClient) -> None:
    assert _missing(_review(small)) == {
        "Colour: Not answered yet": "/wizard/colour?return=review",
        "Word: Not answered yet": "/wizard/word?return=review",
    }
    small.post("/wizard/word", data={"word": WORD})
    small.post("/wizard/colour", data={"colour": "black"})
    assert _missing(_review(small)) == {"Word: Black takes no word": "/wizard/word?return=review"}


@pytest.mark.parametrize("name", [name for name in ANSWERS if name not in ("model", "endpoint")])
def test_wiz_15_a_missing_answer_is_listed(wizard: MakeWizard, state_file: Path, name: str) -> None:
    halves = {"tunnel_name": "tunnel_choice", "backup_meta": "backup_kind"}
    gone = {name, halves.get(name, name)}
    answers = {member: value for member, value in ANSWERS.items() if member not in gone}
    state_file.parent.mkdir(parents=True)
    state_file.write_text(json.dumps(GOOD | {"answers": answers}))
    client = wizard()
    missing = [words for words in _missing(_review(client)) if words.endswith(": Not answered yet")]
    assert len(missing) == 1
    # Nothing is applied without it.
    refused = client.post(APPLY)
    assert refused.status_code == 200
    assert "Not answered yet" in refused.text
    assert not state_file.with_name("apply-journal.jsonl").exists()


def _valid(text: str) -> str:
    """Return the page if a strict parser finds no errors in it."""
    assert parse_errors(text) == []
    return text


def _mark(client: FlaskClient) -> str:
    found = re.search(r'name="plan" value="([0-9a-f]+)"', client.get("/wizard/review").text)
    assert found is not None
    return found[1]


def _states(client: FlaskClient) -> dict[str, str]:
    """The state of each phase, as the page shows it."""
    tree = _review(client)
    rows = (row for one in tree.iter("ol") for row in one.iter("li"))
    return {_text(row[0]): _text(row[1]).partition(" ")[2] for row in rows}


def _apply_until_the_power_fails(client: FlaskClient) -> None:
    """Apply the plan until the power is cut."""
    with pytest.raises(PowerCutError):
        client.post(APPLY)


def test_wiz_13_the_changes_are_shown_before_they_are_made(ready: MakeReady, out: Path) -> None:
    client = ready()
    assert 'data-next="/wizard/review"' in client.get(STATUS).text
    page = _text(_review(client))
    for words in (
        "What will change (10 files, 7 commands)",
        "Write /etc/hostname (mode 0644 , owner root:root",
        "Set OPENAI_API_KEY in /etc/platform/secrets.env; its other lines stay",
        "Add SSH keys to /home/agent/.ssh/authorized_keys",
        "Run systemctl enable --now openclaw-gateway.service",
        "22/tcp (SSH), 8088/tcp (this setup), 8089/tcp (dashboard)",
        "OPENAI_API_KEY=•••",
    ):
        assert words.replace(" ,", ",") in page, words
    assert not (out / "etc").exists()
    # The port of the wizard is still opened.
    assert client.post(APPLY).location == "/wizard/done"
    assert "8088" in (out / "etc/nftables.d/platform.nft").read_text()


@pytest.mark.parametrize("word", ["hostnamectl", "tailscale", "platform-tunnel", "nft", "restart"])
def test_wiz_05_and_wiz_11_a_failure_is_reported_and_can_be_retried(
    ready: MakeReady, word: str
) -> None:
    commands = Commands(failing=word)
    client = ready(commands)
    answer = client.post(APPLY, data={"plan": _mark(client)})
    assert answer.status_code == 200
    page = _valid(answer.text)
    shown = page + client.get("/wizard/review").text + client.get(STATUS).text
    assert [secret for secret in SECRETS if secret in shown] == []
    assert '<div class="error' in page
    assert "Setup stopped" in page
    assert "ended with status 1: Could not set property: &lt;b&gt;Access denied" in page
    assert "Look into the log of this device." in page
    assert "You don't have to enter anything again." in page
    assert "Try again" in page
    assert re.search(r"\d+ of 17 actions are done|1 of 17", page)
    # The page and the step stay the same, also after a restart.
    for again in (client, ready(answered=False)):
        page = again.get("/wizard/review").text
        assert "Setup stopped" in page
        assert "Access denied" in page
        assert again.get("/").location == "/wizard/review"
    commands.failing = ""
    assert client.post(APPLY, data={"plan": _mark(client)}).location == "/wizard/done"


def test_wiz_11_each_phase_shows_its_outcome(ready: MakeReady) -> None:
    client = ready(Commands(failing="platform-tunnel"))
    client.post("/wizard/backup", data={"kind": "skip"})
    client.post(APPLY)
    assert _states(client) == {
        "Name and time zone": "Done",
        "Profile and provider": "Done",
        "Provider key": "Done",
        "Backup": "Skipped",
        "SSH keys": "Done",
        "Private network": "Done",
        "Tunnel": "Did not work",
        "Firewall": "Not done",
        "Gateway": "Not done",
    }


def test_wiz_09_an_interruption_is_reported_and_one_press_finishes_setup(ready: MakeReady) -> None:
    _apply_until_the_power_fails(ready(Commands(cut="nft")))
    commands = Commands()
    client = ready(commands, answered=False)
    tree = _review(client)
    rows, page = _rows(tree), _text(tree)
    assert rows["API key"] == rows["Secret key"] == "Stored on this device"
    assert rows["Tunnel credentials"] == "Stored on this device"
    assert rows["Auth key"] == "Already used"
    assert "Setup was interrupted at" in page
    assert "14 of 17 actions are done. You don't have to enter anything again." in page
    assert "Finish setup" in page
    assert _states(client)["Provider key"] == "Already done"
    assert _states(client)["Firewall"] == "Interrupted"
    assert client.post(APPLY, data={"plan": _mark(client)}).location == "/wizard/done"
    # The device has joined the private network, and its key was deleted.
    assert "tailscale" not in {argv[0] for argv in commands.run}


def test_wiz_09_secrets_that_were_not_stored_are_named(ready: MakeReady) -> None:
    _apply_until_the_power_fails(ready(Commands(cut="hostnamectl")))
    client = ready(answered=False)
    page = _review(client)
    assert "Setup was interrupted at" in _text(page)
    assert "AI: API key – enter again" in _text(page)
    assert "Finish setup" not in _text(page)
    assert client.post(APPLY).status_code == 200
    for slug in ("provider", "mesh-vpn", "tunnel", "backup"):
        client.post(f"/wizard/{slug}", data=FORMS[slug])
    assert client.post(APPLY).location == "/wizard/done"


def test_a_plan_that_was_not_shown_yet_is_shown_and_not_executed(
    ready: MakeReady, out: Path
) -> None:
    commands = Commands()
    client = ready(commands)
    seen = _mark(client)
    client.post("/wizard/system", data={"hostname": "agent-garden", "timezone": "UTC"})
    answer = client.post(APPLY, data={"plan": seen})
    assert answer.status_code == 409
    page = _valid(answer.text)
    assert "these changes are not the ones that you looked at" in page
    assert "agent-garden" in page
    assert commands.run == []
    assert not (out / "etc").exists()
    assert client.post(APPLY, data={"plan": _mark(client)}).location == "/wizard/done"


def test_every_page_shows_the_progress_of_a_running_setup(ready: MakeReady) -> None:
    commands = Commands(slow="nft")
    client = ready(commands)
    app = client.application
    answers: list[int] = []

    def apply() -> None:
        answers.append(app.test_client().post(APPLY).status_code)

    thread = threading.Thread(target=apply)
    thread.start()
    try:
        assert commands.is_waiting.wait(120)
        page = _valid(client.get("/wizard/review").text)
        assert "Setting up agent-kitchen" in page
        assert 'http-equiv="refresh"' in page
        assert _states(client)["Firewall"] == "Running"
        again = client.post(APPLY)
        assert again.status_code == 409
        assert "was not started again" in again.text
        part = client.get(STATUS).text
        assert parse_errors(f"<!DOCTYPE html><title>Part</title>{part}") == []
        assert "Now: Firewall" in part
        assert "data-next" not in part
        assert client.get("/wizard/system").location == "/wizard/review"
    finally:
        commands.go_on.set()
        thread.join()
    assert answers == [302]
    assert commands.run.count(("nft", "-f", "/etc/nftables.d/platform.nft")) == 1
    assert 'data-next="/wizard/done"' in client.get(STATUS).text


class PaintStep(ColourStep):
    """Asks for a colour, and writes it to the device."""

    def summary(self, answer: ColourAnswer, asked: Question) -> Iterable[tuple[Sentence, Any]]:
        yield Sentence("Colour"), answer.colour

    def actions(self, answer: ColourAnswer, asked: Question) -> Iterable[Planned]:
        yield Phase.SELECTION, write("/etc/platform/active-colour", answer.colour)
        yield Phase.SYSTEM, RunCommand(("paint", "--", answer.colour), 5.0)


def test_an_additional_step_is_asked_shown_planned_and_applied(
    wizard: MakeWizard, out: Path
) -> None:
    client = wizard(steps=(*STEPS, PaintStep()))
    answer(client.application, FORMS)
    assert "/wizard/colour?return=review" in client.get("/wizard/review").text
    assert client.post(APPLY).status_code == 200
    assert not (out / "etc/hostname").exists()
    leads = client.post("/wizard/colour", data={"colour": "green", "return": "review"}).location
    assert leads == "/wizard/review"
    page = client.get("/wizard/review").text
    assert "active-colour" in page
    assert "paint -- green" in page
    assert client.post(APPLY).location == "/wizard/done"
    assert (out / "etc/platform/active-colour").read_text() == "green\n"
    # In its own phase, before later phases of the plan.
    commands = (out / COMMANDS).read_text()
    assert commands.index('"paint"') < commands.index('"tailscale"')
    assert "green" in client.get("/wizard/record.json").text
