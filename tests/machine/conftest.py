"""A device with our package on it, made once for all tests of a run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.first_boot import installed

# Takes minutes, as nothing speeds up its machine: with the option alone.
_LONG = "virtual.py"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--qemu`, which is there when this folder's tests are run by themselves."""
    parser.addoption("--qemu", action="store_true", help="a machine with its own kernel, too")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    """Take the long form in with the option."""
    if file_path.name == _LONG and parent.config.getoption("qemu", default=False):
        return pytest.Module.from_parent(parent, path=file_path)
    return None


@pytest.fixture(scope="session")
def device_tree() -> Iterator[Path]:
    """The files of a device before its first boot; nothing may be written there."""
    with installed() as tree:
        yield tree
