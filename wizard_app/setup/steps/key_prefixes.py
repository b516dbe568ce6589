"""Recognises providers' keys by the prefixes in the catalogue."""

from __future__ import annotations

import re
from collections.abc import Iterable

from platform_common.records.catalogue import Provider
from platform_common.secret import Secret

# `sk-ant-...`: the part before the dots is the prefix of that provider's keys.
_FORMAT = re.compile(r"(?P<prefix>[!-~]{2,32}?)\.\.\.")


def prefix(provider: Provider) -> str:
    """The prefix of a provider's keys; empty if its catalogue entry has none."""
    found = _FORMAT.match(provider.key_format)
    return found["prefix"] if found else ""


def looks_like(key: Secret, chosen: Provider, others: Iterable[Provider]) -> tuple[str, ...]:
    """Names of other providers whose prefix the key has; empty if it may be the right key.

    The longest prefix decides, because one may start with another. The user's own server may
    take any key.
    """
    if not chosen.endpoint_default:
        return ()
    fitting = [one for one in others if prefix(one) and key.reveal().startswith(prefix(one))]
    longest = max((len(prefix(one)) for one in fitting), default=0)
    best = [one for one in fitting if len(prefix(one)) == longest]
    if any(one.id == chosen.id for one in best):
        return ()
    return tuple(one.display_name for one in best)
