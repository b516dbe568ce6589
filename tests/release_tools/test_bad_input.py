"""Bad input: one clear sentence, the right exit code, no traceback, and no change.

The exit codes: 1 a check failed, 2 wrong usage or settings, 3 no valid manifest, 4 another schema
version, 5 something cannot be read.
"""

from __future__ import annotations

import base64
import json
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from release_tools.signing.keys import generate
from tests.release_tools.conftest import run
from tests.support.releases import (
    VERSION,
    KeyPair,
    Tools,
    artefact_files,
    program,
    write_artefacts,
)
from tests.support.resigning import sign_file
from tests.support.trees import tree

_BUILD = ["build", "artefacts", "--version", VERSION, "--channel", "stable"]
_WITH_KEY = {"SIGNING_SECRET_KEY": "release.key"}
_VERIFY = ["verify", "dist", "-p", "release.pub"]
_KEY = ("-p", "release.pub")
_OTHER_SIGNATURE = ("--signature", "dist/stable/manifest.json.minisig")
_KEYGEN = ["keygen", "--no-password", "--public-key", "p", "--secret-key"]
_IMAGE = f"platform-openclaw-rpi5-{VERSION}-stable.img.xz"
_OTHER_IMAGE = f"platform-khoj-rpi4-{VERSION}-stable.img.xz"


@dataclass(frozen=True)
class Site:
    """A folder with a key pair, artefacts, and their release in `dist`."""

    folder: Path

    @property
    def artefacts(self) -> Path:
        """The folder of artefacts."""
        return self.folder / "artefacts"

    @property
    def manifest(self) -> Path:
        """The signed manifest."""
        return self.folder / "dist" / "stable" / "manifest.json"

    @property
    def keys(self) -> KeyPair:
        """The key pair that signed the release."""
        return KeyPair(self.folder / "release.key", self.folder / "release.pub")

    def key_line(self) -> str:
        """The base64 line of the secret key."""
        return self.keys.secret.read_text().splitlines()[1]


Prepare = Callable[[Site], object]


@dataclass(frozen=True)
class Case:
    """How a site is prepared, the command, and what it must say."""

    prepare: Prepare
    command: list[str]
    exit_code: int
    says: str
    env: dict[str, str] | None = None


def _nothing(site: Site) -> None:
    pass


def _add(name: str, data: bytes = b"image") -> Prepare:
    return lambda site: (site.artefacts / name).write_bytes(data)


def _file(name: str, text: str) -> Prepare:
    return lambda site: (site.folder / name).write_text(text)


def _empty_folder(site: Site) -> None:
    for path in site.artefacts.iterdir():
        path.unlink()


def _socket(site: Site) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(site.artefacts / "s"))


def _change_key(change: Callable[[bytearray], object]) -> Prepare:
    def prepare(site: Site) -> None:
        raw = bytearray(base64.b64decode(site.key_line()))
        change(raw)
        text = f"untrusted comment: key\n{base64.b64encode(raw).decode()}\n"
        (site.folder / "bad.key").write_text(text)

    return prepare


def _manifest_bytes(data: bytes) -> Prepare:
    """Replace the manifest, and sign the new one with the trusted key."""

    def prepare(site: Site) -> None:
        site.manifest.write_bytes(data)
        sign_file(site.manifest, site.keys)

    return prepare


def _other_key(site: Site) -> None:
    site.keys.public.unlink()
    generate(site.folder / "other.key", site.keys.public, "")


def _file_that_cannot_be_signed(site: Site) -> None:
    for name in ("good", "bad\nname"):
        (site.folder / name).write_bytes(b"x")


