"""From bytes to a valid `Manifest`, which needs the JSON Schema library."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from platform_common.formats.strict_json import JsonError, load_strict
from release_tools.manifest.calver import CalVer
from release_tools.manifest.document import (
    SCHEMA_VERSION,
    Artefact,
    Manifest,
    ManifestError,
    SchemaVersionError,
    member_names,
)
from release_tools.manifest.rules import TYPE_NAMES, all_problems, shown


def parse(data: bytes) -> Manifest:
    """Return the manifest in `data`.

    `schema_version` is checked first, then the JSON Schema and the rules that a schema cannot
    express. Raises `SchemaVersionError`, and `ManifestError` with every problem found.
    """
    try:
        document = load_strict(data)
    except JsonError as error:
        raise ManifestError([error.message]) from error
    if not isinstance(document, dict):
        raise ManifestError([f"manifest: must be an object, not {TYPE_NAMES[type(document)]}"])
    version = document.get("schema_version")
    if type(version) is not int or version != SCHEMA_VERSION:
        raise SchemaVersionError(shown(version) if "schema_version" in document else "missing")
    if problems := all_problems(document):
        raise ManifestError(problems)
    return _manifest(document)


def _manifest(document: Mapping[str, Any]) -> Manifest:
    members = {name: value for name, value in document.items() if name != "schema_version"}
    members["release_version"] = CalVer.parse(document["release_version"])
    names = member_names(Artefact)
    members["artefacts"] = tuple(
        Artefact(**_with_extra(entry, names)) for entry in document["artefacts"]
    )
    return Manifest(**_with_extra(members, member_names(Manifest)))


def _with_extra(members: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    """`members` as arguments of a record: those that are not `known` go into `extra`."""
    arguments = {name: value for name, value in members.items() if name in known}
    arguments["extra"] = {name: value for name, value in members.items() if name not in known}
    return arguments
