"""Bad input: one clear sentence, the right exit code, no traceback, and nothing is changed.

The exit codes: 1 a check failed, 2 wrong usage or settings, 3 no valid manifest,
4 another schema version, 5 something cannot be read.
"""

from __future__ import annotations

import base64
import json
import os
import socket
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from release_tools.keys import generate
from release_tools.minisign import Signature
from tests.support.releases import (
    VERSION,
    KeyPair,
    Tools,
    artefact_files,
    clean_environment,
    program,
    write_artefacts,
)
from tests.support.trees import tree

_BUILD = ["build", "artefacts", "--version", VERSION, "--channel", "stable"]
_VERIFY = ["verify", "dist", "-p", "release.pub"]
_IMAGE = f"platform-openclaw-rpi5-{VERSION}-stable.img.xz"


@dataclass(frozen=True)
class Site:
    """A folder with a key pair, artefacts, and a release of them in `dist`."""

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
    def image(self) -> Path:
        """An artefact of the release."""
        return self.folder / "dist" / "stable" / VERSION / _IMAGE

    def key_line(self) -> str:
        """The base64 line of the secret key."""
        return (self.folder / "release.key").read_text().splitlines()[1]


Prepare = Callable[[Site], None]


@dataclass(frozen=True)
class Case:
    """What is done to a site, the command, and what it must say."""

    prepare: Prepare
    command: list[str]
    exit_code: int
    says: str
    env: dict[str, str] | None = None


def _nothing(site: Site) -> None:
    pass


def _add(name: str, data: bytes = b"image") -> Prepare:
    def prepare(site: Site) -> None:
        (site.artefacts / name).write_bytes(data)

    return prepare


def _empty_folder(site: Site) -> None:
    for path in site.artefacts.iterdir():
        path.unlink()


def _link(site: Site) -> None:
    (site.artefacts / f"platform-khoj-rpi4-{VERSION}-stable.img.xz").symlink_to(_IMAGE)


def _sub_folder(site: Site) -> None:
    (site.artefacts / "more").mkdir()


def _fifo(site: Site) -> None:
    os.mkfifo(site.artefacts / f"platform-khoj-rpi4-{VERSION}-stable.img.xz")


def _socket(site: Site) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(site.artefacts / "s"))


def _other_bytes(site: Site) -> None:
    path = site.artefacts / _IMAGE
    path.unlink()
    path.write_bytes(b"another image")


def _ambiguous(site: Site) -> None:
    _empty_folder(site)
    for name in ("khoj", "khoj-mini"):
        (site.folder / "profiles").mkdir(exist_ok=True)
        (site.folder / "profiles" / f"{name}.toml").touch()
    (site.folder / "targets.toml").write_text(
        '[targets]\nboard = "img.xz"\nmini-board = "img.xz"\n'
    )
    _add(f"platform-khoj-mini-board-{VERSION}-stable.img.xz")(site)


def _file(name: str, text: str) -> Prepare:
    def prepare(site: Site) -> None:
        (site.folder / name).write_text(text)

    return prepare


def _folder(name: str) -> Prepare:
    def prepare(site: Site) -> None:
        (site.folder / name).mkdir()

    return prepare


def _bad_profile(site: Site) -> None:
    (site.folder / "profiles").mkdir()
    (site.folder / "profiles" / "a b.toml").touch()


def _public_key_fifo(site: Site) -> None:
    os.mkfifo(site.folder / "fifo")


def _change_key(change: Callable[[bytearray], None]) -> Prepare:
    def prepare(site: Site) -> None:
        raw = bytearray(base64.b64decode(site.key_line()))
        change(raw)
        text = f"untrusted comment: key\n{base64.b64encode(raw).decode()}\n"
        (site.folder / "bad.key").write_text(text)

    return prepare


def _wrong_checksum(raw: bytearray) -> None:
    raw[-1] ^= 1


def _other_seed(raw: bytearray) -> None:
    raw[70] ^= 1


def _other_algorithm(raw: bytearray) -> None:
    raw[0] = 0x58


def _greedy(raw: bytearray) -> None:
    # A password, and 2^40 bytes of memory to check it.
    raw[2:4] = b"Sc"
    raw[46:54] = (1 << 40).to_bytes(8, "little")


def _manifest_bytes(data: bytes) -> Prepare:
    """Another manifest, signed with the very key that is trusted."""

    def prepare(site: Site) -> None:
        site.manifest.write_bytes(data)
        env = {"SIGNING_SECRET_KEY": str(site.folder / "release.key")}
        signed = Tools(site.folder)("sign", site.manifest, env=env)
        assert signed.returncode == 0, signed.stderr

    return prepare


