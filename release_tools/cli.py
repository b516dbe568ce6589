"""The command line `release-tools`: options in, one call, results out."""

from __future__ import annotations

import json
import math
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from platform_common.cli.group import CommandGroup, Text, prepare, print_json
from platform_common.cli.leaving import run_and_leave
from platform_common.errors import PlatformError
from platform_common.version import VERSION
from release_tools.manifest.vocabulary import CHANNELS, VERIFIER_NAMES

if TYPE_CHECKING:
    from release_tools.manifest.calver import CalVer
    from release_tools.signing.secret_key import SecretKey

_PATH = click.Path(path_type=Path)
_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout.")


class _Version(click.ParamType["CalVer"]):
    name = "version"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> CalVer:
        from release_tools.manifest.calver import CalVer, CalVerError

        try:
            return CalVer.parse(value)
        except CalVerError as error:
            self.fail(f"{error.message}. {error.hint}", param, ctx)


class _Seconds(click.FloatRange):
    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        seconds: float = super().convert(value, param, ctx)
        # Not a number is inside every range.
        if math.isnan(seconds):
            self.fail(f"{value!r} is not a number.", param, ctx)
        return seconds


class _Group(CommandGroup):
    def exit_code(self, error: PlatformError) -> int:
        from platform_common.errors import UnreadableError, WrongUsageError
        from release_tools.manifest.calver import CalVerError
        from release_tools.manifest.document import ManifestError, SchemaVersionError

        families: tuple[tuple[type[PlatformError], int], ...] = (
            (SchemaVersionError, 4),
            (ManifestError, 3),
            (CalVerError, 3),
            (UnreadableError, 5),
            (WrongUsageError, 2),
        )
        return next((code for family, code in families if isinstance(error, family)), 1)

    def failure(self, exit_code: int, error: PlatformError) -> dict[str, Any]:
        document: dict[str, Any] = {"message": error.message, "hint": error.hint}
        problems = getattr(error, "problems", None)
        if problems is not None:
            document["problems"] = list(problems)
        return {"ok": False, "exit_code": exit_code, "error": document}


def _shown(path: Path) -> str:
    from platform_common.cli.terminal import printable

    return printable(str(path))


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, prog_name="release-tools")
@click.pass_context
def main(ctx: click.Context) -> None:
    """Build, sign, verify and read signed releases.

    A release is a manifest, the artefacts that it lists, and a minisign
    signature beside each of them.

    \b
    Exit codes:
      0  done and good
      1  a check failed: signature, hash, size, set of files, rollback, stale
      2  wrong usage
      3  the manifest is not valid
      4  the manifest is of another schema version: upgrade the control CLI
      5  something could not be read or reached
    """  # noqa: D301 - \b keeps the lines apart, for click
    prepare(ctx)


@main.command(
    epilog="""\b
Example:
  release-tools keygen --secret-key release.key --public-key release.pub
"""
)
@click.option("--secret-key", required=True, type=_PATH, help="The secret key file to write.")
@click.option("--public-key", required=True, type=_PATH, help="The public key file to write.")
@click.option("--no-password", is_flag=True, help="Do not encrypt the secret key.")
@_JSON
def keygen(secret_key: Path, public_key: Path, no_password: bool, as_json: bool) -> None:
    """Make a minisign key pair.

    The secret key file has mode 0600; no file is overwritten. Its password
    comes from SIGNING_SECRET_KEY_PASSWORD, or is asked for on a terminal.
    """
    from release_tools.signing.keys import PASSWORD_VARIABLE, generate
    from release_tools.signing.minisign import show_key_id

    password = os.environ.pop(PASSWORD_VARIABLE, "")
    if no_password:
        password = ""
    elif not password:
        password = _ask_password(confirm=True)
    made = generate(secret_key, public_key, password)
    if as_json:
        files = {"secret_key": str(secret_key), "public_key": str(public_key)}
        print_json({"ok": True, "key_id": show_key_id(made.key_id), **files})
        return
    paths = f"secret key {_shown(secret_key)}, public key {_shown(public_key)}"
    click.echo(f"Key {show_key_id(made.key_id)}: {paths}.")
    click.echo("Keep the secret key off every machine that serves releases.")


