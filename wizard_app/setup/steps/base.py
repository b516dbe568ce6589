"""What a step is: a question page with its rules, and what it answers.

A step is pure: what it needs to know of the device comes as a `Machine`, and the form as
a `Form`. What takes long, such as a key test, is left to `Accepted.test`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Generic, NamedTuple

from platform_common.message import Sentence
from platform_common.secret import Secret, parse_secret
from wizard_app.setup.answers import A, Answers
from wizard_app.setup.device_facts import Machine
from wizard_app.setup.pending import Held
from wizard_app.setup.plan.actions import Planned

Errors = Mapping[str, Sentence]


class Form:
    """The fields of a form, each with all its values; and the files that came with it."""

    def __init__(
        self, fields: Mapping[str, list[str]], files: Mapping[str, bytes] = MappingProxyType({})
    ) -> None:
        self._fields = fields
        self._files = files

    def get(self, name: str) -> str:
        """The first value of a field, without blanks around it; empty when there is none."""
        return self.raw(name).strip()

    def raw(self, name: str) -> str:
        """The first value of a field as it was sent; empty when there is none."""
        return next(iter(self._fields.get(name, ())), "")

    def all(self, name: str) -> list[str]:
        """Every value of a field."""
        return list(self._fields.get(name, ()))

    def file(self, name: str) -> bytes:
        """The content of the first file of a field; empty when none was chosen."""
        return self._files.get(name, b"")

    def has(self, name: str) -> bool:
        """Whether the field is there at all."""
        return name in self._fields

    def typed(self, without: Iterable[str] = ()) -> dict[str, list[str]]:
        """Every field but those named: what a page may show again."""
        hidden = set(without)
        return {name: list(values) for name, values in self._fields.items() if name not in hidden}


class Again(NamedTuple):
    """The page is shown again: with errors by field, or with more to choose from.

    An error of the field `""` is about the page as a whole. `more` goes to the template.
    """

    errors: Errors = MappingProxyType({})
    status: int = 200
    more: Mapping[str, Any] = MappingProxyType({})


class Passed(NamedTuple):
    """How a test went: `again` when it did not pass, else a note to keep with the secrets.

    A `doubtful` note is a warning.
    """

    again: Again | None = None
    note: Sentence | None = None
    doubtful: bool = False


class Accepted(NamedTuple, Generic[A]):
    """A form that follows the rules: its answer, its secrets, and a last test that takes long.

    `secrets` None keeps those that are held already.
    """

    answer: A
    secrets: Mapping[str, Secret] | None = MappingProxyType({})
    test: Callable[[], Passed] | None = None


class Question(NamedTuple):
    """What a step asks from: the device, what was answered before, what is held for the step.

    `stored` when what is not held any more is on the device already.
    """

    machine: Machine
    answers: Answers
    held: Held = Held({})
    stored: bool = False


_STORED = Sentence("Stored on this device")


def in_memory(asked: Question, *, held: bool, stored: Sentence = _STORED) -> Sentence:
    """What a row of the review page says of a secret; `stored` when it did its work already."""
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
        """What the page offers beside its fields."""
        return {}

    @abstractmethod
    def filled(self, answer: A) -> Mapping[str, list[str]]:
        """The fields as they are for an answer, without secrets."""

    def suggested(self, asked: Question) -> Mapping[str, list[str]]:
        """The fields as they are before the first answer."""
        return {}

    @abstractmethod
    def parse(self, form: Form, asked: Question) -> Accepted[A] | Again:
        """What a form answers."""

    def typed(self, form: Form) -> Mapping[str, list[str]]:
        """The fields of a form as the page may show them again."""
        return form.typed(self.secret_fields)

    def check(self, answer: A, asked: Question) -> Errors:
        """What does not hold of an answer on this device, with the other answers there are."""
        return {}

    def secrets(self, answer: A, asked: Question) -> Mapping[str, Sentence]:
        """The labels of the secrets that an answer calls for, by the names of the secrets."""
        return {}

    def needs(self, answer: A, asked: Question) -> tuple[Sentence, ...]:
        """Labels of the secrets that an answer calls for and that are not held."""
        wanted = self.secrets(answer, asked).items()
        return tuple(label for name, label in wanted if name not in asked.held.secrets)

    def secret(self, name: str, text: str) -> Secret:
        """A secret that was held under `name`, from its text; raises `SecretError`.

        What no form would have given is refused, so that it cannot come from elsewhere.
        """
        return parse_secret(text)

    @abstractmethod
    def summary(self, answer: A, asked: Question) -> Iterable[tuple[Sentence, Any]]:
        """Rows of the review page: a label and a value, which may be a `Sentence`."""

    def actions(self, answer: A, asked: Question) -> Iterable[Planned]:
        """What setting up does for an answer, each in its phase; `NOT_HELD` for a lost secret."""
        return ()


AnyStep = Step[Any]
