"""A progress bar of bytes for people at a terminal."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

StartProgress = Callable[[int], Callable[[int], None]]


@contextlib.contextmanager
def byte_progress(label: str, *, shown: bool) -> Iterator[StartProgress]:
    """Yield what is told the bytes to come and gives back what counts them.

    Shows bytes, rate and time left on standard error, and vanishes at the end;
    shows nothing unless `shown`.
    """
    if not shown:
        yield lambda total: lambda count: None
        return
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
            # rich computes in floats, and a manifest may name a size that none can hold.
            task = bar.add_task(label, total=min(total, 1 << 63))
            return lambda count: bar.advance(task, count)

        yield start
