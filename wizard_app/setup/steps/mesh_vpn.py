"""Whether the device joins a private network, and with which auth key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from platform_common.message import Sentence
from wizard_app.setup.plan.actions import MESH_VPN_KEY, NOT_HELD, KeyFile, Planned, RunCommand
from wizard_app.setup.plan.phases import Phase
from wizard_app.setup.steps.base import Accepted, Form, FormErrors, Question, Step, in_memory
from wizard_app.setup.steps.typed_secret import typed_secret

_SHORTEST = 8
_KEY = "authkey"
_NAME = Sentence("Auth key")
# tailscale's own limit is 30 s; ours kills it if it does not keep that.
_LIMIT_S = 45.0


class MeshVpnAnswer(Struct, frozen=True):
    """Whether the device joins."""

    mesh_vpn_enabled: bool


class MeshVpnStep(Step[MeshVpnAnswer]):
    """An auth key, or none; with `keep=1`, an empty key means the one in memory."""

    slug = "mesh-vpn"
    title = Sentence("Join a private network (optional)")
    short = Sentence("Private network")
    answer_type = MeshVpnAnswer
    secret_fields = frozenset({_KEY})

    def filled(self, answer: MeshVpnAnswer) -> Mapping[str, list[str]]:
        return {"keep": ["1"]}

    def parse(self, form: Form, asked: Question) -> Accepted[MeshVpnAnswer] | FormErrors:
        text = form.get(_KEY)
        if form.has("skip") or not (text or form.get("keep") == "1"):
            return Accepted(MeshVpnAnswer(mesh_vpn_enabled=False))
        if not text:
            return _kept(asked)
        if len(text) < _SHORTEST:
            return FormErrors({_KEY: Sentence("Auth key must be 8 characters or more")})
        key = typed_secret(text, _NAME)
        if isinstance(key, Sentence):
            return FormErrors({_KEY: key})
        return Accepted(MeshVpnAnswer(mesh_vpn_enabled=True), {_KEY: key})

    def secrets(self, answer: MeshVpnAnswer, asked: Question) -> Mapping[str, Sentence]:
        return {_KEY: _NAME} if answer.mesh_vpn_enabled else {}

    def summary(self, answer: MeshVpnAnswer, asked: Question) -> Iterable[tuple[Sentence, Any]]:
        if not answer.mesh_vpn_enabled:
            yield Sentence("Private network"), Sentence("Not joined")
            return
        yield Sentence("Private network"), Sentence("This device will join")
        used = Sentence("Already used")
        yield _NAME, in_memory(asked, held=bool(asked.held.secrets), stored=used)

    def actions(self, answer: MeshVpnAnswer, asked: Question) -> Iterable[Planned]:
        if answer.mesh_vpn_enabled:
            key = KeyFile(MESH_VPN_KEY, asked.held.secrets.get(_KEY, NOT_HELD))
            words = (
                "tailscale",
                "up",
                f"--auth-key=file:{MESH_VPN_KEY}",
                "--timeout=30s",
                "--reset",
            )
            yield Phase.MESH_VPN, RunCommand(words, _LIMIT_S, files=(MESH_VPN_KEY,), key_file=key)


def _kept(asked: Question) -> Accepted[MeshVpnAnswer] | FormErrors:
    if not asked.held.secrets:
        return FormErrors(
            {_KEY: Sentence("The auth key is no longer in memory: enter it again, or select Skip")}
        )
    return Accepted(MeshVpnAnswer(mesh_vpn_enabled=True), secrets=None)
