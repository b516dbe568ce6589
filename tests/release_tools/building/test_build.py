"""`release-tools build`: the release that it creates from a folder of artefacts."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from release_tools.signing.minisign import Signature
from tests.support.releases import (
    REFERENCE,
    VERSION,
    KeyPair,
    Tools,
    artefact_files,
    write_artefacts,
)
from tests.support.trees import tree

_EPOCH = "1793491200"
_RELEASED_AT = "2026-11-01T00:00:00Z"
_ARGS = ("build", "artefacts", "--version", VERSION, "--channel", "stable")


@pytest.fixture
def artefacts(tmp_path: Path) -> Path:
    """A folder of three artefacts."""
    return write_artefacts(tmp_path / "artefacts")


def _signed(key_pair: KeyPair) -> dict[str, str]:
    return {"SIGNING_SECRET_KEY": str(key_pair.secret), "SOURCE_DATE_EPOCH": _EPOCH}


def test_a_signed_build_writes_the_manifest_the_artefacts_their_signatures_and_nothing_else(
    signed_release: Path,
) -> None:
    names = [
        f"{VERSION}/{name}{suffix}" for name in artefact_files() for suffix in ("", ".minisig")
    ]
    files = {str(path.relative_to(signed_release / "stable")) for path in _files(signed_release)}
    assert files == {"manifest.json", "manifest.json.minisig", *names}


def test_a_build_without_a_key_reports_that_and_writes_no_signature_and_no_optional_member(
    artefacts: Path, tools: Tools
) -> None:
    built = tools(*_ARGS)
    assert built.returncode == 0
    assert "NOT SIGNED" in built.stdout
    files = {path.name: path for path in _files(artefacts.parent / "dist")}
    assert files.keys() == {"manifest.json.unsigned", *artefact_files()}
    members = ["schema_version", "release_version", "channel", "released_at", "artefacts"]
    assert list(json.loads(files["manifest.json.unsigned"].read_bytes())) == members


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_the_manifest_has_the_bytes_that_the_contract_specifies(
    artefacts: Path, tools: Tools
) -> None:
    options = ("--tracker", "openclaw=v1.2", "--tracker", "hermes=v0.9")
    versions = ("--wizard-version", "3.1 – été", "--chat-ui-version", "2.0")
    built = tools(*_ARGS, *options, *versions, env={"SOURCE_DATE_EPOCH": _EPOCH})
    assert built.returncode == 0, built.stderr
    wanted = {
        "schema_version": 1,
        "release_version": VERSION,
        "channel": "stable",
        "released_at": _RELEASED_AT,
        "tracker": {"openclaw": "v1.2", "hermes": "v0.9"},
        "artefacts": [
            _entry("hermes", "fly-machines", "oci", url=REFERENCE.decode().strip()),
            _entry("khoj", "qemu-x86_64", "qcow2"),
            _entry("openclaw", "rpi5", "img.xz"),
        ],
        "wizard_version": "3.1 – été",
        "chat_ui_version": "2.0",
    }
    data = (artefacts.parent / "dist/stable/manifest.json.unsigned").read_bytes()
    assert data == json.dumps(wanted, indent=2, ensure_ascii=False).encode() + b"\n"


def _entry(profile: str, target: str, form: str, url: str | None = None) -> dict[str, object]:
    name = f"platform-{profile}-{target}-{VERSION}-stable.{form}"
    data = artefact_files()[name]
    return {
        "target": target,
        "profile": profile,
        "filename": name,
        "format": form,
        "size_bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
        "minisig_url": f"{VERSION}/{name}.minisig",
        "url": url or f"{VERSION}/{name}",
    }


def test_artefacts_are_sorted_by_profile_then_target(tmp_path: Path, tools: Tools) -> None:
    pairs = [("openclaw", "rpi4"), ("openclaw", "arm64-generic"), ("khoj", "x86_64-mini-pc")]
    names = [f"platform-{profile}-{target}-{VERSION}-stable.img.xz" for profile, target in pairs]
    write_artefacts(tmp_path / "artefacts", dict.fromkeys(names, b"image"))
    listed = json.loads(tools(*_ARGS, "--json").stdout)["artefacts"]
    assert listed == [names[2], names[1], names[0]]


def test_a_signed_build_signs_file_release_and_channel_and_repeating_it_changes_nothing(
    artefacts: Path, tools: Tools, key_pair: KeyPair
) -> None:
    given = tree(artefacts)
    for _ in range(2):
        built = tools(*_ARGS, env=_signed(key_pair))
        assert built.returncode == 0, built.stderr
        result = tree(artefacts.parent / "dist")
    tools(*_ARGS, env=_signed(key_pair))
    assert (tree(artefacts), tree(artefacts.parent / "dist")) == (given, result)
    for path in (artefacts.parent / "dist").rglob("*.minisig"):
        name = path.name.removesuffix(".minisig")
        words = f"timestamp:{_EPOCH}\tfile:{name}\thashed\trelease:{VERSION}\tchannel:stable"
        assert Signature.parse(path.read_bytes()).comment_text == words


def test_pub_05_two_builds_differ_only_in_their_time(artefacts: Path, tools: Tools) -> None:
    manifests = []
    for epoch in ("1000000000", "1000000001"):
        tools(*_ARGS, "--output", epoch, env={"SOURCE_DATE_EPOCH": epoch})
        path = artefacts.with_name(epoch) / "stable/manifest.json.unsigned"
        manifests.append(path.read_text())
    assert manifests[0].replace("2001-09-09T01:46:40Z", "2001-09-09T01:46:41Z") == manifests[1]


def test_pub_05_ten_builds_with_one_source_date_epoch_are_byte_equal(
    artefacts: Path, tools: Tools, key_pair: KeyPair
) -> None:
    results = []
    for count in range(10):
        # With another order of the folder's entries, another number of workers and another folder.
        names = sorted(artefact_files(), reverse=bool(count % 2))
        write_artefacts(artefacts.with_name(f"a{count}"), {n: artefact_files()[n] for n in names})
        args = ("build", f"a{count}", *_ARGS[2:], "--output", f"dist{count}")
        built = tools(*args, "--jobs", str(1 + count % 3), env=_signed(key_pair))
        assert built.returncode == 0, built.stderr
        results.append(tree(artefacts.with_name(f"dist{count}")))
    assert all(result == results[0] for result in results)
    assert len(results[0]) == 10


@pytest.mark.parametrize(
    ("version", "channel", "stays"),
    [("2026.11.2", "stable", f"stable/{VERSION}"), (VERSION, "beta", "stable")],
    ids=["older release", "other channel"],
)
def test_pub_10_older_releases_and_other_channels_are_kept(
    signed_release: Path, tools: Tools, key_pair: KeyPair, version: str, channel: str, stays: str
) -> None:
    before = tree(signed_release / stays)
    write_artefacts(signed_release.parent / "next", artefact_files(version, channel))
    args = ("build", "next", "--version", version, "--channel", channel)
    built = tools(*args, env=_signed(key_pair))
    assert built.returncode == 0, built.stderr
    assert tree(signed_release / stays) == before
    assert tools("verify", "dist", "-p", key_pair.public).returncode == 0


def test_an_existing_release_is_never_changed_and_all_differences_are_listed(
    signed_release: Path, tools: Tools, key_pair: KeyPair
) -> None:
    folder = signed_release.parent / "artefacts"
    reference, changed, same = sorted(artefact_files())
    (folder / reference).unlink()
    (folder / changed).unlink()
    (folder / changed).write_bytes(b"another image")
    more = f"platform-khoj-rpi4-{VERSION}-stable.img.xz"
    (folder / more).write_bytes(b"one more")
    before = tree(signed_release)
    built = tools(*_ARGS, env=_signed(key_pair))
    assert built.returncode == 1
    for said in (
        f"{VERSION} already exists: ",
        *(
            f"{changed} has different bytes",
            f"{reference} is not part of this build",
            f"has no {more}",
        ),
    ):
        assert said in built.stderr
    assert same not in built.stderr
    assert tree(signed_release) == before
    assert tools("verify", "dist", "-p", key_pair.public).returncode == 0


def test_pub_03_an_unsigned_build_keeps_the_signed_manifest_of_the_channel(
    signed_release: Path, tools: Tools, key_pair: KeyPair
) -> None:
    before = tree(signed_release)
    write_artefacts(signed_release.parent / "next", artefact_files("2026.11.2"))
    tools("build", "next", "--version", "2026.11.2", "--channel", "stable")
    unsigned = signed_release / "stable" / "manifest.json.unsigned"
    assert unsigned.exists()
    assert before.items() <= tree(signed_release).items()
    verified = tools("verify", "dist", "-p", key_pair.public)
    assert verified.returncode == 0
    assert f"release {VERSION} (stable)" in verified.stdout
    assert tools("verify", unsigned, "-p", key_pair.public).returncode != 0


def test_pub_03_a_signed_build_removes_the_unsigned_manifest(
    artefacts: Path, tools: Tools, key_pair: KeyPair
) -> None:
    tools(*_ARGS)
    assert tools(*_ARGS, env=_signed(key_pair)).returncode == 0
    assert not (artefacts.parent / "dist/stable/manifest.json.unsigned").exists()
    assert tools("verify", "dist", "-p", key_pair.public).returncode == 0


def test_profiles_and_targets_can_be_given(tmp_path: Path, tools: Tools) -> None:
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles" / "my-own.toml").touch()
    (tmp_path / "targets.toml").write_text('[targets]\nmy-board = "tar.gz"\n')
    name = f"platform-my-own-my-board-{VERSION}-stable.tar.gz"
    write_artefacts(tmp_path / "artefacts", {name: b"files"})
    built = tools(*_ARGS, "--profiles", "profiles", "--targets", "targets.toml", "--json")
    assert json.loads(built.stdout)["artefacts"] == [name]


_PLACES = {"oci": "fly-machines", "do-snapshot": "digitalocean"}


@pytest.mark.parametrize(
    ("form", "line"),
    [
        ("oci", f"oci://registry.example/a/b@sha256:{'0' * 64}"),
        ("do-snapshot", "do://snapshots/123456"),
    ],
)
def test_the_line_of_a_reference_file_becomes_its_url_and_its_bytes_are_signed(
    tmp_path: Path, tools: Tools, key_pair: KeyPair, form: str, line: str
) -> None:
    name = f"platform-khoj-{_PLACES[form]}-{VERSION}-stable.{form}"
    write_artefacts(tmp_path / "artefacts", {name: line.encode() + b"\n"})
    built = tools(*_ARGS, env=_signed(key_pair))
    assert built.returncode == 0, built.stderr
    document = json.loads((tmp_path / "dist/stable/manifest.json").read_bytes())
    assert document["artefacts"][0]["url"] == line
    assert document["artefacts"][0]["size_bytes"] == len(line) + 1
    assert tools("verify", "dist", "-p", key_pair.public).returncode == 0


_BAD_REFERENCES = {
    "a snapshot in an oci file": ("oci", b"do://snapshots/1\n"),
    "an image in a snapshot file": ("do-snapshot", REFERENCE),
    "an empty second line": ("oci", REFERENCE + b"\n"),
    "two references": ("oci", REFERENCE + REFERENCE),
    "a tag and no digest": ("oci", b"oci://registry.example/appliance:latest\n"),
    "an empty line": ("oci", b"\n"),
    "a space": ("do-snapshot", b"do://snapshots/a b\n"),
    "a carriage return": ("oci", REFERENCE.rstrip() + b"\r\n"),
    "letters that are not ASCII": ("oci", "oci://registré/a@sha256:".encode() + b"a" * 64),
    "too long": ("oci", b"oci://" + b"a" * 9000 + REFERENCE[5:]),
    "binary": ("oci", b"\xff\x00"),
}


@pytest.mark.parametrize(("form", "content"), _BAD_REFERENCES.values(), ids=_BAD_REFERENCES)
def test_a_reference_file_contains_one_reference_of_its_kind_and_nothing_else(
    tmp_path: Path, tools: Tools, form: str, content: bytes
) -> None:
    name = f"platform-khoj-{_PLACES[form]}-{VERSION}-stable.{form}"
    write_artefacts(tmp_path / "artefacts", {name: content})
    before = tree(tmp_path)
    built = tools(*_ARGS)
    assert built.returncode == 1
    assert f"{name}' must hold one reference" in built.stderr
    assert tree(tmp_path) == before
