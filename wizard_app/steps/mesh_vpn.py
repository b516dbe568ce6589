"""Whether the device joins a private network, and with which auth key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from platform_common.secret import Secret
from platform_common.sentence import Sentence
from wizard_app.steps.step import Accepted, Again, Form, Question, Step

_SHORTEST = 8


class MeshVpnAnswer(Struct, frozen=True):
    """Whether it joins."""

    mesh_vpn_enabled: bool


class MeshVpnStep(Step[MeshVpnAnswer]):
    """An auth key, or none (spec, validation per step)."""

    slug = "mesh-vpn"
    title = Sentence("Join a private network (optional)")
    short = Sentence("Private network")
    answer_type = MeshVpnAnswer
    secret_fields = frozenset({"authkey"})

    def filled(self, answer: MeshVpnAnswer) -> Mapping[str, list[str]]:
        return {}

    def parse(self, form: Form, asked: Question) -> Accepted[MeshVpnAnswer] | Again:
        key = form.get("authkey")
        if form.has("skip") or not key:
            return Accepted(MeshVpnAnswer(mesh_vpn_enabled=False))
        if len(key) < _SHORTEST:
            return Again({"authkey": Sentence("Auth key must be 8 characters or more")})
        return Accepted(MeshVpnAnswer(mesh_vpn_enabled=True), {"authkey": Secret(key)})

    def needs(self, answer: MeshVpnAnswer, asked: Question) -> tuple[Sentence, ...]:
        if answer.mesh_vpn_enabled and not asked.held.secrets:
            return (Sentence("Auth key"),)
        return ()

    def summary(self, answer: MeshVpnAnswer, asked: Question) -> Iterable[tuple[Sentence, Any]]:
        yield (
            Sentence("Private network"),
            Sentence("Joins it") if answer.mesh_vpn_enabled else Sentence("Not joined"),
        )
