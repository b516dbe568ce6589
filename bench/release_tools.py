"""Measures release-tools against sha256sum, minisign, openssl, and its own imports."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from bench.measuring import Row, Usage, measure, paired, program, python

PROGRAM = program("release-tools")
VERSION, CHANNEL = "2026.11.1", "dev"
GIB, MIB = 1 << 30, 1 << 20


def hashed(files: Sequence[Path], names: Sequence[str]) -> Usage:
    """The cost of the digests with those names, one after the other, in this process."""
    started, cpu = time.perf_counter(), time.process_time()
    for path in files:
        for name in names:
            with path.open("rb", buffering=0) as file:
                hashlib.file_digest(file, name)
    return Usage(time.perf_counter() - started, time.process_time() - cpu, 0)


def random_file(path: Path, size: int) -> None:
    """A file of one random block, repeated, so that it is not sparse."""
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
    # BLAKE2b-512 is sequential, so no verifier can be faster than this.
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
    """The time of the program when there is little to read."""
    release = Release(folder, 50, 1000)
    release.build()

    ratio, detail, _ = paired(
        runs, lambda: measure([PROGRAM, "--version"]), python("-c", "import click")
    )
    yield Row("release-tools --version, against import click", ratio, "x", 1.3, detail)
    ratio, detail, _ = paired(
        runs,
        lambda: release.verify("--manifest-only"),
        python("-c", "import click, jsonschema, nacl.signing"),
    )
    what = "verify --manifest-only of 50 artefacts, against import click, jsonschema, nacl.signing"
    yield Row(what, ratio, "x", 1.3, detail)


def long_manifest(runs: int) -> Iterator[Row]:
    """Parse and check manifests of many artefacts, in this process."""
    from release_tools.manifest.parser import parse

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


def parts(folder: Path, size: int, runs: int) -> tuple[Callable[[], Iterator[Row]], ...]:
    """What to measure: artefacts of `size` bytes, `runs` of each side."""
    return (
        lambda: start_up(folder / "start", max(runs, 15)),
        lambda: long_manifest(runs),
        lambda: one_large_artefact(folder / "one", size, runs),
        lambda: eight_artefacts(folder / "eight", size // 8, runs),
    )