_NO_KEY = "is neither a minisign secret key nor a file"
# The value of the variable, the exit code, and the message.
_BAD_KEYS: dict[str, tuple[Prepare, str, int, str]] = {
    "empty": (_nothing, "", 2, "is set but empty"),
    "a folder": (_nothing, "artefacts", 5, _NO_KEY),
    "a FIFO": (lambda site: os.mkfifo(site.folder / "fifo"), "fifo", 5, _NO_KEY),
    "of garbage": (_file("bad.key", "garbage\n"), "bad.key", 2, "is not a minisign key"),

    "with a wrong checksum": (
        _change_key(lambda raw: raw.__setitem__(-1, raw[-1] ^ 1)), "bad.key", 1,
        "checksum is wrong"),
    "with a password and no terminal": (
        _change_key(lambda raw: raw.__setitem__(slice(2, 4), b"Sc")), "bad.key", 2,
        "There is no terminal to ask for the password"),
}  # fmt: skip
_BAD_MOMENTS = {
    "in words": "now",
    "empty": "",
    "before 1970": "-1",
    "after 9999": "253402300800",
    "in other digits": "١٢٣",
}
_CASES = {
    # The folder of artefacts.
    "empty folder": Case(_empty_folder, _BUILD, 1, "artefacts is empty"),
    "missing folder": Case(_nothing, ["build", "nowhere", *_BUILD[2:]], 5, "nowhere: No such file"),
    "a file": Case(_nothing, ["build", "release.pub", *_BUILD[2:]], 5, "pub: Not a directory"),
    "pub_06 stranger": Case(_add("notes.txt"), _BUILD, 1, "'notes.txt' is not named platform-"),
    "pub_06 link": Case(
        lambda site: (site.artefacts / _OTHER_IMAGE).symlink_to(_IMAGE), _BUILD, 1,
        "is not a regular file"),
    "pub_06 sub-folder": Case(
        lambda site: (site.artefacts / "more").mkdir(), _BUILD, 1, "'more' is not a regular file"),
    "pub_06 hidden file": Case(_add(".DS_Store"), _BUILD, 1, "'.DS_Store' is not named platform-"),
    "pub_06 FIFO": Case(
        lambda site: os.mkfifo(site.artefacts / _OTHER_IMAGE), _BUILD, 1, "is not a regular file"),
    "pub_06 socket": Case(_socket, _BUILD, 1, "'s' is not a regular file"),
    "pub_06 0 bytes": Case(_add(_OTHER_IMAGE, b""), _BUILD, 1, "is empty"),
    "pub_06 two versions": Case(
        _add("platform-khoj-rpi4-2026.11.2-stable.img.xz"), _BUILD, 1,
        f"'platform-khoj-rpi4-2026.11.2-stable.img.xz' is not for the version {VERSION}"),

    # The options.
    "not a version": Case(
        _nothing, [*_BUILD, "--version", "2026.11"], 2, "Invalid value for '--version'"),
    "no channel": Case(
        _nothing, [*_BUILD, "--channel", "nightly"], 2,
        "'nightly' is not one of 'dev', 'beta', 'stable'"),
    **{
        f"SOURCE_DATE_EPOCH {name}": Case(
            _nothing, _BUILD, 2, "SOURCE_DATE_EPOCH must be", {"SOURCE_DATE_EPOCH": value})
        for name, value in _BAD_MOMENTS.items()
    },
    "tracker without a tag": Case(_nothing, [*_BUILD, "--tracker", "khoj"], 2, "takes ID=TAG"),
    "tracker without an id": Case(_nothing, [*_BUILD, "--tracker", "=v1"], 2, "takes ID=TAG"),
    "tracker twice": Case(
        _nothing, [*_BUILD, "--tracker", "khoj=1", "--tracker", "khoj=2"], 2,
        "names a profile twice"),
    "tracker that is not UTF-8": Case(
        _nothing, [*_BUILD, "--tracker", os.fsdecode(b"a=\xff")], 2, "is not UTF-8"),
    "no jobs": Case(_nothing, [*_BUILD, "--jobs", "0"], 2, "'--jobs'"),
    "output is a file": Case(
        _nothing, [*_BUILD, "--output", "release.pub"], 5, "release.pub/stable: "),
    "missing profiles": Case(
        _nothing, [*_BUILD, "--profiles", "nowhere"], 5, "nowhere is not a folder of profile"),
    "empty profiles": Case(
        lambda site: (site.folder / "profiles").mkdir(), [*_BUILD, "--profiles", "profiles"], 2,
        "holds no profile definition"),
    "missing targets": Case(
        _nothing, [*_BUILD, "--targets", "nowhere"], 5, "nowhere: No such file or directory"),
    "targets that are not TOML": Case(
        _file("t", "[targets"), [*_BUILD, "--targets", "t"], 2, "t is not valid TOML"),
    # The secret key.
    **{
        f"pub_02 key {name}": Case(prepare, _BUILD, code, says, {"SIGNING_SECRET_KEY": value})
        for name, (prepare, value, code, says) in _BAD_KEYS.items()
    },
    "sign without a key": Case(
        _nothing, ["sign", "release.pub"], 2, "SIGNING_SECRET_KEY is not set"),
    "sign nothing": Case(_nothing, ["sign"], 2, "Missing argument", _WITH_KEY),
    "sign a missing file": Case(
        _nothing, ["sign", "release.pub", "nowhere"], 5, "nowhere: No such file", _WITH_KEY),
    "sign a missing release": Case(
        _nothing, ["sign", "no/manifest.json.unsigned"], 5, "No such file", _WITH_KEY),
    "sign a folder": Case(
        _nothing, ["sign", "artefacts"], 5, "artefacts is not a regular file", _WITH_KEY),
    "fs_07 sign a FIFO": Case(
        lambda site: os.mkfifo(site.folder / "fifo"), ["sign", "fifo"], 5,
        "fifo is not a regular file", _WITH_KEY),
    "sign an invalid name": Case(
        _file_that_cannot_be_signed, ["sign", "good", "bad\nname"], 1, "control", _WITH_KEY),
    # keygen.
    "keygen over a secret key": Case(
        _nothing, [*_KEYGEN, "release.key"], 1, "release.key already exists and is not overwritten"
    ),
    "keygen into one file": Case(_nothing, [*_KEYGEN, "./p"], 2, "the two keys need two files"),
    "keygen below a file": Case(_nothing, [*_KEYGEN, "release.pub/k"], 5, "release.pub"),
    "keygen with a name too long": Case(_nothing, [*_KEYGEN, "k" * 300], 5, "File name too long"),
    "keygen without a terminal": Case(
        _nothing, ["keygen", *_KEYGEN[2:], "k"], 2, "There is no terminal to ask for the password"),
    # What is verified.
    "verify nothing": Case(_nothing, ["verify", "nowhere", *_KEY], 5, "nowhere"),
    "verify another scheme": Case(_nothing, ["verify", "ftp://x/y", *_KEY], 5, "ftp"),
    "verify without a release": Case(
        _nothing, ["verify", "artefacts", *_KEY], 5, "holds no manifest.json"),
    "verify without a key": Case(_nothing, ["verify", "dist"], 2, "--public-key"),
    "public key missing": Case(
        _nothing, ["verify", "dist", "-p", "nowhere"], 5, "nowhere: No such file or directory"),
    "public key of garbage": Case(
        _file("bad.pub", "garbage"), ["verify", "dist", "-p", "bad.pub"], 2, "not a minisign"),
    "secret key for the public one": Case(
        _nothing, ["verify", "dist", "-p", "release.key"], 2, "this is a secret key file"),
    "another key": Case(_other_key, _VERIFY, 1, "E_KEY"),
    "garbage that is signed": Case(_manifest_bytes(b"\x00\xff"), _VERIFY, 3, "E_SCHEMA"),

    **{
        f"--timeout {value}": Case(_nothing, [*_VERIFY, "--timeout", value], 2, "--timeout")
        for value in ("nan", "inf", "1e300", "1e10", "0")
    },
    "--max-age of ages": Case(_nothing, [*_VERIFY, "--max-age", "9" * 12], 2, "--max-age"),
    "verify-file of the root": Case(_nothing, ["verify-file", "/", *_KEY], 5, "/"),
    "verify-file of a folder": Case(_nothing, ["verify-file", ".", *_KEY], 5, "."),
    "verify-file of nothing": Case(_nothing, ["verify-file", "nowhere", *_KEY], 5, "nowhere"),
    "verify-file of a FIFO": Case(
        lambda site: os.mkfifo(site.folder / "fifo"),
        ["verify-file", "fifo", *_KEY, *_OTHER_SIGNATURE], 5, "fifo is not a regular file"),
    "verify-file unsigned": Case(
        _nothing, ["verify-file", "release.key", *_KEY], 5, "release.key.minisig"),
    "verify-file of another file": Case(
        _nothing, ["verify-file", "release.pub", *_KEY, *_OTHER_SIGNATURE], 1,
        "does not match the file"),
    # What is inspected and compared.
    "inspect garbage": Case(_file("m.json", "{"), ["inspect", "m.json"], 3, "not valid JSON"),
    "inspect another schema version": Case(
        _file("m.json", '{"schema_version": 2}'), ["inspect", "m.json"], 4,
        "Please upgrade the control CLI."),
    "inspect nothing": Case(_nothing, ["inspect", "nowhere"], 5, "nowhere does not exist"),
    "compare no version": Case(_nothing, ["compare", "2026.11", "2026.11.1"], 3, "2026.11"),
}  # fmt: skip


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory, key_pair: KeyPair) -> Path:
    """The site that every test copies."""
    folder = tmp_path_factory.mktemp("site")
    write_artefacts(folder / "artefacts", artefact_files())
    keys = {"release.key": key_pair.secret, "release.pub": key_pair.public}
    write_artefacts(folder, {name: path.read_bytes() for name, path in keys.items()})
    built = Tools(folder)(*_BUILD, env=_WITH_KEY)
    assert built.returncode == 0, built.stderr
    return folder


