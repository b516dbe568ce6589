"""The kinds of action in a plan; nothing here has effects.

Each describes itself in words, for people, and as a document with masked secrets, for
programs.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from platform_common.message import Sentence
from platform_common.secret import Secret
from platform_common.storage.atomic_write import KEYS_OWNER, ROOT, Owner
from wizard_app.setup.plan.phases import Phase
from wizard_app.setup.sentence_list import listed

# Files with secrets, beside the device's keys; the last one exists only while a command reads
# it.
STORE_ACCESS = "/etc/platform/rclone.conf"
TUNNEL_CREDENTIALS = "/etc/platform/tunnel/credentials.json"
MESH_VPN_KEY = "/run/platform/mesh-vpn.key"
# Stands for a secret that is not in memory; such an action is never executed.
NOT_HELD = Secret("")
AGENT = Owner("agent", "agent")
_ID_LENGTH = 16
_MASKED = "•••"


class Action(ABC):
    """One thing to do; repeating it has no further effect."""

    @property
    @abstractmethod
    def said(self) -> Sentence:
        """The description for people."""

    @property
    @abstractmethod
    def shown(self) -> dict[str, Any]:
        """The description for programs, with secrets masked."""

    @property
    def secrets(self) -> tuple[Secret, ...]:
        """Its secrets, including `NOT_HELD`."""
        return ()

    @property
    def lacks_secret(self) -> bool:
        """Whether it cannot be done because a secret is not in memory."""
        return NOT_HELD in self.secrets

    @property
    def id(self) -> str:
        """An id that does not depend on its secrets."""
        text = json.dumps(self.shown, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:_ID_LENGTH]


@dataclass(frozen=True)
class WriteFile(Action):
    """Write a file at `path` of the device; `parts` are its text, some of them secret.

    `note` explains the text to people if it is hard to read.
    """

    path: str
    parts: tuple[str | Secret, ...]
    mode: int = 0o644
    owner: Owner = ROOT
    note: Sentence | None = None

    @property
    def said(self) -> Sentence:
        return Sentence("Write {path} ({rights})", path=self.path, rights=_rights(self))

    @property
    def shown(self) -> dict[str, Any]:
        return {"action": "write", **_file(self), "content": "".join(map(str, self.parts))}

    @property
    def secrets(self) -> tuple[Secret, ...]:
        return tuple(part for part in self.parts if isinstance(part, Secret))

    def reveal(self) -> bytes:
        """Return the contents, with secrets."""
        return "".join(
            part.reveal() if isinstance(part, Secret) else part for part in self.parts
        ).encode()


@dataclass(frozen=True)
class SetVariables(Action):
    """Set variables in the file of keys at `path`; its other lines stay."""

    path: str
    values: Mapping[str, Secret]
    mode: int = 0o640
    owner: Owner = KEYS_OWNER

    @property
    def said(self) -> Sentence:
        if not self.values:
            return Sentence("Keep {path} ({rights})", path=self.path, rights=_rights(self))
        return Sentence(
            "Set {names} in {path} ({rights}); other lines stay as they are",
            names=listed(list(self.values)),
            path=self.path,
            rights=_rights(self),
        )

    @property
    def shown(self) -> dict[str, Any]:
        return {"action": "set", **_file(self), "variables": dict.fromkeys(self.values, _MASKED)}

    @property
    def secrets(self) -> tuple[Secret, ...]:
        return tuple(self.values.values())


@dataclass(frozen=True)
class AddKeys(Action):
    """Add public keys to the `authorized_keys` at `path`; existing ones stay."""

    path: str
    lines: tuple[str, ...]
    mode: int = 0o600
    owner: Owner = AGENT

    @property
    def said(self) -> Sentence:
        return Sentence(
            "Add SSH keys ({count}) to {path} ({rights}); existing keys are kept",
            count=len(self.lines),
            path=self.path,
            rights=_rights(self),
        )

    @property
    def shown(self) -> dict[str, Any]:
        return {"action": "add-keys", **_file(self), "keys": list(self.lines)}


@dataclass(frozen=True)
class RemoveFile(Action):
    """Remove the file at `path`."""

    path: str

    @property
    def said(self) -> Sentence:
        return Sentence("Remove {path}", path=self.path)

    @property
    def shown(self) -> dict[str, Any]:
        return {"action": "remove", "path": self.path}


class KeyFile(NamedTuple):
    """A secret that a command reads from a file, which exists only while it runs."""

    path: str
    secret: Secret


@dataclass(frozen=True)
class RunCommand(Action):
    """Run a program to its end; `files` are paths of the device that occur in `argv`."""

    argv: tuple[str, ...]
    timeout_s: float
    files: tuple[str, ...] = ()
    key_file: KeyFile | None = None

    @property
    def command(self) -> str:
        """The command as one would type it."""
        return shlex.join(self.argv)

    @property
    def said(self) -> Sentence:
        if self.key_file is None:
            return Sentence("Run: {command}", command=self.command)
        return Sentence(
            "Run: {command} (the key is in that file only while this runs)", command=self.command
        )

    @property
    def shown(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "action": "run",
            "argv": list(self.argv),
            "timeout_s": self.timeout_s,
        }
        if self.key_file is not None:
            found["key_file"] = {"path": self.key_file.path, "mode": "0600"}
        return found

    @property
    def secrets(self) -> tuple[Secret, ...]:
        return () if self.key_file is None else (self.key_file.secret,)


Planned = tuple[Phase, Action]


def write(path: str, *lines: str) -> WriteFile:
    """A world-readable file of lines without secrets."""
    return WriteFile(path, tuple(f"{line}\n" for line in lines))


def held(secrets: Mapping[str, Secret], names: Iterable[str]) -> dict[str, Secret]:
    """The secrets with these names, with `NOT_HELD` for missing ones."""
    return {name: secrets.get(name, NOT_HELD) for name in names}


def _rights(file: WriteFile | SetVariables | AddKeys) -> str:
    return f"{file.mode:04o} {file.owner.user}:{file.owner.group}"


def _file(file: WriteFile | SetVariables | AddKeys) -> dict[str, str]:
    return {
        "path": file.path,
        "mode": f"{file.mode:04o}",
        "owner": f"{file.owner.user}:{file.owner.group}",
    }
