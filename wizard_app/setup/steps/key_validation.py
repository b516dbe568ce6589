"""Tests a key that was just entered, and turns the result into messages for the step."""

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
from wizard_app.setup.steps.base import CheckResult, FormErrors
from wizard_app.setup.steps.key_prefixes import looks_like
from wizard_app.setup.steps.provider_fields import ENDPOINT, MOST_NAMES, is_own, needed

_TOO_MANY = 429
# Statuses about the key itself; others may come from a wrong server.
_ABOUT_KEYS = frozenset({400, 401, 403, 429})


class CheckKey(Protocol):
    """What `platform_common.provider_key.check.check_key` is."""

    def __call__(
        self, provider: Provider, credentials: Mapping[str, Secret], *, endpoint: str, model: str
    ) -> Outcome:
        """Test a key; raises `BusyError`."""


class Failure(NamedTuple):
    """What the page says about a failed key, beside the error itself."""

    check: KeyCheck
    advice: Sentence | None
    server: str
    looks_like: Sentence | None


def try_key(
    check_key: CheckKey,
    provider: Provider,
    secrets: Mapping[str, Secret],
    endpoint: str,
    model: str,
    others: Iterable[Provider],
) -> CheckResult:
    """Test the key, which may belong to one of `others`; this waits for the provider."""
    try:
        found = check_key(provider, secrets, endpoint=endpoint, model=model)
    except BusyError as busy:
        return CheckResult(FormErrors({"": _whole(busy.said, busy.advice)}, status=_TOO_MANY))
    if found.check.ok:
        unproved = not (found.check.proved or provider.takes_address)
        doubtful = unproved or found.advice is not None
        return CheckResult(note=_whole(found.said, found.advice), doubtful=doubtful)
    names = looks_like(secrets[provider.key_env_var], provider, others)
    others_named = listed(names[:MOST_NAMES]) if names else None
    server = server_of(found.check.endpoint)
    failure = Failure(found.check, found.advice, server, others_named)
    return CheckResult(
        FormErrors({_blamed(provider, found.check): found.said}, more={"failure": failure})
    )


def _blamed(provider: Provider, check: KeyCheck) -> str:
    """The field to blame: for the user's own server, probably the address."""
    if is_own(provider) and check.http_status not in _ABOUT_KEYS:
        return ENDPOINT
    return needed(provider)[0].field


def _whole(said: Sentence, advice: Sentence | None) -> Sentence:
    if advice is None:
        return Sentence("{said}.", said=said)
    return Sentence("{said}. {advice}", said=said, advice=advice)
