"""Our signatures and those of the `minisign` program: each reads the other's."""

from __future__ import annotations

import base64
import hashlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from release_tools.signing.keys import generate
from tests.support import minisign_program
from tests.support.releases import VERSION, KeyPair, Tools, pseudo_random, write_artefacts

_GROUP_ORDER = 2**252 + 27742317777372353535851937790883648493


@dataclass(frozen=True)
class Signed:
    """A file, its signature and a public key, as bytes that a test may damage."""

    file: bytes
    signature: bytes
    key: bytes

    @property
    def lines(self) -> list[bytes]:
        """The four lines of the signature."""
        return self.signature.splitlines()

    def with_lines(self, *lines: bytes, end: bytes = b"\n") -> Signed:
        """The same, with another signature file."""
        return replace(self, signature=b"".join(line + end for line in lines))

    def with_line(self, number: int, line: bytes) -> Signed:
        """The same, with one line of the signature replaced."""
        lines = self.lines
        lines[number] = line
        return self.with_lines(*lines)

    def with_raw(self, change: Callable[[bytes], bytes]) -> Signed:
        """The same, with the decoded signature line changed."""
        return self.with_line(1, base64.b64encode(change(base64.b64decode(self.lines[1]))))

    def with_key(self, change: Callable[[bytes], bytes]) -> Signed:
        """The same, with the decoded public key changed."""
        comment, line = self.key.splitlines()
        changed = base64.b64encode(change(base64.b64decode(line)))
        return replace(self, key=comment + b"\n" + changed + b"\n")

    def write(self, folder: Path) -> tuple[Path, Path, Path]:
        """Write the three files; return the paths of file, signature and key."""
        paths = folder / "notes.txt", folder / "notes.txt.minisig", folder / "notes.pub"
        for path, data in zip(paths, (self.file, self.signature, self.key), strict=True):
            path.write_bytes(data)
        return paths


@pytest.fixture(scope="module")
def program_keys(tmp_path_factory: pytest.TempPathFactory) -> KeyPair:
    return KeyPair(*minisign_program.generate(tmp_path_factory.mktemp("program")))


@pytest.fixture(scope="module")
def signed(program_keys: KeyPair, tmp_path_factory: pytest.TempPathFactory) -> Signed:
    """A file signed by the program."""
    file = tmp_path_factory.mktemp("signed") / "notes.txt"
    file.write_bytes(pseudo_random(5000, "notes"))
    signature = minisign_program.sign(program_keys.secret, file)
    return Signed(file.read_bytes(), signature.read_bytes(), program_keys.public.read_bytes())


def _swap_case_of_one(line: bytes) -> bytes:
    at = next(index for index in range(20, len(line)) if line[index : index + 1].isalpha())
    return line[:at] + line[at : at + 1].swapcase() + line[at + 1 :]


def _loose_bits(line: bytes) -> bytes:
    # 74 bytes leave two bits of the last character before "=" unused, and they are zero.
    alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    value = alphabet.index(line[-2])
    assert value % 4 == 0
    return line[:-2] + alphabet[value + 1 : value + 2] + b"="


def _with_second_s(raw: bytes) -> bytes:
    s = int.from_bytes(raw[42:], "little") + _GROUP_ORDER
    return raw[:42] + s.to_bytes(32, "little")


def _flip(data: bytes, at: int = 5) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def _first(size: int) -> bytes:
    """A first line of that length."""
    return b"untrusted comment: ".ljust(size, b"x")


