"""The choices of the provider page: a card for each provider, and hints for the fields."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from platform_common.message import Sentence
from platform_common.records.catalogue import Provider
from wizard_app.setup.sentence_list import listed
from wizard_app.setup.steps.provider_fields import MOST_NAMES, is_own, needs_model


class Card(NamedTuple):
    """A provider to choose; `kind` has the class names by which its fields are shown."""

    provider: Provider
    kind: str


def shown(offered: Sequence[Provider], held_for: str) -> Mapping[str, Any]:
    """The template's variables; `held_for` is the provider whose key is in memory."""
    own = [one for one in offered if is_own(one)]
    groups = (
        (Sentence("Cloud"), [one for one in offered if not is_own(one)]),
        (Sentence("Your own server"), own),
    )
    return {
        "groups": [(name, [_card(one, held_for) for one in group]) for name, group in groups],
        "held_for": next((one for one in offered if one.id == held_for), None),
        "signed": _names(one for one in offered if one.kind == "signed-cloud"),
        "needs_endpoint": _names(own),
        "needs_model": _names(filter(needs_model, offered)),
    }


def _card(provider: Provider, held_for: str) -> Card:
    words = {
        "key": not provider.takes_address,
        "signed": provider.kind == "signed-cloud" and not provider.takes_address,
        "endpoint": is_own(provider),
        "held": provider.id == held_for,
    }
    kind = " ".join(word for word, fits in words.items() if fits)
    return Card(provider, kind)


def _names(providers: Iterable[Provider]) -> Sentence | None:
    names = [Sentence(provider.display_name) for provider in providers]
    return listed(names[:MOST_NAMES]) if names else None
