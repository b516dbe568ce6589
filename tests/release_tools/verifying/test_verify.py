"""`release-tools verify`: what it finds, in which order, and how it reports it."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from release_tools.signing.keys import load_public_key
from release_tools.verifying.report import ReleaseReport
from release_tools.verifying.verify import VerifyRequest, verify_location
from tests.support import minisign_program
from tests.support.raw_server import RawServer, Request, response, serving
from tests.support.releases import VERSION, KeyPair, Tools, pseudo_random
from tests.support.resigning import change_manifest, sign_bytes, sign_file

IMAGE = f"platform-openclaw-rpi5-{VERSION}-stable.img.xz"
DISK = f"platform-khoj-qemu-x86_64-{VERSION}-stable.qcow2"
REFERENCE = f"platform-hermes-fly-machines-{VERSION}-stable.oci"


@pytest.fixture
def channel(signed_release: Path) -> Path:
    """The channel directory of a signed release."""
    return signed_release / "stable"


@pytest.fixture
def release(channel: Path) -> Path:
    """The folder of the release's artefacts."""
    return channel / VERSION


def verify(location: str | Path, key_pair: KeyPair, **options: Any) -> ReleaseReport:
    """Verify the one release at `location` in this process."""
    keys = [load_public_key(str(key_pair.public))]
    request = VerifyRequest(str(location), keys, **options)
    (report,) = verify_location(request, lambda total: lambda count: None)
    return report


def codes(report: ReleaseReport) -> list[str]:
    """The codes of the errors, without those of warnings."""
    return sorted(finding.code for finding in report.errors)


def served(dist: Path) -> dict[str, bytes]:
    """The files of a distribution, by their path on a server."""
    files = (path for path in dist.rglob("*") if path.is_file())
    return {f"/{path.relative_to(dist)}": path.read_bytes() for path in files}


def _artefact(document: dict[str, Any], filename: str) -> dict[str, Any]:
    (entry,) = (entry for entry in document["artefacts"] if entry["filename"] == filename)
    found: dict[str, Any] = entry
    return found


# A good release.


@pytest.mark.parametrize(
    "place", ["dist", "dist/", "dist/stable", "dist/stable/manifest.json", "file:", "file root"]
)
def test_a_good_release_is_trusted(
    place: str, signed_release: Path, tools: Tools, key_pair: KeyPair
) -> None:
    urls = {
        "file:": (signed_release / "stable/manifest.json").as_uri(),
        "file root": signed_release.as_uri(),
    }
    args = (urls.get(place, place), "-p", key_pair.public)
    done = tools("verify", *args)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(
        r"TRUSTED: release 2026\.11\.1 \(stable\), 3 of 3 artefacts read,"
        r" signed by [0-9A-F]{16}",
        done.stdout.splitlines()[-1],
    )
    document = json.loads(tools("verify", *args, "--json").stdout)
    assert (document["ok"], document["exit_code"], document["findings"]) == (True, 0, [])
    (release,) = document["releases"]
    assert (release["ok"], release["release_version"]) == (True, VERSION)
    assert [artefact["status"] for artefact in release["artefacts"]] == ["verified"] * 3


# Every finding, not only the first.


def _break_six_things(channel: Path, key_pair: KeyPair) -> None:
    release = channel / VERSION
    image = bytearray((release / IMAGE).read_bytes())
    image[1000] ^= 1
    (release / IMAGE).write_bytes(image)  # E_HASH and E_SIG
    (release / f"{DISK}.minisig").unlink()  # E_MISSING
    (release / DISK).write_bytes(b"short")  # E_SIZE
    (release / "stranger.txt").write_bytes(b"?")  # E_UNEXPECTED
    sign_file(release / REFERENCE, key_pair, "file:other.oci\trelease:2026.11.1")  # E_COMMENT


SIX = {
    *(("E_COMMENT", f"{REFERENCE}.minisig"), ("E_HASH", IMAGE), ("E_SIG", IMAGE)),
    *(
        ("E_MISSING", f"{DISK}.minisig"),
        ("E_SIZE", DISK),
        ("E_UNEXPECTED", "2026.11.1/stranger.txt"),
    ),
}


