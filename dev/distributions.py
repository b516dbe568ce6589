"""Builds the sdist and the wheel of this project, with the same bytes for the same sources."""

from __future__ import annotations

import gzip
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_TIMEOUT_S = 300


@dataclass(frozen=True)
class Distributions:
    """The two files that are uploaded and installed."""

    sdist: Path
    wheel: Path


def build_distributions(output: Path, *, commit: str | None = None) -> Distributions:
    """Build the sdist and, from it, the wheel of `commit`, or of the tracked files as they are.

    Needs what the extra `package` brings. Raises `subprocess.CalledProcessError`.
    """
    moment = commit_time(commit or "HEAD")
    output = output.resolve()
    with tempfile.TemporaryDirectory() as scratch:
        sources, made = Path(scratch, "sources"), Path(scratch, "made")
        copy_sources(sources, commit)
        _build("--sdist", sources, made, moment)
        (sdist,) = made.iterdir()
        output.mkdir(parents=True, exist_ok=True)
        sdist = _rewritten(sdist, output / sdist.name, moment)
    _build("--wheel", sdist, output, moment)
    (wheel,) = output.glob("*.whl")
    return Distributions(sdist, wheel)


def commit_time(commit: str) -> int:
    """When `commit` was made, in Unix seconds."""
    return int(git("log", "-1", "--format=%ct", commit))


def tracked_files() -> list[str]:
    """The tracked files of this tree that exist."""
    names = git("ls-files", "-z").decode().split("\0")
    return [name for name in names if name and (ROOT / name).is_file()]


def copy_sources(target: Path, commit: str | None) -> None:
    """Copy the files of `commit`, or the tracked ones as they are, into the folder `target`."""
    if commit is not None:
        _extract(commit, target)
        return
    for name in tracked_files():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, target / name)


def git(*arguments: str) -> bytes:
    """Run git in this tree, whoever owns it, and return its output."""
    return subprocess.run(
        ["git", "-c", "safe.directory=*", *arguments],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        timeout=_TIMEOUT_S,
        check=True,
    ).stdout


def write_tar_gz(path: Path, files: Iterable[tuple[tarfile.TarInfo, bytes]], moment: int) -> Path:
    """A tar.gz that depends only on the files' names, contents and executable bits."""
    with (
        path.open("wb") as raw,
        gzip.GzipFile("", "wb", 9, raw, mtime=moment) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for seen, data in sorted(files, key=lambda file: file[0].name):
            entry = tarfile.TarInfo(seen.name)
            entry.type, entry.size, entry.mtime = seen.type, len(data), moment
            entry.mode = 0o755 if seen.isdir() or seen.mode & 0o100 else 0o644
            archive.addfile(entry, io.BytesIO(data))
    return path


def _extract(commit: str, sources: Path) -> None:
    sources.mkdir()
    subprocess.run(
        ["tar", "-x", "-C", sources],
        input=git("archive", "--format=tar", commit),
        timeout=_TIMEOUT_S,
        check=True,
    )


def _build(kind: str, sources: Path, output: Path, moment: int) -> None:
    # Without isolation, so that the lock file decides which versions build it. With a safe path,
    # so that modules come from the environment, not from the current folder.
    finished = subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", kind, "--outdir", output, sources],
        env=os.environ | {"SOURCE_DATE_EPOCH": str(moment), "PYTHONSAFEPATH": "1"},
        umask=0o022,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    if finished.returncode != 0:
        print(finished.stdout, file=sys.stderr)
    finished.check_returncode()


def _rewritten(sdist: Path, target: Path, moment: int) -> Path:
    """Copy `sdist` to `target` without the times and owners of this build."""
    with tarfile.open(sdist) as archive:
        members = [
            (member, reader.read() if (reader := archive.extractfile(member)) else b"")
            for member in archive.getmembers()
        ]
    return write_tar_gz(target, members, moment)
