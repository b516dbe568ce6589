"""The wizard's pages in their states: the device, the answers, and the typed text."""

from __future__ import annotations

import contextlib
import json
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec
from flask import Flask
from playwright.sync_api import Page, Response

from platform_common.records.channel_names import channel_name
from platform_common.records.limits import Capabilities, Limitation, Limits
from platform_common.resources import data_path
from tests.support import chat_states, gateways
from tests.support.browsers import send
from tests.support.catalogues import entry, install
from tests.support.dashboard_states import MARKUP
from tests.support.devices import Device
from tests.support.key_tests import KINDS
from tests.support.pseudo_language import leaves
from tests.support.wizard_apply import Commands, PowerCutError, wizard_with
from wizard_app.app import create_app
from wizard_app.apply_job import ApplyJob
from wizard_app.setup.plan.plan import build_plan
from wizard_app.setup.settings import WizardSettings
from wizard_app.wizard import Wizard

Fields = Mapping[str, str | list[str]]

TOKEN = "0123456789abcdef" * 4
STATE_FILE = "/var/lib/platform/wizard-state.json"
KEY = "sk-CaNaRy-0123456789abcdef"
AUTH_KEY = "tskey-CaNaRy-0123456789"
TUNNEL_SECRET = "CaNaRy-tunnel-0123456789"
STORE_SECRETS = ("CaNaRy-store-id-0123", "CaNaRy-store-key-4567")
SECRETS = (KEY, AUTH_KEY, TUNNEL_SECRET, *STORE_SECRETS)
SSH_KEY = (
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f someone@home"
)
CREDENTIALS = json.dumps({"TunnelName": "kitchen", "TunnelSecret": TUNNEL_SECRET})
# The answers to each step, in order; the key is not tested.
ANSWERS: Mapping[str, Fields] = {
    "system": {"hostname": "agent-kitchen", "timezone": "Europe/Berlin"},
    "profile": {"profile": "openclaw"},
    "provider": {"provider": "openai", "api_key": KEY, "skip_validation": "1"},
    "channels": {"channels": ["telegram"]},
    "ssh": {"ssh_keys": SSH_KEY},
    "mesh-vpn": {"authkey": AUTH_KEY},
    "tunnel": {"choice": "named", "credentials": CREDENTIALS},
    "backup": {
        "kind": "store_b",
        "b_account_id": "0123456789abcdef0123456789abcdef",
        "b_access_key": STORE_SECRETS[0],
        "b_secret_key": STORE_SECRETS[1],
        "b_bucket": "kitchen-backup",
    },
}
STEPS = tuple(ANSWERS)
# The forms that each step refuses, by what is wrong with them.
REFUSED: Mapping[str, Mapping[str, Fields]] = {
    "system": {
        "nothing": {"hostname": "", "timezone": ""},
        "another name": {"hostname": "My Kitchen!", "timezone": "Mars/Olympus"},
        "long": {"hostname": "x" * 64, "timezone": "UTC"},
        "hyphen": {"hostname": "-agent", "timezone": "UTC"},
    },
    "profile": {"nothing": {}, "unknown": {"profile": MARKUP}},
    "provider": {
        "nothing": {},
        "no key": {"provider": "openai", "api_key": ""},
        "two lines": {"provider": "openai", "api_key": "a\nb"},
    },
    "channels": {"unknown": {"channels": [MARKUP, "pigeon"]}},
    "ssh": {
        "no key": {"ssh_keys": f"hello\n{SSH_KEY}"},
        "beside fetched": {"ssh_keys": "hello", "fetched": [SSH_KEY]},
        "private": {"ssh_keys": "-----BEGIN OPENSSH PRIVATE KEY-----"},
    },
    "mesh-vpn": {"short": {"authkey": "short"}},
    "tunnel": {
        "nothing": {},
        "no JSON": {"choice": "named", "credentials": '{"TunnelID": \n'},
        "no name": {"choice": "named", "credentials": "{}"},
    },
    "backup": {
        "nothing": {},
        "store a": {"kind": "store_a"},
        "store b": {"kind": "store_b"},
        "store c": {"kind": "store_c", "c_endpoint": "ftp://x"},
    },
}

# Names of units, of a site, of a profile that cannot be read, of devices, and of example values.
_NAMES = {
    *("GB", "MB", "GitHub", "broken", "sample-device.local", "agent-kitchen.local"),
    *("nft", "http", "my-kitchen", "agent", "x" * 63, "kitchen", "someone@home", "ED25519"),
    "SHA256:ZkAslGjFiUHdGf/WUL8rQvkib4PTvQatUV0OUQSncCA",
    "https://0123456789abcdef0123456789abcdef.r2.cloudflarestorage.com",
}
_LIMITS: dict[str, Any] = json.loads(
    msgspec.json.encode(
        Limits(
            *("pi-zero", "low", 512, "low", "sd"),
            Capabilities(
                channels_heavy=("slack",),
                channels_disabled_by_ram=("signal", "whatsapp", "telegram"),
            ),
            (Limitation("channel-signal", "Signal needs 2 GB of memory.", "Use another device."),),
        )
    )
)
_PROFILE = """
[profile]
id = "openclaw"
display_name = {name}
min_ram_mb = 4096
pinned_version = {name}
[paths]
data_dir = "~/.openclaw"
[service]
unit = "openclaw-gateway.service"
ports = [8080]
[channels]
supported = {channels}
"""


