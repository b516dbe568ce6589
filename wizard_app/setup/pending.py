"""Secrets that wait for setup: in memory only, never written anywhere."""

from __future__ import annotations

import secrets
from collections.abc import Container, Mapping
from types import MappingProxyType
from typing import NamedTuple

from platform_common.message import Sentence
from platform_common.secret import Secret

_REVISION_BYTES = 4


class HeldSecrets(NamedTuple):
    """The secrets of one step by name, and a note about them, such as a test result.

    `revision` changes with the secrets of the step, but does not depend on their values.
    """

    secrets: Mapping[str, Secret]
    note: Sentence | None = None
    revision: str = ""


NOTHING = HeldSecrets(MappingProxyType({}))


class PendingSecrets:
    """The secrets of each step, by its slug; immutable, `having` returns a new one."""

    __slots__ = ("_held",)

    def __init__(self, held: Mapping[str, HeldSecrets] = MappingProxyType({})) -> None:
        self._held = dict(held)

    def of(self, slug: str) -> HeldSecrets:
        """The secrets of a step; empty by default."""
        return self._held.get(slug, NOTHING)

    def having(self, slug: str, held: HeldSecrets) -> PendingSecrets:
        """Return a copy with `held` for a step."""
        if dict(held.secrets) == dict(self.of(slug).secrets):
            held = held._replace(revision=self.of(slug).revision)
        else:
            held = held._replace(revision=secrets.token_hex(_REVISION_BYTES))
        others = {name: one for name, one in self._held.items() if name != slug}
        return PendingSecrets(others | ({slug: held} if held.secrets else {}))

    def only(self, slugs: Container[str]) -> PendingSecrets:
        """Return a copy with only the secrets of these steps."""
        return PendingSecrets({slug: held for slug, held in self._held.items() if slug in slugs})

    def __repr__(self) -> str:
        return f"PendingSecrets({', '.join(self._held)})"
