"""The diagnostics archive to send along when asking for help, without secrets.

It is made in memory, from text that went through the redactor. The dashboard cannot read the
keys, so anything that looks like a code is masked too.
"""

from __future__ import annotations

import io
import json
import os
import re
import sys
import zipfile
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from importlib import metadata
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from platform_common.control_answers import to_json
from platform_common.errors import PlatformError
from platform_common.message import Sentence
from platform_common.redaction import MASK
from platform_common.version import VERSION
from pwa_app.context import Context
from pwa_app.control_client import CliQuery, Slice
from pwa_app.logs.journal import Extract, Journal, units_of
from pwa_app.overview import COST, DOCTOR, LIMITS, MODELS, STATUS
from pwa_app.overview import VERSION as VERSIONS
from pwa_app.settings import PWA_DATA
from pwa_app.system.archive_masking import Redact, cleaned, masked

_LOG_LINES = 1000
# All parts together stay below 4 MiB even if nothing can be compressed.
_PART_LIMIT_BYTES = 256 << 10
_LOG_LIMIT_BYTES = 2 << 20
_LONGEST_NAME = 63
# The range of times that a zip file can store.
_OLDEST = datetime(1980, 1, 1, tzinfo=UTC)
_NEWEST = datetime(2107, 12, 31, tzinfo=UTC)


class Part(Struct, frozen=True):
    """One file of the archive, what it holds, and the call that answers it, if one does."""

    name: str
    what: Sentence
    call: CliQuery[Any] | None = None


class Archive(NamedTuple):
    """An archive and its file name."""

    name: str
    data: bytes


PARTS: tuple[Part, ...] = (
    Part("README.txt", Sentence("What the file contains, and which parts could not be collected.")),
    Part("status.json", Sentence("The status of the gateway and the tunnel."), STATUS),
    Part("version.json", Sentence("Release, kernel, hardware and profiles."), VERSIONS),
    Part("limits.json", Sentence("What this device can do, and what it is too small for."), LIMITS),
    Part("cost.json", Sentence("The cost of each day, and the ten most expensive messages."), COST),
    Part("doctor.json", Sentence("The health checks and their results."), DOCTOR),
    Part("models.json", Sentence("The model providers, and which of them have a key."), MODELS),
    Part("software.json", Sentence("The versions of the dashboard, Python and its packages.")),
    Part("settings.json", Sentence("The names of the dashboard's settings that are set.")),
    Part("log.txt", Sentence("The newest 1,000 lines of the gateway's log.")),
)
_CALLS = {part.name: part.call for part in PARTS if part.call is not None}
LEFT_OUT: tuple[Sentence, ...] = (
    Sentence("Keys and passwords, and everything else in secrets.env"),
    Sentence("The first characters of keys, as the Keys page shows them"),
    Sentence("Values of settings"),
    Sentence("Chat history and subscriptions to notifications"),
    Sentence("Long codes of any kind: they are masked in the log because they may be keys"),
)


def archive(context: Context, device: str, now: datetime) -> Archive:
    """Collect all available parts at the time `now` (UTC); README.txt names the missing ones."""
    redact = context.secrets.redactor().redact
    answers = dict(zip(_CALLS, context.load_all(list(_CALLS.values())), strict=True))
    makers: dict[str, Callable[[], Any]] = {
        name: partial(_answer, name, found, sample=context.cli.sample)
        for name, found in answers.items()
    }
    makers |= {
        "software.json": _software,
        "settings.json": partial(_settings, context),
        "log.txt": partial(_log, context.journal, units_of(answers["status.json"]).active),
    }
    texts: dict[str, str] = {}
    problems: dict[str, str] = {}
    for name, make in makers.items():
        try:
            texts[name] = _text(name, make(), redact)
        except PlatformError as error:
            problems[name] = masked(error.message, redact)
    stem = f"diagnostics-{_safe(device)}-{now:%Y%m%dT%H%M%SZ}"
    sample = str(context.cli.sample or "")
    texts["README.txt"] = _read_me(_safe(device), now, problems, sample)
    return Archive(f"{stem}.zip", _zipped(stem, texts, now))


