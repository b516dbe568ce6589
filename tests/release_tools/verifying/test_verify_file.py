"""`release-tools verify-file`: one file and its detached signature."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support import minisign_program
from tests.support.releases import KeyPair, Tools, pseudo_random
from tests.support.resigning import sign_file


@pytest.fixture
def notes(tmp_path: Path, key_pair: KeyPair) -> Path:
    """A signed file."""
    path = tmp_path / "notes.txt"
    path.write_bytes(pseudo_random(100_000, "notes"))
    sign_file(path, key_pair)
    return path


def test_a_signature_elsewhere_is_named(notes: Path, tools: Tools, key_pair: KeyPair) -> None:
    moved = notes.with_name("notes.txt.minisig").rename(notes.with_name("other"))
    assert tools("verify-file", notes, "-p", key_pair.public).returncode == 5
    done = tools("verify-file", notes, "-p", key_pair.public, "--signature", moved)
    assert done.returncode == 0


def test_the_error_for_another_key_names_it_and_one_matching_key_is_enough(
    notes: Path, tmp_path: Path, tools: Tools, key_pair: KeyPair
) -> None:
    _, other = minisign_program.generate(tmp_path / "other")
    done = tools("verify-file", notes, "-p", other)
    assert done.returncode == 1
    assert "the signature was made with key" in done.stderr
    done = tools("verify-file", notes, "-p", other, "-p", key_pair.public)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Good signature of key ")


def test_a_comment_for_another_file_is_a_warning_and_with_strict_an_error(
    notes: Path, tools: Tools, key_pair: KeyPair
) -> None:
    sign_file(notes, key_pair, "file:other.txt")
    lenient = tools("verify-file", notes, "-p", key_pair.public, "--json")
    document = json.loads(lenient.stdout)
    assert (lenient.returncode, document["ok"]) == (0, True)
    assert "'other.txt'" in document["warnings"][0]
    strict = tools("verify-file", notes, "-p", key_pair.public, "--strict")
    assert (strict.returncode, "'other.txt'" in strict.stderr) == (1, True)


def test_strict_refuses_the_legacy_form_whatever_the_other_options(
    notes: Path, tools: Tools, key_pair: KeyPair
) -> None:
    minisign_program.sign(key_pair.secret, notes, "-l", "-t", "file:notes.txt")
    assert tools("verify-file", notes, "-p", key_pair.public, "--legacy").returncode == 0
    done = tools("verify-file", notes, "-p", key_pair.public, "--legacy", "--strict")
    assert done.returncode == 1


def test_rel_25_a_key_file_that_others_can_change_causes_a_warning(
    notes: Path, tmp_path: Path, tools: Tools, key_pair: KeyPair
) -> None:
    key = tmp_path / "open.pub"
    key.write_bytes(key_pair.public.read_bytes())
    key.chmod(0o666)
    done = tools("verify-file", notes, "-p", key)
    assert (done.returncode, "other users can change the public key file" in done.stderr) == (
        0,
        True,
    )
