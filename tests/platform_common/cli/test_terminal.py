"""Numbers for people on a terminal."""

from __future__ import annotations

import pytest

from platform_common.cli.terminal import human_size


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        *((0, "0 B"), (1, "1 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1536, "1.5 KiB")),
        *((70_000, "68.4 KiB"), ((1 << 20) - 1, "1024.0 KiB"), (1 << 20, "1.0 MiB")),
        *((3 << 29, "1.5 GiB"), (1 << 40, "1.0 TiB"), (1 << 60, "1048576.0 TiB")),
        (1 << 2000, f"{1 << 1960}.0 TiB"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_size_is_shown_in_the_largest_suitable_unit(size: int, shown: str) -> None:
    assert human_size(size) == shown
