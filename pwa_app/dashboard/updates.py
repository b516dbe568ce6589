"""Whether a newer release is there, as the control CLI found."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from platform_common.message import Sentence, quoted
from pwa_app.control_client import Slice, View, object_view, plain

# It asks the network, so it may take longer than what looks at the device alone.
_LIMIT_S = 20.0
COMMAND = "platformctl update --apply"


class UpdateCheck(Struct, frozen=True):
    """`update --check`: whether a newer release is there; None is what was not said.

    `matching_artefact` is its file for this device: a name, or what the manifest says of it.
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


CHECK: View[UpdateCheck] = object_view(
    ("update", "--check", "--json"), UpdateCheck(), limit_s=_LIMIT_S
)


class News(Struct, frozen=True):
    """What a check came to; `why` says why it came to nothing."""

    kind: Literal["available", "current", "unknown"]
    check: UpdateCheck
    artefact: str = ""
    why: Sentence | None = None


def news(found: Slice[UpdateCheck]) -> News:
    """What to say of a check."""
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
