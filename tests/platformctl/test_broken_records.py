"""Records that are missing, unreadable or not what they should be, through the real program."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.devices import Device

_DEEP = 100_000
_DENIED = "Permission denied"


class _Record(NamedTuple):
    """A record: where it lies, the call that needs it, and one that does not."""

    path: str
    call: tuple[str, ...]
    other: tuple[str, ...]
    good: bytes
    duplicate: bytes
    wrong_type: bytes
    place: str


def _json(name: str, call: tuple[str, ...], wrong: tuple[bytes, str], *, inside: bytes) -> _Record:
    return _Record(
        path=f"/etc/platform/{name}",
        call=call,
        other=("profile", "list"),
        good=b'{"target": "x", "providers": %s}' % inside,
        duplicate=b'{"a": 1, "a": 2}',
        wrong_type=wrong[0],
        place=wrong[1],
    )


RECORDS = {
    "catalogue": _json(
        "providers.json", ("model", "list"), (b'{"providers": 1}', "providers: "), inside=b"[]"
    ),
    "rates": _json(
        "cost-defaults.json",
        ("cost",),
        (b'{"providers": {"x": []}}', "providers.x: "),
        inside=b"{}",
    ),
    "limits": _json("limits.json", ("limits",), (b'{"ram_mb": "1"}', "ram_mb: "), inside=b"[]"),
    "profile": _Record(
        path="/etc/platform/profiles/khoj.toml",
        call=("profile", "show", "khoj"),
        other=("limits",),
        good=b'[profile]\ndisplay_name = "K"\n',
        duplicate=b"[profile]\n[profile]\n",
        wrong_type=b"[service]\nports = 80\n",
        place="service.ports: ",
    ),
}


CONTENTS: dict[str, tuple[Callable[[_Record], bytes], str]] = {
    "empty": (lambda _: b"", ""),
    "truncated": (lambda record: record.good[:-9], "not valid"),
    "latin-1": (lambda record: record.good + b"# \xe9", "not UTF-8"),
    "utf-16": (lambda record: record.good.decode().encode("utf-16"), "not UTF-8"),
    "byte-order-mark": (
        lambda record: b"\xef\xbb\xbf" + record.good,
        "starts with a byte-order mark",
    ),
    "duplicate-member": (lambda record: record.duplicate, ""),
    "wrong-type": (lambda record: record.wrong_type, ""),
    "huge": (lambda record: record.good + b" " * (1 << 20), "is larger than 1,048,576 bytes"),
    "deep": (
        lambda record: b"a = " * record.path.endswith("toml") + b"[" * _DEEP,
        "nested too deeply",
    ),
    "nul": (lambda record: record.good.replace(b"=", b"\0").replace(b":", b"\0"), "not valid"),
}
PLANTED = {
    "fifo": "is not a regular file",
    "folder": "is not a regular file",
    "link": "is a symbolic link, not a regular file",
    "hard-link": "is a hard link",
    "unreadable": _DENIED,
}


@pytest.fixture(params=RECORDS)
def record(request: pytest.FixtureRequest) -> _Record:
    """Each record in turn."""
    return RECORDS[request.param]


def _assert_refused(device: Device, record: _Record, path: Path, words: str) -> None:
    """The call that needs it: one sentence with the file, exit 1; the other call: as ever."""
    # Who may read anything is hindered by no mode, so that takes a process.
    call = partial(device.ctl, privileged=False) if words == _DENIED else device.call
    ended = call(*record.call, "--json")
    assert (ended.returncode, ended.stdout) == (1, "")
    line = ended.stderr.splitlines()[0]
    assert line.startswith(f"error: {path}")
    assert words in line
    assert len(ended.stderr) < 1000
    other = call(*record.other, "--json")
    if record.path.endswith("json"):
        assert (other.returncode, other.stderr) == (0, "")
    assert json.loads(other.stdout)


@pytest.mark.parametrize("kind", CONTENTS)
def test_a_record_of_bad_content_is_refused_with_its_file(
    device: Device, record: _Record, kind: str
) -> None:
    content, words = CONTENTS[kind]
    path = device.put(record.path, content(record))
    place = record.place if kind == "wrong-type" else words
    _assert_refused(device, record, path, place)


@pytest.mark.parametrize("kind", PLANTED)
def test_fs_07_what_is_no_readable_regular_file_is_refused_with_its_path(
    device: Device, record: _Record, kind: str
) -> None:
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
    _assert_refused(device, record, path, PLANTED[kind])


@pytest.mark.parametrize(
    ("variable", "call"),
    [
        ("PLATFORM_PROVIDERS_FILE", ("model", "list")),
        ("PLATFORM_COST_DEFAULTS", ("cost",)),
        ("PLATFORM_LIMITS_FILE", ("limits",)),
        ("PLATFORM_PROFILES_DIR", ("profile", "list")),
    ],
)
def test_a_variable_that_names_nothing_is_not_passed_over(
    device: Device, variable: str, call: tuple[str, ...]
) -> None:
    ended = device.call(*call, env={variable: str(device.root / "none")})
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.lower().startswith(f"error: {device.root}/none: ".lower())
    assert "no such file" in ended.stderr.lower()


@pytest.mark.parametrize("name", ["limits.json", "active-profile", "version", "update-url"])
def test_the_versions_are_told_whatever_is_broken(device: Device, name: str) -> None:
    path = device.put(f"/etc/platform/{name}", b"\xff\n")
    ended = device.call("version", "--json")
    assert ended.returncode == 0
    assert len(json.loads(ended.stdout)["profiles"]) == 3
    assert ended.stderr.startswith(f"warning: {path}: ")
    device.put("/etc/platform/profiles", "")
    without = device.call("version", "--json")
    assert (without.returncode, json.loads(without.stdout)["profiles"]) == (0, [])
    assert "Not a directory" in without.stderr


def test_a_whole_device_of_rubbish_ends_no_call_in_a_traceback(device: Device) -> None:
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


def test_a_folder_that_may_not_be_entered_does_not_bring_back_the_default(device: Device) -> None:
    path = device.put("/etc/platform/limits.json", "{}")
    path.parent.chmod(0)
    try:
        ended = device.ctl("limits", "--json", privileged=False)
    finally:
        path.parent.chmod(0o755)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == f"error: {path}: Permission denied\n"


def test_a_slip_in_the_name_of_the_root_is_told(device: Device) -> None:
    missing = device.root / "slip"
    ended = device.call("cost", "--json", env={"PLATFORM_ROOT": str(missing)})
    assert ended.returncode == 0
    assert ended.stderr == f"warning: There is no folder {missing}, which PLATFORM_ROOT names\n"
    assert not missing.exists()
