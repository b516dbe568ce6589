"""Debian's `minisign`, the program with which our signatures must be compatible."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.support import running


@dataclass(frozen=True)
class Run:
    """How the program ended, and its output."""

    status: int
    output: str


def run(*args: str | Path, folder: Path | None = None, stdin: str = "") -> Run:
    """Run `minisign` with `args`."""
    done = running.run("minisign", *args, cwd=folder, stdin=stdin, merged=True, errors="replace")
    return Run(done.returncode, done.stdout)


def verify(public_key: Path, file: Path, signature: Path | None = None) -> Run:
    """Run `minisign -V`, refusing the legacy form as for a release."""
    where = signature or file.with_name(f"{file.name}.minisig")
    return run("-V", "-H", "-p", public_key, "-m", file, "-x", where)


def sign(secret_key: Path, file: Path, *options: str, password: str = "") -> Path:
    """Run `minisign -S`; return the path of the signature."""
    done = run("-S", "-s", secret_key, "-m", file, *options, stdin=f"{password}\n")
    if done.status:
        raise RuntimeError(done.output)
    return file.with_name(f"{file.name}.minisig")


def generate(folder: Path, password: str = "") -> tuple[Path, Path]:
    """Run `minisign -G`; return the paths of the secret and the public key."""
    folder.mkdir(parents=True, exist_ok=True)
    secret, public = folder / "minisign.key", folder / "minisign.pub"
    options = () if password else ("-W",)
    done = run("-G", *options, "-s", secret, "-p", public, stdin=f"{password}\n{password}\n")
    if done.status:
        raise RuntimeError(done.output)
    # Independent of the umask, because a key that others can change causes a warning.
    public.chmod(0o644)
    return secret, public
