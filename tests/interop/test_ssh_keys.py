"""SSH keys with the real `ssh-keygen`, and with a real web server as code host."""

from __future__ import annotations

import base64
import os
import struct
import subprocess
from pathlib import Path

import pytest

from platform_common.message import Sentence
from tests.support.nginx import Certificate, nginx
from tests.wizard_app.conftest import MakeWizard
from wizard_app.setup import ssh_keys
from wizard_app.setup.code_host import Fetched, fetch_keys

# Type and bits for `ssh-keygen -t -b`, and the kind that it then lists.
KINDS = (
    *(("rsa", 1024, "RSA"), ("rsa", 3072, "RSA"), ("ed25519", 256, "ED25519")),
    *(("ecdsa", bits, "ECDSA") for bits in (256, 384, 521)),
)

COMMENT = "küche (1)"


def keygen(*arguments: str | Path, stdin: str = "") -> str:
    """The output of `ssh-keygen`."""
    words = ["ssh-keygen", *map(str, arguments)]
    return subprocess.run(words, input=stdin, check=True, capture_output=True, text=True).stdout


def generate(folder: Path, kind: str, bits: int, *arguments: str) -> Path:
    """Create a key pair; return the file with the private key."""
    file = folder / f"{kind}-{bits}"
    asked = ("-q", "-t", kind, "-b", str(bits), "-N", "", "-C", COMMENT)
    keygen(*asked, *arguments, "-f", file)
    return file


def public(file: Path) -> str:
    """The public line of a key pair."""
    return file.with_name(f"{file.name}.pub").read_text("utf-8").strip()


def security_key(algorithm: str, *parts: bytes) -> str:
    """The line of a key in hardware, built from its parts."""
    strings = (algorithm.encode(), *parts, b"ssh:")
    blob = b"".join(struct.pack(">I", len(part)) + part for part in strings)
    return f"{algorithm} {base64.b64encode(blob).decode()} token"


@pytest.mark.parametrize(("kind", "bits", "listed"), KINDS)
def test_a_real_key_is_accepted_and_has_a_fingerprint(
    tmp_path: Path, kind: str, bits: int, listed: str
) -> None:
    line = public(generate(tmp_path, kind, bits))
    assert ssh_keys.wrong_with(line) is None
    (key,) = ssh_keys.examine([line])
    assert (key.kind, key.bits, key.comment) == (listed, bits, COMMENT)
    assert key.fingerprint == keygen("-l", "-f", "-", stdin=line).split()[1]
    assert not key.doubtful


def test_keys_in_hardware_are_accepted_and_have_fingerprints(tmp_path: Path) -> None:
    point = base64.b64decode(public(generate(tmp_path, "ecdsa", 256)).split()[1])[-65:]
    ed25519 = base64.b64decode(public(generate(tmp_path, "ed25519", 256)).split()[1])[-32:]
    lines = [
        security_key("sk-ssh-ed25519@openssh.com", ed25519),
        security_key("sk-ecdsa-sha2-nistp256@openssh.com", b"nistp256", point),
    ]
    assert [ssh_keys.wrong_with(line) for line in lines] == [None] * 2
    found = list(ssh_keys.examine(lines))
    assert [key.kind for key in found] == ["ED25519-SK", "ECDSA-SK"]
    assert all(key.fingerprint.startswith("SHA256:") for key in found)


def test_a_key_that_only_the_program_refuses_is_doubtful(tmp_path: Path) -> None:
    blob = public(generate(tmp_path, "ecdsa", 256)).split()[1]
    lines = [
        f"ssh-ecdsa {blob}",
        f"ecdsa-sha2-nistp256garbage {blob}",
        f"ssh-rsa {blob}",
        f"ssh-ed25519 {blob[:40]}",
        "ssh-ed25519 !!!!",
        # A second line in the output would describe another key.
        f"ssh-rsa AAAA ecdsa-sha2-nistp256 {blob}",
    ]
    assert [ssh_keys.wrong_with(line) for line in lines] == [None] * len(lines)
    found = list(ssh_keys.examine(lines))
    assert [(key.judged, key.doubtful) for key in found] == [(True, True)] * len(lines)


