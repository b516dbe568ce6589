"""A device with answers in its wizard, and that wizard."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from flask.testing import FlaskClient

from tests.support import wizard_files
from tests.support.devices import Device
from tests.support.wizard_states import ANSWERS, SSH_KEY, STATE_FILE
from wizard_app.app import create_app
from wizard_app.setup.settings import WizardSettings

JOURNAL = "/var/lib/platform/apply-journal.jsonl"
STARTED = "2026-11-20T10:00:00Z"
# The state file of a wizard with the answers in `wizard_states`.
STATE: Mapping[str, Any] = wizard_files.GOOD | {
    "started_at": STARTED,
    "answers": wizard_files.ANSWERS
    | {"hostname": "agent-kitchen", "ssh_keys": [SSH_KEY]}
    | {"backup_meta": {"account_id": "0123456789", "bucket": "kitchen-backup"}},
}


def put_answers(device: Device, *, step: str = "review", **answers: object) -> None:
    """Store answers to every question: those of `STATE`, changed by `answers`."""
    state = {**STATE, "step": step, "answers": {**STATE["answers"], **answers}}
    device.put(STATE_FILE, json.dumps(state), mode=0o600)


def put_journal(device: Device, *changes: Mapping[str, object]) -> None:
    """Store a journal with two actions, the second of them kept, and these `changes`."""
    actions = [
        {"id": "0" * 16, "what": "Write /etc/hostname", "state": "waiting"},
        {"id": "1" * 16, "what": "Set OPENAI_API_KEY", "state": "kept"},
    ]
    lines = [{"setup": STARTED, "at": STARTED, "actions": actions}, *changes]
    device.put(JOURNAL, "".join(f"{json.dumps(line)}\n" for line in lines), mode=0o640)


def production(device: Device, **settings: Any) -> FlaskClient:
    """A client with a session in the wizard of a device, which runs as in production."""
    made = WizardSettings(
        paths=device.paths, device=device.paths, production=True, token="0" * 64, **settings
    )
    client = create_app(made).test_client()
    client.get("/wizard/system?token=" + "0" * 64, base_url="https://localhost")
    return client


def development(out: Path) -> FlaskClient:
    """A client of a wizard that sets up the folder `out`, and asks for no token."""
    return create_app(
        WizardSettings.from_env({"WIZARD_NO_TOKEN": "1", "WIZARD_DEV_OUT": str(out)})
    ).test_client()


def answer(client: FlaskClient, base_url: str = "http://localhost") -> None:
    """Send the forms of every step."""
    for slug, fields in ANSWERS.items():
        taken = client.post(f"/wizard/{slug}", data=fields, base_url=base_url)
        assert taken.status_code == 302, (slug, taken.text)
