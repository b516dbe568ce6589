"""Make a small sample device in a folder, for the dashboard to show something.

A folder that holds a device, or anything in the places of one, is left as it is.
What is made up says so: the device's name, its key, and the ids of its messages.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

_PARTS = ("home", "etc")
_STATE = ("run", "var")
_NOT_A_KEY = "sk-sample-this-is-not-a-real-key"
_DAYS = 30
_TIMEOUT_S = 60
# Provider, model, and dollars for a thousand tokens; None is left to the rate sheet.
_MODELS = (
    ("openai", "gpt-4o", 0.009),
    ("openai", "gpt-4o-mini", None),
    ("anthropic", "claude-sonnet-4-6", 0.012),
)


def main() -> None:
    """Make the device in the folder given, of the release and update URL given."""
    if len(sys.argv) != 4:
        raise SystemExit("usage: sample_device.py FOLDER VERSION UPDATE_URL")
    folder, version, update_url = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    if is_there(folder):
        print(f"kept  the device in {folder}", flush=True)
        return
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".device-") as scratch:
        root = Path(scratch)
        make(root, version, update_url, datetime.now(UTC))
        for part in _PARTS:
            (root / part).rename(folder / part)
    print(f"made  the device in {folder}; its values are made up", flush=True)


def is_there(folder: Path) -> bool:
    """Whether the folder holds a device; what the wizard alone left in it is none yet."""
    state = (path for place in _STATE for path in (folder / place).rglob("*"))
    return any((folder / part).exists() for part in _PARTS) or any(
        "wizard" not in path.name for path in state if not path.is_dir()
    )


def make(root: Path, version: str, update_url: str, now: datetime) -> None:
    """Write the records of the device that `root` is to be."""
    records = {
        "etc/hostname": "sample-device",
        "etc/platform/active-profile": "openclaw",
        "etc/platform/active-model": "gpt-4o",
        "etc/platform/version": version,
        "etc/platform/update-url": update_url,
        "home/agent/.openclaw/cost-ledger.jsonl": "\n".join(ledger(now)),
    }
    for name, content in records.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{content}\n", "utf-8")
    control(root, "cost", "set", "--daily", "5", "--monthly", "100")
    control(
        root, "model", "set", "--provider", "openai", "--key-from-stdin", "--yes", stdin=_NOT_A_KEY
    )


def ledger(now: datetime) -> Iterator[str]:
    """A month of messages, some dear, some days with none, and some today."""
    chance = random.Random(2026)
    for age in range(_DAYS - 1, -1, -1):
        began = (now - timedelta(days=age)).replace(hour=0, minute=0, second=0, microsecond=0)
        # Of today no more has gone by than until now.
        seconds = max(1, int((now - began).total_seconds())) if age == 0 else 86_400
        number = 9 if age == 0 else chance.choice((0, 4, 7, 9, 12, 16))
        for second in sorted(chance.randrange(seconds) for _ in range(number)):
            provider, model, usd = chance.choice(_MODELS)
            tokens = chance.randint(2_000, 60_000)
            message = {
                "timestamp": (began + timedelta(seconds=second)).strftime("%Y-%m-%dT%H:%M:%SZ"),
                "provider": provider,
                "model": model,
                "input_tokens": tokens * 4 // 5,
                "output_tokens": tokens // 5,
                "request_id": f"sample-{age}-{second}",
            }
            if usd is not None:
                message["cost_usd"] = round(usd * tokens / 1000, 4)
            yield json.dumps(message)


def control(root: Path, *words: str, stdin: str = "") -> None:
    """Have the control CLI do it; a failure ends the program."""
    subprocess.run(
        [Path(sys.executable).with_name("platformctl"), *words],
        env=os.environ | {"PLATFORM_ROOT": str(root)},
        input=stdin,
        text=True,
        stdout=subprocess.DEVNULL,
        timeout=_TIMEOUT_S,
        check=True,
    )


if __name__ == "__main__":
    main()