class View(NamedTuple):
    """A page: its address, the form that is sent there, if any, and the status of the response."""

    name: str
    address: str
    form: Fields | None = None
    status: int | None = None

    def open(self, page: Page, url: str) -> Response:
        """Show it in a browser; `url` is the address of the app."""
        answer = page.goto(url + self.address)
        if self.form is not None:
            answer = send(page, url + self.address, self.form)
        assert answer is not None
        return answer


class WizardScene(NamedTuple):
    """A wizard in one state, and its pages.

    `prepare` sets up the device and the folder that the wizard writes to. The forms in `answered`
    are sent to it; then it may be `restarted`. A `locked` one opens with TOKEN. If it was `tried`,
    setup was applied with these commands; if it is `going`, that seems to be still running.
    """

    state: str
    views: tuple[View, ...]
    prepare: Callable[[Device, Device], object] = lambda device, out: None
    answered: Mapping[str, Fields] = {}
    restarted: bool = False
    locked: bool = False
    tried: Callable[[], Commands] | None = None
    going: bool = False

    def app(self, folder: Path) -> Flask:
        """The wizard in this state; its files are in `folder`."""
        device, out = Device(folder / "device"), Device(folder / "dev-out")
        device.put("/etc/hostname", "sample-device\n")
        self.prepare(device, out)
        environment = {
            "PLATFORM_ROOT": str(device.root),
            "WIZARD_DEV_OUT": str(out.root),
            **({"WIZARD_TOKEN": TOKEN} if self.locked else {"WIZARD_NO_TOKEN": "1"}),
        }
        app = wizard_with(self.tried() if self.tried else Commands(), environment)
        answer(app, self.answered)
        if self.tried:
            with contextlib.suppress(PowerCutError):
                app.test_client().post("/wizard/review/apply")
        if self.restarted:
            app = create_app(WizardSettings.from_env(environment))
        if self.going:
            wizard: Wizard = app.extensions["wizard_app"]
            applying: ApplyJob = app.extensions["applying"]
            applying.running = build_plan(snapshot := wizard.snapshot())
            assert snapshot.tried is not None
            applying.progress = {one.id: one for one in snapshot.tried.entries}
        return app


def answer(app: Flask, forms: Mapping[str, Fields]) -> None:
    """Send forms to their steps; raises `AssertionError` for one that is not accepted."""
    client = app.test_client()
    for slug, fields in forms.items():
        given = client.post(f"/wizard/{slug}", data=fields)
        assert given.status_code == 302, (slug, given.text)


def _named(text: str) -> Callable[[Device, Device], object]:
    """Records in which every value that may be any text is `text`."""

    def prepare(device: Device, out: Device) -> None:
        device.put("/etc/hostname", text.partition("\n")[0].replace("\0", "") + "\n")
        entries = [
            entry(
                kind,
                "https://127.0.0.1:1",
                kind=kind,
                **dict.fromkeys(("display_name", "key_format", "default_model"), text),
                supported_models_hint=text,
            )
            for kind in KINDS
        ]
        install(device, entries)
        device.put(
            "/etc/platform/profiles/openclaw.toml",
            _PROFILE.format(name=json.dumps(text), channels=json.dumps(["telegram", "signal"])),
        )
        limitation = {"id": "channel-signal", "reason": text, "unblock": text}
        device.put("/etc/platform/limits.json", json.dumps(_LIMITS | {"limitations": [limitation]}))
        said = [{"role": role, "content": text} for role in ("user", "assistant")]
        chat_states.put_turns(out, *said, profile="openclaw")

    return prepare


def _odd(state: str, text: str) -> WizardScene:
    """The pages with `text` wherever there may be any text."""
    line = text.replace("\0", "").replace("\n", " ")
    answered = {
        "profile": ANSWERS["profile"],
        "ssh": {"ssh_keys": f"{SSH_KEY} {line[:200]}"},
        "backup": {
            "kind": "store_c",
            "c_endpoint": f"https://{'s' * 60}.example:8443",
            "c_access_key": STORE_SECRETS[0],
            "c_secret_key": STORE_SECRETS[1],
            "c_bucket": "b" * 63,
        },
    }
    forms: Mapping[str, Fields] = {
        "system": {"hostname": text, "timezone": text},
        "profile": {"profile": text},
        "provider": {"provider": KINDS[0], "model": text, "endpoint": text, "region": text},
        "channels": {"channels": [text, "signal"]},
        "ssh": {"ssh_keys": text, "code_host_user": text},
        "tunnel": {"choice": text, "credentials": text},
        "backup": {"kind": "store_c", "c_endpoint": text, "c_bucket": text},
    }
    views = [View(f"{slug}: typed", f"/wizard/{slug}", fields) for slug, fields in forms.items()]
    views.append(View("chat", "/chat"))
    quoted = quote(line)
    queries = (f"return={quoted}", f"token={quoted}", f"{quoted}={quoted}")
    views += [View(query[:40], f"/wizard/system?{query}") for query in queries]
    return WizardScene(state, (*_pages(), *views), _named(text), answered=answered)


