"""The body of a request: complete, or an error."""

from __future__ import annotations

import io
from functools import cached_property
from typing import IO, Any, cast

from flask import Request
from werkzeug.exceptions import BadRequest, ClientDisconnected, RequestEntityTooLarge


class WholeRequest(Request):
    """A request whose body is read completely or not at all.

    Werkzeug's own stream ends silently if a chunked body exceeds the limit, or if a client leaves
    before the announced end: half a key would be accepted.
    """

    @cached_property
    def stream(self) -> IO[bytes]:
        """The stream of the body; reading it raises `HTTPException` (400 or 413)."""
        limit = self.max_content_length
        if limit is None:
            raise RuntimeError("an app must say how long a body may be")
        if (self.content_length or 0) > limit:
            raise RequestEntityTooLarge
        # Without a length, and unless the server marks the end of the input, there is no body.
        announced = self.content_length
        if announced is None and not self.environ.get("wsgi.input_terminated"):
            announced = 0
        return cast("IO[bytes]", _Body(self.environ["wsgi.input"], announced, limit))


class _Body(io.RawIOBase):
    def __init__(self, source: Any, announced: int | None, limit: int) -> None:
        self._source = source
        self._announced = announced
        self._limit = limit
        self._read = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        # One byte beyond the limit, to detect a longer body.
        most = self._limit + 1 if self._announced is None else self._announced
        try:
            data = self._source.read(min(len(buffer), most - self._read))
        except Exception as error:  # servers raise different exceptions for malformed bodies
            raise BadRequest from error
        self._read += len(data)
        if self._read > self._limit:
            raise RequestEntityTooLarge
        if not data and self._read < (self._announced or 0):
            raise ClientDisconnected
        buffer[: len(data)] = data
        return len(data)