def test_six_faults_are_six_findings_for_people_and_for_programs(
    channel: Path, tools: Tools, key_pair: KeyPair
) -> None:
    _break_six_things(channel, key_pair)
    done = tools("verify", "dist", "-p", key_pair.public)
    assert done.returncode == 1
    assert set(re.findall(r"^  (E_[A-Z]+) ([^ ]+): ", done.stdout, re.MULTILINE)) == SIX
    assert done.stdout.splitlines()[-1].startswith("DO NOT TRUST: 6 findings, the first E_UNEX")
    done = tools("verify", "dist", "-p", key_pair.public, "--json")
    document = json.loads(done.stdout)
    assert (done.returncode, document["ok"], document["exit_code"]) == (1, False, 1)
    assert {(one["code"], one["where"]) for one in document["findings"]} == SIX
    assert document["verdict"].startswith("DO NOT TRUST: 6 findings")


def test_a_failed_check_outweighs_what_could_not_be_read(
    release: Path, signed_release: Path, tools: Tools, key_pair: KeyPair
) -> None:
    (release / IMAGE).unlink()
    (finding,) = verify(signed_release, key_pair).errors
    assert (finding.code, finding.where) == ("E_MISSING", IMAGE)
    (release / IMAGE).mkdir()
    unreadable = tools("verify", "dist", "-p", key_pair.public)
    assert (unreadable.returncode, "E_UNREADABLE" in unreadable.stdout) == (5, True)
    (release / DISK).write_bytes(b"short")
    assert tools("verify", "dist", "-p", key_pair.public).returncode == 1


def _update(changes: dict[str, Any], document: dict[str, Any]) -> None:
    document.update(changes)


def test_an_invalid_signed_manifest_has_its_own_exit_code(
    channel: Path, tools: Tools, key_pair: KeyPair
) -> None:
    wrong: list[tuple[dict[str, Any], int, list[str]]] = [
        ({"artefacts": [], "channel": "nightly"}, 3, ["E_SCHEMA", "E_SCHEMA"]),
        ({"schema_version": 2}, 4, ["E_SCHEMA_VERSION"]),
    ]
    for changes, code, words in wrong:
        change_manifest(channel, key_pair, partial(_update, changes))
        done = tools("verify", "dist", "-p", key_pair.public, "--json")
        document = json.loads(done.stdout)
        assert (done.returncode, document["exit_code"]) == (code, code)
        assert [finding["code"] for finding in document["findings"]] == words


def test_rel_06_a_bad_signature_in_a_folder_stops_before_the_manifest_is_parsed(
    channel: Path, key_pair: KeyPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    (channel / "manifest.json").write_bytes(b"[" * 100_000)
    pauses: list[float] = []
    monkeypatch.setattr("release_tools.verifying.verify.time.sleep", pauses.append)
    report = verify(channel, key_pair)
    assert (codes(report), report.manifest, pauses) == (["E_SIG"], None, [])


# Artefacts: REL-12, REL-13, REL-14, REL-16.


def test_rel_12_one_bit_changed_anywhere_is_found(
    release: Path, signed_release: Path, key_pair: KeyPair
) -> None:
    good = (release / DISK).read_bytes()
    places = random.Random(1).sample(range(len(good) * 8), 100)
    for place in places:
        changed = bytearray(good)
        changed[place // 8] ^= 1 << place % 8
        (release / DISK).write_bytes(changed)
        report = verify(signed_release, key_pair, target="qemu-x86_64")
        assert codes(report) == ["E_HASH", "E_SIG"], place


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda data: data[:-1], ["E_SIZE"]),
        (lambda data: data + b"\0", ["E_SIZE"]),
        (lambda data: b"", ["E_SIZE"]),
        (lambda data: bytes(len(data)), ["E_HASH", "E_SIG"]),
    ],
    ids=["cut", "longer", "empty", "zeros"],
)
def test_rel_12_changed_bytes_are_found(
    change: Callable[[bytes], bytes], found: list[str], release: Path, key_pair: KeyPair
) -> None:
    (release / DISK).write_bytes(change((release / DISK).read_bytes()))
    assert codes(verify(release.parent, key_pair)) == found


