"""Setup through the root helper, by a wizard that is not root, over a real socket."""

from __future__ import annotations

import contextlib
import json
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from platform_common.errors import PlatformError
from platform_common.root_helper.client import ask
from platform_common.secret import Secret
from tests.interop.test_control_helper import NOBODY, Helped, activated
from tests.support.setups import JOURNAL, put_answers
from tests.support.wizard_states import AUTH_KEY, CREDENTIALS, KEY, STATE_FILE
from wizard_app.apply_job import executor
from wizard_app.setup.apply.executor import ApplyError
from wizard_app.setup.apply.helper_client import SETUP_APPLY, SetUp
from wizard_app.setup.apply.journal import read_attempt
from wizard_app.setup.apply.progress import SetupProgress
from wizard_app.setup.device_facts import DeviceFacts
from wizard_app.setup.pending import HeldSecrets, PendingSecrets
from wizard_app.setup.plan.plan import Plan, build_plan, plan_digest
from wizard_app.setup.settings import WizardSettings
from wizard_app.setup.snapshot import Snapshot, StoredState
from wizard_app.setup.state import parse
from wizard_app.setup.steps import STEPS

STORE_KEY = "CaNaRy-store-key-4567"
SECRETS: Mapping[str, dict[str, str]] = {
    "provider": {"OPENAI_API_KEY": KEY},
    "mesh-vpn": {"authkey": AUTH_KEY},
    "tunnel": {"credentials": CREDENTIALS},
    "backup": {"a_application_key": STORE_KEY},
}
CANARIES = (KEY, AUTH_KEY, "CaNaRy-tunnel-0123456789", STORE_KEY)
PROGRAMS = ("hostnamectl", "timedatectl", "tailscale", "systemctl", "nft")
# Records its arguments and the content of a key file; fails on request.
PROGRAM = """#!/bin/sh
echo "${{0##*/}} $*" >>{folder}/commands
for word; do
  case $word in
    --auth-key=file:*) file=${{word#*file:}}; (cat "$file"; stat -c %a "$file") >>{folder}/key;;
  esac
done
if [ -e "{folder}/fails-${{0##*/}}" ]; then echo "no such luck" >&2; exit 3; fi
"""


@dataclass(frozen=True)
class Setup:
    """A device with a helper and with answers."""

    helped: Helped
    programs: Path

    @property
    def settings(self) -> WizardSettings:
        """The settings of a wizard in production for this device."""
        paths = self.helped.device.paths
        return WizardSettings(paths=paths, device=paths, production=True)

    def snapshot(self, secrets: Mapping[str, Mapping[str, str]] = SECRETS) -> Snapshot:
        """A snapshot of that wizard, with these secrets in memory."""
        held = {
            slug: HeldSecrets({name: Secret(text) for name, text in named.items()})
            for slug, named in secrets.items()
        }
        state = parse(self.helped.device.path(STATE_FILE).read_bytes(), STEPS)
        kept = StoredState(state, PendingSecrets(held))
        return Snapshot({step.slug: step for step in STEPS}, DeviceFacts(self.settings), kept)

    def plan(self) -> Plan:
        """The plan of that wizard."""
        return build_plan(self.snapshot())

    def apply(self, secrets: Mapping[str, Mapping[str, str]] = SECRETS) -> dict[str, SetupProgress]:
        """Apply as that wizard does, as the user nobody; return the shown progress."""
        snapshot = self.snapshot(secrets)
        plan = build_plan(snapshot)
        act = executor(self.settings)
        shown: dict[str, SetupProgress] = {}
        with as_nobody():
            act(snapshot, plan, lambda progress: shown.update({progress.id: progress}))
        return shown

    def files(self) -> dict[str, bytes]:
        """All files on the device, except locks and records of the setup."""
        root = self.helped.device.root
        return {
            path.relative_to(root).as_posix(): path.read_bytes()
            for path in root.rglob("*")
            if path.is_file() and path.name != "log" and not path.name.endswith(".lock")
        }

    def commands(self) -> list[str]:
        """The commands that were run."""
        file = self.programs / "commands"
        return file.read_text().splitlines() if file.exists() else []


