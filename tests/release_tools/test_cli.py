"""The command line: what it imports, what it prints for programs, and where keys never appear."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import sys
import traceback
from pathlib import Path

import pytest
from click.testing import CliRunner

from release_tools import cli
from release_tools.building.build import BuildRequest, build_release
from release_tools.manifest.calver import CalVer
from release_tools.signing import secret_key
from release_tools.signing.keys import generate, take_secret_key
from release_tools.signing.secret_key import SecretKey
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

_ARGS = ("build", "artefacts", "--version", VERSION, "--channel", "stable")
_PASSWORD = "correct horse battery staple"
_NETWORK = ("requests", "rich", "urllib3", "obstore", "tomllib")


def _imported(*args: str | Path, folder: Path) -> set[str]:
    """The top-level modules that a command imports."""
    code = """
import sys
from release_tools.cli import main
try:
    main(sys.argv[1:])
except SystemExit as end:
    assert not end.code, end.code
print(*sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
"""
    ended = run(sys.executable, "-c", code, *args, folder=folder)
    assert ended.returncode == 0, ended.stderr
    return set(ended.stderr.split())


def test_a_command_imports_nothing_that_only_other_commands_need(
    signed_release: Path, key_pair: KeyPair
) -> None:
    folder = signed_release.parent
    for args in (("--version",), ("compare", "2026.1.1", "2026.1.2")):
        assert not _imported(*args, folder=folder) & {*_NETWORK, "nacl", "jsonschema"}
    verify = ("verify", "dist", "-p", key_pair.public, "--manifest-only")
    imported = _imported(*verify, folder=folder)
    assert not imported & {*_NETWORK, "ssl"}
    assert "nacl" in imported


def test_version_names_the_program_and_its_version(tools: Tools) -> None:
    assert re.fullmatch(r"release-tools, version \S+\n", tools("--version").stdout)


def test_compare_prints_the_order_for_people_and_for_programs(tools: Tools) -> None:
    for a, sign, b, order in (
        *(("2026.11.1-rc1", "<", "2026.11.1", -1), ("2026.11.1", "=", "2026.11.1", 0)),
        ("2026.11.2", ">", "2026.9.30", 1),
    ):
        assert tools("compare", a, b).stdout == f"{a} {sign} {b}\n"
        assert json.loads(tools("compare", a, b, "--json").stdout) == {"order": order}


_JSON: dict[tuple[str | Path, ...], set[str]] = {
    ("verify", "dist", "-p", "release.pub"): {"verdict", "location", "releases", "findings"},
    ("inspect", "dist"): {"manifest", "verified", "artefacts"},
    ("verify-file", "notes.txt", "-p", "release.pub"): {"key_id", "warnings"},
    ("keygen", "--no-password", "--secret-key", "a", "--public-key", "b"): {"key_id", "public_key"},
    _ARGS: {"manifest", "signed", "release_version", "channel", "artefacts"},
    ("sign", "notes.txt"): {"signatures"},
}


@pytest.mark.parametrize(
    ("command", "members"), _JSON.items(), ids=[str(args[0]) for args in _JSON]
)
@pytest.mark.usefixtures("signed_release")
def test_json_is_one_document_and_nothing_else_on_stdout(
    command: tuple[str, ...], members: set[str], tools: Tools, key_pair: KeyPair
) -> None:
    (tools.folder / "notes.txt").write_bytes(b"notes")
    shutil.copy(key_pair.public, tools.folder / "release.pub")
    sign_file(tools.folder / "notes.txt", key_pair)
    done = tools(*command, "--json", env={"SIGNING_SECRET_KEY": str(key_pair.secret)})
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    assert members <= set(document)
    if command[0] == "keygen":
        assert document["key_id"] in (tools.folder / "b").read_text()
    if command[0] == "build":
        assert (document["ok"], document["signed"], document["channel"]) == (True, True, "stable")
        assert document["manifest"] == "dist/stable/manifest.json"
        assert document["artefacts"] == sorted(artefact_files())


@pytest.mark.parametrize(
    "args",
    [
        ("build", "--no-such-option", "--json"),
        ("--json-is-no-option-here", "build", "--json"),
        ("no-such-command", "--json"),
        ("compare", "2026.1.1", "--json"),
    ],
    ids=["unknown option", "unknown option of all", "unknown command", "no argument"],
)
def test_wrong_usage_is_exit_2_and_never_a_traceback(tools: Tools, args: tuple[str, ...]) -> None:
    ended = tools(*args)
    assert ended.returncode == 2
    assert "Error: " in ended.stderr
    assert "Traceback" not in ended.stderr
    if args[0] != "--json-is-no-option-here":
        assert json.loads(ended.stdout)["exit_code"] == 2


def test_a_file_named_json_is_not_mistaken_for_an_option(tools: Tools) -> None:
    assert tools("inspect", "--", "--json").stdout == ""


def test_json_is_chosen_by_the_arguments_of_the_call_and_not_of_the_process() -> None:
    runner = CliRunner()
    assert json.loads(runner.invoke(cli.main, ["compare", "x", "y", "--json"]).stdout)
    assert runner.invoke(cli.main, ["compare", "x", "y"]).stdout == ""


def test_a_path_that_is_not_utf_8_is_shown(tmp_path: Path, tools: Tools, key_pair: KeyPair) -> None:
    write_artefacts(tmp_path / "artefacts")
    output = os.fsdecode(b"dist-\xff")
    built = tools(*_ARGS, "--output", output, env={"SIGNING_SECRET_KEY": str(key_pair.secret)})
    assert built.returncode == 0, built.stderr
    assert "dist-\\udcff/stable/manifest.json\n" in built.stdout
    assert (tmp_path / output / "stable" / "manifest.json").exists()


# The secret key.


def test_a_key_with_a_password_signs_only_with_that_password(
    tmp_path: Path, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_artefacts(tmp_path, {"a.txt": b"a"})
    # The lowest cost of scrypt, so that the test does not take 3 seconds and 1 GiB each time.
    monkeypatch.setattr(secret_key, "DEFAULT_OPSLIMIT", 32_768)
    monkeypatch.setattr(secret_key, "DEFAULT_MEMLIMIT", 16 << 20)
    generate(tmp_path / "k.key", tmp_path / "k.pub", _PASSWORD)
    password = {"SIGNING_SECRET_KEY_PASSWORD": _PASSWORD}
    key = {"SIGNING_SECRET_KEY": "k.key"}
    assert tools("sign", "a.txt", env=key | password).returncode == 0
    assert tools("verify-file", "a.txt", "-p", "k.pub").returncode == 0
    (tmp_path / "a.txt.minisig").unlink()
    wrong = tools("sign", "a.txt", env=key | {"SIGNING_SECRET_KEY_PASSWORD": "wrong"})
    assert wrong.returncode == 1
    assert wrong.stderr == (
        "error: the password of the secret key is wrong, or the key file is damaged\n"
    )
    without = tools("sign", "a.txt", env=key)
    assert without.returncode == 2
    assert "set SIGNING_SECRET_KEY_PASSWORD" in without.stderr
    assert not (tmp_path / "a.txt.minisig").exists()


def test_pub_01_the_key_reaches_no_other_program_no_output_and_no_file(
    tmp_path: Path, key_pair: KeyPair
) -> None:
    write_artefacts(tmp_path / "artefacts")
    text = key_pair.secret.read_text()
    line = text.splitlines()[1]
    # Every string in full and in hexadecimal, so that bytes can be found as well.
    strace = ("strace", "-qqq", "-f", "-xx", "-v", "-s", "1000000", "-o", tmp_path / "strace.log")
    calls = "trace=execve,write,pwrite64,writev,sendto,sendmsg,openat,memfd_create"
    env = {"SIGNING_SECRET_KEY": text, "SIGNING_SECRET_KEY_PASSWORD": _PASSWORD}
    built = run(*strace, "-e", calls, program(), *_ARGS, folder=tmp_path, env=env)
    assert built.returncode == 0, built.stderr
    log = (tmp_path / "strace.log").read_text()
    (tmp_path / "strace.log").unlink()
    # The program itself starts with the key in its environment, and starts no other program.
    started, *others = [one for one in log.splitlines() if "execve(" in one]
    assert _hex(line.encode()) in started
    assert others == []
    written = "\n".join(one for one in log.splitlines() if "execve(" not in one)
    raw = base64.b64decode(line)
    for secret in (line.encode(), raw[62:94], raw[62:94].hex().encode(), _PASSWORD.encode()):
        assert _hex(secret) not in written
        assert secret not in built.stdout.encode() + built.stderr.encode()
        assert not [path for path, (_, data) in tree(tmp_path).items() if secret in data]
    assert _hex(b"trusted comment") in written


def _hex(data: bytes) -> str:
    return "".join(f"\\x{byte:02x}" for byte in data)


def test_leak_08_no_traceback_with_its_variables_shows_the_key(
    tmp_path: Path, key_pair: KeyPair
) -> None:
    key = take_secret_key({"SIGNING_SECRET_KEY": str(key_pair.secret)}, lambda: "")
    assert isinstance(key, SecretKey)
    request = BuildRequest(
        artefact_dir=write_artefacts(tmp_path / "artefacts"),
        output=tmp_path / "dist",
        version=CalVer.parse(VERSION),
        channel="stable",
        profiles=["openclaw", "khoj", "hermes"],
        targets={"rpi5": "img.xz", "qemu-x86_64": "qcow2", "fly-machines": "oci"},
        timestamp=0,
        wizard_version="\ud800",
    )
    with pytest.raises(UnicodeEncodeError) as caught:
        build_release(request, key, lambda total: lambda count: None)
    told = "".join(
        traceback.TracebackException.from_exception(caught.value, capture_locals=True).format()
    )
    assert "SecretKey(key_id=" in told
    assert repr(key.seed) not in told
    assert key.seed.hex() not in told


def test_leak_05_no_file_is_readable_by_others_before_its_mode_is_set(
    tmp_path: Path,
) -> None:
    log = tmp_path / "strace.log"
    args = ("keygen", "--secret-key", "k.key", "--public-key", "k.pub", "--no-password")
    strace = ("strace", "-qqq", "-f", "-o", log, "-e", "trace=openat")
    assert run(*strace, program(), *args, folder=tmp_path).returncode == 0
    made = [line for line in log.read_text().splitlines() if "O_CREAT" in line and ".k." in line]
    assert len(made) == 2
    assert all("O_EXCL" in line and ", 0600)" in line for line in made)


def test_verify_works_with_standard_error_closed(signed_release: Path, key_pair: KeyPair) -> None:
    script = 'exec "$0" verify "$1" -p "$2" 2>&-'
    words = ("sh", "-c", script, program(), signed_release, key_pair.public)
    done = run(*words, folder=signed_release)
    assert (done.returncode, done.stdout.splitlines()[-1][:8]) == (0, "TRUSTED:")
