"""One table of manifests, good and bad, for the schema and the code together."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from typing import Any, Final

ABSENT: Final = object()
SHA256 = "0123456789abcdef" * 4


def entry(**changes: Any) -> dict[str, Any]:
    """A valid artefact in JSON."""
    return {
        "target": "qemu-x86_64",
        "profile": "khoj",
        "filename": "platform-khoj-qemu-x86_64-2026.11.1-stable.qcow2",
        "format": "qcow2",
        "size_bytes": 70_000,
        "sha256": SHA256,
        "minisig_url": "2026.11.1/platform-khoj-qemu-x86_64-2026.11.1-stable.qcow2.minisig",
        "url": "2026.11.1/platform-khoj-qemu-x86_64-2026.11.1-stable.qcow2",
    } | changes


def document(**changes: Any) -> dict[str, Any]:
    """A valid manifest in JSON, with every known member and one artefact."""
    return {
        "schema_version": 1,
        "release_version": "2026.11.1",
        "channel": "stable",
        "released_at": "2026-11-01T12:00:00Z",
        "tracker": {"khoj": "1.42.0"},
        "artefacts": [entry()],
        "wizard_version": "3.1",
        "chat_ui_version": "0.9",
    } | changes


def encode(value: Any) -> bytes:
    """`value` as JSON, as `render` would write it."""
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()


def many(count: int) -> list[dict[str, Any]]:
    """Valid entries with different targets and file names."""
    return [entry(target=f"t{index}", filename=f"f{index}") for index in range(count)]


@dataclass(frozen=True)
class Case:
    """A valid manifest in which `at` is `value`, and the beginnings of its problems, if any.

    `at` is a member of the manifest, or with a leading dot one of its artefact.
    """

    name: str
    at: str
    value: Any
    problems: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        changed = copy.deepcopy(document())
        holder = changed["artefacts"][0] if self.at.startswith(".") else changed
        name = self.at.removeprefix(".")
        if self.value is ABSENT:
            del holder[name]
        else:
            holder[name] = self.value
        return changed


_VERSION = "release_version: must be a version Y.M.D with an optional suffix, not "
_CHANNEL = "channel: must be one of dev, beta, stable, not "
_FORMAT = "artefacts[0].format: must be one of img.xz, qcow2, tar.gz, do-snapshot, oci, not "
_DATE = "released_at: must be an RFC 3339 date-time with an offset, not "
_SHA = "artefacts[0].sha256: must be 64 lower-case hexadecimal digits, not "
_SIZE = "artefacts[0].size_bytes: must be "
_NAME = "artefacts[0].filename: must be a plain file name "
_SIG = "artefacts[0].minisig_url: must be "
_URL = "artefacts[0].url: must be "

CASES = (
    Case("unchanged", "channel", "stable"),
    # release_version
    Case("version absent", "release_version", ABSENT, ("release_version: is missing",)),
    Case("version null", "release_version", None, ("release_version: must be a string, not null",)),
    Case(
        "version number",
        "release_version",
        2026.11,
        ("release_version: must be a string, not 2026.11",),
    ),
    Case("version LF", "release_version", "2026.11.1\n", (_VERSION + "'2026.11.1\\n'",)),
    # channel
    Case("channel absent", "channel", ABSENT, ("channel: is missing",)),
    Case("channel dev", "channel", "dev"),
    Case("channel beta", "channel", "beta"),
    Case("channel unknown", "channel", "nightly", (_CHANNEL + "'nightly'",)),
    Case("channel capital", "channel", "Stable", (_CHANNEL,)),
    Case("channel LF", "channel", "stable\n", (_CHANNEL + "'stable\\n'",)),
    Case("channel list", "channel", ["stable"], (_CHANNEL + '["stable"]',)),
    # released_at
    Case("date absent", "released_at", ABSENT, ("released_at: is missing",)),
    Case("date number", "released_at", 1793534400, ("released_at: must be a string, not 179353",)),
    Case("date impossible", "released_at", "2026-02-30T12:00:00Z", (_DATE + "'2026-02-30",)),
    # tracker and the informational versions
    Case("tracker absent", "tracker", ABSENT),
    Case("tracker empty", "tracker", {}),
    Case("tracker unknown profile", "tracker", {"": "x", "any thing": "y"}),
    Case("tracker list", "tracker", [], ("tracker: must be an object, not []",)),
    Case("tracker number", "tracker", {"khoj": 1}, ("tracker.khoj: must be a string, not 1",)),
    Case(
        "tracker odd name",
        "tracker",
        {"a\nb": None},
        ("tracker.'a\\nb': must be a string, not null",),
    ),
    Case("wizard version absent", "wizard_version", ABSENT),
    Case("wizard version empty", "wizard_version", ""),
    Case("wizard version null", "wizard_version", None, ("wizard_version: must be a string",)),
    Case("chat UI version number", "chat_ui_version", 1, ("chat_ui_version: must be a string",)),
    # artefacts
    Case("artefacts absent", "artefacts", ABSENT, ("artefacts: is missing",)),
    Case("artefacts empty", "artefacts", [], ("artefacts: must have at least one entry",)),
    Case("artefacts object", "artefacts", {}, ("artefacts: must be an array, not {}",)),
    Case("artefact null", "artefacts", [None], ("artefacts[0]: must be an object, not null",)),
    Case("eleven artefacts", "artefacts", many(11)),
    Case(
        "artefact empty",
        "artefacts",
        [{}],
        tuple(
            f"artefacts[0].{name}: is missing"
            for name in (
                *("filename", "format", "minisig_url", "profile"),
                *("sha256", "size_bytes", "target"),
            )
        ),
    ),
    Case(
        "two for one device",
        "artefacts",
        [entry(), entry(filename="other", url="other")],
        ("artefacts[1]: has the target, profile and format of artefacts[0]",),
    ),
    Case("two formats for one device", "artefacts", [entry(), entry(filename="b", format="oci")]),
    Case(
        "one file name twice",
        "artefacts",
        [*many(2), entry(target="t3", filename="f1")],
        ("artefacts[2].filename: is that of artefacts[1]",),
    ),
    # target and profile
    Case("target empty", ".target", "", ("artefacts[0].target: must not be empty",)),
    Case("target number", ".target", 5, ("artefacts[0].target: must be a string, not 5",)),
    Case("target like a path", ".target", "../x?#"),
    Case("profile absent", ".profile", ABSENT, ("artefacts[0].profile: is missing",)),
    Case("profile empty", ".profile", "", ("artefacts[0].profile: must not be empty",)),
    # format
    Case("format unknown", ".format", "iso", (_FORMAT + "'iso'",)),
    Case("format with dot", ".format", ".qcow2", (_FORMAT,)),
    Case("format snapshot", ".format", "do-snapshot"),
    # size_bytes
    Case("size zero", ".size_bytes", 0),
    Case("size huge", ".size_bytes", 10**30),
    Case("size negative", ".size_bytes", -1, (_SIZE + "0 or more, not -1",)),
    Case("size 1.0", ".size_bytes", 1.0, (_SIZE + "an integer, not 1.0",)),
    Case("size 1e3", ".size_bytes", 1e3, (_SIZE + "an integer, not 1000.0",)),
    Case("size 1.5", ".size_bytes", 1.5, (_SIZE + "an integer, not 1.5",)),
    Case("size true", ".size_bytes", True, (_SIZE + "an integer, not true",)),
    Case("size text", ".size_bytes", "70000", (_SIZE + "an integer, not '70000'",)),
    Case("size absent", ".size_bytes", ABSENT, ("artefacts[0].size_bytes: is missing",)),
    # sha256
    Case("sha256 short", ".sha256", SHA256[1:], (_SHA + f"'{SHA256[1:]}'",)),
    Case("sha256 LF", ".sha256", SHA256 + "\n", (_SHA,)),
    Case("sha256 null", ".sha256", None, ("artefacts[0].sha256: must be a string, not null",)),
    # filename
    Case("name with blank", ".filename", "a b"),
    Case("name of 255 bytes", ".filename", "a" * 255),
    Case("name of 256", ".filename", "a" * 256, ("artefacts[0].filename: must have at most",)),
    Case(
        "name of 300 bytes in 150 letters",
        ".filename",
        "ä" * 150,
        ("artefacts[0].filename: must have at most 255 bytes",),
    ),
    Case("name two dots inside", ".filename", "a..b", (_NAME,)),
    Case("name ESC", ".filename", "a\x1b[2J", (_NAME,)),
    Case("name DEL", ".filename", "a\x7f", (_NAME,)),
    # minisig_url and url
    Case("signature absent", ".minisig_url", ABSENT, ("artefacts[0].minisig_url: is missing",)),
    Case("signature https", ".minisig_url", "https://dl.example/f.minisig"),
    Case("signature file", ".minisig_url", "file:///srv/f.minisig"),
    Case("signature http", ".minisig_url", "http://dl.example/f", (_SIG + "relative, https: or",)),
    Case("signature s3", ".minisig_url", "s3://bucket/f", (_SIG + "relative, https: or file:",)),
    Case("signature script", ".minisig_url", "javascript:x", (_SIG + "relative, https: or",)),
    Case("signature empty", ".minisig_url", "", ("artefacts[0].minisig_url: must not be empty",)),
    Case("signature blank", ".minisig_url", "a b", (_SIG + "a URL, not 'a b'",)),
    Case("signature backslash", ".minisig_url", "..\\f", (_SIG + "a URL, not '..\\\\f'",)),
    Case("url absent", ".url", ABSENT),
    Case("url reference", ".url", f"oci://registry.example/a@sha256:{SHA256}"),
    Case("url snapshot", ".url", "do://snapshots/17"),
    Case("url null", ".url", None, ("artefacts[0].url: must be a string, not null",)),
    Case("url LF", ".url", "f\n", (_URL + "a URL, not 'f\\n'",)),
    Case("url bad host", ".url", "http://[::1/f", (_URL + "a URL, not 'http://[::1/f'",)),
    # unknown members
    Case("unknown member", "published_by", {"name": "x", "list": [1, 2.5, None, True]}),
    Case("unknown member of the artefact", ".sha512", "anything"),
)

_ONE = encode(document()).decode()


def _with(member: str) -> bytes:
    return _ONE.replace('"schema_version": 1,', f'"schema_version": 1, {member},').encode()


HOSTILE_JSON = {
    "nothing": (b"", "not valid JSON"),
    "blanks": (b" \n\t", "not valid JSON"),
    "NUL": (b"\0", "not valid JSON"),
    "text": (b"hello", "not valid JSON"),
    "HTML": (b"<!doctype html><p>404", "not valid JSON"),
    "cut": (_ONE[:-3].encode(), "not valid JSON"),
    "cut in a string": (_ONE[:30].encode(), "not valid JSON"),
    "trailing text": (_ONE.encode() + b"x", "not valid JSON"),
    "second document": (_ONE.encode() * 2, "not valid JSON"),
    "trailing NUL": (_ONE.encode() + b"\0", "not valid JSON"),
    "byte-order mark": (b"\xef\xbb\xbf" + _ONE.encode(), "byte-order mark"),
    "UTF-16 with mark": (_ONE.encode("utf-16"), "not UTF-8 (byte 0)"),
    "UTF-16 little": (_ONE.encode("utf-16-le"), "not valid JSON"),
    "UTF-16 big": (_ONE.encode("utf-16-be"), "not valid JSON"),
    "UTF-32": (_ONE.encode("utf-32"), "not UTF-8"),
    "Latin-1": (_with('"x": "ä"').decode().encode("latin-1"), "not UTF-8"),
    "overlong UTF-8": (_ONE.encode().replace(b"khoj", b"\xc0\xaf", 1), "not UTF-8"),
    "surrogate in UTF-8": (_ONE.encode().replace(b"khoj", b"\xed\xa0\x80", 1), "not UTF-8"),
    "lone high surrogate": (_with(r'"x": "\ud800"'), "half of a surrogate pair"),
    "lone low surrogate": (_with(r'"x": "\uDFFF"'), "half of a surrogate pair"),
    "surrogates swapped": (_with(r'"x": "\ude00\ud83d"'), "half of a surrogate pair"),
    "lone surrogate as name": (_with(r'"\ud800": 1'), "half of a surrogate pair"),
    "NaN": (_with('"x": NaN'), "NaN"),
    "Infinity": (_with('"x": Infinity'), "Infinity"),
    "minus Infinity": (_with('"x": [-Infinity]'), "-Infinity"),
    "1e999": (_with('"x": 1e999'), "too large"),
    "-1e999": (_with('"x": -1e999'), "too large"),
    "5,000 digits": (_with(f'"x": {"1" * 5000}'), "too many digits"),
    "5,000 digits below": (_with(f'"x": -{"1" * 5000}'), "too many digits"),
    "deep arrays": (b"[" * 100_000, "nested too deeply"),
    "deep objects": (b'{"a":' * 100_000, "nested too deeply"),
    "deep but whole": (_with(f'"x": {"[" * 100_000}{"]" * 100_000}'), "nested too deeply"),
    "as deep as Python goes": (_with(f'"x": {"[" * 960}{"]" * 960}'), "nested too deeply"),
    "member twice": (_with('"channel": "dev"'), "member 'channel' twice"),
    "member twice by an escape": (_with(r'"ch\u0061nnel": "dev"'), "member 'channel' twice"),
    "schema version twice": (_with('"schema_version": 2'), "member 'schema_version' twice"),
    "member of the artefact twice": (
        _ONE.replace('"size_bytes"', '"size_bytes": 1, "size_bytes"').encode(),
        "member 'size_bytes' twice",
    ),
    "single quotes": (_ONE.replace('"', "'").encode(), "not valid JSON"),
    "comment": (b"// x\n" + _ONE.encode(), "not valid JSON"),
    "comma at the end": (_ONE.replace('"0.9"', '"0.9",').encode(), "not valid JSON"),
    "raw LF in a string": (_with('"x": "a\nb"'), "not valid JSON"),
    "leading zero": (_with('"x": 01'), "not valid JSON"),
    "hexadecimal": (_with('"x": 0x10'), "not valid JSON"),
    "underscore": (_with('"x": 1_000'), "not valid JSON"),
    "foreign digits": (_with('"x": ٥٠'), "not valid JSON"),
    "capital True": (_with('"x": True'), "not valid JSON"),
    "an array": (b"[]", "must be an object, not an array"),
    "a string": (b'"x"', "must be an object, not a string"),
    "a number": (b"1", "must be an object, not an integer"),
    "null": (b"null", "must be an object, not null"),
}
