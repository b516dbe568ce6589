"""Where backups go."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from platform_common.sentence import Sentence
from wizard_app.steps.step import Accepted, Again, Form, Question, Step


class BackupAnswer(Struct, frozen=True):
    """A kind of store, and what of its access is no secret."""

    backup_kind: str
    backup_meta: dict[str, str] = {}


class BackupStep(Step[BackupAnswer]):
    """Back up this device (optional) (spec, validation per step)."""

    slug = "backup"
    title = Sentence("Back up this device (optional)")
    short = Sentence("Backup")
    answer_type = BackupAnswer

    def filled(self, answer: BackupAnswer) -> Mapping[str, list[str]]:
        return {}

    def parse(self, form: Form, asked: Question) -> Accepted[BackupAnswer] | Again:
        raise NotImplementedError

    def summary(self, answer: BackupAnswer, asked: Question) -> Iterable[tuple[Sentence, Any]]:
        return ()