Change = Callable[[Signed], Signed]
_ACCEPTED: dict[str, Change] = {
    "nothing changed": lambda s: s,
    "signature: CRLF": lambda s: s.with_lines(*s.lines, end=b"\r\n"),
    "signature: no newline at the end": lambda s: replace(s, signature=s.signature.rstrip(b"\n")),
    "signature: fifth line": lambda s: s.with_lines(*s.lines, b"more"),
    "signature: junk after it": lambda s: replace(s, signature=s.signature + b"x" * 50_000),
    "signature: twice": lambda s: s.with_lines(*s.lines, *s.lines),
    "signature: no untrusted comment": lambda s: s.with_line(0, b"untrusted comment: "),
    "signature: ESC in the first line": lambda s: s.with_line(0, b"untrusted comment: \x1b[31mred"),
    "signature: longest first line": lambda s: s.with_line(0, _first(1022)),
    "signature: comment goes on after CR": lambda s: s.with_line(2, s.lines[2] + b"\rinjected"),
    "signature: unused bits of base64": lambda s: s.with_line(1, _loose_bits(s.lines[1])),
    "key: CRLF": lambda s: replace(s, key=s.key.replace(b"\n", b"\r\n")),
    "key: more lines": lambda s: replace(s, key=s.key + b"more\n"),
    "key: other comment": lambda s: replace(s, key=b"anything\n" + s.key.splitlines()[1]),
    "key: byte-order mark": lambda s: replace(s, key=b"\xef\xbb\xbf" + s.key),
    "key: empty comment": lambda s: replace(s, key=b"\n" + s.key.splitlines()[1] + b"\n"),
    "key id changed in both": lambda s: s.with_raw(_flip).with_key(_flip),
}
_REFUSED: dict[str, Change] = {
    "file: a bit flipped": lambda s: replace(s, file=_flip(s.file, 2500)),
    "file: longer by one": lambda s: replace(s, file=s.file + b"\0"),
    "file: emptied": lambda s: replace(s, file=b""),
    "signature: empty": lambda s: replace(s, signature=b""),
    "signature: three lines": lambda s: s.with_lines(*s.lines[:3]),
    "signature: byte-order mark": lambda s: replace(s, signature=b"\xef\xbb\xbf" + s.signature),
    "signature: UTF-16": lambda s: replace(s, signature=s.signature.decode().encode("utf-16")),
    "signature: blank line first": lambda s: s.with_lines(b"", *s.lines),
    "signature: blank line between": lambda s: s.with_lines(*s.lines[:2], b"", *s.lines[2:]),
    "signature: first line too long": lambda s: s.with_line(0, _first(1023)),
    "signature: prefix of the first line": lambda s: s.with_line(0, b"comment: x"),
    "signature: NUL in the first line": lambda s: s.with_line(0, b"untrusted comment: a\0b"),
    "signature: prefix of the third line": lambda s: s.with_line(2, s.lines[2][8:]),
    "signature: NUL in the trusted comment": lambda s: s.with_line(2, s.lines[2] + b"\0"),
    "signature: trusted comment edited": lambda s: s.with_line(2, s.lines[2] + b"!"),
    "signature: trusted comment emptied": lambda s: s.with_line(2, b"trusted comment: "),
    "signature: trusted comment too long": lambda s: s.with_line(2, s.lines[2].ljust(8200)),
    "signature: one letter": lambda s: s.with_line(1, _swap_case_of_one(s.lines[1])),
    "signature: letter of the last line": lambda s: s.with_line(3, _swap_case_of_one(s.lines[3])),
    "signature: no padding": lambda s: s.with_line(1, s.lines[1].rstrip(b"=")),
    "signature: blank at the end of base64": lambda s: s.with_line(1, s.lines[1] + b" "),
    "signature: letters of URL base64": lambda s: s.with_line(1, s.lines[1][:-9] + b"-_-_-_-_="),
    "signature: cut last line": lambda s: s.with_line(3, s.lines[3][:-4]),
    "signature: legacy by label": lambda s: s.with_raw(lambda raw: b"Ed" + raw[2:]),
    "signature: unknown algorithm": lambda s: s.with_raw(lambda raw: b"XX" + raw[2:]),
    "signature: other key id": lambda s: s.with_raw(_flip),
    "signature: S past the group order": lambda s: s.with_raw(_with_second_s),
    "key: empty": lambda s: replace(s, key=b""),
    "key: only its line": lambda s: replace(s, key=s.key.splitlines()[1] + b"\n"),
    "key: lines swapped": lambda s: replace(s, key=b"\n".join(s.key.splitlines()[::-1]) + b"\n"),
    "key: cut": lambda s: replace(s, key=s.key[:-6] + b"\n"),
    "key: other point": lambda s: s.with_key(lambda raw: _flip(raw, 30)),
    "key: point of zeros": lambda s: s.with_key(lambda raw: raw[:10] + bytes(32)),
    "key: algorithm ED": lambda s: s.with_key(lambda raw: b"ED" + raw[2:]),
    "key: the signature instead": lambda s: replace(s, key=s.signature),
}


@pytest.mark.parametrize("change", _ACCEPTED.values(), ids=_ACCEPTED)
def test_both_accept_the_same_deviations(
    change: Change, signed: Signed, tmp_path: Path, tools: Tools
) -> None:
    file, signature, key = change(signed).write(tmp_path)
    assert minisign_program.verify(key, file, signature).status == 0
    assert tools("verify-file", file, "-p", key, "--signature", signature).returncode == 0


