"""The `minisign` program as verifier: trusted only if it succeeds, and in time (REL-22 to 24)."""

from __future__ import annotations

import hashlib
import re
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

from release_tools.signing.keys import load_public_key
from release_tools.signing.minisign import Signature, SignatureError, prehash
from release_tools.verifying.verifier_choice import open_verifier
from tests.support.releases import VERSION, KeyPair, Tools
from tests.support.resigning import change_manifest, sign_bytes, sign_file
from tests.support.stand_in import path_without, stand_in

DATA = b"the signed bytes" * 100


def judge(
    verifier: str, key_pair: KeyPair, data: bytes = DATA, signature_data: bytes | None = None
) -> None:
    """Check `data`; raises `SignatureError` unless its signature is good."""
    signed = signature_data or sign_bytes(DATA, key_pair, "file:data")
    keys = [load_public_key(str(key_pair.public))]
    with (
        open_verifier(verifier, keys) as opened,
        opened.check(signed, Signature.parse(signed)) as check,
    ):
        check.update(memoryview(data))
        check.finish(prehash(data))


@pytest.mark.parametrize("verifier", ["native", "system", "both"])
def test_a_release_is_verified_by_every_verifier(
    verifier: str, signed_release: Path, tools: Tools, key_pair: KeyPair
) -> None:
    options = ("-p", key_pair.public, "--verifier", verifier)
    assert tools("verify", "dist", *options).returncode == 0
    name = f"platform-khoj-qemu-x86_64-{VERSION}-stable.qcow2"
    with (signed_release / "stable" / VERSION / name).open("r+b") as file:
        file.write(b"!")
    done = tools("verify", "dist", *options)
    assert done.returncode == 1
    assert re.findall(r"^  (E_[A-Z]+) ", done.stdout, re.MULTILINE) == ["E_HASH", "E_SIG"]


# A stand-in for the program, the finding, and the message.
_STAND_INS: dict[str, tuple[str, str, str]] = {
    "exit 1": ("cat >/dev/null; echo 'Signature verification failed'; exit 1", "E_SIG",
               "refuses it (status 1), saying: Signature verification failed"),
    "prints nothing": ("cat >/dev/null; exit 1", "E_SIG", "refuses it (status 1), saying: nothing"),
    "says verified with status 1": (
        "cat >/dev/null; echo 'Signature and comment signature verified'; exit 1", "E_SIG",
        "refuses it (status 1), saying: Signature and comment signature verified"),
    "killed": ("kill -9 $$", "E_SIG", "refuses it (status -9), saying: nothing"),
    "ends without reading": ("exit 3", "E_SIG", "refuses it (status 3), saying: nothing"),
    "floods": ("cat >/dev/null; exec yes verified", "E_SIG", "refuses it (status -9), saying: ver"),
    "hostile text": (r"cat >/dev/null; printf '\033[2J\007no\n'; exit 1", "E_SIG",
                     r"saying: \x1b[2J\x07no"),
    "hangs": ("exec sleep 60", "E_VERIFIER", "minisign did not finish in 1.5 s"),
}  # fmt: skip


