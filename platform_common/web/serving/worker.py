"""gunicorn's worker with threads, which closes connections outside the accepting thread."""

from __future__ import annotations

from typing import Any

from gunicorn.workers.gthread import ThreadWorker


class Worker(ThreadWorker):  # type: ignore[misc]  # gunicorn has no types
    """A worker whose threads close their connections themselves.

    At the end of one gunicorn waits, for two seconds at most, until the client has hung up
    as well (RFC 9112, section 9.6); of itself it does so in the one thread that accepts.
    """

    def handle(self, conn: Any) -> Any:
        """Answer a request; whether the connection goes on, as gunicorn tells that."""
        goes_on = super().handle(conn)
        if not goes_on:
            conn.close(graceful=True)
            # The accepting thread would close it once more.
            conn.close = lambda **options: None
        return goes_on
