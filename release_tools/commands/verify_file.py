"""`release-tools verify-file`."""

from __future__ import annotations

from pathlib import Path

import click

from platform_common.cli.group import print_json
from platform_common.plain_text import printable
from release_tools.commands.options import AS_JSON, PATH, progress_shown
from release_tools.commands.trusted_keys import PUBLIC_KEYS, load_keys
from release_tools.progress import byte_progress
from release_tools.signing.minisign import show_key_id
from release_tools.verifying.verify_file import verify_one


@click.command(
    "verify-file",
    epilog="""\b
Example:
  release-tools verify-file notes.txt --public-key release.pub
""",
)
@click.argument("file", type=PATH)
@PUBLIC_KEYS
@click.option("--signature", type=PATH, help="The detached signature. Default: FILE.minisig.")
@click.option("--legacy", is_flag=True, help="Also accept a legacy signature (not prehashed).")
@click.option("--strict", is_flag=True, help="Apply the stricter rules for releases.")
@AS_JSON
def command(
    file: Path,
    public_keys: tuple[str, ...],
    signature: Path | None,
    legacy: bool,
    strict: bool,
    as_json: bool,
) -> None:
    """Verify one FILE and its signature, like minisign -V."""
    keys = load_keys(public_keys)
    path = signature or Path(f"{file}.minisig")
    with byte_progress("Verifying", shown=progress_shown()) as start:
        checked, findings = verify_one(file, path, keys, start, legacy=legacy, strict=strict)
    for finding in findings:
        click.secho(f"warning: {printable(finding.message)}", fg="yellow", err=True)
    comment, key_id = checked.comment_text, show_key_id(checked.key_id)
    if as_json:
        warnings = [finding.message for finding in findings]
        print_json({"ok": True, "key_id": key_id, "trusted_comment": comment, "warnings": warnings})
        return
    click.secho(f"Good signature of key {key_id}.", fg="green")
    click.echo(f"Trusted comment: {printable(comment)}")