def _answer(name: str, found: Slice[Any], *, sample: Sentence | None) -> Any:
    if found.reason is not None and sample is None:
        raise PlatformError(str(found.reason))
    value = found.value
    if name == "models.json":
        value = [replace(model, masked_key_prefix="") for model in value]
    return to_json(value)


def _software() -> Any:
    packages = {found.name: found.version for found in metadata.distributions() if found.name}
    return {
        "dashboard": VERSION,
        "python": sys.version.split()[0],
        "kernel": os.uname().release,
        "machine": os.uname().machine,
        "packages": dict(sorted(packages.items(), key=lambda item: item[0].lower())),
    }


def _settings(context: Context) -> Any:
    settings = context.settings
    own = {
        "PLATFORM_ALLOWED_HOSTS": settings.allowed_hosts,
        "PLATFORM_JOURNAL_DIR": settings.journal_dir,
        PWA_DATA.variable: settings.paths.named(PWA_DATA.variable),
        "PWA_DEV_STUB": settings.dev_stub,
    }
    names = {name for name, value in own.items() if value} | set(settings.paths.variables())
    return {"set": sorted(names), "control_cli_found": settings.control_cli is not None}


def _log(journal: Journal, unit: str) -> str:
    """The newest lines of the log of `unit`, up to half of the limit."""
    lines: list[str] = []
    # A mask may be longer than what it hides.
    room = _LOG_LIMIT_BYTES // 2
    for entry in reversed(journal.read(Extract(unit, _LOG_LINES)).entries):
        when = entry.time()
        line = f"{when.isoformat() if when else '-'} {entry.level or '-':7} {entry.text}\n"
        room -= len(line.encode("utf-8", "replace"))
        if room < 0:
            break
        lines.append(line)
    return f"The log of {unit}\n" + "".join(reversed(lines))


def _text(name: str, tree: Any, redact: Redact) -> str:
    """The text of a part for the archive; raises `PlatformError` if it is too large."""
    found = cleaned(tree, redact)
    text = found if isinstance(found, str) else json.dumps(found, ensure_ascii=False, indent=2)
    limit = _LOG_LIMIT_BYTES if name == "log.txt" else _PART_LIMIT_BYTES
    if len(text.encode("utf-8", "replace")) > limit:
        raise PlatformError(f"It is larger than {limit:,} bytes")
    return text.rstrip("\n") + "\n"


def _safe(name: str) -> str:
    """The device's name, made safe for a file name."""
    return re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")[:_LONGEST_NAME] or "device"


def _read_me(device: str, now: datetime, problems: Mapping[str, str], sample: str) -> str:
    def lines(rows: Iterable[tuple[str, str]]) -> str:
        return "".join(f"  {name.ljust(14)} {text}\n" for name, text in rows)

    said = f"Diagnostics of {device}, {now:%Y-%m-%d %H:%M:%S} UTC, dashboard {VERSION}\n"
    if sample:
        said += f"\nThese are sample values, not the device's own: {sample}\n"
    said += "\nInside:\n"
    said += lines((part.name, str(part.what)) for part in PARTS if part.name not in problems)
    if problems:
        said += "\nNot available:\n" + lines(
            (part.name, problems[part.name]) for part in PARTS if part.name in problems
        )
    said += "\nLeft out:\n" + "".join(f"  {what}\n" for what in LEFT_OUT)
    return said + f"\nMasked text is shown as {MASK}. Check log.txt before you pass it on.\n"


def _zipped(stem: str, texts: Mapping[str, str], now: datetime) -> bytes:
    packed = io.BytesIO()
    # A device without a battery-backed clock starts in 1970, which a zip file cannot store.
    made = min(max(now, _OLDEST), _NEWEST).timetuple()[:6]
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as target:
        for part in PARTS:
            if part.name not in texts:
                continue
            entry = zipfile.ZipInfo(f"{stem}/{part.name}", made)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3
            entry.external_attr = 0o100644 << 16
            target.writestr(entry, texts[part.name].encode("utf-8", "replace"))
    return packed.getvalue()
