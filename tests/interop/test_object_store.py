"""Releases in a real S3 store, which checks every request's signature."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.support.network import free_port
from tests.support.object_store import ObjectStore, object_store
from tests.support.raw_server import RawServer, Request
from tests.support.releases import (
    VERSION,
    KeyPair,
    Tools,
    clean_environment,
    program,
    write_artefacts,
)
from tests.support.waiting import wait_until

BUCKET = "releases"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, key_pair: KeyPair) -> Iterator[ObjectStore]:
    """A store with a good release below `mirror/` and a damaged one below `damaged/`."""
    folder = tmp_path_factory.mktemp("release")
    write_artefacts(folder / "artefacts")
    built = Tools(folder)(
        *("build", "artefacts", "--version", VERSION, "--channel", "stable"),
        env={"SIGNING_SECRET_KEY": str(key_pair.secret)},
    )
    assert built.returncode == 0, built.stderr
    with object_store(tmp_path_factory.mktemp("store")) as running:
        running.upload(folder / "dist", BUCKET, "mirror/")
        missing, *_ = (folder / "dist").rglob("*.qcow2")
        missing.unlink()
        changed, *_ = (folder / "dist").rglob("*.img.xz")
        changed.write_bytes(bytes(changed.stat().st_size))
        running.upload(folder / "dist", "damaged")
        yield running


@pytest.mark.parametrize(
    "place",
    ["mirror", "mirror/", "mirror/stable", "mirror/stable/manifest.json"],
    ids=["root", "root with slash", "channel", "manifest"],
)
def test_a_release_is_verified_in_the_store(
    place: str, store: ObjectStore, tools: Tools, key_pair: KeyPair
) -> None:
    done = tools("verify", f"s3://{BUCKET}/{place}", "-p", key_pair.public, env=store.environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].startswith("TRUSTED: release 2026.11.1 (stable), 3 of 3")


def test_a_manifest_in_the_store_is_inspected(store: ObjectStore, tools: Tools) -> None:
    done = tools("inspect", f"s3://{BUCKET}/mirror/stable", "--json", env=store.environment)
    assert json.loads(done.stdout)["release_version"] == VERSION


def test_every_fault_of_a_release_in_the_store_is_reported(
    store: ObjectStore, tools: Tools, key_pair: KeyPair
) -> None:
    done = tools(
        *("verify", "s3://damaged/stable", "-p", key_pair.public, "--json"), env=store.environment
    )
    assert done.returncode == 1
    codes = [finding["code"] for finding in json.loads(done.stdout)["findings"]]
    assert sorted(codes) == ["E_HASH", "E_MISSING", "E_SIG"]


_FAULTS: dict[str, tuple[str, Mapping[str, str], str]] = {
    "wrong secret": (
        "releases/mirror/stable",
        {"AWS_SECRET_ACCESS_KEY": "a-wrong-secret"},
        "denies access",
    ),
    "unknown key": (
        "releases/mirror/stable",
        {"AWS_ACCESS_KEY_ID": "a-stranger"},
        "denies access",
    ),
    "no bucket": ("nothing-here/stable", {}, "has no bucket 'nothing-here'"),
    "no manifest": ("releases/elsewhere/stable", {}, "elsewhere/stable/manifest.json does not"),
    "no channel": ("releases/elsewhere", {}, "holds no manifest.json, and no channel has one"),
    "plain http not allowed": (
        "releases/mirror/stable",
        {"AWS_ALLOW_HTTP": "false"},
        "the endpoint is a plain http address",
    ),
    "endpoint unreachable": (
        "releases/mirror/stable",
        {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{free_port()}"},
        "the object store cannot be reached",
    ),
    "no address": ("", {}, "is no address of an object store"),
}


@pytest.mark.parametrize(("place", "changed", "said"), _FAULTS.values(), ids=_FAULTS)
def test_a_store_that_cannot_be_read_is_told_in_one_sentence(
    place: str,
    changed: Mapping[str, str],
    said: str,
    store: ObjectStore,
    tools: Tools,
    key_pair: KeyPair,
) -> None:
    environment = store.environment | dict(changed)
    done = tools("verify", f"s3://{place}", "-p", key_pair.public, env=environment, timeout=20)
    assert done.returncode == 5
    (sentence,) = [line for line in told(done) if line.startswith(("error: s3:/", "  E_UN"))]
    assert said in sentence
    for name in ("AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID"):
        assert environment[name] not in done.stdout + done.stderr


def told(done: subprocess.CompletedProcess[str]) -> list[str]:
    """What was said: of a location on stderr, of a release's manifest on stdout."""
    return [*done.stderr.splitlines(), *done.stdout.splitlines()]


