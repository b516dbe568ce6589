"""The test of a key that was just entered: what its outcome means for the step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

from platform_common.message import Sentence
from platform_common.net.client import server_of
from platform_common.provider_key.check import BusyError
from platform_common.provider_key.result import KeyCheck, Outcome
from platform_common.records.catalogue import Provider
from platform_common.secret import Secret
from wizard_app.setup.sentence_list import listed
from wizard_app.setup.steps.base import Again, Passed
from wizard_app.setup.steps.key_prefixes import looks_like
from wizard_app.setup.steps.provider_fields import ENDPOINT, MOST_NAMES, is_own, needed

_TOO_MANY = 429
# What a server says of a key; anything else may be said by another server than was meant.
_ABOUT_KEYS = frozenset({400, 401, 403, 429})


class CheckKey(Protocol):
    """What `platform_common.provider_key.check.check_key` is."""

    def __call__(
        self, provider: Provider, credentials: Mapping[str, Secret], *, endpoint: str, model: str
    ) -> Outcome:
        """How the test of a key went; raises `BusyError`."""


class Failure(NamedTuple):
    """What the page says of a key that did not pass, beside the error itself."""

    check: KeyCheck
    advice: Sentence | None
    server: str
    looks_like: Sentence | None


class KeyTrial(NamedTuple):
    """A test that is still to be made; `others` are the providers whose key it may be."""

    provider: Provider
    secrets: Mapping[str, Secret]
    endpoint: str
    model: str
    others: Iterable[Provider]

    def run(self, check_key: CheckKey) -> Passed:
        """Ask the provider, which may take as long as its answer."""
        try:
            found = check_key(self.provider, self.secrets, endpoint=self.endpoint, model=self.model)
        except BusyError as busy:
            return Passed(Again({"": _whole(busy.said, busy.advice)}, status=_TOO_MANY))
        return self._passed(found) if found.check.ok else Passed(self._failed(found))

    def _passed(self, found: Outcome) -> Passed:
        unproved = not (found.check.proved or self.provider.takes_address)
        doubtful = unproved or found.advice is not None
        return Passed(note=_whole(found.said, found.advice), doubtful=doubtful)

    def _failed(self, found: Outcome) -> Again:
        key = self.secrets[self.provider.key_env_var]
        others = looks_like(key, self.provider, self.others)
        names = listed(others[:MOST_NAMES]) if others else None
        failure = Failure(found.check, found.advice, server_of(found.check.endpoint), names)
        return Again({self._blamed(found.check): found.said}, more={"failure": failure})

    def _blamed(self, check: KeyCheck) -> str:
        """The field that is at fault: of a server of one's own it may well be the address."""
        answered = check.http_status in _ABOUT_KEYS
        if is_own(self.provider) and not answered:
            return ENDPOINT
        return needed(self.provider)[0].field


def _whole(said: Sentence, advice: Sentence | None) -> Sentence:
    if advice is None:
        return Sentence("{said}.", said=said)
    return Sentence("{said}. {advice}", said=said, advice=advice)
