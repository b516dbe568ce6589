"""Setups of a device that are applied with faults: the answers, and what exists before."""

from __future__ import annotations

import json
import re
import shutil
import stat
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from flask.testing import FlaskClient

from tests.support.trees import tree
from wizard_app.app import create_app
from wizard_app.setup.settings import WizardSettings
from wizard_app.wizard import Wizard

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl me@home"
STATE = "var/lib/platform/wizard-state.json"
JOURNAL = "var/lib/platform/apply-journal.jsonl"
COMMANDS = "commands.jsonl"
RULES = "etc/nftables.d/platform.nft"
AUTHORIZED_KEYS = "home/agent/.ssh/authorized_keys"
KEY_FILE = "run/platform/mesh-vpn.key"
CANARIES = ("sk-canary-0123456789abcdef", "tskey-canary-4711", "c2VjcmV0Q2FuYXJ5", "K00canary/+=")
Forms = Mapping[str, Mapping[str, str | list[str]]]
_SECRET, _AUTH_KEY, _TUNNEL, _STORE = CANARIES
FULL: Forms = {
    "system": {"hostname": "kitchen", "timezone": "Europe/Berlin"},
    "profile": {"profile": "openclaw"},
    "provider": {"provider": "openai", "api_key": _SECRET, "skip_validation": "1"},
    "channels": {"channels": ["telegram", "whatsapp"]},
    "ssh": {"ssh_keys": KEY},
    "mesh-vpn": {"authkey": _AUTH_KEY},
    "tunnel": {
        "choice": "named",
        "credentials": json.dumps({"TunnelName": "kitchen", "TunnelSecret": _TUNNEL}),
    },
    "backup": {
        "kind": "store_a",
        "a_account_id": "acc0",
        "a_application_key": _STORE,
        "a_bucket": "kitchen",
    },
}
# The words in the description of an action that identify whose secrets it stores.
STORED_IN = {
    "secrets.env": "provider",
    "rclone.conf": "backup",
    "mesh-vpn.key": "mesh-vpn",
    "credentials.json": "tunnel",
}
_OF_BEFORE = {
    "etc/hostname": ("attic\n", 0o644),
    "etc/platform/secrets.env": ("# mine\nOTHER=1\nOPENAI_API_KEY=old\n", 0o600),
    "etc/platform/rclone.conf": ("[backup]\ntype = b2\n", 0o640),
    "etc/platform/backup.toml": ('remote = "backup:old"\n', 0o644),
    "etc/platform/active-endpoint": ("https://example.com/v1\n", 0o644),
    "etc/platform/tunnel/credentials.json": ("{}", 0o600),
    "etc/systemd/system/multi-user.target.wants/platform-tunnel.service": ("", 0o644),
    "etc/systemd/system/multi-user.target.wants/khoj-gateway.service": ("", 0o644),
    AUTHORIZED_KEYS: ("ssh-ed25519 AAAA old@home", 0o644),
    RULES: ("# old\n", 0o644),
}
_TEMPORARY = re.compile(r"\.(?P<name>.+)\.[0-9]+\.[0-9a-f]{8}\.tmp")
_VOLATILE = {STATE, JOURNAL, COMMANDS}
Tree = Mapping[str, tuple[int, bytes]]


class Setup(NamedTuple):
    """The answers, the existing files, and the progress of an attempt before a restart."""

    forms: Forms
    before: Mapping[str, tuple[str, int]] = {}
    stopped_at: str = ""


SETUPS = {
    "new": Setup(FULL),
    "over-another": Setup(
        {**FULL, "tunnel": {"choice": "skip"}, "backup": {"kind": "skip"}}, _OF_BEFORE
    ),
    "after-a-restart": Setup(FULL, stopped_at=AUTHORIZED_KEYS),
}


def environment(out: Path) -> dict[str, str]:
    """The environment of a wizard in dev mode that only reads the folder `out`."""
    return {"PLATFORM_ROOT": f"{out}/none", "WIZARD_DEV_OUT": str(out), "WIZARD_NO_TOKEN": "1"}


def started(out: Path, **more: str) -> FlaskClient:
    """A client of a new wizard for the state in `out`."""
    settings = WizardSettings.from_env(environment(out) | more)
    return create_app(settings).test_client()


def wizard_of(client: FlaskClient) -> Wizard:
    """The wizard behind the pages of `client`."""
    found: Wizard = client.application.extensions["wizard_app"]
    return found


def answer(client: FlaskClient, forms: Forms, slugs: Collection[str] = tuple(FULL)) -> None:
    """Send the forms of these steps, each of which must be accepted."""
    for slug in (slug for slug in forms if slug in slugs):
        taken = client.post(f"/wizard/{slug}", data=forms[slug])
        assert (slug, taken.status_code) == (slug, 302)