def _ask_password(*, confirm: bool = False) -> str:
    if not sys.stdin.isatty():
        raise click.UsageError(
            "There is no terminal to ask for the password of the secret key;"
            " set SIGNING_SECRET_KEY_PASSWORD" + (" or use --no-password." if confirm else ".")
        )
    password: str = click.prompt(
        "Password of the secret key", hide_input=True, confirmation_prompt=confirm, err=True
    )
    return password


def _signing_key() -> SecretKey | None:
    from release_tools.signing.keys import take_secret_key

    return take_secret_key(os.environ, _ask_password)


def _timestamp() -> int:
    """`SOURCE_DATE_EPOCH`, else now, in Unix seconds."""
    import time

    text = os.environ.get("SOURCE_DATE_EPOCH")
    if text is None:
        return int(time.time())
    # Until the end of the year 9999, the last that RFC 3339 can write.
    if not (text.isascii() and text.isdigit() and len(text) <= 12 and int(text) < 253402300800):
        raise click.UsageError("SOURCE_DATE_EPOCH must be a number of seconds since 1970.")
    return int(text)


def _trackers(values: tuple[str, ...]) -> dict[str, str]:
    pairs = [value.partition("=") for value in values]
    for name, equals, tag in pairs:
        if not (name and equals and tag):
            raise click.UsageError("--tracker takes ID=TAG, such as openclaw=v2026.4.25.")
    trackers = {name: tag for name, _, tag in pairs}
    if len(trackers) != len(pairs):
        raise click.UsageError("--tracker names a profile twice.")
    return trackers


@main.command(
    epilog="""\b
Example:
  SIGNING_SECRET_KEY=~/keys/release.key \\
    release-tools build images/ --version 2026.11.1 --channel stable
"""
)
@click.argument("artefact_dir", type=_PATH)
@click.option("--version", required=True, type=_Version(), help="The release: Y.M.D[-suffix].")
@click.option("--channel", required=True, type=click.Choice(CHANNELS), help="Where it goes.")
@click.option("--output", default="dist", show_default=True, type=_PATH, help="The distribution.")
@click.option(
    "--profiles",
    type=_PATH,
    envvar="PLATFORM_PROFILES_DIR",
    help="Folder of profile definitions; the shipped ones by default.",
)
@click.option("--targets", type=_PATH, help="Target matrix (TOML); the shipped one by default.")
@click.option(
    "--tracker", multiple=True, type=Text(), metavar="ID=TAG", help="Upstream tag of a profile."
)
@click.option("--wizard-version", type=Text(), help="Version of the bundled wizard.")
@click.option("--chat-ui-version", type=Text(), help="Version of the bundled chat UI.")
@click.option("--jobs", type=click.IntRange(1, 256), help="Files at a time; the cores by default.")
@_JSON
def build(
    artefact_dir: Path,
    version: CalVer,
    channel: str,
    output: Path,
    profiles: Path | None,
    targets: Path | None,
    tracker: tuple[str, ...],
    wizard_version: str | None,
    chat_ui_version: str | None,
    jobs: int | None,
    as_json: bool,
) -> None:
    """Make a release of the artefacts in ARTEFACT_DIR.

    Lays them out below OUTPUT, describes them in manifest.json, and signs
    everything when SIGNING_SECRET_KEY is set: to a minisign secret key's path,
    its text, or its base64 line. Without it, manifest.json.unsigned is written.
    The same inputs and SOURCE_DATE_EPOCH give the same bytes.
    """
    from platform_common.resources import data_path
    from release_tools.building.build import BuildRequest, build_release
    from release_tools.building.naming import profile_ids, target_matrix
    from release_tools.progress import byte_progress

    key = _signing_key()
    request = BuildRequest(
        artefact_dir=artefact_dir,
        output=output,
        version=version,
        channel=channel,
        profiles=profile_ids(profiles or data_path("profiles")),
        targets=target_matrix(targets or data_path("targets.toml")),
        timestamp=_timestamp(),
        tracker=_trackers(tracker),
        wizard_version=wizard_version,
        chat_ui_version=chat_ui_version,
        jobs=jobs,
    )
    with byte_progress("Building", shown=_progress_shown()) as start:
        built = build_release(request, key, start)
    count = len(built.manifest.artefacts)
    if as_json:
        print_json(
            {
                "ok": True,
                "manifest": str(built.manifest_path),
                "signed": key is not None,
                "release_version": version.text,
                "channel": channel,
                "artefacts": [artefact.filename for artefact in built.manifest.artefacts],
            }
        )
        return
    contents = "1 artefact" if count == 1 else f"{count} artefacts"
    click.echo(f"Release {version} on {channel} with {contents}: {_shown(built.manifest_path)}")
    if key is None:
        click.secho(
            "It is NOT SIGNED, because SIGNING_SECRET_KEY is not set. Sign it with:\n"
            f"  release-tools sign {_shown(built.manifest_path)}",
            fg="yellow",
        )