@pytest.fixture
def site(original: Path, tmp_path: Path) -> Site:
    """A copy of the site for this test."""
    for path, (_, data) in tree(original).items():
        if (original / path).is_dir():
            (tmp_path / path).mkdir()
        else:
            (tmp_path / path).write_bytes(data)
    # Independent of the umask, because a key that others can change causes a warning.
    (tmp_path / "release.pub").chmod(0o644)
    return Site(tmp_path)


@pytest.mark.parametrize("case", _CASES.values(), ids=[name.replace(" ", "-") for name in _CASES])
def test_bad_input_gives_one_message_and_its_exit_code_and_changes_nothing(
    site: Site, tools: Tools, case: Case
) -> None:
    case.prepare(site)
    before = tree(site.folder)
    ended = tools(*case.command, "--json", env=case.env)
    document = json.loads(ended.stdout)
    assert ended.returncode == case.exit_code, ended.stderr
    assert document["exit_code"] == case.exit_code
    assert document["ok"] is False
    # A sentence on stderr, perhaps with a hint, or the findings of a verification on stdout.
    told = ended.stderr or json.dumps(document["findings"])
    assert case.says in told
    assert "Traceback" not in told
    if ended.stderr.startswith("error: "):
        sentence, *hint = ended.stderr.splitlines()
        assert not sentence.endswith(".")
        assert [line.partition(" ")[0] for line in hint] in ([], ["hint:"])
        assert document["error"]["message"] in sentence
        assert document["error"]["hint"] in ended.stderr
    assert site.key_line() not in ended.stderr + ended.stdout
    assert tree(site.folder) == before


