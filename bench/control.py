"""Measures platformctl against the imports that it needs, and against a bare loop over a ledger."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench.measuring import Row, Usage, measure, paired, program, python

PROGRAM = program("platformctl")
LINES = 1_000_000
_SPAN_S = 29 * 86_400
_LEDGER = "home/agent/.openclaw/cost-ledger.jsonl"
_LOOP = "import json, sys\nfor line in open(sys.argv[1], 'rb'): json.loads(line)"


class Device:
    """A device in a folder with a profile, a provider and a ledger."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ledger = folder / _LEDGER
        self.ledger.parent.mkdir(parents=True)
        settings = folder / "etc/platform"
        settings.mkdir(parents=True)
        (settings / "active-profile").write_text("openclaw\n")
        (settings / "active-provider").write_text("openrouter\n")
        (settings / "secrets.env").write_text("OPENROUTER_API_KEY=sk-or-v1-0123456789\n")

    def write_ledger(self, lines: int, newest: datetime) -> None:
        """Messages of 29 days, the last of them at `newest`; each third has no cost."""
        apart = timedelta(seconds=_SPAN_S / lines)
        with self.ledger.open("w") as file:
            for number in range(lines):
                message = {
                    "timestamp": (newest - apart * (lines - number)).isoformat(),
                    "provider": "openrouter",
                    "model": "anthropic/claude-sonnet-4.6",
                    "input_tokens": 1000 + number % 777,
                    "output_tokens": 300,
                    "cost_usd": 0.0075,
                    "request_id": f"req_{number:024x}",
                }
                if number % 3 == 0:
                    del message["cost_usd"]
                file.write(json.dumps(message) + "\n")

    def run(self, *arguments: str) -> Callable[[], Usage]:
        """A measurement of platformctl on this device."""
        return lambda: measure([PROGRAM, *arguments], env={"PLATFORM_ROOT": str(self.folder)})


def start_up(folder: Path, runs: int) -> Iterator[Row]:
    """The time of the calls that the apps make for each page."""
    device = Device(folder)
    device.write_ledger(100, datetime.now(UTC))
    imports = python("-c", "import click, json")
    for call, bound in (
        ("version", 1.3),
        ("status", 1.6),
        ("limits", 1.6),
        ("cost", 1.6),
        ("model list", 1.6),
    ):
        ratio, detail, _ = paired(runs, device.run(*call.split(), "--json"), imports)
        what = f"platformctl {call} --json, against import click, json"
        yield Row(what, ratio, "x", bound, detail)


def long_ledger(folder: Path, runs: int) -> Iterator[Row]:
    """Sum up a ledger of this month, and one that is too old to count."""
    device = Device(folder)
    loop = python("-c", _LOOP, str(device.ledger))
    now = datetime.now(UTC)
    for age, newest, bound in (
        ("of the last 30 days", now, 1.5),
        ("of last year", now - timedelta(days=365), 0.1),
    ):
        device.write_ledger(LINES, newest)
        ratio, detail, costs = paired(runs, device.run("cost", "--json"), loop)
        what = f"cost --json over {LINES:,} ledger lines {age}"
        yield Row(f"{what}, against json.loads of each", ratio, "x", bound, detail)
        peak = max(usage.peak_mib for usage in costs)
        yield Row(f"peak memory, {what}", peak, "MiB", 60, "the largest of the runs")


def parts(folder: Path, runs: int) -> tuple[Callable[[], Iterator[Row]], ...]:
    """What to measure, `runs` of each side."""
    return (
        lambda: start_up(folder / "device", max(runs, 15)),
        lambda: long_ledger(folder / "long", runs),
    )