@contextlib.contextmanager
def as_nobody() -> Iterator[None]:
    """Become the user nobody until the block ends."""
    os.setegid(NOBODY)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


@pytest.fixture
def setup(tmp_path: Path) -> Iterator[Setup]:
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in PROGRAMS:
        (programs / name).write_text(PROGRAM.format(folder=programs))
        (programs / name).chmod(0o755)
    with activated(f"-EPATH={programs}:{os.environ['PATH']}") as helped:
        put_answers(helped.device)
        os.chown(helped.device.path(STATE_FILE), NOBODY, NOBODY)
        yield Setup(helped, programs)
        told = helped.log.read_text() + "".join(Setup(helped, programs).commands())
        assert [canary for canary in CANARIES if canary in told] == []


def test_a_wizard_without_root_sets_up_everything(setup: Setup) -> None:
    shown = setup.apply()
    assert {one.state for one in shown.values()} == {"done"}
    assert list(shown) == [item.action.id for item in setup.plan()]
    device = setup.helped.device
    written = {
        "/etc/hostname": ("agent-kitchen\n", 0o644),
        "/etc/platform/active-profile": ("openclaw\n", 0o644),
        "/etc/platform/secrets.env": (f"OPENAI_API_KEY={KEY}\n", 0o640),
        "/etc/platform/tunnel/credentials.json": (CREDENTIALS, 0o600),
    }
    for path, (text, mode) in written.items():
        status = device.path(path).stat()
        assert device.path(path).read_text() == text
        assert (stat.S_IMODE(status.st_mode), status.st_uid) == (mode, 0)
    commands = setup.commands()
    assert commands[0] == "hostnamectl set-hostname --static agent-kitchen"
    assert commands[-1] == "systemctl restart openclaw-gateway.service"
    assert (setup.programs / "key").read_text() == f"{AUTH_KEY}\n600\n"
    assert not device.path("/run/platform/mesh-vpn.key").exists()
    last = read_attempt(device.path(JOURNAL))
    assert last is not None
    assert last.ended
    assert [one.id for one in last.entries] == [item.action.id for item in setup.plan()]
    assert setup.helped.has_logged("setup-apply by user 65534: done")


def test_leak_01_and_wiz_11_an_error_is_returned_unchanged_and_without_secrets(
    setup: Setup,
) -> None:
    (setup.programs / "fails-nft").touch()
    with pytest.raises(ApplyError) as caught:
        setup.apply()
    assert str(caught.value.what) == "Run: nft -f /etc/nftables.d/platform.nft"
    assert str(caught.value.problem) == "nft ended with status 3: no such luck"
    assert setup.commands()[-1].startswith("nft ")
    journal = setup.helped.device.path(JOURNAL)
    told = setup.helped.log.read_text() + journal.read_text()
    assert "no such luck" in told
    assert [canary for canary in CANARIES if canary in told] == []
    last = read_attempt(journal)
    assert last is not None
    assert [one.state for one in last.entries].count("failed") == 1
    (setup.programs / "fails-nft").unlink()
    setup.apply()
    assert setup.commands()[-1] == "systemctl restart openclaw-gateway.service"


def test_the_largest_credentials_are_accepted(setup: Setup) -> None:
    # Characters that are longest when JSON is encoded inside JSON.
    document = {"TunnelName": "kitchen", "Note": "é" * 32_000}
    text = json.dumps(document, ensure_ascii=False)
    setup.apply({**SECRETS, "tunnel": {"credentials": text}})
    assert setup.helped.device.path("/etc/platform/tunnel/credentials.json").read_text() == text


def test_wiz_12_a_configured_device_is_not_set_up_again(setup: Setup) -> None:
    put_answers(setup.helped.device, step="done")
    with pytest.raises(PlatformError, match="is already set up"):
        setup.apply()
    assert setup.commands() == []