def test_rel_13_a_good_artefact_of_another_name_or_an_older_release_is_found(
    release: Path, signed_release: Path, key_pair: KeyPair
) -> None:
    # Of the same size and name, with a good signature that names its own release.
    (release / DISK).write_bytes(pseudo_random(70_000, "older"))
    comment = f"timestamp:1\tfile:{DISK}\thashed\trelease:2026.10.1\tchannel:stable"
    sign_file(release / DISK, key_pair, comment)
    assert codes(verify(signed_release, key_pair)) == ["E_COMMENT", "E_HASH"]
    for suffix in ("", ".minisig"):
        shutil.copy(release / f"{DISK}{suffix}", release / f"{IMAGE}{suffix}")
    image = verify(signed_release, key_pair, target="rpi5")
    assert codes(image) == ["E_COMMENT", "E_COMMENT", "E_SIZE"]


def test_rel_14_an_endless_artefact_is_cut_off(
    signed_release: Path, tools: Tools, key_pair: KeyPair
) -> None:
    sent = [0]

    def endless(request: Request, connection: socket.socket) -> None:
        connection.sendall(response(length=-1))
        while True:
            connection.sendall(bytes(1 << 16))
            sent[0] += 1 << 16

    with serving(served(signed_release), {f"/stable/{VERSION}/{IMAGE}": endless}) as server:
        done = tools("verify", server.url, "-p", key_pair.public, timeout=20)
    assert (done.returncode, "E_SIZE" in done.stdout) == (1, True)
    # The buffers of the kernel come on top of the one buffer that we read.
    assert sent[0] < 32 << 20


def test_rel_14_a_size_that_differs_from_the_server_is_found(
    channel: Path, signed_release: Path, key_pair: KeyPair
) -> None:
    size = {"size_bytes": 10**15}
    change_manifest(channel, key_pair, lambda found: _artefact(found, IMAGE).update(size))
    with serving(served(signed_release)) as server:
        assert codes(verify(server.url, key_pair)) == ["E_SIZE"]


_ELSEWHERE = {
    "a file of this machine": ("url", "file:///etc/hostname"),
    "a signature on this machine": ("minisig_url", "file:///etc/hostname"),
    "out of the folder": ("url", f"../beta/{IMAGE}"),
    "a signature out of the folder": ("minisig_url", f"{VERSION}/%2e%2e/../../x.minisig"),
}


@pytest.mark.parametrize(("member", "url"), _ELSEWHERE.values(), ids=_ELSEWHERE)
def test_rel_16_a_manifest_from_a_server_cannot_lead_elsewhere(
    member: str, url: str, channel: Path, signed_release: Path, key_pair: KeyPair
) -> None:
    change_manifest(channel, key_pair, lambda found: _artefact(found, IMAGE).update({member: url}))
    with serving(served(signed_release)) as server:
        report = verify(f"{server.url}/stable", key_pair)
        assert "E_URL" in codes(report)
        assert not [path for path in server.paths if "beta" in path or ".." in path]


def test_rel_16_another_web_server_may_hold_an_artefact_and_a_registry_a_reference(
    channel: Path, release: Path, signed_release: Path, tools: Tools, key_pair: KeyPair
) -> None:
    with serving({"/image": (release / IMAGE).read_bytes()}) as elsewhere:
        url = f"{elsewhere.url}/image"
        change_manifest(channel, key_pair, lambda found: _artefact(found, IMAGE).update(url=url))
        with serving(served(signed_release)) as server:
            done = tools("verify", server.url, "-p", key_pair.public)
        assert done.returncode == 0, done.stdout
        assert elsewhere.paths == ["/image"]
    # A reference is shown and never fetched: no server of this test could answer.
    assert f"= oci://registry.example/appliance@sha256:{'a' * 64}" in done.stdout


