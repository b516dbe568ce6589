"""Applying from the review page: once, only the plan that was shown, with its secrets."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from tests.support.apply_setups import (
    CANARIES,
    COMMANDS,
    FULL,
    JOURNAL,
    RULES,
    STATE,
    answer,
    commands,
    result,
    started,
    steps_with_lost_secrets,
    wizard_of,
)
from tests.support.wizard_secrets import found, held
from wizard_app.setup.apply.executor import OnProgress
from wizard_app.setup.plan.plan import Plan, build_plan
from wizard_app.setup.snapshot import Snapshot

_APPLY = "/wizard/review/apply"


@pytest.fixture
def client(out: Path) -> FlaskClient:
    """A client of a wizard with all answers."""
    client = started(out)
    answer(client, FULL)
    return client


class Slow:
    """Makes a wizard wait while it applies, until `go_on` is set."""

    def __init__(self, client: FlaskClient) -> None:
        applying = client.application.extensions["applying"]
        self._execute = applying._execute
        applying._execute = self._act
        self.begun, self.go_on = threading.Event(), threading.Event()
        self.runs = 0

    def _act(self, snapshot: Snapshot, plan: Plan, on_progress: OnProgress) -> None:
        self.runs += 1
        self.begun.set()
        assert self.go_on.wait(120)
        self._execute(snapshot, plan, on_progress)


def _apply(client: FlaskClient) -> tuple[int, str | None]:
    done = client.application.test_client().post(_APPLY)
    return done.status_code, done.location


def _apply_up_to_the_firewall(client: FlaskClient, out: Path) -> None:
    """Apply up to the firewall, whose file cannot be written; by then every secret is stored."""
    (out / RULES).mkdir(parents=True)
    client.post(_APPLY)
    (out / RULES).rmdir()


def _secrets(client: FlaskClient) -> dict[str, str]:
    return {name: value for slug in FULL for name, value in held(client, slug).items()}


def test_wiz_14_only_a_post_starts_setup(client: FlaskClient, out: Path) -> None:
    for method in ("GET", "HEAD", "PUT", "DELETE"):
        assert client.open(_APPLY, method=method).status_code == 405
    assert not (out / JOURNAL).exists()


def test_wiz_05_wiz_09_and_wiz_12_after_success_setup_cannot_run_again(
    client: FlaskClient, out: Path
) -> None:
    assert set(_secrets(client).values()) >= {CANARIES[0], CANARIES[1], CANARIES[3]}
    assert _apply(client) == (302, "/wizard/done")
    assert _secrets(client) == {}
    done, before, run = result(out), (out / JOURNAL).read_bytes(), commands(out)
    for canary in CANARIES:
        assert found(canary, before, (out / COMMANDS).read_bytes()) == []
    for again in (client, started(out)):
        assert _apply(again) == (302, "/wizard/done")
    assert (result(out), (out / JOURNAL).read_bytes(), commands(out)) == (done, before, run)
    # Running everything once more, as if for the first time, changes nothing.
    (out / STATE).unlink()
    (out / COMMANDS).unlink()
    again = started(out)
    answer(again, FULL)
    assert _apply(again) == (302, "/wizard/done")
    assert (result(out), commands(out)) == (done, run)


def test_wiz_05_secrets_are_kept_after_a_failure(client: FlaskClient, out: Path) -> None:
    before = _secrets(client)
    (out / RULES).mkdir(parents=True)
    failed = client.post(_APPLY)
    assert failed.status_code == 200
    assert "Setup stopped" in failed.text
    assert RULES in failed.text
    assert _secrets(client) == before
    assert json.loads((out / STATE).read_bytes())["step"] == "review"
    (out / RULES).rmdir()
    # Answers can be changed before the next attempt.
    client.post("/wizard/system", data={"hostname": "attic", "timezone": "UTC"})
    assert _apply(client) == (302, "/wizard/done")
    assert (out / "etc/hostname").read_text() == "attic\n"


def test_wiz_08_of_fifty_simultaneous_requests_one_runs_setup(
    client: FlaskClient, out: Path
) -> None:
    slow = Slow(client)
    with ThreadPoolExecutor(51) as pool:
        first = pool.submit(_apply, client)
        assert slow.begun.wait(120)
        others = list(pool.map(_apply, [client] * 50))
        slow.go_on.set()
        assert first.result() == (302, "/wizard/done")
    assert others == [(409, None)] * 50
    assert slow.runs == 1
    assert len({str(argv) for argv in commands(out)}) == len(commands(out))


def test_wiz_08_two_wizards_of_one_device_set_it_up_once(client: FlaskClient, out: Path) -> None:
    other = started(out)
    answer(other, FULL)
    slow = Slow(client)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(_apply, client)
        assert slow.begun.wait(120)
        assert _apply(other) == (409, None)
        late = client.application.test_client().post(
            "/wizard/system", data={"hostname": "late", "timezone": "UTC"}
        )
        assert late.status_code == 302
        assert late.location.startswith("/wizard/review")
        slow.go_on.set()
        assert first.result() == (302, "/wizard/done")
    before = commands(out)
    # In its memory nothing has been done yet.
    assert _apply(other) == (302, "/wizard/done")
    assert commands(out) == before
    assert (out / "etc/hostname").read_text() == "kitchen\n"
    assert json.loads((out / STATE).read_bytes())["answers"]["hostname"] == "kitchen"


def test_wiz_04_a_key_entered_again_is_lost_by_a_restart(client: FlaskClient, out: Path) -> None:
    _apply_up_to_the_firewall(client, out)
    assert steps_with_lost_secrets(started(out)) == set()
    answer(client, {"provider": {**FULL["provider"], "api_key": "sk-another"}})
    anew = started(out)
    assert steps_with_lost_secrets(anew) == {"provider"}
    answer(anew, {"provider": {**FULL["provider"], "api_key": "sk-another"}})
    assert _apply(anew) == (302, "/wizard/done")
    assert (out / "etc/platform/secrets.env").read_text() == "OPENAI_API_KEY=sk-another\n"
    assert [argv[0] for argv in commands(out)].count("tailscale") == 1


def test_fs_07_with_a_linked_journal_secrets_are_asked_for_again(
    client: FlaskClient, out: Path
) -> None:
    _apply_up_to_the_firewall(client, out)
    journal = out / JOURNAL
    journal.rename(journal.with_name("elsewhere"))
    journal.symlink_to("elsewhere")
    assert steps_with_lost_secrets(started(out)) == {"provider", "mesh-vpn", "tunnel", "backup"}


@pytest.mark.parametrize("gone", ["tunnel", "backup"])
def test_leak_06_secrets_left_by_a_killed_wizard_are_removed_whatever_the_new_answers(
    out: Path, client: FlaskClient, gone: str
) -> None:
    _apply_up_to_the_firewall(client, out)
    left = [
        out / "etc/platform/.rclone.conf.4711.0123abcd.tmp",
        out / "etc/platform/.secrets.env.4711.0123abcd.tmp",
        out / "etc/platform/tunnel/.credentials.json.4711.0123abcd.tmp",
        *(out / "run/platform/.mesh-vpn.key.4711.0123abcd.tmp", out / "run/platform/mesh-vpn.key"),
    ]
    other = out / "etc/platform/.other.4711.0123abcd.tmp"
    for path in (*left, other):
        path.write_text("secret")
    # A worker process that replaces another one does this when it applies.
    answer(client, {gone: {"choice": "skip", "kind": "skip"}})
    if gone == "tunnel":
        client = started(out)
        assert [path for path in left if path.exists()] == []
        answer(client, FULL, steps_with_lost_secrets(client))
    assert _apply(client) == (302, "/wizard/done")
    assert [path for path in left if path.exists()] == []
    assert other.exists()


def test_wiz_10_the_gateway_starts_after_everything_it_needs_and_setup_ends_last(
    client: FlaskClient, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []

    def finish(self: Any) -> Any:
        journal = (out / JOURNAL).read_text().splitlines()
        seen.append((json.loads(journal[-1]).get("ended"), len(commands(out))))
        return wizard_finish(self)

    wizard = type(wizard_of(client))
    wizard_finish = wizard.finish
    monkeypatch.setattr(wizard, "finish", finish)
    phases = [item.phase for item in build_plan(wizard_of(client).snapshot())]
    assert phases == sorted(phases)
    assert set(phases) == set(type(phases[0]))
    assert _apply(client) == (302, "/wizard/done")
    assert seen == [(True, len(commands(out)))]
    assert [" ".join(argv[:2]) for argv in commands(out)] == [
        *("hostnamectl set-hostname", "timedatectl set-timezone", "tailscale up"),
        *("systemctl enable", "nft -f", "systemctl enable", "systemctl restart"),
    ]
