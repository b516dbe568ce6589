"""What a verification found."""

from __future__ import annotations

from dataclasses import dataclass, field

from platform_common.errors import PlatformError
from release_tools.manifest.document import Artefact, Manifest
from release_tools.origins.stream import RefusedUrlError, SlowError
from release_tools.signing.minisign import Signature
from release_tools.verifying.policy import Finding

_EXIT_CODES = {"E_UNREADABLE": 5, "E_SLOW": 5, "E_SCHEMA": 3, "E_SCHEMA_VERSION": 4}


def unread(error: PlatformError, where: str) -> Finding:
    """The finding that `where` could not be read, because of `error`."""
    families = ((SlowError, "E_SLOW"), (RefusedUrlError, "E_URL"))
    code = next((code for family, code in families if isinstance(error, family)), "E_UNREADABLE")
    message = error.message.removeprefix(f"{where}: ")
    return Finding(code, where, f"{message}. {error.hint}" if error.hint else message)


@dataclass(frozen=True, slots=True)
class CheckedArtefact:
    """An artefact, where it was read (None if it was not), and what was found."""

    artefact: Artefact
    read_from: str | None
    findings: tuple[Finding, ...] = ()


@dataclass
class ReleaseReport:
    """What was found about one manifest and what it lists."""

    url: str
    manifest: Manifest | None = None
    signature: Signature | None = None
    findings: list[Finding] = field(default_factory=list)
    artefacts: list[CheckedArtefact] = field(default_factory=list)

    @property
    def all_findings(self) -> list[Finding]:
        """The release's own findings and those of its artefacts."""
        return [*self.findings, *(f for checked in self.artefacts for f in checked.findings)]

    @property
    def errors(self) -> list[Finding]:
        """The findings that take the trust away."""
        return [finding for finding in self.all_findings if not finding.warning]

    @property
    def exit_code(self) -> int:
        """The exit code: a failed check outweighs what could not be read."""
        codes = {_EXIT_CODES.get(finding.code, 1) for finding in self.errors}
        return 1 if 1 in codes else max(codes, default=0)
