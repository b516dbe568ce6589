"""Over which channels people talk to the gateway."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from platform_common.sentence import Sentence
from wizard_app.steps.step import Accepted, Again, Form, Question, Step


class ChannelsAnswer(Struct, frozen=True):
    """Ids of channels, in the order in which the profile lists them."""

    channels: tuple[str, ...]


class ChannelsStep(Step[ChannelsAnswer]):
    """Choose how you talk to it (spec, validation per step)."""

    slug = "channels"
    title = Sentence("Choose how you talk to it")
    short = Sentence("Channels")
    answer_type = ChannelsAnswer

    def filled(self, answer: ChannelsAnswer) -> Mapping[str, list[str]]:
        return {}

    def parse(self, form: Form, asked: Question) -> Accepted[ChannelsAnswer] | Again:
        raise NotImplementedError

    def summary(self, answer: ChannelsAnswer, asked: Question) -> Iterable[tuple[Sentence, Any]]:
        return ()
