"""Where backups go."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from platform_common.formats.decode import check_member
from platform_common.message import Sentence
from platform_common.secret import Secret, SecretError
from platform_common.storage.atomic_write import KEYS_OWNER
from wizard_app.setup.plan.actions import (
    STORE_ACCESS,
    Planned,
    RemoveFile,
    WriteFile,
    held,
    write,
)
from wizard_app.setup.plan.phases import Phase
from wizard_app.setup.steps import backup_rules
from wizard_app.setup.steps.backup_stores import (
    ENDPOINT,
    STORE_B_HOST,
    STORES,
    Store,
    store_b_endpoint,
)
from wizard_app.setup.steps.base import Accepted, Form, FormErrors, Question, Step, in_memory

SKIP = "skip"
_REMOTE = "backup"
_BACKUP = "/etc/platform/backup.toml"
# The field of our page, and the names that scripts may use, from the state file or the tunnel's
# form.
_KINDS = ("kind", "backup_kind", "choice")


class BackupAnswer(Struct, frozen=True):
    """A kind of store, and the details that are not secret."""

    backup_kind: str
    backup_meta: dict[str, str] = {}

    def __post_init__(self) -> None:
        """Refuse unknown kinds, and members that do not belong to the kind."""
        check_member("backup_kind", _check_kind, self.backup_kind)
        try:
            if self.backup_kind != SKIP:
                STORES[self.backup_kind].check(self.backup_meta)
            elif self.backup_meta:
                raise ValueError("must be empty without a store")
        except ValueError as error:
            raise ValueError(f"backup_meta: {error}") from None


class BackupStep(Step[BackupAnswer]):
    """The backup store, or none. With `keep=1`, an empty key means the one in memory.

    The kind may be sent as `kind`, `backup_kind` or `choice`.
    """

    slug = "backup"
    title = Sentence("Back up this device (optional)")
    short = Sentence("Backup")
    answer_type = BackupAnswer
    secret_fields = frozenset(field.name for store in STORES.values() for field in store.secrets)

    def view(self, asked: Question) -> Mapping[str, Any]:
        return {
            "stores": STORES.values(),
            "held_kinds": [store.kind for store in STORES.values() if _kept(store, asked)],
            "host": STORE_B_HOST,
            "goes_to": _goes_to,
        }

    def filled(self, answer: BackupAnswer) -> Mapping[str, list[str]]:
        fields = {"kind": [answer.backup_kind], "keep": ["1"]}
        if answer.backup_kind != SKIP:
            fields |= STORES[answer.backup_kind].filled(answer.backup_meta)
        return fields

    def parse(self, form: Form, asked: Question) -> Accepted[BackupAnswer] | FormErrors:
        kind = next(filter(None, map(form.get, _KINDS)), "")
        if kind == SKIP:
            return Accepted(BackupAnswer(SKIP))
        if (store := STORES.get(kind)) is None:
            return FormErrors({"kind": Sentence("Select where backups go")})
        kept = _kept(store, asked) if form.get("keep") == "1" else {}
        values = {field.name: form.get(field.name) for field in store.fields}
        asked_for = [
            field for field in store.fields if values[field.name] or field.name not in kept
        ]
        errors = {
            field.name: problem
            for field in asked_for
            if (problem := field.problem(values[field.name])) is not None
        }
        if errors:
            return FormErrors(errors)
        typed = {field.name: Secret(values[field.name]) for field in asked_for if field.secret}
        return Accepted(BackupAnswer(kind, store.meta(values)), {**kept, **typed})

    def secrets(self, answer: BackupAnswer, asked: Question) -> Mapping[str, Sentence]:
        store = STORES.get(answer.backup_kind)
        return {field.name: field.label for field in store.secrets} if store else {}

    def secret(self, name: str, text: str) -> Secret:
        fields = (field for store in STORES.values() for field in store.secrets)
        for field in fields:
            if field.name == name and (problem := field.problem(text)) is not None:
                raise SecretError(problem)
        return super().secret(name, text)

    def summary(self, answer: BackupAnswer, asked: Question) -> Iterable[tuple[Sentence, Any]]:
        if answer.backup_kind == SKIP:
            yield Sentence("Backup"), Sentence("Not backed up")
            return
        store = STORES[answer.backup_kind]
        yield Sentence("Backup"), store.name
        if ENDPOINT in answer.backup_meta:
            yield Sentence("Backups go to"), answer.backup_meta[ENDPOINT]
        for field in store.fields:
            if field.secret:
                yield field.label, in_memory(asked, held=field.name in asked.held.secrets)
            elif field.member != ENDPOINT:
                yield field.label, answer.backup_meta[field.member]

    def actions(self, answer: BackupAnswer, asked: Question) -> Iterable[Planned]:
        store = STORES.get(answer.backup_kind)
        if store is None:
            for path in filter(asked.machine.has, (STORE_ACCESS, _BACKUP)):
                yield Phase.BACKUP, RemoveFile(path)
            return
        secrets = held(asked.held.secrets, (field.name for field in store.secrets))
        remote = store.remote(answer.backup_meta, secrets)
        lines = (part for name, value in remote.items() for part in (f"{name} = ", value, "\n"))
        parts = (f"[{_REMOTE}]\n", *lines)
        yield Phase.BACKUP, WriteFile(STORE_ACCESS, parts, mode=0o640, owner=KEYS_OWNER)
        bucket = f"{_REMOTE}:{answer.backup_meta['bucket']}"
        yield Phase.BACKUP, write(_BACKUP, f'remote = "{bucket}"')


def _goes_to(account_id: str) -> str:
    """The address of an account at store_b; empty for an invalid account."""
    return "" if backup_rules.account(account_id) else store_b_endpoint(account_id)


def _kept(store: Store, asked: Question) -> dict[str, Secret]:
    """The secrets of a store that are in memory."""
    return {
        field.name: asked.held.secrets[field.name]
        for field in store.secrets
        if field.name in asked.held.secrets
    }


def _check_kind(kind: str) -> None:
    if kind != SKIP and kind not in STORES:
        raise ValueError(f"must be {SKIP} or one of {', '.join(STORES)}")