def test_all_unexpected_files_are_named_together_and_escaped(site: Site, tools: Tools) -> None:
    for name in ("one\x1b[31m\n.txt", "two.txt", f"platform-khoj-rpi4-{VERSION}-beta.img.xz"):
        _add(name)(site)
    built = tools(*_BUILD, "--json")
    assert len(json.loads(built.stdout)["error"]["problems"]) == 3
    for said in (r"'one\x1b[31m\n.txt'", "'two.txt'", "for the channel beta"):
        assert said in built.stderr


def test_a_secret_key_given_as_the_public_key_is_not_shown(site: Site, tools: Tools) -> None:
    line = site.key_line()
    # A text without a slash is one file name, and this one is longer than any can be.
    nameless = f"untrusted comment: minisign encrypted secret key\n{line.replace('/', 'A')}\n"
    for text in (line, site.keys.secret.read_text(), nameless):
        done = tools("verify", "dist", "-p", text, "--json")
        assert done.returncode == 2
        assert line[10:50] not in done.stdout + done.stderr


def test_an_unreadable_file_is_named(site: Site) -> None:
    before = tree(site.folder)
    (site.artefacts / _IMAGE).chmod(0)
    # Root can read it anyway, unless it gives up that capability.
    drop = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []
    ended = run(*drop, program(), *_BUILD, "--output", "other", folder=site.folder)
    (site.artefacts / _IMAGE).chmod(before[f"artefacts/{_IMAGE}"][0] & 0o777)
    assert ended.returncode == 5
    assert ended.stderr.splitlines()[0] == f"error: artefacts/{_IMAGE}: Permission denied"
    assert tree(site.folder) == before
