"""Whose key is it? What the catalogue says of how keys look tells."""

from __future__ import annotations

import re
from collections.abc import Iterable

from platform_common.records.catalogue import Provider
from platform_common.secret import Secret

# `sk-ant-...`: what stands before the dots is how every key of that provider begins.
_FORMAT = re.compile(r"(?P<prefix>[!-~]{2,32}?)\.\.\.")


def prefix(provider: Provider) -> str:
    """How that provider's keys begin; empty when its catalogue entry does not say."""
    found = _FORMAT.match(provider.key_format)
    return found["prefix"] if found else ""


def looks_like(key: Secret, chosen: Provider, others: Iterable[Provider]) -> tuple[str, ...]:
    """Names of the other providers whose keys begin as this one does; none when it may fit.

    The longest beginning decides, as one may hold another. A server of one's own takes
    keys of any look.
    """
    if not chosen.endpoint_default:
        return ()
    fitting = [one for one in others if prefix(one) and key.reveal().startswith(prefix(one))]
    longest = max((len(prefix(one)) for one in fitting), default=0)
    best = [one for one in fitting if len(prefix(one)) == longest]
    if any(one.id == chosen.id for one in best):
        return ()
    return tuple(one.display_name for one in best)
