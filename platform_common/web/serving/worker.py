"""gunicorn's worker with threads, which closes connections outside the accepting thread."""

from __future__ import annotations

from typing import Any

from gunicorn.workers.gthread import ThreadWorker


class Worker(ThreadWorker):  # type: ignore[misc]  # gunicorn has no types
    """A worker whose threads close their connections themselves.

    When gunicorn closes a connection, it waits up to two seconds for the client to close it too
    (RFC 9112, section 9.6); by default it does so in the only accepting thread.
    """

    def handle(self, conn: Any) -> Any:
        """Answer a request; return, in gunicorn's form, whether the connection stays open."""
        goes_on = super().handle(conn)
        if not goes_on:
            conn.close(graceful=True)
            # Otherwise the accepting thread would close it again.
            conn.close = lambda **options: None
        return goes_on
