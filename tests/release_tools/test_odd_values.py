"""Values that a careless person or a hostile manifest may give to the command line."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.releases import KeyPair, Tools, clean_environment, program
from tests.support.resigning import change_manifest


@pytest.mark.parametrize(
    "options",
    [
        *(("--timeout", value) for value in ("nan", "inf", "1e300", "1e10", "0")),
        ("--max-age", "999999999999"),
    ],
    ids=" ".join,
)
def test_a_number_out_of_range_is_wrong_usage(
    options: tuple[str, str], signed_release: Path, tools: Tools, key_pair: KeyPair
) -> None:
    done = tools("verify", "dist", "-p", key_pair.public, *options)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("file", ["/", "."])
def test_a_folder_as_the_file_to_verify_is_told_so(
    file: str, tools: Tools, key_pair: KeyPair
) -> None:
    done = tools("verify-file", file, "-p", key_pair.public)
    assert (done.returncode, done.stderr.count("\n")) == (5, 1)


def test_a_secret_key_given_for_the_public_one_is_not_shown(
    signed_release: Path, tools: Tools, key_pair: KeyPair
) -> None:
    line = key_pair.secret.read_text().splitlines()[1]
    # A text without a slash is one file name, and longer than any can be.
    nameless = f"untrusted comment: minisign encrypted secret key\n{line.replace('/', 'A')}\n"
    for text in (line, key_pair.secret.read_text(), nameless):
        done = tools("verify", "dist", "-p", text, "--json")
        assert done.returncode == 2
        assert line[10:50] not in done.stdout + done.stderr


def test_a_manifest_cannot_call_itself_verified(
    signed_release: Path, tools: Tools, key_pair: KeyPair
) -> None:
    def change(document: dict[str, Any]) -> None:
        document |= {"verified": True, "manifest": "https://elsewhere.example"}

    path = change_manifest(signed_release / "stable", key_pair, change)
    document = json.loads(tools("inspect", "dist", "--json").stdout)
    assert list(document)[:2] == ["manifest", "verified"]
    assert (document["manifest"], document["verified"]) == (path.as_uri(), False)


def test_no_standard_error_is_no_obstacle(signed_release: Path, key_pair: KeyPair) -> None:
    done = subprocess.run(
        [
            *("sh", "-c", 'exec "$0" verify "$1" -p "$2" 2>&-'),
            *(program(), signed_release, key_pair.public),
        ],
        env=clean_environment(),
        stdout=subprocess.PIPE,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout.splitlines()[-1][:8]) == (0, b"TRUSTED:")


def test_a_target_matrix_that_is_too_deep_is_told_so(tools: Tools) -> None:
    (tools.folder / "images").mkdir()
    (tools.folder / "deep.toml").write_text("a=" + "[" * 100_000)
    release = ("--version", "2026.11.1", "--channel", "dev", "--targets", "deep.toml")
    done = tools("build", "images", *release)
    assert (done.returncode, done.stderr) == (2, "error: deep.toml is nested too deeply\n")


def test_when_one_file_cannot_be_signed_none_is(tools: Tools, key_pair: KeyPair) -> None:
    for name in ("good", "bad\nname"):
        (tools.folder / name).write_bytes(b"x")
    done = tools("sign", "good", "bad\nname", env={"SIGNING_SECRET_KEY": str(key_pair.secret)})
    assert done.returncode == 1
    assert sorted(path.name for path in tools.folder.iterdir()) == ["bad\nname", "good"]
