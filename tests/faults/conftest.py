"""Runs with faults, and something for them to happen to."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.faults import FaultServer, Site, make_site
from tests.support.releases import KeyPair


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultServer]:
    """What starts runs of release-tools."""
    with FaultServer(tmp_path_factory.mktemp("runs")) as server:
        yield server


@pytest.fixture(scope="package")
def site(tmp_path_factory: pytest.TempPathFactory, key_pair: KeyPair, server: FaultServer) -> Site:
    """A distribution with one release; every test resets it."""
    return make_site(tmp_path_factory.mktemp("site"), key_pair, server)


@pytest.fixture
def memory() -> Iterator[Path]:
    """A folder in memory: a slow disk would say nothing more, and take its time."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield Path(folder)
