"""The release manifest: bytes to `Manifest` and back (docs/reference/manifest.md).

`schema_version` is looked at first, then the JSON Schema, then the rules that a
schema cannot hold. Every problem is reported with its address.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from platform_common.errors import PlatformError
from platform_common.formats.strict_json import JsonError, load_strict, type_names
from release_tools.manifest.calver import CalVer
from release_tools.manifest.rules import all_problems, parse_date_time, shown

SCHEMA_VERSION = 1
_KNOWN = (
    "schema_version",
    "release_version",
    "channel",
    "released_at",
    "tracker",
    "artefacts",
    "wizard_version",
    "chat_ui_version",
)
_ARTEFACT_KNOWN = (
    "target",
    "profile",
    "filename",
    "format",
    "size_bytes",
    "sha256",
    "minisig_url",
    "url",
)
_MAX_LISTED_PROBLEMS = 100


class ManifestError(PlatformError):
    """The bytes are no valid manifest; `problems` has every reason with its address."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        shown = list(self.problems[:_MAX_LISTED_PROBLEMS])
        if len(self.problems) > len(shown):
            shown.append(f"and {len(self.problems) - len(shown)} more")
        super().__init__("the manifest is not valid: " + "; ".join(shown))


class SchemaVersionError(PlatformError):
    """The manifest is of a schema version that this program does not know."""

    def __init__(self, seen: str) -> None:
        super().__init__(
            f"the manifest has schema_version {seen} and this program reads {SCHEMA_VERSION}",
            hint="Please upgrade the control CLI.",
        )


@dataclass(frozen=True, slots=True)
class Artefact:
    """One signed deliverable ; `extra` holds the unknown members."""

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
    """A valid manifest; `extra` holds the unknown members."""

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


def parse(data: bytes) -> Manifest:
    """The manifest in `data`; raises `SchemaVersionError` or `ManifestError`."""
    try:
        document = load_strict(data)
    except JsonError as error:
        raise ManifestError([error.message]) from error
    if not isinstance(document, dict):
        raise ManifestError([f"manifest: must be an object, not {type_names[type(document)]}"])
    version = document.get("schema_version")
    if type(version) is not int or version != SCHEMA_VERSION:
        raise SchemaVersionError(shown(version) if "schema_version" in document else "missing")
    if problems := all_problems(document):
        raise ManifestError(problems)
    return _manifest(document)


def render(manifest: Manifest) -> bytes:
    """The manifest as JSON: members in a fixed order, two-space indent, one final newline."""
    document = {
        "schema_version": SCHEMA_VERSION,
        "release_version": manifest.release_version.text,
        **_present(manifest, _KNOWN[2:5]),
        "artefacts": [
            {**_present(artefact, _ARTEFACT_KNOWN), **artefact.extra}
            for artefact in manifest.artefacts
        ],
        **_present(manifest, _KNOWN[6:]),
        **manifest.extra,
    }
    return (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode("utf-8")


def _present(record: object, names: Sequence[str]) -> dict[str, Any]:
    return {name: value for name in names if (value := getattr(record, name)) is not None}


def _manifest(document: Mapping[str, Any]) -> Manifest:
    return Manifest(
        release_version=CalVer.parse(document["release_version"]),
        artefacts=tuple(
            Artefact(
                **{name: entry[name] for name in _ARTEFACT_KNOWN if name in entry},
                extra={name: value for name, value in entry.items() if name not in _ARTEFACT_KNOWN},
            )
            for entry in document["artefacts"]
        ),
        extra={name: value for name, value in document.items() if name not in _KNOWN},
        **{
            name: document[name]
            for name in _KNOWN
            if name in document and name not in ("schema_version", "release_version", "artefacts")
        },
    )
