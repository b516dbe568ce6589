"""The provider of models, and its key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from msgspec import Struct

from platform_common.formats.decode import check_member
from platform_common.message import Sentence
from platform_common.paths import ACTIVE_ENDPOINT, ACTIVE_MODEL, ACTIVE_PROVIDER, SECRETS
from platform_common.provider_key.check import check_key
from platform_common.records.catalogue import Provider
from platform_common.validation import check_base_url, check_id
from wizard_app.setup.plan.actions import Planned, RemoveFile, SetVariables, held, write
from wizard_app.setup.plan.phases import Phase
from wizard_app.setup.steps.base import (
    Accepted,
    Errors,
    Form,
    FormErrors,
    Question,
    Step,
    in_memory,
)
from wizard_app.setup.steps.key_validation import CheckKey, try_key
from wizard_app.setup.steps.provider_choices import shown
from wizard_app.setup.steps.provider_fields import (
    ENDPOINT,
    ENTER_KEY,
    KEY,
    MODEL,
    SECRET_KEY,
    check_model,
    is_askable,
    needed,
    needs_endpoint,
    needs_model,
    problem_of_endpoint,
    problem_of_model,
    read_secrets,
)

_SUGGESTED = "openrouter"
_PROVIDER = "provider"


class ProviderAnswer(Struct, frozen=True):
    """The id of a provider; a model and an address if it needs them or they were chosen."""

    provider: str
    model: str = ""
    endpoint: str = ""

    def __post_init__(self) -> None:
        """Refuse invalid values, wherever they come from."""
        check_member(_PROVIDER, check_id, self.provider)
        if self.model:
            check_member(MODEL, check_model, self.model)
        if self.endpoint:
            check_member(ENDPOINT, check_base_url, self.endpoint)


class ProviderStep(Step[ProviderAnswer]):
    """The provider and its credentials; with `keep=1`, empty ones mean those in memory for it."""

    slug = "provider"
    title = Sentence("Choose your AI provider")
    short = Sentence("AI")
    answer_type = ProviderAnswer
    secret_fields = frozenset({KEY, SECRET_KEY})

    def __init__(self, check: CheckKey = check_key) -> None:
        self._check_key = check

    def view(self, asked: Question) -> Mapping[str, Any]:
        return {**shown(_offered(asked), _held_for(asked)), "failure": None}

    def problems(self, asked: Question) -> Iterable[str]:
        for provider in asked.machine.providers:
            if not is_askable(provider):
                variables = ", ".join(provider.variables)
                yield f"{provider.display_name}: setup has no fields for {variables}"

    def filled(self, answer: ProviderAnswer) -> Mapping[str, list[str]]:
        return {
            _PROVIDER: [answer.provider],
            MODEL: [answer.model],
            ENDPOINT: [answer.endpoint],
            "keep": ["1"],
        }

    def suggested(self, asked: Question) -> Mapping[str, list[str]]:
        return {_PROVIDER: [_SUGGESTED]}

    def parse(self, form: Form, asked: Question) -> Accepted[ProviderAnswer] | FormErrors:
        provider = _find(form.get(_PROVIDER), asked)
        if provider is None:
            missing = {_PROVIDER: Sentence("Select a provider")}
            if not (form.get(KEY) or form.get(ENDPOINT)):
                missing[KEY] = ENTER_KEY
            return FormErrors(missing)
        keeps = form.get("keep") == "1" and _held_for(asked) == provider.id
        read = read_secrets(form, provider, asked.held.secrets if keeps else {})
        before = asked.answers.of(ProviderAnswer)
        model = _chosen(form, MODEL, provider, before, needed=needs_model(provider))
        endpoint = _chosen(form, ENDPOINT, provider, before, needed=needs_endpoint(provider))
        if provider.takes_address:
            endpoint = ""
        errors = _errors(provider, read.errors, model, endpoint)
        if errors:
            return FormErrors(errors)
        answer = ProviderAnswer(provider.id, model, endpoint)
        if form.get("skip_validation") != "1":
            given = (self._check_key, provider, read.secrets, endpoint, model, _offered(asked))
            return Accepted(answer, read.secrets, partial(try_key, *given))
        same = answer == before and read.secrets == asked.held.secrets
        return Accepted(answer, None if same else read.secrets)

    def check(self, answer: ProviderAnswer, asked: Question) -> Errors:
        provider = _find(answer.provider, asked)
        if provider is None:
            return {
                _PROVIDER: Sentence(
                    "Select another provider: this device does not offer {name}",
                    name=answer.provider,
                )
            }
        return _errors(provider, {}, answer.model, answer.endpoint)

    def secrets(self, answer: ProviderAnswer, asked: Question) -> Mapping[str, Sentence]:
        provider = _find(answer.provider, asked)
        if provider is None:
            return {}
        labels = (field.name for field in needed(provider))
        return dict(zip(provider.variables, labels, strict=True))

    def summary(self, answer: ProviderAnswer, asked: Question) -> Iterable[tuple[Sentence, Any]]:
        provider = _find(answer.provider, asked)
        yield Sentence("Provider"), Sentence(provider.display_name) if provider else answer.provider
        if answer.model:
            yield Sentence("Model"), answer.model
        if answer.endpoint:
            yield Sentence("Base URL"), answer.endpoint
        if provider is not None:
            held = not self.needs(answer, asked)
            yield needed(provider)[0].name, in_memory(asked, held=held)
            if held:
                yield Sentence("Test"), asked.held.note or Sentence("Not tested")

    def actions(self, answer: ProviderAnswer, asked: Question) -> Iterable[Planned]:
        yield Phase.SELECTION, write(ACTIVE_PROVIDER.device, answer.provider)
        for place, value in ((ACTIVE_MODEL, answer.model), (ACTIVE_ENDPOINT, answer.endpoint)):
            if value:
                yield Phase.SELECTION, write(place.device, value)
            elif asked.machine.has(place.device):
                # It belongs to another provider, whose address must never get this one's key.
                yield Phase.SELECTION, RemoveFile(place.device)
        provider = _find(answer.provider, asked)
        if provider is not None:
            values = held(asked.held.secrets, provider.variables)
            yield Phase.KEYS, SetVariables(SECRETS.device, values)


def _offered(asked: Question) -> tuple[Provider, ...]:
    """The providers for whose variables the page has fields."""
    return tuple(filter(is_askable, asked.machine.providers))


def _find(provider_id: str, asked: Question) -> Provider | None:
    return next((one for one in _offered(asked) if one.id == provider_id), None)


def _held_for(asked: Question) -> str:
    """The provider whose secrets are all in memory; empty if there is none."""
    answer = asked.answers.of(ProviderAnswer)
    provider = _find(answer.provider, asked) if answer else None
    if provider and all(name in asked.held.secrets for name in provider.variables):
        return provider.id
    return ""


def _chosen(
    form: Form, field: str, provider: Provider, before: ProviderAnswer | None, *, needed: bool
) -> str:
    """A model or an address, unless it was left over from another provider."""
    value = form.get(field)
    left_over = before is not None and before.provider != provider.id
    return "" if left_over and not needed and value == getattr(before, field) else value


def _errors(provider: Provider, found: Errors, model: str, endpoint: str) -> Errors:
    """The errors, in the order of the page's fields."""
    problems = {
        ENDPOINT: problem_of_endpoint(endpoint, needed=needs_endpoint(provider)),
        MODEL: problem_of_model(model, needed=needs_model(provider)),
    }
    return {**found, **{field: why for field, why in problems.items() if why is not None}}
