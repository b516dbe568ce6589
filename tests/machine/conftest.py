"""A device with our package, prepared once for all tests of a run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.first_boot import installed


@pytest.fixture(scope="session")
def device_tree() -> Iterator[Path]:
    """The files of a device before its first boot; nothing may be written there."""
    with installed() as tree:
        yield tree
