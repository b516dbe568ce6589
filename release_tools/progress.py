"""A progress bar for people at a terminal."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

StartProgress = Callable[[int], Callable[[int], None]]


@contextlib.contextmanager
def byte_progress(label: str, *, shown: bool) -> Iterator[StartProgress]:
    """Yield a function that starts a bar for a number of bytes and returns one that advances it.

    If `shown`, the bar appears on standard error, and disappears at the end.
    """
    if not shown:
        yield lambda total: lambda count: None
        return
    # Imported here because rich takes longer to import than a manifest on disk to verify
    # (bench: "verify --manifest-only of 50 artefacts").
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(binary_units=True),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:

        def start(total: int) -> Callable[[int], None]:
            # rich computes with floats, and a manifest may give a size too large for one.
            task = bar.add_task(label, total=min(total, 1 << 63))
            return lambda count: bar.advance(task, count)

        yield start