def test_a_reference_that_contradicts_its_entry_is_found(
    channel: Path, signed_release: Path, key_pair: KeyPair
) -> None:
    url = "oci://elsewhere/x@sha256:00"
    change_manifest(channel, key_pair, lambda found: _artefact(found, REFERENCE).update(url=url))
    assert codes(verify(signed_release, key_pair)) == ["E_REFERENCE"]


# The manifest: REL-05, REL-06, REL-11, policy.


def test_rel_05_a_manifest_of_another_channel_is_refused_before_any_artefact(
    signed_release: Path, key_pair: KeyPair
) -> None:
    files = {
        path.replace("/stable/", "/beta/"): data for path, data in served(signed_release).items()
    }
    with serving(files) as server:
        report = verify(f"{server.url}/beta", key_pair)
        assert codes(report) == ["E_CHANNEL"]
        assert server.paths == ["/beta/manifest.json", "/beta/manifest.json.minisig"]


def _stale_signature(dist: Path, key_pair: KeyPair, times: int) -> RawServer:
    """A server that sends the signature of another release with the manifest, `times` times."""
    files = served(dist)
    path = "/stable/manifest.json.minisig"
    stale = sign_bytes(b"the manifest before", key_pair, "file:manifest.json")

    def answer(request: Request, connection: socket.socket) -> None:
        early = server.paths.count(path) <= times
        connection.sendall(response(stale if early else files[path]))

    server = serving(files, {path: answer})
    return server