def _escaping(site: Site) -> None:
    document = json.loads(site.manifest.read_bytes())
    document["artefacts"][1]["filename"] = "../../../../etc/passwd"
    _manifest_bytes(json.dumps(document).encode())(site)


def _signature_of_another_file(site: Site) -> None:
    other = next(p for p in site.image.parent.iterdir() if p.name.endswith("qcow2.minisig"))
    other.replace(site.image.with_name(_IMAGE + ".minisig"))


def _swapped_comment(site: Site) -> None:
    path = site.image.with_name(_IMAGE + ".minisig")
    lines = path.read_bytes().splitlines(keepends=True)
    other = next(p for p in site.image.parent.iterdir() if p.name.endswith("qcow2.minisig"))
    lines[2] = other.read_bytes().splitlines(keepends=True)[2]
    path.write_bytes(b"".join(lines))


def _signed_under_another_name(site: Site) -> None:
    # A file that the key did sign, put in the place of another with its signature.
    env = {"SIGNING_SECRET_KEY": str(site.folder / "release.key")}
    (site.folder / "notes.txt").write_bytes(b"notes")
    assert Tools(site.folder)("sign", "notes.txt", env=env).returncode == 0
    signature = (site.folder / "notes.txt.minisig").read_bytes()
    assert "file:notes.txt" in Signature.parse(signature).comment_text.split("\t")
    site.image.with_name(_IMAGE + ".minisig").write_bytes(signature)
    site.image.unlink()
    site.image.write_bytes(b"notes")


def _other_key(site: Site) -> None:
    (site.folder / "release.pub").unlink()
    generate(site.folder / "other.key", site.folder / "release.pub", "")


def _truncated(site: Site) -> None:
    data = site.image.read_bytes()
    site.image.unlink()
    site.image.write_bytes(data[:-1])


def _remove(name: str) -> Prepare:
    def prepare(site: Site) -> None:
        (site.image.parent / name).unlink()

    return prepare


def _stranger_in_the_release(site: Site) -> None:
    (site.image.parent / "stranger").write_bytes(b"?")


def _flipped_manifest(site: Site) -> None:
    site.manifest.write_bytes(site.manifest.read_bytes().replace(b"stable", b"stablE", 1))


def _with_key(value: str) -> dict[str, str]:
    return {"SIGNING_SECRET_KEY": value}