@pytest.mark.parametrize("form", [(), ("-m", "PEM"), ("-m", "PKCS8")])
@pytest.mark.parametrize(("kind", "bits"), [("rsa", 2048), ("ecdsa", 256), ("ed25519", 256)])
def test_ssh_03_a_real_private_key_is_recognised_with_and_without_its_first_line(
    tmp_path: Path, kind: str, bits: int, form: tuple[str, ...]
) -> None:
    text = generate(tmp_path, kind, bits, *form).read_text()
    body = [line for line in text.splitlines() if "-----" not in line]
    for pasted in (text, text.replace("\n", " "), "\n".join(body)):
        found = list(ssh_keys.lines(pasted))
        assert ssh_keys.private_among(found) is not None
        shown = ssh_keys.without_private(pasted)
        assert not any(line in shown for line in body)


def stand_in(folder: Path, script: str) -> str:
    """A PATH on which `ssh-keygen` is a script."""
    program = folder / "bin/ssh-keygen"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return f"{program.parent}:{os.environ['PATH']}"


@pytest.mark.parametrize(
    "script", ["echo asked >> {log}; sleep 60", "echo asked >> {log}; kill -9 $$"]
)
def test_a_program_without_an_answer_is_run_once_and_no_key_is_doubtful(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    lines = [f"ssh-rsa AAAA{tmp_path}{number}" for number in range(5)]
    log = tmp_path / "log"
    monkeypatch.setattr(ssh_keys, "_LIMIT_S", 2)
    monkeypatch.setenv("PATH", stand_in(tmp_path, script.format(log=log)))
    found = list(ssh_keys.examine(lines))
    assert [(key.judged, key.doubtful) for key in found] == [(False, False)] * 5
    assert log.read_text() == "asked\n"


def test_each_line_is_checked_once_however_often_it_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    script = f"cat >> {log}; echo '256 SHA256:abc x (ED25519)'"
    monkeypatch.setenv("PATH", stand_in(tmp_path, script))
    lines = [f"ssh-ed25519 AAAA{tmp_path}{number}" for number in range(3)]
    for _ in range(3):
        assert [key.fingerprint for key in ssh_keys.examine(lines)] == ["SHA256:abc"] * 3
    assert log.read_text().splitlines() == lines


def test_without_the_program_keys_are_accepted_with_a_note_that_they_were_not_checked(
    tmp_path: Path, wizard: MakeWizard, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = public(generate(tmp_path, "ed25519", 256))
    monkeypatch.setenv("PATH", str(tmp_path))
    client = wizard()
    assert client.post("/wizard/ssh", data={"ssh_keys": line}).status_code == 302
    assert "not checked, because ssh-keygen did not answer" in client.get("/wizard/ssh").text
    assert "not recognise" not in client.get("/wizard/mesh-vpn").text


def test_pages_show_fingerprints_and_warn_about_keys_that_the_program_refuses(
    tmp_path: Path, wizard: MakeWizard
) -> None:
    line = public(generate(tmp_path, "ed25519", 256))
    fingerprint = keygen("-l", "-f", "-", stdin=line).split()[1]
    client = wizard()
    odd = "ssh-ed25519 AAAA odd"
    assert client.post("/wizard/ssh", data={"ssh_keys": f"{line}\n{odd}"}).status_code == 302
    assert "ssh-keygen does not recognise 1 of them" in client.get("/wizard/mesh-vpn").text
    page = client.get("/wizard/ssh").text
    assert fingerprint in page
    assert "does not recognise this line as a key" in page
    review = client.get("/wizard/review").text
    assert fingerprint in review
    assert "odd ssh-ed25519 (not recognised by ssh-keygen)" in review


def test_keys_are_fetched_from_a_real_web_server_over_https(
    tmp_path: Path, certificate: Certificate
) -> None:
    line = public(generate(tmp_path, "ed25519", 256))
    root = tmp_path / "root"
    root.mkdir()
    (root / "someone.keys").write_text(f"{line}\n", "utf-8")
    (root / "huge.keys").write_text(f"{line}\n" * 1000, "utf-8")
    authority = certificate.authority
    extra = "location = /moved.keys { return 301 /someone.keys; }"
    with nginx(root, tmp_path / "nginx", extra, certificate=certificate) as server:
        assert fetch_keys(server.url, "someone", ca_file=authority) == Fetched((line,), 0)
        for user, said in (
            ("nobody", "user called nobody"),
            ("moved", "redirects elsewhere for moved"),
            ("huge", "sent a response that is too large"),
        ):
            found = fetch_keys(server.url, user, ca_file=authority)
            assert isinstance(found, Sentence)
            assert said in str(found)
        assert "is not trusted" in str(fetch_keys(server.url, "someone"))
