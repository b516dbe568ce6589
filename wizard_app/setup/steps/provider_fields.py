"""The fields of the provider's form: which a provider needs, and what was put into them."""

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
# More names of providers than these say no more.
MOST_NAMES = 4
_LONGEST_MODEL = 200


class Credential(NamedTuple):
    """A value that a provider needs: its field, what it is called, and what to say without it."""

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
    """What a form holds for a provider: secrets by variable, and what is wrong by field."""

    secrets: Mapping[str, Secret]
    errors: Mapping[str, Sentence]


def needed(provider: Provider) -> tuple[Credential, ...]:
    """What its credentials consist of, in the order of its variables."""
    if provider.takes_address:
        return (_ADDRESS,)
    return _SIGNED if provider.kind == "signed-cloud" else (_API_KEY,)


def is_askable(provider: Provider) -> bool:
    """Whether the form has a field for each of its variables."""
    return len(provider.variables) == len(needed(provider))


def needs_endpoint(provider: Provider) -> bool:
    """Whether nobody but its owner knows where it is."""
    return not (provider.endpoint_default or provider.takes_address)


def is_own(provider: Provider) -> bool:
    """Whether it is a server of the owner's, who must say where it is."""
    return provider.takes_address or needs_endpoint(provider)


def needs_model(provider: Provider) -> bool:
    """Whether there is no model to fall back on."""
    return provider.requires_model or provider.kind == "hosted-inference"


def read_secrets(form: Form, provider: Provider, held: Mapping[str, Secret]) -> Read:
    """The credentials of `provider`; a field left empty stands for what is `held`."""
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
    """The id of a model is one short word; raises `ValueError` with what is wrong."""
    if len(model) > _LONGEST_MODEL or not model.isprintable() or " " in model:
        raise ValueError(f"must be {_LONGEST_MODEL} characters at most, without blanks")


def _read(form: Form, wanted: Credential) -> Secret | Sentence | None:
    """What a field holds, or what is wrong with that; None when it is empty."""
    # An address may also be where a key usually is, as it is what is stored as one.
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
