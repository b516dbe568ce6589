"""Releases on a real web server, over a network that breaks."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.nginx import Certificate, Nginx, make_certificate, nginx
from tests.support.raw_server import cutting_proxy
from tests.support.releases import VERSION, KeyPair, Tools

IMAGE = f"/stable/{VERSION}/platform-openclaw-rpi5-{VERSION}-stable.img.xz"
DISK = f"/stable/{VERSION}/platform-khoj-qemu-x86_64-{VERSION}-stable.qcow2"


@pytest.fixture
def server(signed_release: Path, tmp_path: Path) -> Iterator[Nginx]:
    """The signed release on nginx."""
    with nginx(signed_release, tmp_path / "nginx") as running:
        yield running


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return make_certificate(tmp_path_factory.mktemp("certificate"))


@pytest.mark.parametrize(
    "place",
    ["", "/", "/stable", "/stable/", "/stable/manifest.json"],
    ids=["root", "root with slash", "channel", "channel with slash", "manifest"],
)
def test_a_release_is_verified_over_http(
    place: str, server: Nginx, tools: Tools, key_pair: KeyPair
) -> None:
    done = tools("verify", server.url + place, "-p", key_pair.public)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].startswith("TRUSTED: release 2026.11.1 (stable), 3 of 3")
    read = [asked.path for asked in server.requests if asked.status == 200]
    assert {IMAGE, f"{IMAGE}.minisig", DISK, f"{DISK}.minisig"} <= set(read)
    assert len([path for path in read if path == IMAGE]) == 1


def test_nothing_but_plain_bytes_is_asked_for(
    server: Nginx, tools: Tools, key_pair: KeyPair
) -> None:
    assert tools("verify", server.url, "-p", key_pair.public).returncode == 0
    assert {asked.accept_encoding for asked in server.requests} == {"identity"}


def test_manifest_only_asks_for_the_manifest_and_its_signature(
    server: Nginx, tools: Tools, key_pair: KeyPair
) -> None:
    manifest = f"{server.url}/stable/manifest.json"
    assert tools("verify", manifest, "-p", key_pair.public, "--manifest-only").returncode == 0
    paths = [asked.path for asked in server.requests]
    assert paths == ["/stable/manifest.json", "/stable/manifest.json.minisig"]


def test_several_channels_of_a_root_are_verified(
    server: Nginx, signed_release: Path, tmp_path: Path, tools: Tools, key_pair: KeyPair
) -> None:
    for path in (tmp_path / "artefacts").iterdir():
        path.rename(path.with_name(path.name.replace("-stable.", "-beta.")))
    built = tools(
        *("build", "artefacts", "--version", VERSION, "--channel", "beta"),
        env={"SIGNING_SECRET_KEY": str(key_pair.secret)},
    )
    assert built.returncode == 0, built.stderr
    done = tools("verify", server.url, "-p", key_pair.public, "--json")
    document = json.loads(done.stdout)
    assert (done.returncode, document["ok"]) == (0, True)
    assert [release["channel"] for release in document["releases"]] == ["beta", "stable"]


@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
def test_a_connection_that_breaks_is_resumed(
    reset: bool, server: Nginx, tools: Tools, key_pair: KeyPair
) -> None:
    with cutting_proxy(server.port, after_bytes=60_000, times=4, reset=reset) as port:
        done = tools("verify", f"http://127.0.0.1:{port}/stable", "-p", key_pair.public)
    assert done.returncode == 0, done.stdout
    resumed = [asked for asked in server.requests if asked.range]
    assert resumed
    assert all(asked.status == 206 and asked.if_range.startswith('"') for asked in resumed)


def test_rel_18_a_file_replaced_while_it_is_read_is_refused(
    server: Nginx, signed_release: Path, tools: Tools, key_pair: KeyPair
) -> None:
    image = signed_release / IMAGE[1:]

    def replace() -> None:
        # Another file of the same size under the name, as a mirror's run would put there.
        newer = image.with_name("newer")
        newer.write_bytes(bytes(image.stat().st_size))
        os.utime(newer, (1, 1))
        newer.replace(image)

    with cutting_proxy(server.port, after_bytes=100_000, times=1, on_cut=replace) as port:
        done = tools("verify", f"http://127.0.0.1:{port}/stable", "-p", key_pair.public)
    assert done.returncode == 5
    assert "changed while it was being read" in done.stdout


def test_a_slow_server_is_borne(
    signed_release: Path, tmp_path: Path, tools: Tools, key_pair: KeyPair
) -> None:
    with nginx(signed_release, tmp_path / "nginx", "limit_rate 200k;") as server:
        started = time.monotonic()
        done = tools("verify", server.url, "-p", key_pair.public, "--timeout", "0.5")
        assert time.monotonic() - started > 1
    assert done.returncode == 0, done.stdout


def test_a_server_that_compresses_what_it_can_serves_us_the_signed_bytes(
    signed_release: Path, tmp_path: Path, tools: Tools, key_pair: KeyPair
) -> None:
    compressing = "gzip on; gzip_types *; gzip_min_length 1; gzip_http_version 1.0;"
    with nginx(signed_release, tmp_path / "nginx", compressing) as server:
        done = tools("verify", server.url, "-p", key_pair.public)
    assert done.returncode == 0, done.stdout


def test_pub_11_a_server_that_re_encodes_is_refused(
    signed_release: Path, tmp_path: Path, tools: Tools, key_pair: KeyPair
) -> None:
    forced = "location ~ xz$ { add_header Content-Encoding gzip; }"
    with nginx(signed_release, tmp_path / "nginx", forced) as server:
        done = tools("verify", server.url, "-p", key_pair.public)
    assert done.returncode == 5
    assert "re-encodes it ('gzip')" in done.stdout


def _nothing(dist: Path) -> None:
    pass


def _remove(name: str) -> Callable[[Path], object]:
    return lambda dist: (dist / name[1:]).unlink()


def _cut(dist: Path) -> None:
    os.truncate(dist / IMAGE[1:], 299_999)


_FAULTS: dict[str, tuple[Callable[[Path], object], str, int, str]] = {
    "artefact 404": (_remove(IMAGE), "", 1, "E_MISSING"),
    "signature 404": (_remove(f"{IMAGE}.minisig"), "", 1, "E_MISSING"),
    "artefact 403": (_nothing, "location ~ xz$ { return 403; }", 5, "E_UNREADABLE"),
    "artefact 500": (_nothing, "location ~ xz$ { return 500; }", 5, "E_UNREADABLE"),
    "signature 403": (_nothing, "location ~ xz.minisig$ { return 403; }", 5, "E_UNREADABLE"),
    "artefact truncated": (_cut, "", 1, "E_SIZE"),
    "artefact redirected in a loop": (
        _nothing,
        "location ~ xz$ { return 301 $uri; }",
        5,
        "E_UNREADA",
    ),
    "artefact redirected to a file": (
        _nothing,
        "location ~ xz$ { return 302 file:///etc/hostname; }",
        1,
        "E_URL",
    ),
    "another file instead": (_nothing, f"location ~ xz$ {{ try_files {DISK} =404; }}", 1, "E_SIZE"),
}


@pytest.mark.parametrize(("damage", "extra", "code", "word"), _FAULTS.values(), ids=_FAULTS)
def test_one_bad_answer_is_one_finding_and_the_rest_is_read(
    damage: Callable[[Path], object],
    extra: str,
    code: int,
    word: str,
    signed_release: Path,
    tmp_path: Path,
    tools: Tools,
    key_pair: KeyPair,
) -> None:
    damage(signed_release)
    with nginx(signed_release, tmp_path / "nginx", extra) as server:
        done = tools("verify", server.url, "-p", key_pair.public)
    assert done.returncode == code, done.stdout
    assert done.stdout.splitlines()[-1].startswith(f"DO NOT TRUST: 1 finding, the first {word}")
    assert sum(line.startswith("verified ") for line in done.stdout.splitlines()) == 2


@pytest.mark.parametrize(
    "extra",
    ["location ~ json$ { return 403; }", "location ~ json$ { return 500; }",
     "location ~ json$ { return 404; }", "location ~ json$ { return 301 $uri; }"],
    ids=["403", "500", "404", "redirect loop"],
)  # fmt: skip
def test_a_distribution_without_a_manifest_that_can_be_read_is_one_sentence(
    extra: str, signed_release: Path, tmp_path: Path, tools: Tools, key_pair: KeyPair
) -> None:
    with nginx(signed_release, tmp_path / "nginx", extra) as server:
        done = tools("verify", server.url, "-p", key_pair.public)
    assert (done.returncode, done.stdout) == (5, "")
    assert done.stderr.startswith("error: http://127.0.0.1:")
    assert len(done.stderr.splitlines()) == 1


def test_a_manifest_that_cannot_be_read_is_a_finding(
    signed_release: Path, tmp_path: Path, tools: Tools, key_pair: KeyPair
) -> None:
    with nginx(signed_release, tmp_path / "nginx", "location ~ json$ { return 403; }") as server:
        done = tools("verify", f"{server.url}/stable", "-p", key_pair.public)
    url = f"{server.url}/stable/manifest.json"
    assert done.returncode == 5
    assert f"  E_UNREADABLE {url}: the server answers 403" in done.stdout.splitlines()
    assert done.stdout.splitlines()[-1].startswith("DO NOT TRUST: 1 finding")


def test_one_channel_that_cannot_be_read_does_not_hide_the_findings_of_another(
    signed_release: Path, tmp_path: Path, tools: Tools, key_pair: KeyPair
) -> None:
    shutil.copytree(signed_release / "stable", signed_release / "beta")
    refused = "location /beta/manifest.json.minisig { return 403; }"
    with nginx(signed_release, tmp_path / "nginx", refused) as server:
        done = tools("verify", server.url, "-p", key_pair.public)
    assert done.returncode == 5
    assert sum(line.startswith("verified ") for line in done.stdout.splitlines()) == 3


def test_a_redirect_on_the_same_server_is_followed(
    signed_release: Path, tmp_path: Path, tools: Tools, key_pair: KeyPair
) -> None:
    moved = "location /old/ { rewrite ^/old/(.*)$ /stable/$1 permanent; }"
    with nginx(signed_release, tmp_path / "nginx", moved) as server:
        done = tools("verify", f"{server.url}/old/manifest.json", "-p", key_pair.public)
    assert done.returncode == 0, done.stdout


def test_a_release_is_verified_over_https(
    signed_release: Path, tmp_path: Path, tools: Tools, key_pair: KeyPair, certificate: Certificate
) -> None:
    with nginx(signed_release, tmp_path / "nginx", certificate=certificate) as server:
        done = tools(
            *("verify", server.url, "-p", key_pair.public),
            env={"REQUESTS_CA_BUNDLE": str(certificate.authority)},
        )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_certificate_of_an_unknown_authority_is_refused(
    signed_release: Path, tmp_path: Path, tools: Tools, key_pair: KeyPair, certificate: Certificate
) -> None:
    with nginx(signed_release, tmp_path / "nginx", certificate=certificate) as server:
        done = tools("verify", server.url, "-p", key_pair.public, env={"REQUESTS_CA_BUNDLE": ""})
    assert (done.returncode, done.stdout) == (5, "")
    assert "certificate" in done.stderr
    assert "Traceback" not in done.stderr


def test_rel_16_https_is_never_left_for_http(
    signed_release: Path, tmp_path: Path, tools: Tools, key_pair: KeyPair, certificate: Certificate
) -> None:
    with nginx(signed_release, tmp_path / "plain") as plain:
        down = f"location ~ xz$ {{ return 302 {plain.url}$uri; }}"
        with nginx(signed_release, tmp_path / "tls", down, certificate=certificate) as server:
            done = tools(
                *("verify", server.url, "-p", key_pair.public),
                env={"REQUESTS_CA_BUNDLE": str(certificate.authority)},
            )
        assert plain.requests == []
    assert done.returncode == 1
    assert "E_URL" in done.stdout
    assert "leads from https to http" in done.stdout
