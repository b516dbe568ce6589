"""`make release`: a signed release of this project itself, by its own tools.

The sdist and the wheel of one commit, packed as artefacts, built, signed and
verified with the commands that every other release is made with. The same
commit and the same key give the same bytes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path

import click

from dev.distributions import ROOT, build_distributions, commit_time, git, write_tar_gz
from platform_common.version import VERSION

_TOOLS = Path(sys.executable).with_name("release-tools")
_DATA = ROOT / "release"
_PROFILE = "appliance"
_SIGNING = ("SIGNING_SECRET_KEY", "SIGNING_SECRET_KEY_PASSWORD")
_TIMEOUT_S = 600


@click.command()
@click.option(
    "--output",
    default=ROOT / "dist",
    type=click.Path(path_type=Path),
    help="The distribution; dist in the checkout by default.",
)
@click.option("--channel", default="dev", show_default=True, help="The channel it goes to.")
@click.option(
    "--version",
    help="The release; by default this project's version, with the commit for the channel dev.",
)
@click.option("--commit", default="HEAD", show_default=True, help="The commit to release.")
@click.option(
    "--public-key",
    envvar="PUBLIC_KEY",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="What to verify it with; needed with SIGNING_SECRET_KEY.",
)
def main(
    output: Path, channel: str, version: str | None, commit: str, public_key: Path | None
) -> None:
    """Make a signed release of this project.

    Signs with SIGNING_SECRET_KEY, or else with a development key, which is made
    once in dev-out/keys.
    """
    signing = {name: os.environ.pop(name) for name in _SIGNING if name in os.environ}
    if signing and public_key is None:
        raise click.UsageError("With SIGNING_SECRET_KEY, give --public-key to verify it with.")
    if public_key is None:
        secret_key, public_key = development_key(ROOT / "dev-out/keys")
        signing = {"SIGNING_SECRET_KEY": str(secret_key)}
    if git("status", "--porcelain"):
        click.secho("Changes that are not committed are not in the release.", fg="yellow")
    if version is None:
        short = git("rev-parse", "--short=12", commit).decode().strip()
        version = f"{VERSION}-dev.{short}" if channel == "dev" else VERSION
    try:
        make_release(output, version, channel, signing, commit=commit)
        _tools("verify", output, "--public-key", public_key, "--channel", channel)
    except subprocess.CalledProcessError as error:
        raise SystemExit(error.returncode) from None


def development_key(folder: Path) -> tuple[Path, Path]:
    """The paths of the secret and the public key in `folder`, made when they are missing."""
    secret_key, public_key = folder / "release.key", folder / "release.pub"
    if not secret_key.exists():
        paths = ("--secret-key", secret_key, "--public-key", public_key)
        _tools("keygen", *paths, "--no-password")
    return secret_key, public_key


def make_release(
    output: Path,
    version: str,
    channel: str,
    signing: Mapping[str, str],
    *,
    commit: str | None = None,
) -> None:
    """Build and sign a release of `commit`, or of the tracked files as they are, in `output`.

    `signing` holds the variables that `release-tools build` takes its key from.
    Raises `subprocess.CalledProcessError` when a step fails.
    """
    moment = commit_time(commit or "HEAD")
    with tempfile.TemporaryDirectory() as scratch:
        artefacts = Path(scratch, "artefacts")
        artefacts.mkdir()
        made = build_distributions(Path(scratch, "made"), commit=commit)
        names = {
            target: artefacts / f"platform-{_PROFILE}-{target}-{version}-{channel}.tar.gz"
            for target in ("sdist", "wheel")
        }
        shutil.copyfile(made.sdist, names["sdist"])
        wheel = (tarfile.TarInfo(made.wheel.name), made.wheel.read_bytes())
        write_tar_gz(names["wheel"], [wheel], moment)
        _tools(
            *("build", artefacts, "--version", version, "--channel", channel),
            *("--profiles", _DATA / "profiles", "--targets", _DATA / "targets.toml"),
            *("--output", output),
            variables={**signing, "SOURCE_DATE_EPOCH": str(moment)},
        )


def _tools(*arguments: str | Path, variables: Mapping[str, str] | None = None) -> None:
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("PLATFORM_")
    }
    subprocess.run(
        [_TOOLS, *arguments],
        env=environment | dict(variables or {}),
        timeout=_TIMEOUT_S,
        check=True,
    )


if __name__ == "__main__":
    main()
