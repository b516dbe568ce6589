"""The release manifest as an object, and its JSON text (docs/reference/manifest.md)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any

from platform_common.errors import PlatformError
from release_tools.manifest.calver import CalVer
from release_tools.manifest.date_time import parse_date_time

SCHEMA_VERSION = 1
_MAX_LISTED_PROBLEMS = 100


class ManifestError(PlatformError):
    """The bytes are not a valid manifest; `problems` gives every reason with its address."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        listed = list(self.problems[:_MAX_LISTED_PROBLEMS])
        if len(self.problems) > len(listed):
            listed.append(f"and {len(self.problems) - len(listed)} more")
        super().__init__("the manifest is not valid: " + "; ".join(listed))


class SchemaVersionError(PlatformError):
    """The manifest has a schema version that this program does not support."""

    def __init__(self, seen: str) -> None:
        super().__init__(
            f"the manifest has schema_version {seen} and this program reads {SCHEMA_VERSION}",
            hint="Please upgrade the control CLI.",
        )


@dataclass(frozen=True, slots=True)
class Artefact:
    """One signed deliverable; `extra` holds unknown members."""

    target: str
    profile: str
    filename: str
    format: str
    size_bytes: int
    sha256: str
    minisig_url: str
    url: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Manifest:
    """A valid manifest; `extra` holds unknown members."""

    release_version: CalVer
    channel: str
    released_at: str
    artefacts: tuple[Artefact, ...]
    tracker: Mapping[str, str] | None = None
    wizard_version: str | None = None
    chat_ui_version: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def released(self) -> datetime:
        """`released_at` as a moment in UTC."""
        return parse_date_time(self.released_at)


def member_names(record: type[Artefact | Manifest]) -> tuple[str, ...]:
    """The names of the members that we know, in the order of the fields."""
    return tuple(field.name for field in fields(record) if field.name != "extra")


def render(manifest: Manifest) -> bytes:
    """Return the manifest as JSON: members in a fixed order, indented, with a final newline."""
    names = member_names(Artefact)
    document = {
        "schema_version": SCHEMA_VERSION,
        "release_version": manifest.release_version.text,
        **_present(manifest, ("channel", "released_at", "tracker")),
        "artefacts": [
            {**_present(artefact, names), **artefact.extra} for artefact in manifest.artefacts
        ],
        **_present(manifest, ("wizard_version", "chat_ui_version")),
        **manifest.extra,
    }
    return (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode("utf-8")


def _present(record: object, names: Sequence[str]) -> dict[str, Any]:
    return {name: value for name in names if (value := getattr(record, name)) is not None}