_KEY = _with_key("release.key")
_CASES = {
    # The folder of artefacts.
    "empty folder": Case(_empty_folder, _BUILD, 1, "artefacts is empty"),
    "missing folder": Case(
        _nothing, ["build", "nowhere", *_BUILD[2:]], 5, "nowhere: No such file or directory"
    ),
    "a file for a folder": Case(
        _nothing, ["build", "release.pub", *_BUILD[2:]], 5, "release.pub: Not a directory"
    ),
    "pub_06 stranger": Case(_add("notes.txt"), _BUILD, 1, "'notes.txt' is not named platform-"),
    "pub_06 link": Case(_link, _BUILD, 1, "is not a regular file"),
    "pub_06 sub-folder": Case(_sub_folder, _BUILD, 1, "'more' is not a regular file"),
    "pub_06 hidden file": Case(_add(".DS_Store"), _BUILD, 1, "'.DS_Store' is not named platform-"),
    "pub_06 FIFO": Case(_fifo, _BUILD, 1, "is not a regular file"),
    "pub_06 socket": Case(_socket, _BUILD, 1, "'s' is not a regular file"),
    "pub_06 0 bytes": Case(
        _add(f"platform-khoj-rpi4-{VERSION}-stable.img.xz", b""), _BUILD, 1, "is empty"
    ),
    "pub_06 two versions": Case(
        _add("platform-khoj-rpi4-2026.11.2-stable.img.xz"),
        _BUILD,
        1,
        f"'platform-khoj-rpi4-2026.11.2-stable.img.xz' is not of the version {VERSION}",
    ),
    "another channel": Case(
        _add(f"platform-khoj-rpi4-{VERSION}-beta.img.xz"), _BUILD, 1, "is of the channel beta"
    ),
    "unknown profile": Case(
        _add(f"platform-nobody-rpi4-{VERSION}-stable.img.xz"), _BUILD, 1, "names no known profile"
    ),
    "wrong format": Case(
        _add(f"platform-khoj-rpi4-{VERSION}-stable.qcow2"), _BUILD, 1, "rpi4 takes img.xz"
    ),
    "two of one kind": Case(
        _add(f"platform-openclaw-rpi5-{VERSION}-stable.qcow2"), _BUILD, 1, "rpi5 takes img.xz"
    ),
    "a name that reads two ways": Case(
        _ambiguous,
        [*_BUILD, "--profiles", "profiles", "--targets", "targets.toml"],
        1,
        "can be read in two ways: profile khoj on target mini-board or"
        " profile khoj-mini on target board",
    ),
    "other bytes": Case(_other_bytes, _BUILD, 1, "has other bytes"),
    # The options.
    "not a version": Case(
        _nothing,
        ["build", "artefacts", "--version", "2026.11", "--channel", "stable"],
        2,
        "Invalid value for '--version'",
    ),
    "no channel": Case(
        _nothing,
        ["build", "artefacts", "--version", VERSION, "--channel", "nightly"],
        2,
        "'nightly' is not one of 'dev', 'beta', 'stable'",
    ),
    "SOURCE_DATE_EPOCH in words": Case(
        _nothing, _BUILD, 2, "SOURCE_DATE_EPOCH must be", {"SOURCE_DATE_EPOCH": "now"}
    ),
    "SOURCE_DATE_EPOCH empty": Case(
        _nothing, _BUILD, 2, "SOURCE_DATE_EPOCH must be", {"SOURCE_DATE_EPOCH": ""}
    ),
    "SOURCE_DATE_EPOCH before 1970": Case(
        _nothing, _BUILD, 2, "SOURCE_DATE_EPOCH must be", {"SOURCE_DATE_EPOCH": "-1"}
    ),
    "SOURCE_DATE_EPOCH after 9999": Case(
        _nothing, _BUILD, 2, "SOURCE_DATE_EPOCH must be", {"SOURCE_DATE_EPOCH": "253402300800"}
    ),
    "SOURCE_DATE_EPOCH in other digits": Case(
        _nothing, _BUILD, 2, "SOURCE_DATE_EPOCH must be", {"SOURCE_DATE_EPOCH": "١٢٣"}
    ),
    "tracker without a tag": Case(_nothing, [*_BUILD, "--tracker", "khoj"], 2, "takes ID=TAG"),
    "tracker without an id": Case(_nothing, [*_BUILD, "--tracker", "=v1"], 2, "takes ID=TAG"),
    "tracker twice": Case(
        _nothing,
        [*_BUILD, "--tracker", "khoj=1", "--tracker", "khoj=2"],
        2,
        "names a profile twice",
    ),
    "tracker that is not UTF-8": Case(
        _nothing, [*_BUILD, "--tracker", os.fsdecode(b"a=\xff")], 2, "is not UTF-8"
    ),
    "no jobs": Case(_nothing, [*_BUILD, "--jobs", "0"], 2, "'--jobs'"),
    "output is a file": Case(
        _nothing, [*_BUILD, "--output", "release.pub"], 5, "release.pub/stable: "
    ),
    "missing profiles": Case(
        _nothing, [*_BUILD, "--profiles", "nowhere"], 5, "nowhere is not a folder of profile"
    ),
    "empty profiles": Case(
        _folder("profiles"), [*_BUILD, "--profiles", "profiles"], 2, "holds no profile definition"
    ),
    "a profile with a blank": Case(
        _bad_profile, [*_BUILD, "--profiles", "profiles"], 2, "'a b' cannot be part of a file name"
    ),
    "missing targets": Case(
        _nothing, [*_BUILD, "--targets", "nowhere"], 5, "nowhere: No such file or directory"
    ),
    "targets that are no TOML": Case(
        _file("t", "[targets"), [*_BUILD, "--targets", "t"], 2, "t is not valid TOML"
    ),
    "targets without the table": Case(
        _file("t", "a = 1"), [*_BUILD, "--targets", "t"], 2, "t has no table [targets]"
    ),
    "a target of no format": Case(
        _file("t", '[targets]\na = "zip"'), [*_BUILD, "--targets", "t"], 2, "[targets].a must be"
    ),
    "a target with a slash": Case(
        _file("t", '[targets]\n"a/b" = "oci"'), [*_BUILD, "--targets", "t"], 2, "'a/b' cannot be"
    ),
    # The secret key.
    "pub_02 key empty": Case(_nothing, _BUILD, 2, "is set but empty", _with_key("")),
    "pub_02 key blank": Case(_nothing, _BUILD, 2, "is set but empty", _with_key(" \n ")),
    "pub_02 key missing": Case(
        _nothing, _BUILD, 5, "is neither a minisign secret key nor a file", _with_key("nowhere")
    ),
    "pub_02 key a folder": Case(
        _nothing, _BUILD, 5, "is neither a minisign secret key nor a file", _with_key("artefacts")
    ),
    "pub_02 key a FIFO": Case(
        _public_key_fifo, _BUILD, 5, "is neither a minisign secret key", _with_key("fifo")
    ),
    "pub_02 key without its end": Case(
        _nothing, _BUILD, 5, "is neither a minisign secret key", _with_key("R" * 200)
    ),
    "pub_02 key of garbage": Case(
        _file("bad.key", "garbage\n"), _BUILD, 2, "is no minisign key", _with_key("bad.key")
    ),
    "pub_02 key text of garbage": Case(
        _nothing, _BUILD, 2, "is no minisign key", _with_key("one\ntwo\nthree\n")
    ),
    "pub_02 key text that is not UTF-8": Case(
        _nothing, _BUILD, 2, "is no minisign key", _with_key(os.fsdecode(b"\xff\n\xfe\n"))
    ),
    "pub_02 public key for the secret one": Case(
        _nothing, _BUILD, 2, "is no minisign key", _with_key("release.pub")
    ),
    "pub_02 key of another algorithm": Case(
        _change_key(_other_algorithm), _BUILD, 2, "unknown algorithm", _with_key("bad.key")
    ),
    "key with a wrong checksum": Case(
        _change_key(_wrong_checksum), _BUILD, 1, "checksum is wrong", _with_key("bad.key")
    ),
    "key with another seed": Case(
        _change_key(_other_seed), _BUILD, 1, "checksum is wrong", _with_key("bad.key")
    ),
    "pub_02 key with a password and no terminal": Case(
        _change_key(lambda raw: raw.__setitem__(slice(2, 4), b"Sc")),
        _BUILD,
        2,
        "There is no terminal to ask for the password",
        _with_key("bad.key"),
    ),
    "key that asks for too much memory": Case(
        _change_key(_greedy),
        _BUILD,
        2,
        "asks for more work or memory",
        _with_key("bad.key") | {"SIGNING_SECRET_KEY_PASSWORD": "x"},
    ),
    "sign without a key": Case(
        _nothing, ["sign", "release.pub"], 2, "SIGNING_SECRET_KEY is not set"
    ),
    "sign nothing": Case(_nothing, ["sign"], 2, "Missing argument", _KEY),
    "sign a missing file": Case(
        _nothing, ["sign", "nowhere"], 5, "nowhere: No such file or directory", _KEY
    ),
    "sign a missing release": Case(
        _nothing, ["sign", "no/manifest.json.unsigned"], 5, "No such file or directory", _KEY
    ),
    # keygen.
    "keygen over a secret key": Case(
        _nothing,
        ["keygen", "--secret-key", "release.key", "--public-key", "p", "--no-password"],
        1,
        "release.key exists already and is not overwritten",
    ),
    "keygen into one file": Case(
        _nothing,
        ["keygen", "--secret-key", "k", "--public-key", "./k", "--no-password"],
        2,
        "the two keys need two files",
    ),
    "keygen below a file": Case(
        _nothing,
        ["keygen", "--secret-key", "release.pub/k", "--public-key", "p", "--no-password"],
        5,
        "release.pub",
    ),
    "keygen with a name too long": Case(
        _nothing,
        ["keygen", "--secret-key", "k" * 300, "--public-key", "p", "--no-password"],
        5,
        "File name too long",
    ),
    # What is verified.
    "verify nothing": Case(_nothing, ["verify", "nowhere", "-p", "release.pub"], 5, "nowhere"),
    "verify without a release": Case(
        _nothing, ["verify", "artefacts", "-p", "release.pub"], 5, "holds no manifest.json"
    ),
    "verify without a key": Case(_nothing, ["verify", "dist"], 2, "--public-key"),
    "public key missing": Case(
        _nothing, ["verify", "dist", "-p", "nowhere"], 5, "nowhere: No such file or directory"
    ),
    "public key a folder": Case(
        _nothing, ["verify", "dist", "-p", "artefacts"], 5, "artefacts is not a regular file"
    ),
    "public key a FIFO": Case(
        _public_key_fifo, ["verify", "dist", "-p", "fifo"], 5, "fifo is not a regular file"
    ),
    "public key of garbage": Case(
        _file("bad.pub", "garbage"), ["verify", "dist", "-p", "bad.pub"], 2, "is no minisign public"
    ),
    "secret key for the public one": Case(
        _nothing, ["verify", "dist", "-p", "release.key"], 2, "this is a secret key file"
    ),
    "another key": Case(_other_key, _VERIFY, 1, "E_KEY"),
    "another schema version": Case(
        _manifest_bytes(b'{"schema_version": 2}'), _VERIFY, 4, "upgrade the control CLI"
    ),
    "garbage that is signed": Case(_manifest_bytes(b"\x00\xff"), _VERIFY, 3, "E_SCHEMA"),
    "garbage that is not signed": Case(_flipped_manifest, _VERIFY, 1, "E_SIG"),
    "a path out of the tree": Case(_escaping, _VERIFY, 3, "artefacts[1].filename"),
    "a signature of another file": Case(_signature_of_another_file, _VERIFY, 1, "E_SIG"),
    "a swapped trusted comment": Case(
        _swapped_comment, _VERIFY, 1, "the trusted comment does not belong to this signature"
    ),
    "a signed file under another name": Case(_signed_under_another_name, _VERIFY, 1, "E_COMMENT"),
    "a truncated artefact": Case(_truncated, _VERIFY, 1, "E_SIZE"),
    "a missing artefact": Case(_remove(_IMAGE), _VERIFY, 1, "E_MISSING"),
    "a missing signature": Case(_remove(_IMAGE + ".minisig"), _VERIFY, 1, "E_MISSING"),
    "an unexpected file": Case(_stranger_in_the_release, _VERIFY, 1, "E_UNEXPECTED"),
    # What is inspected and compared.
    "inspect garbage": Case(_file("m.json", "{"), ["inspect", "m.json"], 3, "not valid JSON"),
    "inspect another schema version": Case(
        _file("m.json", '{"schema_version": "1"}'), ["inspect", "m.json"], 4, "upgrade the control"
    ),
    "inspect nothing": Case(_nothing, ["inspect", "nowhere"], 5, "nowhere does not exist"),
    "compare no version": Case(_nothing, ["compare", "2026.11", "2026.11.1"], 3, "2026.11"),
}


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory, key_pair: KeyPair) -> Path:
    """A site that every test takes a copy of."""
    folder = tmp_path_factory.mktemp("site")
    write_artefacts(folder / "artefacts", artefact_files())
    write_artefacts(
        folder,
        {
            "release.key": key_pair.secret.read_bytes(),
            "release.pub": key_pair.public.read_bytes(),
        },
    )
    built = Tools(folder)(*_BUILD, env=_KEY)
    assert built.returncode == 0, built.stderr
    return folder


