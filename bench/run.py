"""Measure release-tools against the alternatives, in one run, and print the ratios.

Every row runs both sides in turn (A B A B …) on the same files in memory-backed
storage and compares medians, so that a change in the machine's pace falls on
both. `python bench/run.py --help` lists the options.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

PROGRAM = str(Path(sys.executable).with_name("release-tools"))
VERSION, CHANNEL = "2026.11.1", "dev"
GIB, MIB = 1 << 30, 1 << 20
_BASE = Path("/dev/shm")
# Installed packages come with their byte code; let a checkout keep its own as well.
_ENVIRONMENT = {name: os.environ[name] for name in os.environ if name != "PYTHONDONTWRITEBYTECODE"}


@dataclass(frozen=True)
class Row:
    """One line of the table: what was measured, its value, and what it must not exceed."""

    what: str
    value: float
    unit: str
    must_be: float
    detail: str

    @property
    def met(self) -> bool:
        """Whether the value is within its bound."""
        return self.value <= self.must_be


@dataclass(frozen=True)
class Usage:
    """What one finished command cost."""

    wall_s: float
    cpu_s: float
    peak_mib: float


def measure(*commands: Sequence[str], env: dict[str, str] | None = None) -> Usage:
    """Run commands one after the other; their costs added, their peak memory the largest."""
    total = [0.0, 0.0, 0.0]
    for command in commands:
        started = time.perf_counter()
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=_ENVIRONMENT | (env or {}),
        )
        assert process.stderr is not None
        said = process.stderr.read()
        process.stderr.close()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise SystemExit(f"{command[0]} failed: {said.decode(errors='replace')}")
        total[0] += time.perf_counter() - started
        total[1] += usage.ru_utime + usage.ru_stime
        total[2] = max(total[2], usage.ru_maxrss / 1024)
    return Usage(*total)


def paired(
    runs: int, ours: Callable[[], Usage], theirs: Callable[[], Usage]
) -> tuple[float, str, list[Usage]]:
    """The ratio of the median wall times, what they were, and our costs."""
    a, b = [], []
    for _ in range(runs):
        a.append(ours())
        b.append(theirs())
    first, second = (statistics.median(u.wall_s for u in side) for side in (a, b))
    return first / second, f"{first:.3f} s against {second:.3f} s", a


def hashed(files: Sequence[Path], names: Sequence[str]) -> Usage:
    """What the digests of those names cost, one after the other, in this process."""
    started, cpu = time.perf_counter(), time.process_time()
    for path in files:
        for name in names:
            with path.open("rb", buffering=0) as file:
                hashlib.file_digest(file, name)
    return Usage(time.perf_counter() - started, time.process_time() - cpu, 0)


def random_file(path: Path, size: int) -> None:
    """A file of random bytes; a block of them is enough to keep it from being sparse."""
    block = os.urandom(16 * MIB)
    with path.open("wb") as file:
        for _ in range(size // len(block)):
            file.write(block)


class Release:
    """A folder of artefacts of a given size, and a key to sign them with."""

    def __init__(self, folder: Path, count: int, size: int) -> None:
        self.folder = folder
        self.artefacts = folder / "artefacts"
        self.artefacts.mkdir(parents=True)
        self.profiles = folder / "profiles"
        self.profiles.mkdir()
        for number in range(count):
            (self.profiles / f"p{number}.toml").write_text(f'[profile]\nid = "p{number}"\n')
            name = f"platform-p{number}-wsl2-{VERSION}-{CHANNEL}.tar.gz"
            random_file(self.artefacts / name, size) if size >= MIB else (
                self.artefacts / name
            ).write_bytes(os.urandom(size))
        self.secret, self.public = folder / "k.sec", folder / "k.pub"
        keygen = ["minisign", "-G", "-W", "-f", "-p", str(self.public), "-s", str(self.secret)]
        measure(keygen)
        self.one = min(self.artefacts.iterdir())

    def build(self) -> Usage:
        """Build and sign into a new distribution."""
        output = self.folder / "dist"
        shutil.rmtree(output, ignore_errors=True)
        command = [PROGRAM, "build", str(self.artefacts), "--version", VERSION]
        options = ["--channel", CHANNEL, "--output", str(output), "--profiles", str(self.profiles)]
        return measure([*command, *options], env={"SIGNING_SECRET_KEY": str(self.secret)})

    def verify(self, *options: str) -> Usage:
        """Verify the distribution."""
        dist = str(self.folder / "dist")
        return measure([PROGRAM, "verify", dist, "-p", str(self.public), *options])

    def minisign(self, verb: str) -> list[str]:
        """The command of the minisign program on the first artefact."""
        key = {"-V": ["-p", str(self.public)], "-S": ["-s", str(self.secret)]}[verb]
        signature = str(self.folder / "theirs.minisig")
        return ["minisign", verb, *key, "-m", str(self.one), "-x", signature]


def one_large_artefact(folder: Path, size: int, runs: int) -> Iterator[Row]:
    """Build and verify one artefact of `size` bytes."""
    release = Release(folder, 1, size)
    release.build()
    sha256sum = ["sha256sum", str(release.one)]
    what = f"{size / GIB:g} GiB artefact"

    def signed_by_them() -> Usage:
        return measure(sha256sum, release.minisign("-S"))

    def verified_by_them() -> Usage:
        return measure(sha256sum, release.minisign("-V"))

    both = '"$@" & openssl dgst -sha256 "$0" & wait'

    def side_by_side() -> Usage:
        return measure(["sh", "-c", both, str(release.one), *release.minisign("-V")])

    ratio, detail, costs = paired(runs, release.build, signed_by_them)
    yield Row(f"build one {what}, against sha256sum; minisign -S", ratio, "x", 0.35, detail)
    peak = max(usage.peak_mib for usage in costs)
    yield Row(f"peak memory, build one {what}", peak, "MiB", 80, "the largest of the runs")
    ratio, detail, costs = paired(runs, release.verify, verified_by_them)
    yield Row(f"verify one {what}, against sha256sum; minisign -V", ratio, "x", 0.30, detail)
    peak = max(usage.peak_mib for usage in costs)
    yield Row(f"peak memory, verify one {what}", peak, "MiB", 80, "the largest of the runs")
    ratio, detail, _ = paired(runs, release.verify, side_by_side)
    against = "against openssl dgst & minisign -V & wait"
    yield Row(f"verify one {what}, {against}", ratio, "x", 0.50, detail)
    # BLAKE2b-512 is sequential, so that this is the least that any verifier can take.
    floor, detail, _ = paired(runs, lambda: hashed([release.one], ["blake2b512"]), side_by_side)
    yield Row(f"BLAKE2b-512 of one {what} alone, {against}", floor, "x", ratio, detail)


def eight_artefacts(folder: Path, size: int, runs: int) -> Iterator[Row]:
    """Verify eight artefacts of `size` bytes each."""
    release = Release(folder, 8, size)
    release.build()
    cores = len(os.sched_getaffinity(0))
    files = sorted(release.artefacts.iterdir())

    def bound() -> Usage:
        cpu_s = hashed(files, ["sha256", "blake2b512"]).cpu_s
        return Usage(cpu_s / cores, cpu_s, 0)

    ratio, detail, costs = paired(runs, release.verify, bound)
    what = f"eight artefacts of {size // MIB} MiB"
    yield Row(f"verify {what}, against the digests' CPU time / cores", ratio, "x", 1.20, detail)
    peak = max(usage.peak_mib for usage in costs)
    yield Row(f"peak memory, verify {what}", peak, "MiB", 80, "the largest of the runs")


def start_up(folder: Path, runs: int) -> Iterator[Row]:
    """How long the program takes where there is little to read."""
    release = Release(folder, 50, 1000)
    release.build()

    def python(imports: str) -> Callable[[], Usage]:
        return lambda: measure([sys.executable, "-c", f"import {imports}"])

    ratio, detail, _ = paired(runs, lambda: measure([PROGRAM, "--version"]), python("click"))
    yield Row("release-tools --version, against import click", ratio, "x", 1.3, detail)
    ratio, detail, _ = paired(
        runs,
        lambda: release.verify("--manifest-only"),
        python("click, jsonschema, nacl.signing"),
    )
    what = "verify --manifest-only of 50 artefacts, against import click, jsonschema, nacl.signing"
    yield Row(what, ratio, "x", 1.3, detail)


def long_manifest(runs: int) -> Iterator[Row]:
    """Parse and check manifests of many artefacts, in this process."""
    from release_tools.manifest import parse

    def seconds(count: int) -> float:
        entries = [
            {
                "target": "wsl2",
                "profile": f"p{number}",
                "filename": f"platform-p{number}-wsl2-{VERSION}-{CHANNEL}.tar.gz",
                "format": "tar.gz",
                "size_bytes": number,
                "sha256": f"{number:064x}",
                "minisig_url": f"{VERSION}/{number}.minisig",
                "url": f"{VERSION}/{number}",
            }
            for number in range(count)
        ]
        document = {
            "schema_version": 1,
            "release_version": VERSION,
            "channel": CHANNEL,
            "released_at": "2026-11-01T00:00:00Z",
            "artefacts": entries,
        }
        data = json.dumps(document, indent=2).encode()
        times = []
        for _ in range(runs):
            started = time.perf_counter()
            parse(data)
            times.append(time.perf_counter() - started)
        return statistics.median(times)

    small, large = seconds(1_000), seconds(10_000)
    yield Row("parse, validate and check 10,000 artefacts", large, "s", 1.5, f"{large:.3f} s")
    detail = f"{large:.3f} s for 10,000 against {small:.3f} s for 1,000; 10 is linear"
    yield Row("the same, against a tenth of them", large / small, "x", 13, detail)


def main() -> None:
    """Run every part and print its rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="runs of each side (5)")
    parser.add_argument(
        "--size", type=int, default=2 * GIB // MIB, help="MiB of an artefact (2048)"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object a row")
    options = parser.parse_args()
    base = _BASE if _BASE.is_dir() else None
    print(f"# {platform.platform()}, Python {platform.python_version()}, ", end="")
    print(f"{len(os.sched_getaffinity(0))} cores, medians of {options.runs}, files in {base}")
    rows = []
    with tempfile.TemporaryDirectory(dir=base, prefix="bench-") as name:
        folder = Path(name)
        parts: tuple[Callable[[], Iterator[Row]], ...] = (
            lambda: start_up(folder / "start", max(options.runs, 15)),
            lambda: long_manifest(options.runs),
            lambda: one_large_artefact(folder / "one", options.size * MIB, options.runs),
            lambda: eight_artefacts(folder / "eight", options.size * MIB // 8, options.runs),
        )
        for part in parts:
            for row in part():
                rows.append(row)
                print(json.dumps(asdict(row)) if options.json else _line(row), flush=True)
            for used in folder.iterdir():
                shutil.rmtree(used)
    if missed := [row for row in rows if not row.met]:
        raise SystemExit(f"{len(missed)} of {len(rows)} rows missed")


def _line(row: Row) -> str:
    word = "met   " if row.met else "MISSED"
    return f"{word} {row.value:8.3f} {row.unit:3} (≤ {row.must_be:g})  {row.what}  [{row.detail}]"


if __name__ == "__main__":
    main()
