"""The plan: it depends on the answers only, is ordered, and shows no secret."""

from __future__ import annotations

import json
from pathlib import Path

from platform_common.paths import SECRETS
from tests.support.apply_setups import CANARIES, FULL, RULES, Forms, answer, started, wizard_of
from tests.support.trees import tree
from tests.support.wizard_secrets import found
from wizard_app.setup.plan.actions import (
    MESH_VPN_KEY,
    STORE_ACCESS,
    TUNNEL_CREDENTIALS,
    Action,
    RunCommand,
    SetVariables,
    WriteFile,
)
from wizard_app.setup.plan.plan import Plan, build_plan, plan_digest

_ANOTHER: Forms = {
    "system": {"hostname": "attic", "timezone": "UTC"},
    "profile": {"profile": "khoj"},
    "channels": {"channels": ["whatsapp-twilio"]},
    "ssh": {"ssh_keys": ""},
    "mesh-vpn": {"skip": "1"},
    "tunnel": {"choice": "quick"},
    "backup": {"kind": "skip"},
}


def _plan(out: Path, forms: Forms = FULL) -> Plan:
    client = started(out)
    answer(client, forms)
    return build_plan(wizard_of(client).snapshot())


def _place(action: Action) -> str:
    """Where an action stores its secret."""
    if isinstance(action, RunCommand):
        return action.key_file.path if action.key_file else ""
    assert isinstance(action, WriteFile | SetVariables)
    return action.path


def test_building_a_plan_changes_nothing_and_gives_the_same_plan_again(out: Path) -> None:
    client = started(out)
    answer(client, FULL)
    before = tree(out)
    plans = [build_plan(wizard_of(client).snapshot()) for _ in range(2)]
    assert plans[0] == plans[1]
    assert plan_digest(plans[0]) == plan_digest(plans[1])
    assert tree(out) == before


def test_leak_08_no_secret_is_in_the_repr_of_a_plan_or_of_pending_secrets(out: Path) -> None:
    client = started(out)
    answer(client, FULL)
    snapshot = wizard_of(client).snapshot()
    plan, held = build_plan(snapshot), snapshot.pending
    assert repr(held).startswith("PendingSecrets(")
    shown = [
        *(repr(held), str(held), *(repr(held.of(slug)) for slug in FULL)),
        repr(plan),
        str(plan),
        json.dumps([item.action.shown for item in plan]),
        *(str(item.action.said) for item in plan),
        *(item.action.id for item in plan),
    ]
    for canary in CANARIES:
        assert found(canary, *shown) == []
    secrets = [secret.reveal() for item in plan for secret in item.action.secrets]
    assert all(any(canary in secret for secret in secrets) for canary in CANARIES)


def test_leak_06_secrets_are_only_written_where_left_overs_are_removed(out: Path) -> None:
    swept = {SECRETS.device, STORE_ACCESS, TUNNEL_CREDENTIALS, MESH_VPN_KEY}
    assert {_place(item.action) for item in _plan(out) if item.action.secrets} == swept


def test_the_digest_changes_with_any_answer_but_not_with_secrets(out: Path) -> None:
    seen = {plan_digest(_plan(out))}
    forms = {**FULL, "provider": {**FULL["provider"], "api_key": "sk-another"}}
    assert {plan_digest(_plan(out, forms))} == seen
    for slug, form in _ANOTHER.items():
        seen.add(plan_digest(_plan(out, {slug: form})))
    assert len(seen) == 1 + len(_ANOTHER)


def test_an_action_done_before_a_restart_is_kept_while_its_answer_is_the_same(out: Path) -> None:
    client = started(out)
    answer(client, FULL)
    (out / RULES).mkdir(parents=True)
    client.post("/wizard/review/apply")
    kept = [item for item in build_plan(wizard_of(started(out)).snapshot()) if item.kept]
    assert len(kept) == len(CANARIES)
    assert all(item.action.lacks_secret for item in kept)
    anew = started(out)
    answer(anew, {"backup": {**FULL["backup"], "a_account_id": "acc1"}})
    again = build_plan(wizard_of(anew).snapshot())
    assert [_place(item.action) for item in again if item.kept] == [
        place for place in map(_place, (item.action for item in kept)) if place != STORE_ACCESS
    ]


def test_a_skipped_file_that_never_existed_is_not_removed(out: Path) -> None:
    skipped = {"choice": "skip", "kind": "skip"}
    plan = _plan(out, {**FULL, "tunnel": skipped, "backup": skipped})
    assert not [item for item in plan if item.action.shown["action"] == "remove"]