def _progress_shown() -> bool:
    # A program that was started without one has none.
    return sys.stderr is not None and sys.stderr.isatty()


@main.command(
    epilog="""\b
Examples:
  SIGNING_SECRET_KEY=~/keys/release.key release-tools sign notes.txt
  SIGNING_SECRET_KEY=~/keys/release.key \\
    release-tools sign dist/stable/manifest.json.unsigned
"""
)
@click.argument("paths", nargs=-1, required=True, type=_PATH, metavar="PATH...")
@_JSON
def sign(paths: tuple[Path, ...], as_json: bool) -> None:
    """Sign files with SIGNING_SECRET_KEY.

    Each gets a detached signature PATH.minisig. A manifest.json.unsigned has
    its artefacts checked and signed and becomes the signed manifest.json.
    """
    from release_tools.progress import byte_progress
    from release_tools.signing.keys import SECRET_KEY_VARIABLE
    from release_tools.signing.sign import sign_paths

    key = _signing_key()
    if key is None:
        raise click.UsageError(
            f"{SECRET_KEY_VARIABLE} is not set, so there is no key to sign with."
        )
    with byte_progress("Signing", shown=_progress_shown()) as start:
        written = sign_paths(list(dict.fromkeys(paths)), key, _timestamp(), start)
    if as_json:
        print_json({"ok": True, "signatures": [str(path) for path in written]})
        return
    for path in written:
        click.echo(_shown(path))


_PUBLIC_KEYS = click.option(
    "-p",
    "--public-key",
    "public_keys",
    required=True,
    multiple=True,
    metavar="P",
    help="A trusted minisign public key: its file or its base64 line. May be repeated.",
)


def _load_keys(texts: tuple[str, ...]) -> list[Any]:
    from release_tools.signing.keys import load_public_key, writable_by_others

    for text in texts:
        if writable_by_others(text):
            click.secho(
                f"warning: others may change the public key file {text}", fg="yellow", err=True
            )
    return [load_public_key(text) for text in texts]


