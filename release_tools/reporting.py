"""What the commands say: for people, as JSON, and as an exit code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from platform_common.cli.terminal import human_size
from platform_common.plain_text import printable
from release_tools.manifest.document import Manifest
from release_tools.manifest.vocabulary import REFERENCE_FORMATS
from release_tools.origins.stream import show_url, without_secrets
from release_tools.origins.urls import resolve
from release_tools.signing.minisign import Signature, show_key_id
from release_tools.verifying.policy import Finding
from release_tools.verifying.report import CheckedArtefact, ReleaseReport


def overall_exit_code(reports: Sequence[ReleaseReport]) -> int:
    """The exit code for several releases: a failed check outweighs the rest."""
    codes = {report.exit_code for report in reports}
    return 1 if 1 in codes else max(codes, default=0)


def verdict(reports: Sequence[ReleaseReport]) -> str:
    """In one line, whether to trust what was verified."""
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
    """Tell people what was verified, ending in the verdict."""
    for report in reports:
        _print_head(printable(show_url(report.url)), report.manifest, report.signature)
        for checked in report.artefacts:
            _print_artefact(checked)
        for finding in report.findings:
            _print_finding(finding)
        click.echo()
    good = overall_exit_code(reports) == 0
    click.secho(verdict(reports), fg="green" if good else "red", bold=True)


def _print_head(url: str, manifest: Manifest | None, signature: Signature | None) -> None:
    rows = [("manifest", url)]
    if manifest is not None:
        release = f"{manifest.release_version} on {manifest.channel}"
        rows.append(("release", f"{release}, released {manifest.released_at}"))
    if signature is not None:
        rows.append(("signature", f"of key {show_key_id(signature.key_id)}"))
    for name, value in rows:
        click.echo(f"{click.style(f'{name:<10}', dim=True)} {value}")


_MARKS = {"verified": "green", "FAILED": "red", "not read": "yellow"}


def _status(checked: CheckedArtefact) -> str:
    if any(not finding.warning for finding in checked.findings):
        return "FAILED"
    return "verified" if checked.read_from else "not read"


def _print_artefact(checked: CheckedArtefact) -> None:
    artefact, status = checked.artefact, _status(checked)
    mark = click.style(f"{status:<10}", fg=_MARKS[status])
    reference = artefact.format in REFERENCE_FORMATS
    meaning = f"  = {printable(artefact.url or 'nothing')}" if reference else ""
    size = human_size(artefact.size_bytes)
    click.echo(f"{mark} {printable(artefact.filename)}  {size}{meaning}")
    for finding in checked.findings:
        _print_finding(finding)


def _print_finding(finding: Finding) -> None:
    word = click.style(finding.code, fg="yellow" if finding.warning else "red")
    note = "warning: " if finding.warning else ""
    where, message = printable(finding.where), printable(finding.message)
    click.echo(f"  {word} {note}{where}: {message}")


def verification_json(location: str, reports: Sequence[ReleaseReport]) -> dict[str, Any]:
    """The document that `verify --json` prints."""
    code = overall_exit_code(reports)
    return {
        "ok": code == 0,
        "exit_code": code,
        "verdict": verdict(reports),
        "location": without_secrets(location) if "://" in location else location,
        "releases": [_release_json(report) for report in reports],
        "findings": [_finding_json(f) for report in reports for f in report.all_findings],
    }


def _release_json(report: ReleaseReport) -> dict[str, Any]:
    document: dict[str, Any] = {"manifest": without_secrets(report.url), "ok": not report.errors}
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
        "read_from": checked.read_from and without_secrets(checked.read_from),
        "findings": [_finding_json(finding) for finding in checked.findings],
    }


def _finding_json(finding: Finding) -> dict[str, Any]:
    return {
        "code": finding.code,
        "where": finding.where,
        "message": finding.message,
        "warning": finding.warning,
    }


def print_manifest(url: str, manifest: Manifest) -> None:
    """Tell people what a manifest says, and that nothing of it was checked."""
    _print_head(printable(show_url(url)), manifest, None)
    for name, value in (
        ("wizard", manifest.wizard_version),
        ("chat UI", manifest.chat_ui_version),
        *((f"tracker {profile}", tag) for profile, tag in (manifest.tracker or {}).items()),
    ):
        if value is not None:
            click.echo(f"{click.style(f'{printable(name):<10}', dim=True)} {printable(value)}")
    for artefact in manifest.artefacts:
        click.echo(
            f"{click.style(f'{artefact.format:<10}', dim=True)} {printable(artefact.filename)}"
            f"  {human_size(artefact.size_bytes)}"
        )
        address = artefact.url or artefact.filename
        click.echo(f"           {printable(resolve(without_secrets(url), address))}")
        click.echo(f"           sha256 {artefact.sha256}")
    click.secho(
        "Not verified: this command reads a manifest and trusts nothing in it.", fg="yellow"
    )
