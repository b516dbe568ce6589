"""The result of a verification."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from platform_common.errors import PlatformError
from release_tools.distribution.manifest_location import ManifestLocation
from release_tools.manifest.document import Artefact, Manifest
from release_tools.origins.stream import RefusedUrlError, SlowError
from release_tools.signing.minisign import Signature
from release_tools.verifying.policy import Finding

_EXIT_CODES = {"E_UNREADABLE": 5, "E_SLOW": 5, "E_SCHEMA": 3, "E_SCHEMA_VERSION": 4}


def unreadable(error: PlatformError, where: str) -> Finding:
    """Return the finding that `where` could not be read because of `error`."""
    code = "E_UNREADABLE"
    if isinstance(error, SlowError):
        code = "E_SLOW"
    elif isinstance(error, RefusedUrlError):
        code = "E_URL"
    message = error.message.removeprefix(f"{where}: ")
    return Finding(code, where, f"{message}. {error.hint}" if error.hint else message)


def worst_exit_code(codes: Iterable[int]) -> int:
    """Return the exit code for several: a failed check (1) outweighs what could not be read."""
    found = set(codes)
    return 1 if 1 in found else max(found, default=0)


@dataclass(frozen=True, slots=True)
class CheckedArtefact:
    """An artefact, the URL it was read from (None if it was not), and its findings."""

    artefact: Artefact
    read_from: str | None
    findings: tuple[Finding, ...] = ()


@dataclass
class ReleaseReport:
    """The findings about one manifest and the artefacts it lists."""

    location: ManifestLocation
    manifest: Manifest | None = None
    signature: Signature | None = None
    findings: list[Finding] = field(default_factory=list)
    artefacts: list[CheckedArtefact] = field(default_factory=list)

    @property
    def all_findings(self) -> list[Finding]:
        """The release's own findings, then those of its artefacts."""
        return [*self.findings, *(f for checked in self.artefacts for f in checked.findings)]

    @property
    def errors(self) -> list[Finding]:
        """The findings because of which the release must not be trusted."""
        return [finding for finding in self.all_findings if not finding.warning]

    @property
    def exit_code(self) -> int:
        """The exit code for this release."""
        return worst_exit_code(_EXIT_CODES.get(finding.code, 1) for finding in self.errors)
