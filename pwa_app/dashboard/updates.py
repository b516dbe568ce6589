"""Whether there is a newer release, according to the control CLI."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from platform_common.message import Sentence, quoted
from pwa_app.control_client import CliQuery, Slice, object_view, plain

# It uses the network, so it may take longer than local calls.
_LIMIT_S = 20.0
COMMAND = "platformctl update --apply"


class UpdateCheck(Struct, frozen=True):
    """`update --check`: whether there is a newer release; missing members are None.

    `matching_artefact` is its file for this device: a name, or its entry in the manifest.
    """

    ok: bool | None = None
    installed_version: str = ""
    latest_version: str = ""
    channel: str = ""
    update_available: bool | None = None
    target: str = ""
    profile: str = ""
    matching_artefact: str | bool | dict[str, Any] | None = None
    manifest_origin: str = ""
    reason: str = ""
    error: str = ""


CHECK: CliQuery[UpdateCheck] = object_view(
    ("update", "--check", "--json"), UpdateCheck(), limit_s=_LIMIT_S
)


class News(Struct, frozen=True):
    """The result of a check; `why` says why it failed."""

    kind: Literal["available", "current", "unknown"]
    check: UpdateCheck
    artefact: str = ""
    why: Sentence | None = None


def news(found: Slice[UpdateCheck]) -> News:
    """Describe the result of a check."""
    check = found.value
    artefact = _file_name(check)
    if found.stub and not found.given:
        return News("unknown", check, artefact, found.reason)
    if check.ok is False:
        said = plain(check.reason or check.error)
        why = quoted(said) if said else Sentence("The control CLI did not say why.")
        return News("unknown", check, artefact, why)
    if check.update_available is None:
        why = Sentence("The control CLI did not say whether there is an update.")
        return News("unknown", check, artefact, why)
    return News("available" if check.update_available else "current", check, artefact)


def _file_name(check: UpdateCheck) -> str:
    match check.matching_artefact:
        case str(name) | {"filename": str(name)}:
            return name
    return ""
