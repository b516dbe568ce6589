"""Fixtures and settings for all tests."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

import pytest
from flask import Flask
from jinja2.bccache import Bucket, BytecodeCache

from release_tools.signing.keys import generate
from tests.support.devices import Device
from tests.support.releases import VERSION, KeyPair, Tools, write_artefacts

_MOST_TESTS_AT_ONCE = 16

# If a shell starts the tests in the background, they and their children would ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)


class _CompiledTemplates(BytecodeCache):
    """Compiled templates, by their source: a changed template is compiled again."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], CodeType] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        bucket.code = self._kept.get((bucket.key, bucket.checksum))

    def dump_bytecode(self, bucket: Bucket) -> None:
        assert bucket.code is not None
        self._kept[bucket.key, bucket.checksum] = bucket.code


@pytest.fixture(scope="session", autouse=True)
def _templates_are_compiled_once() -> Iterator[None]:
    """Share compiled templates among the apps of this process, because a run creates thousands."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(Flask.jinja_options, "bytecode_cache", _CompiledTemplates())
        yield


@pytest.fixture(scope="session")
def key_pair(tmp_path_factory: pytest.TempPathFactory) -> KeyPair:
    """The release key of this test run."""
    folder = tmp_path_factory.mktemp("keys")
    pair = KeyPair(folder / "release.key", folder / "release.pub")
    generate(pair.secret, pair.public, "")
    return pair


@pytest.fixture
def tools(tmp_path: Path) -> Tools:
    """The program `release-tools`, which runs in the folder of this test."""
    return Tools(tmp_path)


@pytest.fixture
def device(tmp_path: Path) -> Device:
    """A device in a folder, without any records."""
    root = tmp_path / "device"
    root.mkdir()
    return Device(root)


@pytest.fixture(scope="session")
def _built_release(tmp_path_factory: pytest.TempPathFactory, key_pair: KeyPair) -> Path:
    folder = tmp_path_factory.mktemp("built")
    write_artefacts(folder / "artefacts")
    built = Tools(folder)(
        *("build", "artefacts", "--version", VERSION, "--channel", "stable"),
        env={"SIGNING_SECRET_KEY": str(key_pair.secret)},
    )
    assert built.returncode == 0, built.stderr
    return folder


@pytest.fixture
def signed_release(tmp_path: Path, _built_release: Path) -> Path:
    """A distribution `dist` with one signed release on the channel stable, and its `artefacts`."""
    for name in ("artefacts", "dist"):
        shutil.copytree(_built_release / name, tmp_path / name)
    return tmp_path / "dist"


def pytest_xdist_auto_num_workers() -> int:
    """The number of processes for `-n auto`."""
    # Two more than cores, because most tests wait for programs; with many more, programs wait too.
    return min((os.cpu_count() or 1) + 2, _MOST_TESTS_AT_ONCE)


@pytest.hookimpl(wrapper=True)
def pytest_sessionfinish(session: pytest.Session) -> Iterator[None]:
    """In CI a skipped test is a failure, because nothing may be missing there."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("CI") and reporter is not None and reporter.stats.get("skipped"):
        reporter.write_line("\nCI is set, and tests were skipped: that is a failure.", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    yield