@pytest.mark.parametrize(("script", "code", "said"), _STAND_INS.values(), ids=_STAND_INS)
def test_rel_22_only_a_success_of_the_program_counts(
    script: str,
    code: str,
    said: str,
    key_pair: KeyPair,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Programs that do not hang may take their time.
    limit_s = 1.5 if code == "E_VERIFIER" else 20.0
    monkeypatch.setattr("release_tools.verifying.system_verifier._PROGRAM_TIMEOUT_S", limit_s)
    monkeypatch.setenv("PATH", stand_in(tmp_path, "minisign", script)["PATH"])
    # Less than a pipe holds, so that the write succeeds at once, and more than a pipe holds.
    for data in (DATA, DATA * 1000):
        with pytest.raises(SignatureError, match=re.escape(said)) as caught:
            judge("system", key_pair, data)
        assert caught.value.code == code
        assert len(caught.value.message) < 2_000


@pytest.mark.parametrize("verifier", ["system", "both"])
def test_rel_22_a_missing_program_is_reported(
    verifier: str, signed_release: Path, tools: Tools, tmp_path: Path, key_pair: KeyPair
) -> None:
    environment = path_without("minisign", tmp_path / "programs")
    done = tools("verify", "dist", "-p", key_pair.public, "--verifier", verifier, env=environment)
    assert done.returncode == 1
    assert "E_VERIFIER" in done.stdout
    assert "minisign could not be started" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("DO NOT TRUST")


@pytest.mark.parametrize(("status", "data"), [(0, DATA + b"!"), (1, DATA)], ids=["yes", "no"])
def test_rel_22_with_both_verifiers_the_program_alone_is_not_enough(
    status: int, data: bytes, key_pair: KeyPair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge("both", key_pair)
    with pytest.raises(SignatureError, match="does not match the file"):
        judge("both", key_pair, DATA + b"!")
    script = f"cat >/dev/null; exit {status}"
    monkeypatch.setenv("PATH", stand_in(tmp_path, "minisign", script)["PATH"])
    with pytest.raises(SignatureError, match="the two verifiers disagree") as caught:
        judge("both", key_pair, data)
    assert caught.value.code == "E_VERIFIER"


def test_rel_23_the_bytes_that_are_parsed_are_the_bytes_that_were_verified(
    signed_release: Path, tools: Tools, key_pair: KeyPair
) -> None:
    # A writer keeps replacing the manifest with one that would parse but is not signed.
    manifest = signed_release / "stable/manifest.json"
    good = manifest.read_bytes()
    bad = good.replace(b'"stable"', b'"beta"  ')
    assert bad != good
    stop = threading.Event()

    def rewrite() -> None:
        newer = manifest.with_name("newer")
        while not stop.is_set():
            for data in (bad, good):
                newer.write_bytes(data)
                newer.replace(manifest)

    writer = threading.Thread(target=rewrite)
    writer.start()
    seen: set[str] = set()
    try:
        for _ in range(40):
            args = ("verify", "dist/stable", "-p", key_pair.public, "--verifier", "both")
            done = tools(*args, "--manifest-only")
            seen.add(done.stdout.splitlines()[-1].split(" ")[0])
            assert "E_CHANNEL" not in done.stdout
            assert "(beta)" not in done.stdout
            if len(seen) == 2:
                break
    finally:
        stop.set()
        writer.join()
    assert seen == {"TRUSTED:", "DO"}


def test_rel_23_the_program_reads_no_file_that_others_can_change(
    key_pair: KeyPair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = tmp_path / "seen"
    script = f'stat -c %a "$(dirname "$3")" > {seen}; echo "$@" >> {seen}; cat >/dev/null'
    monkeypatch.setenv("PATH", stand_in(tmp_path / "programs", "minisign", script)["PATH"])
    judge("system", key_pair)
    mode, arguments = seen.read_text().splitlines()
    assert mode == "700"
    words = arguments.split(" ")
    assert words[words.index("-m") + 1] == "/dev/stdin"
    left = Path(words[words.index("-p") + 1]).parent
    assert not left.exists()


def test_artefacts_with_equal_bytes_do_not_share_files(
    signed_release: Path, tools: Tools, key_pair: KeyPair
) -> None:
    # Ed25519 signs equal bytes alike; only the trusted comments differ.
    channel = signed_release / "stable"
    for path in (channel / VERSION).iterdir():
        path.unlink()

    def change(document: dict[str, Any]) -> None:
        first = document["artefacts"][0]
        document["artefacts"] = []
        for number in range(24):
            name = f"platform-p{number}-rpi5-{VERSION}-stable.img.xz"
            (channel / VERSION / name).write_bytes(DATA)
            sign_file(channel / VERSION / name, key_pair)
            path = f"{VERSION}/{name}"
            document["artefacts"].append(
                first
                | {"target": "rpi5", "profile": f"p{number}", "format": "img.xz"}
                | {"filename": name, "url": path, "minisig_url": f"{path}.minisig"}
                | {"size_bytes": len(DATA), "sha256": hashlib.sha256(DATA).hexdigest()}
            )

    change_manifest(channel, key_pair, change)
    done = tools(
        *("verify", "dist", "-p", key_pair.public, "--verifier", "both", "--jobs", "24"), timeout=60
    )
    assert done.returncode == 0, done.stdout


_OPTION_LIKE = ["-m", "-x", "-p", "--help", "-", "--", "-rf", "@file", "%s", "a b;c"]


@pytest.mark.parametrize("name", _OPTION_LIKE)
def test_rel_24_names_that_look_like_options_are_names(
    name: str, signed_release: Path, tools: Tools, key_pair: KeyPair
) -> None:
    # Passed after "--", as a user of a shell would; no later step may take them for options.
    shutil.copy(key_pair.public, tools.folder / name)
    options = ("--public-key", name, "--verifier", "both")
    done = tools("verify", *options, "--", "dist")
    assert done.returncode == 0, done.stderr
    shutil.copytree(signed_release / "stable", tools.folder / "other" / name)
    done = tools("verify", *options, "--channel", "stable", "--", Path("other") / name)
    assert done.returncode == 0, done.stdout + done.stderr
    (tools.folder / name).write_bytes(DATA)
    (tools.folder / f"{name}.minisig").write_bytes(sign_bytes(DATA, key_pair, f"file:{name}"))
    done = tools("verify-file", "-p", key_pair.public, "--strict", "--", name)
    assert done.returncode == 0, done.stderr
