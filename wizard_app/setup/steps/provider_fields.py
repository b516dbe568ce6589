"""The fields of the provider's form: which ones a provider needs, and their values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from platform_common.message import Sentence
from platform_common.records.catalogue import Provider
from platform_common.secret import Secret
from platform_common.validation import check_base_url, check_region, passes
from wizard_app.setup.steps.base import Form
from wizard_app.setup.steps.typed_secret import typed_secret

KEY, ENDPOINT, MODEL = "api_key", "endpoint", "model"
SECRET_KEY, REGION = "secret_access_key", "region"
ENTER_KEY = Sentence("Enter your API key")
# Listing more providers would not help.
MOST_NAMES = 4
_LONGEST_MODEL = 200


class Credential(NamedTuple):
    """A value that a provider needs: its field, its label, and the message if it is missing."""

    field: str
    name: Sentence
    missing: Sentence


_API_KEY = Credential(KEY, Sentence("API key"), ENTER_KEY)
_ADDRESS = Credential(ENDPOINT, Sentence("Base URL"), Sentence("Enter the base URL of your server"))
_SIGNED = (
    Credential(KEY, Sentence("Access key id"), Sentence("Enter your access key id")),
    Credential(SECRET_KEY, Sentence("Secret access key"), Sentence("Enter your secret access key")),
    Credential(REGION, Sentence("Region"), Sentence("Enter a region, like us-east-1")),
)


class Read(NamedTuple):
    """The parsed credentials of a form: secrets by variable, errors by field."""

    secrets: Mapping[str, Secret]
    errors: Mapping[str, Sentence]


def needed(provider: Provider) -> tuple[Credential, ...]:
    """The credentials that it needs, in the order of its variables."""
    if provider.takes_address:
        return (_ADDRESS,)
    return _SIGNED if provider.kind == "signed-cloud" else (_API_KEY,)


def is_askable(provider: Provider) -> bool:
    """Whether the form has a field for each of its variables."""
    return len(provider.variables) == len(needed(provider))


def needs_endpoint(provider: Provider) -> bool:
    """Whether the user must enter its address."""
    return not (provider.endpoint_default or provider.takes_address)


def is_own(provider: Provider) -> bool:
    """Whether it is the user's own server, whose address the user enters."""
    return provider.takes_address or needs_endpoint(provider)


def needs_model(provider: Provider) -> bool:
    """Whether there is no default model."""
    return provider.requires_model or provider.kind == "hosted-inference"


def read_secrets(form: Form, provider: Provider, held: Mapping[str, Secret]) -> Read:
    """Read the credentials of `provider`; an empty field means the `held` value."""
    secrets: dict[str, Secret] = {}
    errors: dict[str, Sentence] = {}
    for variable, wanted in zip(provider.variables, needed(provider), strict=True):
        found: Secret | Sentence = _read(form, wanted) or held.get(variable) or wanted.missing
        if isinstance(found, Secret):
            secrets[variable] = found
        else:
            errors[wanted.field] = found
    return Read(secrets, errors)


def problem_of_endpoint(url: str, *, needed: bool) -> Sentence | None:
    """What is wrong with the address of a provider."""
    if not url:
        return _ADDRESS.missing if needed else None
    if passes(check_base_url, url):
        return None
    return Sentence(
        "Enter the full base URL, such as http://192.168.1.20:8000/v1, without a user name, ? or #"
    )


def problem_of_model(model: str, *, needed: bool) -> Sentence | None:
    """What is wrong with the id of a model."""
    if not model:
        return Sentence("Enter the id of a model") if needed else None
    if passes(check_model, model):
        return None
    return Sentence("The id of a model can have at most 200 characters and no spaces")


def check_model(model: str) -> None:
    """Check that the id of a model is one short word; raises `ValueError`."""
    if len(model) > _LONGEST_MODEL or not model.isprintable() or " " in model:
        raise ValueError(f"must have at most {_LONGEST_MODEL} characters, without blanks")


def _read(form: Form, wanted: Credential) -> Secret | Sentence | None:
    """The value of a field, or what is wrong with it; None if it is empty."""
    # For a provider whose variable holds an address, it may also be in the key's field.
    text = form.get(wanted.field) or (form.get(KEY) if wanted.field == ENDPOINT else "")
    if not text:
        return None
    return _problem(wanted.field, text) or typed_secret(text, wanted.name)


def _problem(field: str, value: str) -> Sentence | None:
    if field == ENDPOINT:
        return problem_of_endpoint(value, needed=True)
    if field == REGION and not passes(check_region, value):
        return _SIGNED[-1].missing
    return None