def test_missing_credentials_are_told_as_such(
    store: ObjectStore, tools: Tools, key_pair: KeyPair
) -> None:
    environment = {
        name: value for name, value in store.environment.items() if "ACCESS_KEY" not in name
    }
    # Where a machine of the cloud would be asked for its own credentials.
    environment["AWS_METADATA_ENDPOINT"] = f"http://127.0.0.1:{free_port()}"
    done = tools(
        *("verify", f"s3://{BUCKET}/mirror/stable", "-p", key_pair.public, "--timeout", "2"),
        env=environment,
    )
    assert done.returncode == 5
    assert "there are no credentials for it" in done.stdout
    assert "AWS_SKIP_SIGNATURE" in done.stdout


def _never(request: Request, connection: socket.socket) -> None:
    connection.recv(1)


def test_rel_17_a_store_that_does_not_answer_is_given_up(
    store: ObjectStore, tools: Tools, key_pair: KeyPair
) -> None:
    with RawServer(_never) as server:
        started = time.monotonic()
        done = tools(
            *("verify", f"s3://{BUCKET}/stable", "-p", key_pair.public, "--timeout", "0.5"),
            env=store.environment | {"AWS_ENDPOINT_URL": server.url},
        )
        assert done.returncode == 5
        assert "E_SLOW" in done.stdout
        assert time.monotonic() - started < 15


def test_rel_17_a_store_that_drips_is_given_up(
    store: ObjectStore, tools: Tools, key_pair: KeyPair
) -> None:
    def drip(request: Request, connection: socket.socket) -> None:
        head = (
            b'HTTP/1.1 200 OK\r\nContent-Length: 5000\r\nETag: "1"\r\n'
            b"Last-Modified: Sun, 01 Nov 2026 00:00:00 GMT\r\n\r\n"
        )
        connection.sendall(head)
        while not server.stopping.wait(0.1):
            connection.sendall(b"x")

    with RawServer(drip) as server:
        started = time.monotonic()
        done = tools(
            *("verify", f"s3://{BUCKET}/stable", "-p", key_pair.public, "--timeout", "1"),
            env=store.environment | {"AWS_ENDPOINT_URL": server.url},
        )
        assert (done.returncode, "sent less than 1 KiB/s for 1 s" in done.stdout) == (5, True)
        assert time.monotonic() - started < 15


def test_an_interrupt_ends_a_wait_for_the_store(
    store: ObjectStore, tmp_path: Path, key_pair: KeyPair
) -> None:
    with RawServer(_never) as server:
        process = subprocess.Popen(
            [program(), "verify", f"s3://{BUCKET}/stable", "-p", str(key_pair.public)],
            cwd=tmp_path,
            env=clean_environment() | store.environment | {"AWS_ENDPOINT_URL": server.url},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        wait_until(lambda: server.requests)
        interrupted = time.monotonic()
        os.kill(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=20)
        assert process.returncode == 130, said
        assert time.monotonic() - interrupted < 5
        assert "Traceback" not in said


def test_nothing_of_a_query_or_a_password_in_the_address_is_shown(
    store: ObjectStore, tools: Tools, key_pair: KeyPair
) -> None:
    done = tools(
        *("verify", "s3://user:hidden@releases/mirror/none", "-p", key_pair.public),
        env=store.environment,
    )
    assert done.returncode == 5
    assert "hidden" not in done.stderr + done.stdout
