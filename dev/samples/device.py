"""Makes a small sample device in a folder, so that the dashboard has something to show.

A folder that holds a device, or anything in the places of one, is left as it is, but for
the address of the gateway in the profiles that were made here. What is made up says so: the
device's name, its key, and the ids of its messages.
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
from urllib.parse import urlsplit

from platform_common.errors import PlatformError
from platform_common.paths import PROFILES
from platform_common.records import profiles
from platform_common.resources import data_path
from platform_common.storage.atomic_write import write_atomic
from platformctl.toml_edit import with_values

_PARTS = ("home", "etc")
_STATE = ("run", "var")
_NOT_A_KEY = "sk-sample-this-is-not-a-real-key"
_DAYS = 30
_TIMEOUT_S = 60
_PROFILES = PROFILES.device.lstrip("/")
# The first line of a profile that was made here, to recognise it later.
_MARK = b"# As shipped, but its gateway is the stand-in of `make run`.\n"
# Provider, model, and dollars per thousand tokens; with None the rate sheet decides.
_MODELS = (
    ("openai", "gpt-4o", 0.009),
    ("openai", "gpt-4o-mini", None),
    ("anthropic", "claude-sonnet-4-6", 0.012),
)


def main() -> None:
    """Make the device in the folder given, with the release and the addresses given."""
    if len(sys.argv) != 5:
        raise SystemExit("usage: device.py FOLDER VERSION UPDATE_URL GATEWAY_URL")
    folder, version, update_url, gateway = Path(sys.argv[1]), *sys.argv[2:]
    if is_there(folder):
        print(f"kept  the device in {folder}", flush=True)
    else:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".device-") as scratch:
            root = Path(scratch)
            make(root, version, update_url, datetime.now(UTC))
            for part in _PARTS:
                (root / part).rename(folder / part)
        print(f"made  the device in {folder}; its values are made up", flush=True)
    if place_gateway(folder, gateway):
        print(f"      its profiles have their gateway at {gateway}", flush=True)


def is_there(folder: Path) -> bool:
    """Whether the folder holds a device; the wizard's own files alone do not make one."""
    state = (path for place in _STATE for path in (folder / place).rglob("*"))
    return any((folder / part).exists() for part in _PARTS) or any(
        "wizard" not in path.name for path in state if not path.is_dir()
    )


def make(root: Path, version: str, update_url: str, now: datetime) -> None:
    """Write the records of a device into `root`."""
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
    make_profiles(root)
    control(root, "cost", "set", "--daily", "5", "--monthly", "100")
    control(
        root, "model", "set", "--provider", "openai", "--key-from-stdin", "--yes", stdin=_NOT_A_KEY
    )


def make_profiles(root: Path) -> None:
    """Copy the shipped profiles to the device."""
    folder = root / _PROFILES
    folder.mkdir()
    for shipped in sorted(data_path(PROFILES.shipped).glob("*.toml")):
        (folder / shipped.name).write_bytes(_MARK + shipped.read_bytes())


def place_gateway(root: Path, url: str) -> bool:
    """Point the profiles that were made here to the gateway at `url`; whether there is any."""
    found = False
    for path in (root / _PROFILES).glob("*.toml"):
        data = path.read_bytes()
        if not data.startswith(_MARK):
            continue
        try:
            check = urlsplit(profiles.parse(data, path.stem).http_check).path
            changed = with_values(data, {("health", "http_check"): f"{url}{check}"})
        except PlatformError as error:
            print(f"left  {path}, which cannot be used: {error}", flush=True)
            continue
        write_atomic(path, changed, mode=0o644)
        found = True
    return found


def ledger(now: datetime) -> Iterator[str]:
    """A month of messages: some expensive, some days without any, and some today."""
    chance = random.Random(2026)
    for age in range(_DAYS - 1, -1, -1):
        began = (now - timedelta(days=age)).replace(hour=0, minute=0, second=0, microsecond=0)
        # A message of today must not be later than now.
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
    """Run the control CLI; a failure ends the program."""
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