def known_values() -> set[str]:
    """Values on the wizard's pages that are not our text: of records, names, and typed text."""
    records: list[Any] = [json.loads(data_path("providers.json").read_bytes()), _LIMITS]
    records += [tomllib.loads(file.read_text()) for file in data_path("profiles").iterdir()]
    found = set(leaves([records, ANSWERS, REFUSED]))
    found |= chat_states.known_values()
    return found | {str(channel_name(one)) for one in found} | _NAMES


def _pages(*slugs: str) -> tuple[View, ...]:
    return tuple(View(slug, f"/wizard/{slug}") for slug in slugs or (*STEPS, "review"))


def _refused(slugs: Sequence[str]) -> Iterator[View]:
    for slug in slugs:
        for wrong, form in REFUSED[slug].items():
            yield View(f"{slug}: {wrong}", f"/wizard/{slug}", form)


def _damaged(_: Device, out: Device) -> None:
    out.put(STATE_FILE, '{"version": 2, "step": ')


def _done(_: Device, out: Device) -> None:
    begun, ended = "2026-11-21T10:00:00Z", "2026-11-21T10:20:00Z"
    state = {"version": 2, "started_at": begun, "completed_at": ended, "step": "done"}
    out.put(STATE_FILE, json.dumps(state | {"answers": {"hostname": "agent-kitchen"}}))


def _unreadable_records(device: Device, _: Device) -> None:
    device.put("/etc/platform/providers.json", "{")
    device.put("/etc/platform/limits.json", "[]")
    device.put("/etc/platform/profiles/broken.toml", "id = 3")


def _small(device: Device, _: Device) -> None:
    device.put("/etc/platform/limits.json", json.dumps(_LIMITS))


def _offline(device: Device, _: Device) -> None:
    device.put("/etc/platform/airgap.flag", "")


def _interrupted(state: str, by: str) -> WizardScene:
    return WizardScene(
        state, _pages("review"), answered=ANSWERS, tried=lambda: Commands(cut=by), restarted=True
    )


def _box(_: Device, out: Device) -> None:
    gateways.install(out.root, chat_states.NOBODY)


def _conversation(device: Device, out: Device) -> None:
    _box(device, out)
    chat_states.put_turns(out, *chat_states.turns())


_FROM_REVIEW = View("from review", "/wizard/mesh-vpn?return=review")
_CHAT = (
    View("chat", "/chat"),
    View("chat: nothing", "/chat/message", {"message": " ", "nojs": "1"}),
    View("chat: clear", "/chat/clear"),
)
_BOX: Mapping[str, Fields] = {"profile": {"profile": "box"}}
SCENES: Mapping[str, WizardScene] = {
    scene.state: scene
    for scene in (
        WizardScene("fresh", (*_pages(), *_refused(STEPS[:4]), _CHAT[0])),
        WizardScene("wrong", tuple(_refused(STEPS[4:]))),
        WizardScene("answered", (*_pages(), _FROM_REVIEW), answered=ANSWERS),
        WizardScene(
            "restarted", _pages("profile", "backup", "review"), answered=ANSWERS, restarted=True
        ),
        WizardScene(
            "locked",
            (
                View("no link", "/"),
                View("wrong link", "/?token=0"),
                View("let in", f"/?token={TOKEN}"),
                View("another device", "/wizard/another-device", {}),
                View("no file", "/wizard/import", {"file": ""}),
            ),
            locked=True,
        ),
        WizardScene("damaged", (View("system", "/wizard/system"),), _damaged),
        WizardScene("done", (View("done", "/wizard/done"),), _done),
        WizardScene(
            "applying",
            _pages("review"),
            answered=ANSWERS,
            tried=lambda: Commands(cut="platform-tunnel"),
            going=True,
        ),
        WizardScene(
            "stopped", _pages("review"), answered=ANSWERS, tried=lambda: Commands(failing="nft")
        ),
        _interrupted("interrupted", "platform-tunnel"),
        _interrupted("interrupted early", "hostnamectl"),
        WizardScene("set up", _pages("done"), answered=ANSWERS, tried=Commands),
        WizardScene("chat begins", _CHAT, _box, answered=_BOX),
        WizardScene("chat", _CHAT, _conversation, answered=_BOX),
        WizardScene("unreadable", _pages("profile", "provider", "channels"), _unreadable_records),
        _odd("hostile", MARKUP),
        _odd("long", "x" * 500),
        WizardScene("offline", _pages("provider"), _offline),
        WizardScene(
            "small",
            (
                *_pages("profile", "channels"),
                View("disabled", "/wizard/channels", {"channels": "signal"}),
            ),
            _small,
            answered={"profile": ANSWERS["profile"]},
        ),
    )
}
