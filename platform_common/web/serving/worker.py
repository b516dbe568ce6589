"""gunicorn's worker with threads, in which nobody's connection is waited for by all."""

from __future__ import annotations

from typing import Any

from gunicorn.workers.gthread import ThreadWorker


class Worker(ThreadWorker):  # type: ignore[misc]  # gunicorn has no types
    """A worker whose threads see each connection to its end.

    At the end of one gunicorn waits, for two seconds at most, until the client has hung up
    as well (RFC 9112, section 9.6); of itself it does so in the one thread that accepts.
    """

    def handle(self, conn: Any) -> Any:
        """Answer a request; whether the connection goes on, as gunicorn tells that."""
        goes_on = super().handle(conn)
        if not goes_on:
            conn.close(graceful=True)
            # Who accepts would close it once more.
            conn.close = _closed
        return goes_on


def _closed(*, graceful: bool = False) -> None:
    """Nothing: it is closed already."""