def test_a_wizard_that_is_root_does_not_use_the_helper(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{setup.programs}:{os.environ['PATH']}")
    snapshot = setup.snapshot()
    executor(setup.settings)(snapshot, build_plan(snapshot), lambda progress: None)
    assert len(setup.commands()) > 5
    assert SETUP_APPLY not in setup.helped.log.read_text()


def secrets(step: str, **named: str) -> dict[str, Any]:
    """All secrets except those of a step."""
    return {"secrets": {**SECRETS, step: named}}


def key(text: str, **more: str) -> dict[str, Any]:
    return secrets("provider", OPENAI_API_KEY=text, **more)


def store_key(text: str) -> dict[str, Any]:
    return secrets("backup", a_application_key=text)


def credentials(text: str) -> dict[str, Any]:
    return secrets("tunnel", credentials=text)


LARGE = json.dumps({"TunnelName": "kitchen", "a": "b" * 65536})
HOSTILE: Mapping[str, tuple[dict[str, Any], str]] = {
    "nothing": ({}, "missing"),
    "no-mark": ({"mark": None}, "expected str"),
    "another-mark": ({"mark": "0" * 16}, "has changed since it was shown"),
    "answers": ({"answers": {"hostname": "mine"}}, "unknown"),
    "actions": ({"actions": [{"action": "run", "argv": ["id"]}]}, "unknown"),
    "a-root": ({"root": "/"}, "unknown"),
    "no-secrets": ({"secrets": {}}, "API key"),
    "unknown-step": ({"secrets": {"../x": {"a": "b"}}}, "no step '../x'"),
    "unused": (secrets("system", a="b"), "the plan does not need"),
    "another-variable": (key(KEY, LD_PRELOAD="/x"), "the plan does not need"),
    "a-line-feed-in-a-key": (key(f"{KEY}\nLD_PRELOAD=/x"), "no key has"),
    "a-line-feed-in-a-stores-key": (store_key(f"{STORE_KEY}\nx = y"), "without spaces"),
    "a-reference-in-a-stores-key": (store_key("a%(key)s"), "the backup program misreads it"),
    "a-long-key": (secrets("mesh-vpn", authkey="a" * 5000), "longer than 4,096"),
    "invalid-credentials": (credentials("#!/bin/sh"), "must be JSON"),
    "another-tunnel": (credentials('{"TunnelName": "other"}'), "Tunnel credentials"),
    "large-credentials": (credentials(LARGE), "64 KiB or smaller"),
    "a-huge-request": (credentials("x" * 300_000), "longer than 262,144 bytes"),
    "a-number": ({"secrets": {"provider": {"OPENAI_API_KEY": 1}}}, "expected str"),
    "a-list": ({"secrets": [KEY]}, "expected object"),
}


def asked(setup: Setup) -> dict[str, Any]:
    """The arguments of the wizard's request."""
    return {"mark": plan_digest(setup.plan()), "secrets": dict(SECRETS)}


def assert_refused(setup: Setup, arguments: dict[str, Any], reason: str) -> None:
    """Check that a request as the user nobody is refused and changes nothing."""
    before = setup.files()
    with as_nobody(), pytest.raises(PlatformError) as caught:
        ask(setup.helped.socket, SETUP_APPLY, arguments, SetUp)
    # A request that is too long is not read to its end.
    assert reason in caught.value.message or "longer than" in reason
    assert [canary for canary in CANARIES if canary in caught.value.message] == []
    assert setup.files() == before
    assert setup.commands() == []


@pytest.mark.parametrize(("changed", "reason"), HOSTILE.values(), ids=HOSTILE)
def test_a_request_that_the_wizard_would_not_send_changes_nothing(
    setup: Setup, changed: dict[str, Any], reason: str
) -> None:
    assert_refused(setup, {**asked(setup), **changed} if changed else {}, reason)


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        pytest.param(b"", "not valid JSON", id="empty"),
        pytest.param(b'{"version": 1}', "version", id="another-version"),
        pytest.param(None, "symbolic link", id="a-link-to-a-file-of-root"),
    ],
)
def test_invalid_answers_change_nothing(setup: Setup, state: bytes | None, reason: str) -> None:
    request = asked(setup)
    file = setup.helped.device.path(STATE_FILE)
    file.unlink()
    if state is None:
        file.symlink_to("/etc/shadow")
    else:
        file.write_bytes(state)
    assert_refused(setup, request, reason)