@pytest.mark.parametrize("change", _REFUSED.values(), ids=_REFUSED)
def test_both_refuse_the_same_damage(
    change: Change, signed: Signed, tmp_path: Path, tools: Tools
) -> None:
    file, signature, key = change(signed).write(tmp_path)
    assert minisign_program.verify(key, file, signature).status != 0
    ours = tools("verify-file", file, "-p", key, "--signature", signature)
    assert ours.returncode in (1, 2)
    assert ours.stderr.startswith("error: ")
    assert "Traceback" not in ours.stderr


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """A file to sign."""
    (tmp_path / "notes.txt").write_bytes(b"notes")
    return tmp_path / "notes.txt"


@pytest.fixture
def build(tmp_path: Path, tools: Tools) -> Callable[..., None]:
    """Build a release of three artefacts in `dist`, signed if there is a key."""

    def build(**environment: str) -> None:
        write_artefacts(tmp_path / "artefacts")
        built = tools(
            *("build", "artefacts", "--version", VERSION, "--channel", "stable"), env=environment
        )
        assert built.returncode == 0, built.stderr

    return build


def test_the_program_verifies_a_release_that_was_signed_later(
    tmp_path: Path, tools: Tools, key_pair: KeyPair, build: Callable[..., None]
) -> None:
    build()
    unsigned = tmp_path / "dist/stable/manifest.json.unsigned"
    done = tools("sign", unsigned, env={"SIGNING_SECRET_KEY": str(key_pair.secret)})
    assert done.returncode == 0, done.stderr
    assert_verified(tmp_path / "dist", key_pair)


def test_the_program_verifies_every_file_of_a_built_release(
    signed_release: Path, key_pair: KeyPair
) -> None:
    assert_verified(signed_release, key_pair)


def assert_verified(dist: Path, key_pair: KeyPair) -> None:
    """Check that the program verifies the manifest and the three artefacts."""
    signatures = sorted(dist.rglob("*.minisig"))
    assert len(signatures) == 4
    for signature in signatures:
        done = minisign_program.verify(key_pair.public, signature.with_suffix(""))
        assert done.status == 0, done.output


def test_the_program_shows_our_trusted_comment(
    notes: Path, tools: Tools, key_pair: KeyPair
) -> None:
    variables = {"SIGNING_SECRET_KEY": str(key_pair.secret), "SOURCE_DATE_EPOCH": "1700000000"}
    done = tools("sign", "notes.txt", env=variables)
    assert done.returncode == 0, done.stderr
    shown = minisign_program.verify(key_pair.public, notes)
    assert shown.status == 0
    assert "Trusted comment: timestamp:1700000000\tfile:notes.txt\thashed\n" in shown.output


def test_the_program_signs_with_our_key_and_accepts_our_public_key_line(
    notes: Path, tools: Tools, key_pair: KeyPair
) -> None:
    minisign_program.sign(key_pair.secret, notes)
    line = key_pair.public.read_text().splitlines()[1]
    assert minisign_program.run("-V", "-P", line, "-m", notes).status == 0
    assert tools("verify-file", notes, "-p", line).returncode == 0


