"""What a step is: a page with a question, its rules, and its answer.

A step is pure: facts about the device come as a `DeviceFacts`, and the form as a `Form`. Slow
work, such as a key test, is left to `Accepted.test`. docs/reference/wizard-steps.md has the
fields and rules of each.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Generic, NamedTuple

from platform_common.message import Sentence
from platform_common.secret import Secret, parse_secret
from wizard_app.setup.answers import A, Answers
from wizard_app.setup.device_facts import DeviceFacts
from wizard_app.setup.pending import HeldSecrets
from wizard_app.setup.plan.actions import Planned

Errors = Mapping[str, Sentence]


class Form:
    """The fields of a form, each with all its values, and the uploaded files."""

    def __init__(
        self, fields: Mapping[str, list[str]], files: Mapping[str, bytes] = MappingProxyType({})
    ) -> None:
        self._fields = fields
        self._files = files

    def get(self, name: str) -> str:
        """The first value of a field, stripped; empty if there is none."""
        return self.raw(name).strip()

    def raw(self, name: str) -> str:
        """The first value of a field as it was sent; empty if there is none."""
        return next(iter(self._fields.get(name, ())), "")

    def all(self, name: str) -> list[str]:
        """Every value of a field."""
        return list(self._fields.get(name, ()))

    def file(self, name: str) -> bytes:
        """The content of the first file of a field; empty if none was chosen."""
        return self._files.get(name, b"")

    def has(self, name: str) -> bool:
        """Whether the field was sent."""
        return name in self._fields

    def typed(self, without: Iterable[str] = ()) -> dict[str, list[str]]:
        """Every field except those named, which a page must not show again."""
        hidden = set(without)
        return {name: list(values) for name, values in self._fields.items() if name not in hidden}


class FormErrors(NamedTuple):
    """The page is shown again, with errors by field or with more choices.

    An error of the field `""` is about the page as a whole. `more` goes to the template.
    """

    errors: Errors = MappingProxyType({})
    status: int = 200
    more: Mapping[str, Any] = MappingProxyType({})


class CheckResult(NamedTuple):
    """The result of a test: `again` if it failed, else a note to keep with the secrets.

    A `doubtful` note is a warning.
    """

    again: FormErrors | None = None
    note: Sentence | None = None
    doubtful: bool = False


class Accepted(NamedTuple, Generic[A]):
    """A valid form: its answer, its secrets, and a last test that takes time.

    `secrets` None keeps those that are in memory.
    """

    answer: A
    secrets: Mapping[str, Secret] | None = MappingProxyType({})
    test: Callable[[], CheckResult] | None = None


class Question(NamedTuple):
    """The context of a step: the device, the other answers, and the secrets in memory.

    `stored` if the secrets that are no longer in memory are already on the device.
    """

    machine: DeviceFacts
    answers: Answers
    held: HeldSecrets = HeldSecrets({})
    stored: bool = False


_STORED = Sentence("Stored on this device")


def in_memory(asked: Question, *, held: bool, stored: Sentence = _STORED) -> Sentence:
    """The text of the review page for a secret; `stored` if it is already on the device."""
    if held:
        return Sentence("Entered, kept in memory only")
    return stored if asked.stored else Sentence("No longer in memory – enter again")


class Step(ABC, Generic[A]):
    """One question page.

    `title` is its heading, `short` its name on the review page. `secret_fields` are the
    fields that no page shows again.
    """

    slug: ClassVar[str]
    title: ClassVar[Sentence]
    short: ClassVar[Sentence]
    answer_type: type[A]
    secret_fields: ClassVar[frozenset[str]] = frozenset()

    @property
    def template(self) -> str:
        """The page's template."""
        return f"wizard/steps/{self.slug}.html"

    def view(self, asked: Question) -> Mapping[str, Any]:
        """The template's variables beside the fields."""
        return {}

    def problems(self, asked: Question) -> Iterable[str]:
        """What is wrong with the records that the page is made from, beyond reading them."""
        return ()

    @abstractmethod
    def filled(self, answer: A) -> Mapping[str, list[str]]:
        """The field values for an answer, without secrets."""

    def suggested(self, asked: Question) -> Mapping[str, list[str]]:
        """The field values before the first answer."""
        return {}

    @abstractmethod
    def parse(self, form: Form, asked: Question) -> Accepted[A] | FormErrors:
        """Parse a form."""

    def typed(self, form: Form) -> Mapping[str, list[str]]:
        """The fields of a form that the page may show again."""
        return form.typed(self.secret_fields)

    def check(self, answer: A, asked: Question) -> Errors:
        """What is wrong with an answer on this device, together with the other answers."""
        return {}

    def secrets(self, answer: A, asked: Question) -> Mapping[str, Sentence]:
        """The labels of the secrets that an answer needs, by name."""
        return {}

    def needs(self, answer: A, asked: Question) -> tuple[Sentence, ...]:
        """Labels of the secrets that an answer needs but that are not in memory."""
        wanted = self.secrets(answer, asked).items()
        return tuple(label for name, label in wanted if name not in asked.held.secrets)

    def secret(self, name: str, text: str) -> Secret:
        """Check the text of the secret `name`; raises `SecretError`.

        It must be one that the form would have accepted, whoever sends it.
        """
        return parse_secret(text)

    @abstractmethod
    def summary(self, answer: A, asked: Question) -> Iterable[tuple[Sentence, Any]]:
        """Rows of the review page: a label and a value, which may be a `Sentence`."""

    def actions(self, answer: A, asked: Question) -> Iterable[Planned]:
        """The actions for an answer, each with its phase; `NOT_HELD` stands for a lost secret."""
        return ()


AnyStep = Step[Any]
