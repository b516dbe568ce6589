"""The secrets of a step: kept or replaced while held, asked again when lost, never shown."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.catalogues import form, install, of_each_kind
from tests.support.devices import Device
from tests.support.key_tests import KINDS
from tests.support.tunnel_credentials import credentials
from tests.support.wizard_secrets import files, found
from tests.wizard_app.conftest import MakeWizard
from tests.wizard_app.setup.steps.test_backup import GOOD as STORES
from tests.wizard_app.setup.steps.test_backup import LABELS, SECRETS
from tests.wizard_app.step_pages import StepPage

NOWHERE = "http://127.0.0.1:9"
HELD = "Entered, kept in memory only"


class Case(NamedTuple):
    """A form, its secret fields, their labels on the pages, and values that make it invalid."""

    slug: str
    form: dict[str, str]
    secret: tuple[str, ...]
    labels: tuple[str, ...]
    wrong: dict[str, str]
    another: str = "another-secret"


def _store(kind: str) -> Case:
    labels = tuple(LABELS[field.partition("_")[2]] for field in SECRETS[kind])
    return Case("backup", STORES[kind], SECRETS[kind], labels, {f"{kind[-1]}_bucket": "a/b"})


def _provider(id_: str) -> Case:
    fields = form(id_, skip_validation="1", **({"endpoint": NOWHERE} if id_ == "own" else {}))
    wrong = {"endpoint": "nowhere"}
    if id_ == "signed-cloud":
        labels = ("Access key id", "Secret access key", "Region")
        return Case("provider", fields, ("api_key", "secret_access_key"), labels, wrong)
    return Case("provider", fields, ("api_key",), ("API key",), wrong)


_TUNNEL = {"choice": "named", "credentials": credentials()}
CASES = {
    "mesh-vpn": Case("mesh-vpn", {"authkey": "tskey-CaNaRy01"}, ("authkey",), ("Auth key",), {}),
    "tunnel": Case(
        *("tunnel", _TUNNEL, ("credentials",), ("Tunnel credentials",), {"choice": "other"}),
        another=credentials(TunnelName="kitchen"),
    ),
    **{kind: _store(kind) for kind in STORES},
    **{id_: _provider(id_) for id_ in (*KINDS, "own")},
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest, device: Device) -> Case:
    install(device, of_each_kind(NOWHERE))
    return CASES[request.param]


@pytest.fixture
def step(wizard: MakeWizard, state_file: Path, case: Case) -> StepPage:
    return StepPage(wizard(), case.slug, state_file)


def test_held_secrets_can_be_kept_or_replaced(step: StepPage, case: Case) -> None:
    assert 'name="keep"' not in step.text
    step.accept(case.form)
    before = step.held
    assert set(before.values()) >= {case.form[field] for field in case.secret}
    assert step.text.count('name="keep" type="checkbox" value="1" checked') == 1
    without = case.form | dict.fromkeys(case.secret, "")
    # Joining a private network is optional.
    if case.slug != "mesh-vpn":
        step.refuse(without)
    step.accept(without, keep="1")
    assert step.held == before
    # A typed secret replaces the held one.
    step.accept(without | {"keep": "1", case.secret[-1]: case.another})
    changed = {name: value for name, value in step.held.items() if value != before[name]}
    assert list(changed.values()) == [case.another]


def test_wiz_04_after_a_restart_secrets_are_asked_again(
    step: StepPage, wizard: MakeWizard, case: Case
) -> None:
    step.accept(case.form)
    before = step.stored
    again = step._replace(client=wizard())
    lost = [f"{label} – enter again" for label in case.labels]
    assert all(words in page for words in lost for page in (again.text, again.review))
    assert "No longer in memory – enter again" in again.review
    assert HELD not in again.review
    assert 'name="keep"' not in again.text
    again.refuse(case.form | dict.fromkeys(case.secret, ""), keep="1")
    assert again.stored == before
    again.accept(case.form)
    assert not any(words in again.review for words in lost)


def test_leak_01_secrets_are_only_in_memory(
    step: StepPage, out: Path, caplog: pytest.LogCaptureFixture, case: Case
) -> None:
    caplog.set_level(logging.DEBUG)
    broken = [{field: f"{case.form[field]}\n%(x"} for field in case.secret]
    pages = [step.refuse(case.form | wrong) for wrong in broken]
    pages += [step.refuse(case.form | case.wrong)] if case.wrong else []
    step.accept(case.form)
    pages += [step.send(case.form, revision="x").text, step.text, step.review]
    # A provider has one line, however many secrets it needs.
    assert pages[-1].count(HELD) == (1 if case.slug == "provider" else len(case.secret))
    for field in case.secret:
        assert found(case.form[field], caplog.text, *pages, *files(out)) == []
