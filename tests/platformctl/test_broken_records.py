"""Records that are missing, unreadable or invalid, with the real program."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from platform_common.resources import data_path
from tests.support.devices import Device

_DEEP = 100_000
_DENIED = "Permission denied"


class _Record(NamedTuple):
    """A record: its path, the calls that need it, and invalid contents."""

    path: str
    calls: tuple[str, ...]
    good: bytes
    wrong_type: bytes
    place: str

    @property
    def is_toml(self) -> bool:
        """Whether the record is TOML rather than JSON."""
        return self.path.endswith("toml")


def _json(name: str, call: str, wrong: bytes, place: str, *, inside: bytes) -> _Record:
    good = b'{"target": "x", "providers": %s}' % inside
    return _Record(f"/etc/platform/{name}", (call,), good, wrong, place)


_VOICE = ("voice status", "voice enable --yes", "voice disable", "voice set-wake-word x")
RECORDS = {
    "catalogue": _json(
        "providers.json", "model list", b'{"providers": 1}', "providers: ", inside=b"[]"
    ),
    "rates": _json(
        "cost-defaults.json", "cost", b'{"providers": {"x": []}}', "providers.x: ", inside=b"{}"
    ),
    "limits": _json("limits.json", "limits", b'{"ram_mb": "1"}', "ram_mb: ", inside=b"[]"),
    "profile": _Record(
        "/etc/platform/profiles/khoj.toml",
        ("profile show khoj",),
        good=b'[profile]\ndisplay_name = "K"\n',
        wrong_type=b"[service]\nports = 80\n",
        place="service.ports: ",
    ),
    "caps": _Record(
        "/etc/platform/cost.toml",
        ("cost", "cost set --daily 1"),
        good=b"[caps]\ndaily_usd = 5.5\n",
        wrong_type=b"[caps]\ndaily_usd = nan\n",
        place="caps.daily_usd: must be",
    ),
    "voice": _Record(
        "/etc/platform/voice.toml",
        _VOICE,
        good=b"[voice]\nenabled = false\n",
        wrong_type=b'[stt]\nbinary = "x"\n',
        place="stt.binary: must be an absolute path",
    ),
}
_LEDGER = _Record("/home/agent/.khoj/cost-ledger.jsonl", ("cost",), b"{}\n", b"", "")


CONTENTS: dict[str, tuple[Callable[[_Record], bytes], str]] = {
    "truncated": (lambda record: record.good[:-9], "not valid"),
    "latin-1": (lambda record: record.good + b"# \xe9", "not UTF-8"),
    "utf-16": (lambda record: record.good.decode().encode("utf-16"), "not UTF-8"),
    "byte-order-mark": (
        lambda record: b"\xef\xbb\xbf" + record.good,
        "starts with a byte-order mark",
    ),
    "duplicate-member": (
        lambda record: b"a = 1\na = 2" if record.is_toml else b'{"a": 1, "a": 2}',
        "",
    ),
    "wrong-type": (lambda record: record.wrong_type, ""),
    "huge": (lambda record: record.good + b" " * (1 << 20), "is larger than 1,048,576 bytes"),
    "deep": (lambda record: b"a = " * record.is_toml + b"[" * _DEEP, "nested too deeply"),
    "nul": (lambda record: record.good.replace(b"=", b"\0").replace(b":", b"\0"), "not valid"),
}
PLANTED = {
    "fifo": "is not a regular file",
    "folder": "is not a regular file",
    "link": "is a symbolic link, not a regular file",
    "hard-link": "is a hard link",
    "unreadable": _DENIED,
}


def _assert_error_names_file(device: Device, record: _Record, path: Path, words: str) -> None:
    """Check that calls that need the record fail with a sentence naming it, and others work."""
    if record.is_toml:
        device.put("/etc/platform/limits.json", data_path("limits/rpi5.json").read_bytes())
    # Root can read files of any mode, so this takes a process without that capability.
    call = partial(device.ctl, privileged=False) if words == _DENIED else device.call
    for needing in record.calls:
        ended = call(*needing.split())
        assert (ended.returncode, ended.stdout) == (1, "")
        line = ended.stderr.splitlines()[0]
        assert line.startswith(f"error: {path}")
        assert words in line
        assert len(ended.stderr) < 1000
    other = call("limits") if record.is_toml else call("profile", "list")
    assert (other.returncode, other.stderr) == (0, "")


@pytest.mark.parametrize("kind", CONTENTS)
@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
def test_a_record_with_bad_content_is_refused_with_its_path_and_kept(
    device: Device, record: _Record, kind: str
) -> None:
    content, words = CONTENTS[kind]
    path = device.put(record.path, content(record))
    _assert_error_names_file(device, record, path, record.place if kind == "wrong-type" else words)
    assert path.read_bytes() == content(record)


@pytest.mark.parametrize("kind", PLANTED)
@pytest.mark.parametrize("record", [*RECORDS.values(), _LEDGER], ids=[*RECORDS, "ledger"])
def test_fs_07_anything_but_a_readable_regular_file_is_refused_with_its_path(
    device: Device, record: _Record, kind: str
) -> None:
    if record == _LEDGER:
        device.put("/etc/platform/active-profile", "khoj\n")
    path = device.path(record.path)
    real = path.with_name("real")
    match kind:
        case "fifo":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "unreadable":
            device.put(record.path, record.good, mode=0)
        case _:
            real.write_bytes(record.good)
            (path.symlink_to if kind == "link" else path.hardlink_to)(real)
    _assert_error_names_file(device, record, path, PLANTED[kind])


@pytest.mark.parametrize(
    ("variable", "call"),
    [
        ("PLATFORM_PROVIDERS_FILE", ("model", "list")),
        ("PLATFORM_COST_DEFAULTS", ("cost",)),
        ("PLATFORM_LIMITS_FILE", ("limits",)),
        ("PLATFORM_PROFILES_DIR", ("profile", "list")),
    ],
)
def test_a_variable_that_names_a_missing_file_is_an_error(
    device: Device, variable: str, call: tuple[str, ...]
) -> None:
    ended = device.call(*call, env={variable: str(device.root / "none")})
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.lower().startswith(f"error: {device.root}/none: ".lower())
    assert "no such file" in ended.stderr.lower()


@pytest.mark.parametrize("name", ["limits.json", "active-profile", "version", "update-url"])
def test_the_versions_are_shown_whatever_is_broken(device: Device, name: str) -> None:
    path = device.put(f"/etc/platform/{name}", b"\xff\n")
    ended = device.call("version", "--json")
    assert ended.returncode == 0
    assert len(json.loads(ended.stdout)["profiles"]) == 3
    assert ended.stderr.startswith(f"warning: {path}: ")
    device.put("/etc/platform/profiles", "")
    without = device.call("version", "--json")
    assert (without.returncode, json.loads(without.stdout)["profiles"]) == (0, [])
    assert "Not a directory" in without.stderr


def test_invalid_records_everywhere_cause_no_traceback(device: Device) -> None:
    for name in (
        *("providers.json", "cost-defaults.json", "limits.json", "cost.toml", "voice.toml"),
        *("active-profile", "active-provider", "version", "update-url", "profiles/x.toml"),
    ):
        device.put(f"/etc/platform/{name}", b"\0\xff[")
    for call in ("version", "status", "limits", "cost", "profile list", "model list"):
        ended = device.ctl(*call.split(), "--json")
        assert ended.returncode in (0, 1)
        assert "Traceback" not in ended.stderr
        assert ended.stderr


def test_a_folder_without_permission_is_an_error_and_not_a_reason_for_the_default(
    device: Device,
) -> None:
    path = device.put("/etc/platform/limits.json", "{}")
    path.parent.chmod(0)
    ended = device.ctl("limits", "--json", privileged=False)
    path.parent.chmod(0o755)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == f"error: {path}: Permission denied\n"


def test_a_mistyped_root_is_reported(device: Device) -> None:
    missing = device.root / "slip"
    ended = device.call("cost", "--json", env={"PLATFORM_ROOT": str(missing)})
    assert ended.returncode == 0
    assert ended.stderr == f"warning: PLATFORM_ROOT is {missing}, but there is no such folder\n"
    assert not missing.exists()