@pytest.mark.parametrize(("times", "found"), [(1, []), (2, []), (3, ["E_SIG"])])
def test_rel_06_a_manifest_and_signature_that_do_not_match_are_fetched_again_twice(
    times: int,
    found: list[str],
    signed_release: Path,
    key_pair: KeyPair,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("release_tools.verifying.verify.time.sleep", pauses.append)
    with _stale_signature(signed_release, key_pair, times) as server:
        report = verify(f"{server.url}/stable", key_pair)
    assert codes(report) == found
    assert pauses == [1.0, 3.0][:times]
    assert server.paths.count("/stable/manifest.json") == min(times, 2) + 1


def test_each_file_of_a_release_at_a_root_url_is_fetched_once(
    signed_release: Path, tools: Tools, key_pair: KeyPair
) -> None:
    with serving(served(signed_release)) as server:
        assert verify(server.url, key_pair).errors == []
        tried = ["/manifest.json", "/dev/manifest.json", "/beta/manifest.json"]
        assert sorted(server.paths) == sorted([*tried, *served(signed_release)])
        server.requests.clear()
        assert tools("inspect", server.url).returncode == 0
        assert server.paths == [*tried, "/stable/manifest.json"]


def test_a_channel_that_cannot_be_read_does_not_hide_the_others(
    signed_release: Path, key_pair: KeyPair
) -> None:
    def refuse(request: Request, connection: socket.socket) -> None:
        connection.sendall(response(status="500 Oops"))

    keys = [load_public_key(str(key_pair.public))]
    with serving(served(signed_release), {"/beta/manifest.json": refuse}) as server:
        request = VerifyRequest(server.url, keys)
        beta, stable = verify_location(request, lambda total: lambda count: None)
    assert (codes(beta), codes(stable)) == (["E_UNREADABLE"], [])


def test_rel_05_a_release_of_another_channel_than_requested_or_linked_is_refused(
    signed_release: Path, tools: Tools, key_pair: KeyPair
) -> None:
    (signed_release / "beta").symlink_to("stable")
    for args in (["dist/beta"], ["dist/beta/manifest.json"], ["dist/stable", "--channel", "beta"]):
        done = tools("verify", *args, "-p", key_pair.public)
        assert done.returncode == 1
        assert "DO NOT TRUST: 1 finding, the first E_CHANNEL" in done.stdout


@pytest.mark.parametrize(
    "selection",
    [{"target": "rpi4"}, {"profile": "nobody"}, {"target": "rpi5", "profile": "khoj"}],
    ids=["target", "profile", "both"],
)
def test_rel_11_a_release_without_an_artefact_for_the_device_fails(
    selection: dict[str, str], signed_release: Path, tools: Tools, key_pair: KeyPair
) -> None:
    options = [word for name, value in selection.items() for word in (f"--{name}", value)]
    for more in ([], ["--manifest-only"]):
        done = tools("verify", "dist", "-p", key_pair.public, *options, *more)
        assert done.returncode == 1
        assert f"the release has no artefact for {', '.join(selection.values())}" in done.stdout


@pytest.mark.parametrize(
    ("options", "read"),
    [
        (("--target", "rpi5"), [IMAGE]),
        (("--profile", "khoj"), [DISK]),
        (("--profile", "hermes", "--target", "fly-machines"), [REFERENCE]),
        (("--manifest-only",), []),
    ],
    ids=["target", "profile", "both", "manifest only"],
)
def test_only_selected_artefacts_are_read(
    options: tuple[str, ...], read: list[str], signed_release: Path, tools: Tools, key_pair: KeyPair
) -> None:
    for path in (signed_release / "stable" / VERSION).iterdir():
        if path.name.removesuffix(".minisig") not in read:
            path.unlink()
    done = tools("verify", "dist", "-p", key_pair.public, "--json", *options)
    document = json.loads(done.stdout)
    assert (done.returncode, document["findings"]) == (0, [])
    artefacts = document["releases"][0]["artefacts"]
    assert [a["filename"] for a in artefacts if a["status"] == "verified"] == read
    scope = f"{len(read)} of 3 artefacts read" if read else "the manifest only"
    assert scope in document["verdict"]


def test_an_old_manifest_is_a_warning_unless_an_age_or_a_version_is_requested(
    channel: Path, tools: Tools, key_pair: KeyPair
) -> None:
    change_manifest(
        channel, key_pair, lambda document: document.update(released_at="2024-01-01T00:00:00Z")
    )
    for options, code, said in (
        ([], 0, "E_FREEZE warning"),
        (["--max-age", "30"], 1, "over the limit of 30"),
        (["--not-older-than", VERSION], 0, "TRUSTED"),
        (["--not-older-than", "2026.11.2"], 1, "E_ROLLBACK"),
    ):
        done = tools("verify", "dist", "-p", key_pair.public, *options)
        assert (done.returncode, said in done.stdout) == (code, True)


def test_pub_03_an_unsigned_release_is_refused(
    signed_release: Path, tools: Tools, key_pair: KeyPair
) -> None:
    manifest = signed_release / "stable/manifest.json"
    unsigned = manifest.rename(manifest.with_name("manifest.json.unsigned"))
    for place in ("dist", "dist/stable", unsigned, "http://127.0.0.1:9/manifest.json.unsigned"):
        done = tools("verify", place, "-p", key_pair.public)
        assert (done.returncode, done.stdout) == (1, "")
        assert "is not signed and must not be trusted" in done.stderr
    unsigned.rename(manifest)
    manifest.with_name("manifest.json.minisig").unlink()
    done = tools("verify", "dist", "-p", key_pair.public)
    assert (done.returncode, "E_MISSING" in done.stdout) == (1, True)


# The signature file: REL-19, REL-20, REL-21.


Shape = Callable[[Path, KeyPair], object]


def _with_signature(change: Callable[[bytes], bytes]) -> Shape:
    return lambda path, key_pair: path.write_bytes(change(path.read_bytes()))


def _instead(make_it: Callable[[Path], object]) -> Shape:
    def replace(path: Path, key_pair: KeyPair) -> None:
        path.unlink()
        make_it(path)

    return replace


def _link(path: Path, key_pair: KeyPair) -> None:
    path.symlink_to(path.rename(path.with_name("real.minisig")))


def _legacy(path: Path, key_pair: KeyPair) -> None:
    minisign_program.sign(key_pair.secret, path.with_suffix(""), "-l")


# More malformed files are in `test_minisign.py`.
_SHAPES: dict[str, Shape] = {
    "legacy": _legacy,
    "junk after line 4": _with_signature(lambda data: data + b"junk" * 1000),
    "CRLF": _with_signature(lambda data: data.replace(b"\n", b"\r\n")),
    "three lines": _with_signature(lambda data: b"\n".join(data.splitlines()[:3])),
    "10 MiB": _with_signature(lambda data: data + bytes(10 << 20)),
    "FIFO": _instead(os.mkfifo),
    "folder": _instead(Path.mkdir),
    "symbolic link": _link,
    "endless device": _instead(lambda path: path.symlink_to("/dev/zero")),
}


@pytest.mark.parametrize("shape", _SHAPES.values(), ids=_SHAPES)
@pytest.mark.parametrize("file", ["manifest.json", f"{VERSION}/{DISK}"], ids=["manifest", "disk"])
def test_rel_19_a_malformed_signature_file_is_refused(
    file: str, shape: Shape, channel: Path, tools: Tools, key_pair: KeyPair
) -> None:
    shape(channel / f"{file}.minisig", key_pair)
    done = tools("verify", "dist/stable", "-p", key_pair.public, timeout=10)
    assert done.returncode in (1, 5)
    assert "Traceback" not in done.stderr


HOSTILE = "\x1b[31mred\x07<script>\x9b2J\u202e"


def _assert_plain(text: str) -> None:
    assert not [c for c in text if c != "\n" and not c.isprintable()]


def test_rel_20_no_control_byte_of_a_file_reaches_the_terminal(
    channel: Path, release: Path, tools: Tools, key_pair: KeyPair
) -> None:
    def hostile(document: dict[str, Any]) -> None:
        document["tracker"] = {HOSTILE: HOSTILE}
        document["wizard_version"] = HOSTILE
        _artefact(document, REFERENCE)["url"] = f"oci://x/{HOSTILE}"

    change_manifest(channel, key_pair, hostile)
    signature = release / f"{DISK}.minisig"
    untrusted, *rest = signature.read_bytes().split(b"\n", 1)
    signature.write_bytes(untrusted + HOSTILE.encode() + b"\n" + rest[0])
    key = tools.folder / f"{HOSTILE.replace('/', '')}.pub"
    shutil.copy(key_pair.public, key)
    (release / f"x{HOSTILE.replace('/', '')}").write_bytes(b"")
    for command in (
        ("verify", "dist", "-p", key),
        ("verify", "dist", "-p", key, "--json"),
        ("inspect", "dist"),
        ("inspect", "dist", "--json"),
        ("verify", HOSTILE, "-p", key),
        ("inspect", HOSTILE),
        ("verify-file", release / DISK, "-p", key, "--signature", signature),
        ("verify-file", HOSTILE, "-p", key),
    ):
        done = tools(*command)
        assert done.stdout + done.stderr, command
        _assert_plain(done.stdout + done.stderr)


def test_rel_20_a_trusted_comment_with_escapes_is_shown_as_text(
    tools: Tools, key_pair: KeyPair
) -> None:
    file = tools.folder / "notes.txt"
    file.write_bytes(b"notes")
    minisign_program.sign(key_pair.secret, file, "-t", HOSTILE)
    done = tools("verify-file", file, "-p", key_pair.public)
    assert done.returncode == 0
    assert r"Trusted comment: \x1b[31mred\x07<script>\x9b2J\u202e" in done.stdout
    _assert_plain(done.stdout + done.stderr)


@pytest.mark.parametrize(
    ("file", "words"),
    [
        (f"{VERSION}/{DISK}", f"file:{IMAGE}"),
        (f"{VERSION}/{DISK}", f"file:{DISK}\trelease:2026.11.2"),
        (f"{VERSION}/{DISK}", f"file:{DISK}\tchannel:beta"),
        ("manifest.json", "file:other.json"),
    ],
    ids=["file", "release", "channel", "manifest"],
)
def test_rel_21_a_trusted_comment_for_something_else_is_refused(
    file: str, words: str, channel: Path, key_pair: KeyPair
) -> None:
    sign_file(channel / file, key_pair, words)
    assert codes(verify(channel, key_pair)) == ["E_COMMENT"]
