"""Tests and replaces a provider's key with calls of the control CLI."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from platform_common.control_answers import ModelTest
from platform_common.errors import PlatformError
from platform_common.formats.decode import DecodingError, shaped
from platform_common.message import Sentence
from platform_common.plain_text import printable
from platform_common.process.run import Finished, ProcessError
from platform_common.redaction import MASK, SHORTEST_KNOWN, Redactor
from platform_common.secret import Secret, parse_secret
from platform_common.validation import check_id, check_variable, passes
from platform_common.web.flash import Flash
from pwa_app.control_client import ControlCli, error_message, read_answer
from pwa_app.overview import MODELS

# The test itself may take ten seconds, after waiting for others.
TEST_LIMIT_S = 20.0
_LONGEST_REASON = 200
_TOO_MANY = 429
_SERVER_ERROR = 500
# The form's fields beside the key, in the order of the provider's further variables.
_FURTHER_FIELDS = ("secret_access_key", "region")
_UNKNOWN = Sentence("Rotation failed: there is no provider with that id.")


class VariableValue(NamedTuple):
    """A value to store; without `variable`, it is the key."""

    variable: str
    secret: Secret


class KeyTestResult(NamedTuple):
    """The result of a key test: why it failed, or what a pass does not prove."""

    outcome: Literal["works", "rejected", "unchecked"]
    why: str = ""


def rotate(cli: ControlCli, form: Mapping[str, str]) -> Flash:
    """Store the key in a form; with `test`, only if the provider does not refuse it.

    Never raises if a call fails: the message says why, and contains no key.
    """
    provider, typed = form.get("provider", ""), form.get("api_key", "")
    if not provider.strip() or not typed.strip():
        return Flash(Sentence("Provider and key are both required."), good=False)
    if not passes(check_id, provider):
        return Flash(_UNKNOWN, good=False)
    if cli.sample is not None:
        return Flash(
            Sentence("(dev-stub) would rotate {provider} …", provider=provider), good=False
        )
    try:
        values = _values(cli, provider, form)
    except PlatformError as error:
        return _failed(error.message)
    tested = run_key_test(cli, provider, values) if form.get("test") == "1" else None
    if tested is not None and tested.outcome == "rejected":
        return Flash(
            Sentence("Rotation failed: {why}. Nothing was stored.", why=tested.why), good=False
        )
    return _store(cli, provider, values) or _done(provider, tested)


def test_stored(cli: ControlCli, provider: str) -> Flash:
    """Test the stored key of a provider."""
    if not passes(check_id, provider):
        return Flash(Sentence("There is no provider with that id."), good=False)
    if cli.sample is not None:
        return Flash(
            Sentence("(dev-stub) would test the key of {provider} …", provider=provider), good=False
        )
    outcome, why = run_key_test(cli, provider)
    if outcome == "works":
        return Flash(Sentence("{provider} accepts the stored key.", provider=provider), good=True)
    said = Sentence("The stored key could not be checked: {why}", why=why)
    if outcome == "rejected":
        said = Sentence("The stored key does not work: {why}", why=why)
    return Flash(said, good=False)


def run_key_test(
    cli: ControlCli, provider: str, values: Sequence[VariableValue] = ()
) -> KeyTestResult:
    """Test the stored key of a provider, or `values`, the key first."""
    source = ("--key-from-stdin",) if values else ()
    lines = [f"{name}={secret.reveal()}" if name else secret.reveal() for name, secret in values]
    stdin = "".join(f"{line}\n" for line in lines).encode()
    words = ("model", "test", "--provider", provider, *source, "--json")
    try:
        finished = cli.run(words, stdin=stdin, limit_s=TEST_LIMIT_S)
    except ProcessError as error:
        return KeyTestResult("unchecked", error.message)
    try:
        found = shaped(read_answer(finished.output), ModelTest)
    except DecodingError:
        return KeyTestResult("unchecked", _reason(finished, values))
    if found.ok and not found.warning:
        return KeyTestResult("works")
    why = _cut(_hidden(found.warning or found.error, values)) or f"exit code {finished.status}"
    status = found.http_status
    answered = status is not None and status < _SERVER_ERROR and status != _TOO_MANY
    return KeyTestResult("rejected" if answered and not found.ok else "unchecked", why)


def _values(cli: ControlCli, provider: str, form: Mapping[str, str]) -> list[VariableValue]:
    """The values to store, the key first; raises `PlatformError`, which contains none of them."""
    values = [VariableValue("", parse_secret(form["api_key"]))]
    further = [(n, form[f]) for n, f in enumerate(_FURTHER_FIELDS, 1) if form.get(f, "").strip()]
    if not further:
        return values
    listed = MODELS.load(cli)
    found = next((model for model in listed.value if model.id == provider), None)
    variables = found.variables if found else ()
    for number, text in further:
        if number >= len(variables):
            raise PlatformError(str(listed.reason or "this provider only needs its key"))
        try:
            check_variable(variables[number])
        except ValueError as error:
            raise PlatformError(f"the name of a variable {error}") from None
        values.append(VariableValue(variables[number], parse_secret(text, variables[number])))
    return values


def _store(cli: ControlCli, provider: str, values: Sequence[VariableValue]) -> Flash | None:
    """Store every value; return a message if that fails."""
    stored: list[str] = []
    for name, secret in values:
        option = ("--variable", name) if name else ()
        words = ("model", "set", "--provider", provider, *option, "--key-from-stdin", "--yes")
        try:
            finished = cli.run(words, stdin=f"{secret.reveal()}\n".encode())
        except ProcessError as error:
            return _failed(error.message, stored)
        if finished.status:
            return _failed(_reason(finished, values), stored)
        stored.append(name)
    return None


def _done(provider: str, tested: KeyTestResult | None) -> Flash:
    if tested is None:
        said = Sentence("Rotated {provider} successfully.", provider=provider)
    elif tested.outcome == "works":
        said = Sentence(
            "Rotated {provider} successfully. The new key was tested first and works.",
            provider=provider,
        )
    else:
        said = Sentence(
            "Rotated {provider} successfully. The new key was not checked: {why}",
            provider=provider,
            why=tested.why,
        )
    return Flash(said, good=True)


def _failed(why: str, stored: Sequence[str] = ()) -> Flash:
    said = Sentence("Rotation failed: {why}", why=why)
    if len(stored) > 1:
        said = Sentence(
            "Rotation failed: {why} (already stored: the key and {names})",
            why=why,
            names=", ".join(stored[1:]),
        )
    elif stored:
        said = Sentence("Rotation failed: {why} (already stored: the key)", why=why)
    return Flash(said, good=False)


def _reason(finished: Finished, values: Sequence[VariableValue]) -> str:
    """The program's error message, from its `error:` line or its last line."""
    return _cut(_hidden(error_message(finished), values) or f"exit code {finished.status}")


def _hidden(text: str, values: Sequence[VariableValue]) -> str:
    secrets = [secret for _, secret in values]
    for secret in secrets:  # The redactor does not mask values as short as a word.
        if len(secret.reveal()) < SHORTEST_KNOWN:
            text = text.replace(secret.reveal(), MASK)
    return Redactor(secrets).redact(text)


def _cut(text: str) -> str:
    return printable(text.strip())[:_LONGEST_REASON]