@main.command(
    epilog="""\b
Examples:
  release-tools verify https://downloads.example.org/stable -p release.pub
  release-tools verify dist --public-key release.pub --json
"""
)
@click.argument("location")
@_PUBLIC_KEYS
@click.option("--channel", type=click.Choice(CHANNELS), help="The channel that it must be of.")
@click.option("--target", help="Read the artefacts of this target only.")
@click.option("--profile", help="Read the artefacts of this profile only.")
@click.option("--manifest-only", is_flag=True, help="Read no artefact.")
@click.option(
    "--verifier",
    type=click.Choice(VERIFIER_NAMES),
    default="native",
    show_default=True,
    help="Who judges signatures: this program, the minisign program, or both.",
)
@click.option("--not-older-than", type=_Version(), help="Refuse a release before this version.")
@click.option(
    "--max-age", type=click.IntRange(0, 100_000), metavar="DAYS", help="Refuse an older manifest."
)
@click.option(
    "--timeout",
    type=_Seconds(0, 86_400, min_open=True),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="The longest silence of a server.",
)
@click.option("--jobs", type=click.IntRange(1, 256), help="Files at a time; the cores by default.")
@_JSON
def verify(location: str, public_keys: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Verify the release at LOCATION.

    LOCATION is a manifest, a channel directory or a distribution root: a path,
    or an http, https, file, s3, gs or az URL. The manifest's signature is
    checked over its exact bytes before they are parsed, then its schema, then
    the size, SHA-256 and signature of every artefact. Every finding is
    reported, and the last line says whether to trust the release.
    """
    from release_tools.progress import byte_progress
    from release_tools.reporting import overall_exit_code, print_verification, verification_json
    from release_tools.verifying.verify import VerifyRequest, verify_location

    keys = _load_keys(public_keys)
    with byte_progress("Verifying", shown=_progress_shown()) as start:
        reports = verify_location(VerifyRequest(location, keys, **options), start)
    if as_json:
        print_json(verification_json(location, reports))
    else:
        print_verification(reports)
    click.get_current_context().exit(overall_exit_code(reports))


@main.command(
    "verify-file",
    epilog="""\b
Example:
  release-tools verify-file notes.txt --public-key release.pub
""",
)
@click.argument("file", type=_PATH)
@_PUBLIC_KEYS
@click.option("--signature", type=_PATH, help="The detached signature; FILE.minisig by default.")
@click.option("--legacy", is_flag=True, help="Also accept the old form that is not prehashed.")
@click.option("--strict", is_flag=True, help="Demand of the signature what a release must have.")
@_JSON
def verify_file(
    file: Path,
    public_keys: tuple[str, ...],
    signature: Path | None,
    legacy: bool,
    strict: bool,
    as_json: bool,
) -> None:
    """Verify one FILE and its signature, as minisign -V does."""
    from platform_common.cli.terminal import printable
    from release_tools.progress import byte_progress
    from release_tools.signing.minisign import show_key_id
    from release_tools.verifying.verify_file import verify_one

    keys = _load_keys(public_keys)
    path = signature or Path(f"{file}.minisig")
    with byte_progress("Verifying", shown=_progress_shown()) as start:
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


@main.command(
    epilog="""\b
Example:
  release-tools inspect https://downloads.example.org/stable/manifest.json
"""
)
@click.argument("location")
@_JSON
def inspect(location: str, as_json: bool) -> None:
    """Show what the manifest at LOCATION says, trusting nothing.

    Reads it and checks its schema, not its signature.
    """
    from release_tools.inspection import read_manifests
    from release_tools.manifest.document import render
    from release_tools.origins.stream import without_secrets
    from release_tools.reporting import print_manifest

    manifests = read_manifests(location)
    if as_json:
        documents = [
            # Ours go last: a manifest may have members of these names.
            ours | json.loads(render(manifest)) | ours
            for url, manifest in manifests
            for ours in [{"manifest": without_secrets(url), "verified": False}]
        ]
        print_json(documents[0] if len(documents) == 1 else documents)
        return
    for url, manifest in manifests:
        print_manifest(url, manifest)


@main.command(
    epilog="""\b
Example:
  release-tools compare 2026.11.1-rc1 2026.11.1
"""
)
@click.argument("a")
@click.argument("b")
@_JSON
def compare(a: str, b: str, as_json: bool) -> None:
    """Say which of the versions A and B is the newer one."""
    from release_tools.manifest.calver import CalVer
    from release_tools.manifest.calver import compare as order_of

    order = order_of(CalVer.parse(a), CalVer.parse(b))
    if as_json:
        print_json({"order": order})
        return
    click.echo(f"{a} {'=><'[order]} {b}")


def program() -> None:
    """The program `release-tools`."""
    run_and_leave(main)
