"""Releases in a real S3 store, which checks every request's signature."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from collections.abc import Callable, Mapping

import pytest

from tests.support.network import free_port
from tests.support.object_store import ObjectStore
from tests.support.raw_server import RawServer, response
from tests.support.releases import (
    VERSION,
    KeyPair,
    Tools,
    write_artefacts,
)

BUCKET = "releases"


@pytest.fixture(scope="module")
def store(
    s3: ObjectStore, tmp_path_factory: pytest.TempPathFactory, key_pair: KeyPair
) -> ObjectStore:
    """A store with a good release below `mirror/` and a damaged one below `damaged/`."""
    folder = tmp_path_factory.mktemp("release")
    write_artefacts(folder / "artefacts")
    built = Tools(folder)(
        *("build", "artefacts", "--version", VERSION, "--channel", "stable"),
        env={"SIGNING_SECRET_KEY": str(key_pair.secret)},
    )
    assert built.returncode == 0, built.stderr
    s3.upload(folder / "dist", BUCKET, "mirror/")
    missing, *_ = (folder / "dist").rglob("*.qcow2")
    missing.unlink()
    changed, *_ = (folder / "dist").rglob("*.img.xz")
    changed.write_bytes(bytes(changed.stat().st_size))
    s3.upload(folder / "dist", "damaged")
    return s3


Done = subprocess.CompletedProcess[str]
Verify = Callable[..., Done]


@pytest.fixture
def verify(store: ObjectStore, tools: Tools, key_pair: KeyPair) -> Verify:
    """Verify a release in the store, with options and additional variables."""

    def verify(place: str, *options: str, **variables: str) -> Done:
        environment = store.environment | variables
        return tools("verify", f"s3://{place}", "-p", key_pair.public, *options, env=environment)

    return verify


@pytest.mark.parametrize(
    "place",
    ["mirror", "mirror/", "mirror/stable", "mirror/stable/manifest.json"],
    ids=["root", "root with slash", "channel", "manifest"],
)
def test_a_release_is_verified_in_the_store(place: str, verify: Verify) -> None:
    done = verify(f"{BUCKET}/{place}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].startswith("TRUSTED: release 2026.11.1 (stable), 3 of 3")


def test_a_manifest_in_the_store_is_inspected(store: ObjectStore, tools: Tools) -> None:
    done = tools("inspect", f"s3://{BUCKET}/mirror/stable", "--json", env=store.environment)
    assert json.loads(done.stdout)["release_version"] == VERSION


def test_every_fault_of_a_release_in_the_store_is_reported(verify: Verify) -> None:
    done = verify("damaged/stable", "--json")
    assert done.returncode == 1
    codes = [finding["code"] for finding in json.loads(done.stdout)["findings"]]
    assert sorted(codes) == ["E_HASH", "E_MISSING", "E_SIG"]


GOOD = f"{BUCKET}/mirror/stable"
_FAULTS: dict[str, tuple[str, Mapping[str, str], str]] = {
    "wrong secret": (GOOD, {"AWS_SECRET_ACCESS_KEY": "a-wrong-secret"}, "denies access"),
    "unknown key": (GOOD, {"AWS_ACCESS_KEY_ID": "a-stranger"}, "denies access"),
    "no bucket": ("nothing-here/stable", {}, "has no bucket 'nothing-here'"),
    "no manifest": ("releases/elsewhere/stable", {}, "elsewhere/stable/manifest.json does not"),
    "no channel": ("releases/elsewhere", {}, "holds no manifest.json, and no channel has one"),
    "plain http": (GOOD, {"AWS_ALLOW_HTTP": "false"}, "the endpoint is a plain http address"),
    "endpoint unreachable": (
        *(GOOD, {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{free_port()}"}),
        "the object store cannot be reached",
    ),
    "no address": ("", {}, "is not the address of an object store"),
    "a password in it": ("user:a-password@releases/mirror/none", {}, ""),
}


@pytest.mark.parametrize(("place", "changed", "said"), _FAULTS.values(), ids=_FAULTS)
def test_an_unreadable_store_is_reported_in_one_sentence(
    place: str, changed: Mapping[str, str], said: str, store: ObjectStore, verify: Verify
) -> None:
    done = verify(place, **changed)
    assert done.returncode == 5
    # Errors of a location are on stderr, those of a release's manifest on stdout.
    lines = [*done.stderr.splitlines(), *done.stdout.splitlines()]
    (sentence,) = [line for line in lines if line.startswith(("error: s3:/", "  E_UN"))]
    assert said in sentence
    variables = store.environment | dict(changed)
    for secret in (variables["AWS_SECRET_ACCESS_KEY"], variables["AWS_ACCESS_KEY_ID"]):
        assert secret not in done.stdout + done.stderr
    assert "a-password" not in done.stdout + done.stderr


def test_missing_credentials_are_reported_as_such(
    store: ObjectStore, tools: Tools, key_pair: KeyPair
) -> None:
    environment = {
        name: value for name, value in store.environment.items() if "ACCESS_KEY" not in name
    }
    # Otherwise the metadata service of a cloud would be asked for credentials.
    environment["AWS_METADATA_ENDPOINT"] = f"http://127.0.0.1:{free_port()}"
    asked = ("verify", f"s3://{GOOD}", "-p", key_pair.public, "--timeout", "2")
    done = tools(*asked, env=environment)
    assert done.returncode == 5
    assert "there are no credentials for it" in done.stdout
    assert "AWS_SKIP_SIGNATURE" in done.stdout


def _never(server: RawServer, connection: socket.socket) -> None:
    connection.recv(1)


def _drip(server: RawServer, connection: socket.socket) -> None:
    modified = "Sun, 01 Nov 2026 00:00:00 GMT"
    connection.sendall(response(length=5000, headers={"ETag": '"1"', "Last-Modified": modified}))
    while not server.stopping.wait(0.1):
        connection.sendall(b"x")


@pytest.mark.parametrize(
    ("answer", "said"),
    [(_never, "E_SLOW"), (_drip, "sent less than 1 KiB/s for 0.5 s")],
    ids=["does not answer", "drips"],
)
def test_rel_17_a_store_that_is_too_slow_is_abandoned(
    answer: Callable[[RawServer, socket.socket], None], said: str, verify: Verify
) -> None:
    with RawServer(lambda _, connection: answer(server, connection)) as server:
        started = time.monotonic()
        done = verify(f"{BUCKET}/stable", "--timeout", "0.5", AWS_ENDPOINT_URL=server.url)
        assert (done.returncode, said in done.stdout) == (5, True)
        assert time.monotonic() - started < 15
