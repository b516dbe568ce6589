"""Secrets that wait for apply: in memory alone, never written anywhere."""

from __future__ import annotations

import secrets
from collections.abc import Container, Mapping
from types import MappingProxyType
from typing import NamedTuple

from platform_common.message import Sentence
from platform_common.secret import Secret

_MARK_BYTES = 4


class Held(NamedTuple):
    """The secrets of one step by name, and what is known of them, such as that they work.

    `mark` tells them from others that the step had, without telling what they are.
    """

    secrets: Mapping[str, Secret]
    note: Sentence | None = None
    mark: str = ""


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
            mark = self.of(slug).mark
        else:
            mark = secrets.token_hex(_MARK_BYTES)
        others = {name: one for name, one in self._held.items() if name != slug}
        return PendingSecrets(others | ({slug: held._replace(mark=mark)} if held.secrets else {}))

    def only(self, slugs: Container[str]) -> PendingSecrets:
        """What is held for these steps, and nothing else."""
        return PendingSecrets({slug: held for slug, held in self._held.items() if slug in slugs})

    def __repr__(self) -> str:
        return f"PendingSecrets({', '.join(self._held)})"
