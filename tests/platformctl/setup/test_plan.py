"""`platformctl setup`: the plan that the wizard executes, and its progress."""

from __future__ import annotations

import html
import json
import os
import re
import shlex
import subprocess
import sys
from typing import Any

import pytest

from tests.support.devices import Device
from tests.support.setups import (
    JOURNAL,
    STARTED,
    answer,
    development,
    put_answers,
    put_journal,
)
from tests.support.wizard_states import CREDENTIALS, SECRETS, STATE_FILE
from wizard_app.setup.plan.phases import TITLES
from wizard_app.setup.serving_file import Serving, ServingFile

HOSTNAME = {"action": 0, "at": "2026-11-20T10:00:01Z"}


def shown(device: Device) -> dict[str, Any]:
    """The plan, as a program reads it."""
    done = device.call("setup", "plan", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture
def answered(device: Device) -> Device:
    """A device with answers to all questions."""
    put_answers(device)
    return device


def test_the_plan_is_that_of_the_review_page(device: Device) -> None:
    client = development(device.root)
    answer(client)
    page = client.get("/wizard/review").text
    plan = shown(device)
    assert f'name="plan" value="{plan["mark"]}"' in page
    words = html.unescape(re.sub(r"<[^>]+>", "", page))
    # Each action, in the order of the plan.
    place = 0
    for action in plan["actions"]:
        place = words.index(action["path"] or shlex.join(action["argv"]), place)


def test_the_plan_opens_the_port_on_which_the_wizard_is_served(answered: Device) -> None:
    before = shown(answered)
    place = answered.path("/run/platform/wizard.token")
    ServingFile(place).write(Serving(os.getpid(), bind="0.0.0.0:9443"))
    after = shown(answered)
    rules = [one["content"] for one in after["actions"] if one["path"].endswith(".nft")]
    assert "9443" in rules[0]
    assert after["mark"] != before["mark"]
    # The port of a process that has ended.
    ServingFile(place).write(Serving(2**22 + 1, bind="0.0.0.0:9443"))
    assert shown(answered) == before


def test_secrets_are_masked_and_listed(device: Device) -> None:
    answer(development(device.root))
    plan = shown(device)
    kept = {one["step"] for one in plan["secrets"]}
    assert kept == {"provider", "mesh-vpn", "tunnel", "backup"}
    by_path = {one["path"]: one for one in plan["actions"] if one["path"]}
    assert by_path["/etc/platform/tunnel/credentials.json"]["content"] == "•••"
    assert by_path["/etc/platform/secrets.env"]["variables"] == {"OPENAI_API_KEY": "•••"}
    said = json.dumps(plan) + device.call("setup", "plan", "--contents").stdout
    assert [secret for secret in (*SECRETS, CREDENTIALS) if secret in said] == []


def test_phases_are_headings_and_files_have_mode_and_owner(answered: Device) -> None:
    said = answered.call("setup", "plan").stdout
    headings = [line for line in said.partition("\n\n")[0].splitlines() if line[0] != " "]
    assert headings == [str(title) for title in TITLES.values()]
    assert "\n  Write /etc/platform/rclone.conf (0640 root:agent)\n" in said
    assert "\n  Run: hostnamectl set-hostname --static agent-kitchen\n" in said
    assert "\nSecrets that the wizard needs\n  provider: API key\n" in said
    assert "account = " not in said
    whole = answered.call("setup", "plan", "--contents").stdout
    assert "\n    account = 0123456789\n    key = •••\n" in whole


def test_missing_answers_are_reported(device: Device) -> None:
    put_answers(device, profile="gone", tunnel_choice="skip", tunnel_name="")
    state = json.loads(device.path(STATE_FILE).read_text())
    del state["answers"]["timezone"]
    device.put(STATE_FILE, json.dumps(state))
    plan = shown(device)
    assert [one["step"] for one in plan["lacks"]][:2] == ["system", "profile"]
    said = device.call("setup", "plan").stdout
    assert "\nMissing, so nothing can be applied yet\n  system: Not answered yet\n" in said


def test_without_answers_there_is_no_plan(device: Device) -> None:
    done = device.call("setup", "plan", "--json")
    assert (done.returncode, done.stdout) == (1, "")
    assert "nothing has been answered yet\nhint: Start the wizard with: " in done.stderr


@pytest.mark.parametrize(("mode", "said"), [(0, "Permission denied"), (0o600, "")])
def test_answers_that_cannot_be_read_are_reported_in_a_sentence_and_kept(
    device: Device, mode: int, said: str
) -> None:
    file = device.put(STATE_FILE, '{"version": 2, "answers": ', mode)
    done = device.ctl("setup", "plan", privileged=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"error: {file}: {said}" in done.stderr
    assert [one.name for one in file.parent.iterdir()] == [file.name]


def test_the_plan_of_a_configured_device_says_so(device: Device) -> None:
    put_answers(device, step="done")
    said = device.call("setup", "plan").stdout
    assert said.startswith("This device is set up, so none of this will be done.\n")
    assert "the wizard needs" not in said


def test_an_unusable_record_causes_a_warning(answered: Device) -> None:
    answered.put("/etc/platform/providers.json", "[")
    done = answered.call("setup", "plan", "--json")
    assert done.returncode == 0
    assert done.stderr.startswith("warning: ")
    assert "providers.json" in done.stderr
    assert "provider" in {one["step"] for one in json.loads(done.stdout)["lacks"]}


@pytest.mark.parametrize(
    ("changes", "outcome", "state"),
    [
        ([], "unfinished", "waiting"),
        ([{"state": "running"}], "unfinished", "running"),
        ([{"state": "failed", "why": "the disk is full"}], "failed", "failed"),
        ([{"state": "done"}, {"at": STARTED, "ended": True}], "done", "done"),
    ],
    ids=["started", "running", "failed", "done"],
)
def test_status_shows_the_progress_of_the_last_attempt(
    device: Device, changes: list[dict[str, object]], outcome: str, state: str
) -> None:
    put_journal(device, *({**HOSTNAME, **one} if "state" in one else one for one in changes))
    done = device.call("setup", "status", "--json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["outcome"], found["began_at"]) == (0, outcome, STARTED)
    assert [one["state"] for one in found["actions"]] == [state, "kept"]
    said = device.call("setup", "status").stdout
    assert re.search(rf"\n  . {state} +Write /etc/hostname\n", said)
    assert ("the disk is full" in said) == (state == "failed")


def test_status_before_anything_was_applied(device: Device) -> None:
    done = device.call("setup", "status")
    assert (done.returncode, done.stdout) == (0, "Nothing has been applied yet.\n")


def test_a_journal_that_cannot_be_read_is_reported_in_a_sentence(device: Device) -> None:
    device.put(JOURNAL, "", mode=0o640)
    done = device.call("setup", "status", "--json")
    assert (done.returncode, done.stdout) == (1, "")
    assert f"{device.root}{JOURNAL} cannot be read" in done.stderr


@pytest.mark.parametrize(
    ("statement", "without"),
    [
        ("import platformctl.cli, platformctl.root_helper.operations", {"wizard_app"}),
        ("import platformctl.commands.setup", {"wizard_app"}),
        ("import platformctl.setup.plan", {"flask", "werkzeug", "jinja2", "requests"}),
    ],
    ids=["others", "its-help", "its-plan"],
)
def test_other_commands_do_not_load_the_wizard(statement: str, without: set[str]) -> None:
    code = f"{statement}\nimport sys\nassert not {without!r} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_the_status_of_a_configured_device_says_so(answered: Device) -> None:
    put_journal(answered)
    path = answered.path("/etc/platform/setup-complete")
    path.write_text('{"setup": "x", "completed_at": "2026-11-21T00:00:00Z"}\n')
    assert shown(answered)["step"] == "done"
    told = json.loads(answered.call("setup", "status", "--json").stdout)
    assert (told["complete"], told["completed_at"]) == (True, "2026-11-21T00:00:00Z")
    said = answered.call("setup", "status").stdout
    assert said.startswith("This device is set up since 2026-11-21T00:00:00Z.\n")
    # A marker that was created by hand.
    path.write_text("")
    assert answered.call("setup", "status").stdout.startswith("This device is set up.\n")


@pytest.mark.parametrize("state", ["done", "review", "damaged", "none"])
def test_setup_again_reopens_setup_with_the_previous_answers(answered: Device, state: str) -> None:
    path = answered.path("/etc/platform/setup-complete")
    path.write_text("{}")
    file = answered.path(STATE_FILE)
    if state in ("done", "review"):
        put_answers(answered, step=state)
    elif state == "damaged":
        file.write_text("{")
    else:
        file.unlink()
    before = file.read_bytes() if file.exists() else None
    refused = answered.call("setup", "again")
    assert (refused.returncode, path.exists()) == (64, True)
    assert "add --yes" in refused.stderr
    done = answered.call("setup", "again", "--yes")
    assert done.returncode == 0, done.stderr
    assert "systemctl restart platform-wizard.service" in done.stdout
    assert not path.exists()
    if state in ("done", "review"):
        found = json.loads(file.read_text())
        assert (found["step"], found["completed_at"]) == ("review", None)
        assert found["answers"]["hostname"] == "agent-kitchen"
    else:
        assert (file.read_bytes() if file.exists() else None) == before
    more = answered.call("setup", "again", "--yes")
    assert (more.returncode, more.stdout) == (1, "")
    assert "is not set up yet" in more.stderr


def test_a_device_in_a_folder_cannot_be_set_up_from_the_command_line(answered: Device) -> None:
    done = answered.ctl("setup", "apply", "--yes")
    assert (done.returncode, done.stdout) == (1, "")
    assert "can only be set up by its wizard" in done.stderr
