"""Access to the device from the internet."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import UNSET, Struct, UnsetType

from platform_common.errors import PlatformError
from platform_common.formats.decode import check_member, shaped
from platform_common.formats.strict_json import DuplicateMemberError, load_strict
from platform_common.message import Sentence
from platform_common.secret import Secret, SecretError
from wizard_app.setup.plan.actions import (
    NOT_HELD,
    TUNNEL_CREDENTIALS,
    Planned,
    RemoveFile,
    RunCommand,
    WriteFile,
)
from wizard_app.setup.plan.phases import Phase
from wizard_app.setup.steps.base import Accepted, Form, FormErrors, Question, Step, in_memory

SKIP, QUICK, NAMED = "skip", "quick", "named"
_MOST_BYTES = 64 << 10
# Safe as a file name and in a command line.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")
_CREDENTIALS, _FILE = "credentials", "credentials_file"
_LABEL = Sentence("Tunnel credentials")
_UNIT = "platform-tunnel.service"
# systemd allows a unit 90 s to start.
_LIMIT_S = 120.0


class TunnelAnswer(Struct, frozen=True):
    """`skip`, `quick` or `named`; only a named tunnel has a name."""

    tunnel_choice: str
    tunnel_name: str = ""

    def __post_init__(self) -> None:
        """Refuse other choices and invalid names, wherever they come from."""
        check_member("tunnel_choice", _check_choice, self.tunnel_choice)
        if self.tunnel_choice == NAMED:
            check_member("tunnel_name", _check_name, self.tunnel_name)
        elif self.tunnel_name:
            raise ValueError("tunnel_name: must be empty for a tunnel without a name")


class TunnelStep(Step[TunnelAnswer]):
    """The tunnel from the internet, or none.

    Credentials may come as a file, `credentials_file`; without any, `keep=1` means those in memory.
    """

    slug = "tunnel"
    title = Sentence("Access from the internet (optional)")
    short = Sentence("Tunnel")
    answer_type = TunnelAnswer
    secret_fields = frozenset({_CREDENTIALS, _FILE})

    def view(self, asked: Question) -> Mapping[str, Any]:
        return {"held_tunnel": _held(asked)}

    def filled(self, answer: TunnelAnswer) -> Mapping[str, list[str]]:
        return {"choice": [answer.tunnel_choice], "keep": ["1"]}

    def parse(self, form: Form, asked: Question) -> Accepted[TunnelAnswer] | FormErrors:
        choice = form.get("choice")
        if choice in (SKIP, QUICK):
            return Accepted(TunnelAnswer(choice))
        if choice != NAMED:
            return FormErrors({"choice": Sentence("Select how you want to reach this device")})
        pasted, file = form.raw(_CREDENTIALS), form.file(_FILE)
        if pasted.strip() and file:
            both = Sentence("Paste the credentials or choose the credentials file, not both")
            return FormErrors({_CREDENTIALS: both})
        if not (pasted.strip() or file):
            return _kept(form, asked)
        data = file or pasted.encode()
        name = tunnel_of(data)
        if isinstance(name, Sentence):
            return FormErrors({_CREDENTIALS: name})
        return Accepted(TunnelAnswer(NAMED, name), {_CREDENTIALS: Secret(data.decode())})

    def secrets(self, answer: TunnelAnswer, asked: Question) -> Mapping[str, Sentence]:
        return {_CREDENTIALS: _LABEL} if answer.tunnel_choice == NAMED else {}

    def needs(self, answer: TunnelAnswer, asked: Question) -> tuple[Sentence, ...]:
        # The credentials in memory may belong to another tunnel.
        is_held = _held(asked) == answer.tunnel_name
        return () if is_held else tuple(self.secrets(answer, asked).values())

    def secret(self, name: str, text: str) -> Secret:
        if name != _CREDENTIALS:
            return super().secret(name, text)
        if isinstance(wrong := tunnel_of(text.encode()), Sentence):
            raise SecretError(wrong)
        return Secret(text)

    def summary(self, answer: TunnelAnswer, asked: Question) -> Iterable[tuple[Sentence, Any]]:
        yield Sentence("From the internet"), _WORDS[answer.tunnel_choice]
        if answer.tunnel_choice == NAMED:
            yield Sentence("Name of the tunnel"), answer.tunnel_name
            held = _held(asked) == answer.tunnel_name
            yield _LABEL, in_memory(asked, held=held)

    def actions(self, answer: TunnelAnswer, asked: Question) -> Iterable[Planned]:
        if answer.tunnel_choice == NAMED:
            same = _held(asked) == answer.tunnel_name
            key = asked.held.secrets[_CREDENTIALS] if same else NOT_HELD
            yield Phase.TUNNEL, WriteFile(TUNNEL_CREDENTIALS, (key,), mode=0o600)
        elif asked.machine.has(TUNNEL_CREDENTIALS):
            yield Phase.TUNNEL, RemoveFile(TUNNEL_CREDENTIALS)
        if answer.tunnel_choice != SKIP:
            yield Phase.TUNNEL, RunCommand(("systemctl", "enable", "--now", _UNIT), _LIMIT_S)
            if asked.machine.is_enabled(_UNIT):
                # It may still run with an earlier choice.
                yield Phase.TUNNEL, RunCommand(("systemctl", "restart", _UNIT), _LIMIT_S)
        elif asked.machine.is_enabled(_UNIT):
            yield Phase.TUNNEL, RunCommand(("systemctl", "disable", "--now", _UNIT), _LIMIT_S)


_WORDS = {
    SKIP: Sentence("Not reachable"),
    QUICK: Sentence(
        "Open to the internet: anyone who knows its public address can reach the assistant"
    ),
    NAMED: Sentence("Open to the internet, at the address of your own tunnel"),
}


def tunnel_of(data: bytes) -> str | Sentence:
    """The name of the tunnel in the credentials, or what is wrong with them."""
    if len(data) > _MOST_BYTES:
        return Sentence("Credentials must be 64 KiB or smaller")
    try:
        found = shaped(load_strict(data), Credentials)
    except DuplicateMemberError:
        # The library's message would repeat a part of the credentials.
        return Sentence("Credentials must be JSON without duplicate names")
    except PlatformError as error:
        return Sentence(
            "Credentials must be JSON with TunnelID or TunnelName: {why}", why=error.said
        )
    names = [one for one in (found.name, found.id) if isinstance(one, str)]
    if not names:
        return Sentence("Credentials must be JSON with TunnelID or TunnelName")
    if not all(map(_NAME.fullmatch, names)):
        return Sentence(
            "TunnelID and TunnelName can only contain a to z, A to Z, 0 to 9, dots, underscores"
            " and hyphens, 64 at most, and cannot start with a dot or a hyphen"
        )
    return names[0]


class Credentials(Struct, rename={"name": "TunnelName", "id": "TunnelID"}):
    """The tunnel members of the credentials."""

    name: str | UnsetType = UNSET
    id: str | UnsetType = UNSET


def _held(asked: Question) -> str:
    """The tunnel whose credentials are in memory; empty if there is none."""
    held = asked.held.secrets.get(_CREDENTIALS)
    return "" if held is None else str(tunnel_of(held.reveal().encode()))


def _kept(form: Form, asked: Question) -> Accepted[TunnelAnswer] | FormErrors:
    name = _held(asked)
    if form.get("keep") == "1" and name:
        return Accepted(TunnelAnswer(NAMED, name), secrets=None)
    missing = Sentence("Paste your tunnel's credentials or choose the credentials file")
    return FormErrors({_CREDENTIALS: missing})


def _check_choice(choice: str) -> None:
    if choice not in _WORDS:
        raise ValueError("must be skip, quick or named")


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise ValueError("must be the name or the id of a tunnel")
