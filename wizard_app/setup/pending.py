"""Secrets that wait for apply: kept in memory only, never written anywhere."""

from __future__ import annotations

import secrets
from collections.abc import Container, Mapping
from types import MappingProxyType
from typing import NamedTuple

from platform_common.message import Sentence
from platform_common.secret import Secret

_REVISION_BYTES = 4


class Held(NamedTuple):
    """The secrets of one step by name, and what is known of them, such as that they work.

    `revision` differs for other secrets of the step, and does not depend on their values.
    """

    secrets: Mapping[str, Secret]
    note: Sentence | None = None
    revision: str = ""


NOTHING = Held(MappingProxyType({}))


class PendingSecrets:
    """The secrets of each step, by its slug; never changed, `having` makes others."""

    __slots__ = ("_held",)

    def __init__(self, held: Mapping[str, Held] = MappingProxyType({})) -> None:
        self._held = dict(held)

    def of(self, slug: str) -> Held:
        """What is held for a step; nothing by default."""
        return self._held.get(slug, NOTHING)

    def having(self, slug: str, held: Held) -> PendingSecrets:
        """These, with `held` in place of what was held for a step."""
        if dict(held.secrets) == dict(self.of(slug).secrets):
            held = held._replace(revision=self.of(slug).revision)
        else:
            held = held._replace(revision=secrets.token_hex(_REVISION_BYTES))
        others = {name: one for name, one in self._held.items() if name != slug}
        return PendingSecrets(others | ({slug: held} if held.secrets else {}))

    def only(self, slugs: Container[str]) -> PendingSecrets:
        """What is held for these steps, and nothing else."""
        return PendingSecrets({slug: held for slug, held in self._held.items() if slug in slugs})

    def __repr__(self) -> str:
        return f"PendingSecrets({', '.join(self._held)})"