def prepare(setup: Setup, out: Path) -> None:
    """Answer everything and end the wizard: the state before setup is applied."""
    for name, (text, mode) in setup.before.items():
        path = out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
    client = started(out)
    answer(client, setup.forms)
    if setup.stopped_at:
        (out / setup.stopped_at).mkdir(parents=True)
        assert "is not a regular file" in client.post("/wizard/review/apply").text
        (out / setup.stopped_at).rmdir()
        (out / COMMANDS).unlink()


def steps_with_lost_secrets(client: FlaskClient) -> set[str]:
    """The steps whose secrets must be entered again."""
    return {lack.step.slug for lack in wizard_of(client).snapshot().lost()}


def not_stored(out: Path, forms: Forms) -> set[str]:
    """The steps with a secret that is not stored on the device, as the journal says."""
    asked_for = {
        slug
        for slug in STORED_IN.values()
        if not {"skip"} & {forms[slug].get("choice"), forms[slug].get("kind")}
    }
    return asked_for - {slug for what, slug in _done(out) if slug}


def _done(out: Path) -> set[tuple[str, str]]:
    """The done actions, as text, with the step of their secret."""
    path = out / JOURNAL
    if not path.exists():
        return set()
    begin, *lines = path.read_text().splitlines()
    states = [entry["state"] for entry in json.loads(begin)["actions"]]
    for line in map(json.loads, lines):
        if "action" in line:
            states[line["action"]] = line["state"]
    found = set()
    for entry, state in zip(json.loads(begin)["actions"], states, strict=True):
        if state in ("done", "kept"):
            slug = next((slug for word, slug in STORED_IN.items() if word in entry["what"]), "")
            found.add((entry["what"], slug))
    return found


def result(out: Path) -> Tree:
    """The files on the device, without those that contain times."""
    return {name: found for name, found in tree(out).items() if name not in _VOLATILE}


def commands(out: Path) -> list[list[str]]:
    """The commands that were run, in order."""
    path = out / COMMANDS
    lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line)["argv"] for line in lines]


def comparable_state(out: Path) -> Any:
    """A value that is equal for states that only differ in times and process ids."""
    return [
        (_TEMPORARY.sub(r".\g<name>.tmp", name), mode, re.sub(rb'"20[^"]*Z"', b"time", data))
        for name, (mode, data) in tree(out).items()
    ]


def wrong(out: Path, before: Tree, after: Tree) -> list[str]:
    """The files that are neither as before nor as afterwards, or have a wider mode than either."""
    problems = []
    for name, found in tree(out).items():
        if name in _VOLATILE or name.endswith(".lock"):
            allowed = found[0] & 0o077 == 0 or name in _VOLATILE
        elif temporary := _TEMPORARY.fullmatch(Path(name).name):
            final = after.get(str(Path(name).with_name(temporary["name"])), found)
            # A file gets its mode once it is complete, and before it is renamed.
            allowed = stat.S_IMODE(found[0]) in (0o600, stat.S_IMODE(final[0]))
        elif name == KEY_FILE:
            allowed = found == (stat.S_IFREG | 0o600, f"{_AUTH_KEY}\n".encode())
        elif stat.S_ISDIR(found[0]):
            allowed = found in (before.get(name), after.get(name, found))
        else:
            allowed = found in (before.get(name), after.get(name))
        if not allowed:
            problems.append(f"{name}: {found}")
    gone = before.keys() & after.keys() - tree(out).keys()
    return problems + sorted(f"{name} is gone" for name in gone)


def left_overs(out: Path) -> list[str]:
    """The unfinished files of writers, and key files that only a command should read."""
    return [name for name in tree(out) if name == KEY_FILE or _TEMPORARY.fullmatch(Path(name).name)]


def press_once_more(out: Path, forms: Forms) -> list[list[str]] | None:
    """Start a new wizard, enter what it asks for, and apply; return the commands that were run.

    It must ask exactly for the secrets that were not stored, and remove left-overs of secrets at
    its start. None if everything was done before.
    """
    client = started(out)
    assert [name for name in left_overs(out) if any(word in name for word in STORED_IN)] == []
    if wizard_of(client).state.step == "done":
        return None
    missing = not_stored(out, forms)
    assert steps_with_lost_secrets(client) == missing
    answer(client, forms, missing)
    (out / COMMANDS).unlink(missing_ok=True)
    done = client.post("/wizard/review/apply")
    assert (done.status_code, done.location) == (302, "/wizard/done")
    return commands(out)


def put_back(out: Path, clean: Path) -> None:
    """Restore `out` to the state of `clean`."""
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(clean, out, symlinks=True)