@pytest.fixture
def site(original: Path, tmp_path: Path) -> Site:
    """A site of this test's own."""
    for path, (_, data) in tree(original).items():
        if (original / path).is_dir():
            (tmp_path / path).mkdir()
        else:
            (tmp_path / path).write_bytes(data)
    return Site(tmp_path)


@pytest.mark.parametrize("case", _CASES.values(), ids=[name.replace(" ", "-") for name in _CASES])
def test_bad_input_is_told_in_a_sentence_with_its_exit_code_and_changes_nothing(
    site: Site, case: Case
) -> None:
    case.prepare(site)
    before = tree(site.folder)
    ended = Tools(site.folder)(*case.command, "--json", env=case.env)
    document = json.loads(ended.stdout)
    assert ended.returncode == case.exit_code, ended.stderr
    assert document["exit_code"] == case.exit_code
    assert document["ok"] is False
    # A sentence on stderr, with a hint perhaps; or the findings of a verification on stdout.
    told = ended.stderr or json.dumps(document["findings"])
    assert case.says in told
    assert "Traceback" not in told
    if ended.stderr.startswith("error: "):
        sentence, *hint = ended.stderr.splitlines()
        assert not sentence.endswith(".")
        assert [line.partition(" ")[0] for line in hint] in ([], ["hint:"])
    assert site.key_line() not in ended.stderr + ended.stdout
    assert tree(site.folder) == before


def test_every_stranger_is_named_at_once(site: Site) -> None:
    for name in ("one.txt", "two.txt", f"platform-khoj-rpi4-{VERSION}-beta.img.xz"):
        _add(name)(site)
    stderr = Tools(site.folder)(*_BUILD).stderr
    assert stderr.count("; ") == 2
    assert "'one.txt'" in stderr
    assert "'two.txt'" in stderr
    assert "of the channel beta" in stderr


def test_an_unreadable_file_is_named(site: Site) -> None:
    # Without the right to override permissions, which root has and gives up here.
    (site.artefacts / _IMAGE).chmod(0)
    before = tree(site.folder) if os.getuid() == 0 else None
    drop = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.getuid() == 0 else []
    ended = subprocess.run(
        [*drop, program(), *_BUILD, "--output", "other"],
        cwd=site.folder,
        env=clean_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert ended.returncode == 5
    assert ended.stderr == f"error: artefacts/{_IMAGE}: Permission denied\n"
    assert before is None or tree(site.folder) == before
