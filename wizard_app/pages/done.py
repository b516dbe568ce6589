"""The last page: the state of the gateway, where to go next, and a record to keep."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from flask import Blueprint, Response, redirect, render_template
from werkzeug import Response as Redirect

from platform_common import ports
from platform_common.clock import is_implausible
from platform_common.version import VERSION
from platform_common.web.factory import device_name
from wizard_app.access.gate import current_gate
from wizard_app.access.request_info import asks_for_loopback
from wizard_app.chat.gateway import Health, health
from wizard_app.context import wizard
from wizard_app.launch import launch_url, qr_code
from wizard_app.setup.snapshot import Snapshot
from wizard_app.setup.state import DONE, WizardState
from wizard_app.setup.steps.mesh_vpn import MeshVpnAnswer
from wizard_app.setup.steps.profile import ProfileAnswer
from wizard_app.setup.steps.ssh import SshAnswer
from wizard_app.setup.steps.tunnel import TunnelAnswer

RECORD = "platform-setup-record"
_RECORD_VERSION = 1
# A gateway that has not answered by then is reported as not running.
_STARTING_S = 60
_HEALTH_LIMIT_S = 1.0
blueprint = Blueprint("done", __name__)


class Gateway(NamedTuple):
    """The state of the gateway of the chosen profile, if known."""

    state: Literal["ready", "starting", "late", "unknown"]
    health: Health | None = None


@blueprint.get("/wizard/done")
def done() -> str | Redirect:
    """The last page; before setup is complete, redirect to the current step."""
    snapshot = wizard().snapshot()
    state = snapshot.state
    if state.step != DONE:
        return redirect(f"/wizard/{state.step}")
    urls = list(_dashboards())
    keys, tunnel = state.answers.of(SshAnswer), state.answers.of(TunnelAnswer)
    mesh_vpn = state.answers.of(MeshVpnAnswer)
    left_s = current_gate().left_s()
    return render_template(
        "wizard/done.html",
        urls=urls,
        code=qr_code.as_image(urls[-1]),
        gateway=_gateway(snapshot),
        has_keys=bool(keys and keys.ssh_keys),
        mesh_vpn=bool(mesh_vpn and mesh_vpn.mesh_vpn_enabled),
        tunnel=tunnel,
        is_set=_clock_was_set(snapshot),
        is_locked=current_gate().is_locked,
        ends_at=datetime.now().astimezone() + timedelta(seconds=left_s) if left_s else None,
    )


@blueprint.get("/wizard/done/gateway")
def gateway() -> str | Redirect:
    """The gateway's state, as a part of the last page."""
    snapshot = wizard().snapshot()
    if snapshot.state.step != DONE:
        return redirect(f"/wizard/{snapshot.state.step}")
    found = _gateway(snapshot)
    return render_template("wizard/_started.html", gateway=found, urls=list(_dashboards()))


@blueprint.get("/wizard/record.json")
def record() -> Response | Redirect:
    """Download the answers and the result of each action as a file, without secrets."""
    snapshot = wizard().snapshot()
    state, tried = snapshot.state, snapshot.tried
    if state.step != DONE:
        return redirect(f"/wizard/{state.step}")
    document = {
        "kind": RECORD,
        "version": _RECORD_VERSION,
        "device": device_name(),
        "started_at": state.started_at,
        "completed_at": state.completed_at,
        "clock_synchronised": _clock_was_set(snapshot),
        "software": {"platform": VERSION, "profile": _version_of_profile(snapshot)},
        "answers": dict(state.answers.values),
        "actions": [
            {"action": entry.what, "state": entry.state, "at": entry.at or None}
            for entry in (tried.entries if tried else ())
        ],
    }
    return Response(
        json.dumps(document, indent=2, ensure_ascii=False) + "\n",
        content_type="application/json",
        headers={"Content-Disposition": f'attachment; filename="setup-record-{_file_name()}.json"'},
    )


@blueprint.post("/wizard/sign-out")
def sign_out() -> Response:
    """End the session of this browser."""
    return current_gate().sign_out()


def _dashboards() -> Iterator[str]:
    """The addresses of the dashboard: the best first, one for other devices last."""
    # In dev mode the dashboard listens on this machine only, unless told otherwise.
    here = asks_for_loopback() and not current_gate().is_production
    hosts = ["127.0.0.1"] if here else []
    hosts += [f"{device_name()}.local", *launch_url.network_addresses()]
    return (f"http://{host}:{ports.DASHBOARD}" for host in hosts)


def _gateway(snapshot: Snapshot) -> Gateway:
    answer = snapshot.state.answers.of(ProfileAnswer)
    profile = snapshot.machine.profile(answer.profile) if answer else None
    if profile is None:
        return Gateway("unknown")
    found = health(profile, limit_s=_HEALTH_LIMIT_S)
    if found.ready:
        return Gateway("ready", found)
    return Gateway("starting" if _is_fresh(snapshot.state) else "late", found)


def _completed(state: WizardState) -> datetime | None:
    return datetime.fromisoformat(state.completed_at) if state.completed_at else None


def _is_fresh(state: WizardState) -> bool:
    """Whether setup was completed a moment ago, by this device's clock."""
    completed = _completed(state)
    if completed is None:
        return False
    age = datetime.now(completed.tzinfo) - completed
    return timedelta() <= age < timedelta(seconds=_STARTING_S)


def _clock_was_set(snapshot: Snapshot) -> bool:
    """Whether the clock was right when this setup recorded its times."""
    completed = _completed(snapshot.state)
    plausible = completed is not None and not is_implausible(completed.date())
    return plausible and snapshot.machine.clock_is_set


def _version_of_profile(snapshot: Snapshot) -> str | None:
    answer = snapshot.state.answers.of(ProfileAnswer)
    profile = snapshot.machine.profile(answer.profile) if answer else None
    return profile.pinned_version if profile else None


def _file_name() -> str:
    return "".join(c if c.isascii() and c.isalnum() else "-" for c in device_name().lower())
