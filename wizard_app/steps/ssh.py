"""Who may log in over SSH."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from platform_common.sentence import Sentence
from wizard_app.steps.step import Accepted, Again, Form, Question, Step


class SshAnswer(Struct, frozen=True):
    """Public keys, one line each as in `authorized_keys`."""

    ssh_keys: tuple[str, ...]


class SshStep(Step[SshAnswer]):
    """Add SSH keys (optional) (spec, validation per step)."""

    slug = "ssh"
    title = Sentence("Add SSH keys (optional)")
    short = Sentence("SSH keys")
    answer_type = SshAnswer

    def filled(self, answer: SshAnswer) -> Mapping[str, list[str]]:
        return {}

    def parse(self, form: Form, asked: Question) -> Accepted[SshAnswer] | Again:
        raise NotImplementedError

    def summary(self, answer: SshAnswer, asked: Question) -> Iterable[tuple[Sentence, Any]]:
        return ()
