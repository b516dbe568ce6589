"""Releases on a real web server, over an unreliable network."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.support.nginx import Certificate, Nginx, nginx
from tests.support.raw_server import cutting_proxy
from tests.support.releases import VERSION, KeyPair, Tools

IMAGE = f"/stable/{VERSION}/platform-openclaw-rpi5-{VERSION}-stable.img.xz"
DISK = f"/stable/{VERSION}/platform-khoj-qemu-x86_64-{VERSION}-stable.qcow2"
MANIFEST = "/stable/manifest.json"
Done = subprocess.CompletedProcess[str]
Verify = Callable[..., Done]


@pytest.fixture
def verify(tools: Tools, key_pair: KeyPair) -> Verify:
    """Verify the release at an address, with options."""

    def verify(url: str, *options: str, env: Mapping[str, str] | None = None) -> Done:
        return tools("verify", url, "-p", key_pair.public, *options, env=env)

    return verify


@pytest.fixture
def verify_served(signed_release: Path, tmp_path: Path, verify: Verify) -> Verify:
    """Verify the signed release on an nginx with additional configuration."""

    def verify_served(
        lines: str,
        place: str = "",
        *options: str,
        certificate: Certificate | None = None,
        **env: str,
    ) -> Done:
        with nginx(signed_release, tmp_path / "nginx", lines, certificate=certificate) as server:
            return verify(server.url + place, *options, env=env)

    return verify_served


@pytest.fixture
def server(signed_release: Path, tmp_path: Path) -> Iterator[Nginx]:
    """The signed release on nginx."""
    with nginx(signed_release, tmp_path / "nginx") as running:
        yield running


@pytest.mark.parametrize(
    "place",
    ["", "/", "/stable", "/stable/", MANIFEST],
    ids=["root", "root with slash", "channel", "channel with slash", "manifest"],
)
def test_a_release_is_verified_over_http(place: str, server: Nginx, verify: Verify) -> None:
    done = verify(server.url + place)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].startswith("TRUSTED: release 2026.11.1 (stable), 3 of 3")
    read = [asked.path for asked in server.requests if asked.status == 200]
    assert {IMAGE, f"{IMAGE}.minisig", DISK, f"{DISK}.minisig"} <= set(read)
    assert read.count(IMAGE) == 1
    # Only plain bytes are requested.
    assert {asked.accept_encoding for asked in server.requests} == {"identity"}


def test_manifest_only_asks_for_the_manifest_and_its_signature(
    server: Nginx, verify: Verify
) -> None:
    assert verify(server.url + MANIFEST, "--manifest-only").returncode == 0
    assert [asked.path for asked in server.requests] == [MANIFEST, f"{MANIFEST}.minisig"]


def test_several_channels_of_a_root_are_verified(
    server: Nginx, tmp_path: Path, tools: Tools, key_pair: KeyPair, verify: Verify
) -> None:
    for path in (tmp_path / "artefacts").iterdir():
        path.rename(path.with_name(path.name.replace("-stable.", "-beta.")))
    built = tools(
        *("build", "artefacts", "--version", VERSION, "--channel", "beta"),
        env={"SIGNING_SECRET_KEY": str(key_pair.secret)},
    )
    assert built.returncode == 0, built.stderr
    done = verify(server.url, "--json")
    document = json.loads(done.stdout)
    assert (done.returncode, document["ok"]) == (0, True)
    assert [release["channel"] for release in document["releases"]] == ["beta", "stable"]


@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
def test_a_broken_connection_is_resumed(reset: bool, server: Nginx, verify: Verify) -> None:
    with cutting_proxy(server.port, after_bytes=60_000, times=4, reset=reset) as port:
        done = verify(f"http://127.0.0.1:{port}/stable")
    assert done.returncode == 0, done.stdout
    resumed = [asked for asked in server.requests if asked.range]
    assert resumed
    assert all(asked.status == 206 and asked.if_range.startswith('"') for asked in resumed)


def test_rel_18_a_file_replaced_while_it_is_read_is_refused(
    server: Nginx, signed_release: Path, verify: Verify
) -> None:
    image = signed_release / IMAGE[1:]

    def replace() -> None:
        # Another file of the same size with the same name, as an update of the mirror would write.
        newer = image.with_name("newer")
        newer.write_bytes(bytes(image.stat().st_size))
        os.utime(newer, (1, 1))
        newer.replace(image)

    with cutting_proxy(server.port, after_bytes=100_000, times=1, on_cut=replace) as port:
        done = verify(f"http://127.0.0.1:{port}/stable")
    assert done.returncode == 5
    assert "changed while it was being read" in done.stdout


def test_a_slow_server_is_tolerated(verify_served: Verify) -> None:
    started = time.monotonic()
    done = verify_served("limit_rate 200k;", "", "--timeout", "0.5")
    assert time.monotonic() - started > 1
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("lines", "place"),
    [
        # Compressed responses give the signed bytes.
        ("gzip on; gzip_types *; gzip_min_length 1; gzip_http_version 1.0;", ""),
        ("location /old/ { rewrite ^/old/(.*)$ /stable/$1 permanent; }", "/old/manifest.json"),
    ],
    ids=["compression", "redirect on the same server"],
)
def test_compression_and_redirects_on_the_same_server_are_accepted(
    lines: str, place: str, verify_served: Verify
) -> None:
    done = verify_served(lines, place)
    assert done.returncode == 0, done.stdout


def test_pub_11_a_server_that_changes_the_encoding_is_refused(verify_served: Verify) -> None:
    done = verify_served("location ~ xz$ { add_header Content-Encoding gzip; }")
    assert done.returncode == 5
    assert "re-encodes it ('gzip')" in done.stdout


# For each fault: the removed or truncated file, the configuration, the exit code and the finding.
_FAULTS: dict[str, tuple[str, str, int, str]] = {
    "artefact 404": (IMAGE, "", 1, "E_MISSING"),
    "signature 404": (f"{IMAGE}.minisig", "", 1, "E_MISSING"),
    "artefact 403": ("", "location ~ xz$ { return 403; }", 5, "E_UNREADABLE"),
    "artefact 500": ("", "location ~ xz$ { return 500; }", 5, "E_UNREADABLE"),
    "signature 403": ("", "location ~ xz.minisig$ { return 403; }", 5, "E_UNREADABLE"),
    "artefact truncated": ("cut", "", 1, "E_SIZE"),
    "redirected in a loop": ("", "location ~ xz$ { return 301 $uri; }", 5, "E_UNREADABLE"),
    "to a file": ("", "location ~ xz$ { return 302 file:///etc/hostname; }", 1, "E_URL"),
    "another file instead": ("", f"location ~ xz$ {{ try_files {DISK} =404; }}", 1, "E_SIZE"),
}


@pytest.mark.parametrize(("damaged", "lines", "code", "word"), _FAULTS.values(), ids=_FAULTS)
def test_one_bad_response_is_one_finding_and_the_rest_is_verified(
    damaged: str, lines: str, code: int, word: str, signed_release: Path, verify_served: Verify
) -> None:
    if damaged == "cut":
        os.truncate(signed_release / IMAGE[1:], 299_999)
    elif damaged:
        (signed_release / damaged[1:]).unlink()
    done = verify_served(lines)
    assert done.returncode == code, done.stdout
    assert done.stdout.splitlines()[-1].startswith(f"DO NOT TRUST: 1 finding, the first {word} ")
    assert sum(line.startswith("verified ") for line in done.stdout.splitlines()) == 2


@pytest.mark.parametrize("answer", ["403", "500", "404", "301 $uri"])
def test_a_distribution_without_a_readable_manifest_is_reported_in_one_sentence(
    answer: str, verify_served: Verify
) -> None:
    done = verify_served(f"location ~ json$ {{ return {answer}; }}")
    assert (done.returncode, done.stdout) == (5, "")
    assert done.stderr.startswith("error: http://127.0.0.1:")
    assert len(done.stderr.splitlines()) == 1


def test_a_manifest_that_cannot_be_read_is_a_finding(verify_served: Verify) -> None:
    done = verify_served("location ~ json$ { return 403; }", "/stable")
    assert done.returncode == 5
    finding = next(line for line in done.stdout.splitlines() if "E_UNREADABLE" in line)
    assert finding.endswith("/stable/manifest.json: the server answers 403")
    assert done.stdout.splitlines()[-1].startswith("DO NOT TRUST: 1 finding")


def test_one_channel_that_cannot_be_read_does_not_hide_the_findings_of_another(
    signed_release: Path, verify_served: Verify
) -> None:
    shutil.copytree(signed_release / "stable", signed_release / "beta")
    done = verify_served("location /beta/manifest.json.minisig { return 403; }")
    assert done.returncode == 5
    assert sum(line.startswith("verified ") for line in done.stdout.splitlines()) == 3


def test_a_release_is_only_verified_over_https_with_a_known_authority(
    verify_served: Verify, certificate: Certificate
) -> None:
    known = {"REQUESTS_CA_BUNDLE": str(certificate.authority)}
    done = verify_served("", certificate=certificate, **known)
    assert done.returncode == 0, done.stdout + done.stderr
    done = verify_served("", certificate=certificate, REQUESTS_CA_BUNDLE="")
    assert (done.returncode, done.stdout) == (5, "")
    assert "certificate" in done.stderr
    assert "Traceback" not in done.stderr


def test_rel_16_a_redirect_from_https_to_http_is_refused(
    signed_release: Path, tmp_path: Path, certificate: Certificate, verify_served: Verify
) -> None:
    with nginx(signed_release, tmp_path / "plain") as plain:
        down = f"location ~ xz$ {{ return 302 {plain.url}$uri; }}"
        known = {"REQUESTS_CA_BUNDLE": str(certificate.authority)}
        done = verify_served(down, certificate=certificate, **known)
        assert plain.requests == []
    assert done.returncode == 1
    assert "E_URL" in done.stdout
    assert "redirects from https to http" in done.stdout
