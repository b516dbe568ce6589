"""What the commands print, for people and as JSON, and their exit code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import click

from platform_common.cli.terminal import human_size
from platform_common.plain_text import printable
from release_tools.distribution.manifest_location import ManifestLocation
from release_tools.manifest.document import Manifest
from release_tools.manifest.vocabulary import REFERENCE_FORMATS
from release_tools.origins.urls import without_secrets
from release_tools.signing.minisign import Signature, show_key_id
from release_tools.verifying.policy import Finding
from release_tools.verifying.report import CheckedArtefact, ReleaseReport, worst_exit_code


def overall_exit_code(reports: Sequence[ReleaseReport]) -> int:
    """Return the exit code for several releases."""
    return worst_exit_code(report.exit_code for report in reports)


def verdict(reports: Sequence[ReleaseReport]) -> str:
    """Say in one line whether to trust what was verified."""
    errors = [finding for report in reports for finding in report.errors]
    if errors:
        count = f"{len(errors)} finding{'s' if len(errors) > 1 else ''}"
        return f"DO NOT TRUST: {count}, the first {errors[0].code} at {printable(errors[0].where)}"
    releases = ", ".join(
        f"{report.manifest.release_version} ({report.manifest.channel})"
        for report in reports
        if report.manifest is not None
    )
    artefacts = [checked for report in reports for checked in report.artefacts]
    read = [checked for checked in artefacts if checked.read_from]
    keys = {show_key_id(r.signature.key_id) for r in reports if r.signature is not None}
    scope = f"{len(read)} of {len(artefacts)} artefacts read" if read else "the manifest only"
    return f"TRUSTED: release {releases}, {scope}, signed by {', '.join(sorted(keys))}"


def print_verification(reports: Sequence[ReleaseReport]) -> None:
    """Print the reports and the verdict for people."""
    for report in reports:
        _print_head(report.location, report.manifest, report.signature)
        for checked in report.artefacts:
            _print_artefact(checked)
        for finding in report.findings:
            _print_finding(finding)
        click.echo()
    good = overall_exit_code(reports) == 0
    click.secho(verdict(reports), fg="green" if good else "red", bold=True)


def _print_head(
    location: ManifestLocation, manifest: Manifest | None, signature: Signature | None
) -> None:
    rows = [("manifest", str(location))]
    if manifest is not None:
        release = f"{manifest.release_version} on {manifest.channel}"
        rows.append(("release", f"{release}, released {manifest.released_at}"))
    if signature is not None:
        rows.append(("signature", f"of key {show_key_id(signature.key_id)}"))
    for name, value in rows:
        _print_row(name, value)


def _print_row(name: str, value: str) -> None:
    click.echo(f"{click.style(f'{printable(name):<10}', dim=True)} {printable(value)}")


_STATUS_COLOURS = {"verified": "green", "FAILED": "red", "not read": "yellow"}


def _status(checked: CheckedArtefact) -> str:
    if any(not finding.warning for finding in checked.findings):
        return "FAILED"
    return "verified" if checked.read_from else "not read"


def _print_artefact(checked: CheckedArtefact) -> None:
    artefact, status = checked.artefact, _status(checked)
    word = click.style(f"{status:<10}", fg=_STATUS_COLOURS[status])
    reference = artefact.format in REFERENCE_FORMATS
    meaning = f"  = {printable(artefact.url or 'nothing')}" if reference else ""
    size = human_size(artefact.size_bytes)
    click.echo(f"{word} {printable(artefact.filename)}  {size}{meaning}")
    for finding in checked.findings:
        _print_finding(finding)


def _print_finding(finding: Finding) -> None:
    word = click.style(finding.code, fg="yellow" if finding.warning else "red")
    note = "warning: " if finding.warning else ""
    where, message = printable(finding.where), printable(finding.message)
    click.echo(f"  {word} {note}{where}: {message}")


def verification_json(location: str, reports: Sequence[ReleaseReport]) -> dict[str, Any]:
    """Return the document that `verify --json` prints."""
    code = overall_exit_code(reports)
    return {
        "ok": code == 0,
        "exit_code": code,
        "verdict": verdict(reports),
        "location": without_secrets(location),
        "releases": [_release_json(report) for report in reports],
        "findings": [asdict(f) for report in reports for f in report.all_findings],
    }


def _release_json(report: ReleaseReport) -> dict[str, Any]:
    document: dict[str, Any] = {"manifest": report.location.public_url, "ok": not report.errors}
    if report.manifest is not None:
        document |= {
            "release_version": report.manifest.release_version.text,
            "channel": report.manifest.channel,
            "released_at": report.manifest.released_at,
        }
    if report.signature is not None:
        document |= {
            "key_id": show_key_id(report.signature.key_id),
            "trusted_comment": report.signature.comment_text,
        }
    return document | {"artefacts": [_artefact_json(checked) for checked in report.artefacts]}


def _artefact_json(checked: CheckedArtefact) -> dict[str, Any]:
    artefact = checked.artefact
    return {
        "filename": artefact.filename,
        "target": artefact.target,
        "profile": artefact.profile,
        "format": artefact.format,
        "size_bytes": artefact.size_bytes,
        "sha256": artefact.sha256,
        "status": _status(checked).lower(),
        "read_from": None if checked.read_from is None else without_secrets(checked.read_from),
        "findings": [asdict(finding) for finding in checked.findings],
    }


def print_manifest(location: ManifestLocation, manifest: Manifest) -> None:
    """Print what a manifest says for people, with the note that none of it was verified."""
    _print_head(location, manifest, None)
    versions = {"wizard": manifest.wizard_version, "chat UI": manifest.chat_ui_version}
    for profile, tag in (manifest.tracker or {}).items():
        versions[f"tracker {profile}"] = tag
    for name, version in versions.items():
        if version is not None:
            _print_row(name, version)
    public = ManifestLocation(location.public_url)
    for artefact in manifest.artefacts:
        _print_row(artefact.format, f"{artefact.filename}  {human_size(artefact.size_bytes)}")
        _print_row("", public.resolve(artefact.url or artefact.filename))
        _print_row("", f"sha256 {artefact.sha256}")
    click.secho(
        "Not verified: this command reads a manifest and trusts nothing in it.", fg="yellow"
    )