def test_a_key_with_a_password_of_ours_works_in_the_program(
    tmp_path: Path, notes: Path, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The lowest cost that libsodium accepts: the program reads the cost from the file.
    monkeypatch.setattr("release_tools.signing.secret_key.DEFAULT_OPSLIMIT", 1_048_576)
    monkeypatch.setattr("release_tools.signing.secret_key.DEFAULT_MEMLIMIT", 33_554_432)
    secret = tmp_path / "our.key"
    generate(secret, tmp_path / "our.pub", "correct horse")
    wrong = minisign_program.run("-S", "-s", secret, "-m", notes, stdin="wrong horse\n")
    assert (wrong.status, "Wrong password" in wrong.output) == (2, True)
    minisign_program.sign(secret, notes, password="correct horse")
    assert tools("verify-file", notes, "-p", "our.pub").returncode == 0


# The program takes seconds to create one.
@pytest.mark.long
def test_a_key_with_a_password_of_the_program_works_here(
    tmp_path: Path, notes: Path, tools: Tools
) -> None:
    secret, public = minisign_program.generate(tmp_path / "keys", password="battery staple")
    key = {"SIGNING_SECRET_KEY": str(secret), "SIGNING_SECRET_KEY_PASSWORD": "battery staple"}
    done = tools("sign", "notes.txt", env=key)
    assert done.returncode == 0, done.stderr
    assert minisign_program.verify(public, notes).status == 0


def test_a_key_without_a_password_of_the_program_builds_a_release(
    tools: Tools, program_keys: KeyPair, build: Callable[..., None]
) -> None:
    build(SIGNING_SECRET_KEY=str(program_keys.secret))
    done = tools("verify", "dist", "-p", program_keys.public, "--verifier", "both")
    assert done.returncode == 0


_OPTIONS: dict[str, tuple[str, ...]] = {
    "as it comes": (),
    "trusted comment": ("-t", "released by the night shift"),
    "longest trusted comment": ("-t", "x" * 4077),
    "not ASCII": ("-t", "für Grüße \u2713"),
    "untrusted comment": ("-c", "made on a Monday"),
    "both": ("-t", "file:notes.txt", "-c", "\u2713"),
}


@pytest.mark.parametrize("options", _OPTIONS.values(), ids=_OPTIONS)
def test_we_verify_what_the_program_signs(
    options: tuple[str, ...], notes: Path, tools: Tools, program_keys: KeyPair
) -> None:
    notes.write_bytes(pseudo_random(1 << 20, "notes"))
    minisign_program.sign(program_keys.secret, notes, *options)
    done = tools("verify-file", notes, "-p", program_keys.public)
    assert done.returncode == 0, done.stderr
    if "-t" in options:
        assert done.stdout.endswith(f"Trusted comment: {options[1]}\n")


def test_a_legacy_signature_is_only_good_if_allowed_and_for_the_same_bytes(
    notes: Path, tools: Tools, program_keys: KeyPair
) -> None:
    key = program_keys.public
    notes.write_bytes(pseudo_random(3_000_000, "notes"))
    minisign_program.sign(program_keys.secret, notes, "-l")
    assert minisign_program.run("-V", "-p", key, "-m", notes).status == 0
    assert tools("verify-file", notes, "-p", key, "--legacy").returncode == 0
    without = tools("verify-file", notes, "-p", key)
    assert without.returncode == 1
    assert "legacy kind" in without.stderr
    notes.write_bytes(b"others")
    assert minisign_program.run("-V", "-p", key, "-m", notes).status == 1
    assert tools("verify-file", notes, "-p", key, "--legacy").returncode == 1


@pytest.mark.parametrize("verifier", ["native", "system", "both"])
def test_a_release_signed_in_the_legacy_form_is_refused(
    verifier: str, signed_release: Path, tools: Tools, key_pair: KeyPair
) -> None:
    manifest = signed_release / "stable/manifest.json"
    minisign_program.sign(key_pair.secret, manifest, "-l")
    assert minisign_program.run("-V", "-p", key_pair.public, "-m", manifest).status == 0
    done = tools("verify", "dist", "-p", key_pair.public, "--verifier", verifier)
    assert done.returncode == 1
    assert "E_SIG" in done.stdout


@pytest.mark.parametrize("verifier", ["native", "system", "both"])
def test_a_prehashed_signature_relabelled_legacy_does_not_cover_the_hash(
    verifier: str, signed_release: Path, tools: Tools, key_pair: KeyPair
) -> None:
    # The algorithm is not signed: under the other label the signature is valid for a "manifest"
    # that consists of the 64 bytes of the digest. The program accepts it without -H.
    manifest = signed_release / "stable/manifest.json"
    signature = manifest.with_name("manifest.json.minisig")
    genuine = Signed(manifest.read_bytes(), signature.read_bytes(), b"")
    manifest.write_bytes(hashlib.blake2b(genuine.file).digest())
    signature.write_bytes(genuine.with_raw(lambda raw: b"Ed" + raw[2:]).signature)
    assert minisign_program.run("-V", "-p", key_pair.public, "-m", manifest).status == 0
    done = tools("verify", "dist", "-p", key_pair.public, "--verifier", verifier)
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1].startswith("DO NOT TRUST: 1 finding, the first E_SIG")


def test_the_program_signs_artefacts_of_a_release_for_us(
    signed_release: Path, tools: Tools, key_pair: KeyPair
) -> None:
    for signature in signed_release.rglob("*.minisig"):
        signature.unlink()
    for file in [path for path in signed_release.rglob("*") if path.is_file()]:
        minisign_program.sign(key_pair.secret, file)
    done = tools("verify", "dist", "-p", key_pair.public, "--verifier", "both")
    assert done.returncode == 0, done.stdout


def test_a_signature_for_another_name_is_good_for_the_program_and_a_warning_for_us(
    signed: Signed, tmp_path: Path, tools: Tools
) -> None:
    file, signature, key = signed.write(tmp_path)
    other = tmp_path / "other.txt"
    shutil.copy(file, other)
    assert minisign_program.verify(key, other, signature).status == 0
    lenient = tools("verify-file", other, "-p", key, "--signature", signature)
    assert (lenient.returncode, "warning" in lenient.stderr) == (0, True)
    strict = tools("verify-file", other, "-p", key, "--signature", signature, "--strict")
    assert strict.returncode == 1
