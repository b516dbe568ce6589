"""Any response to a key test gives a result, and never another error."""

from __future__ import annotations

import socket
from unittest.mock import patch

from hypothesis import example
from hypothesis import strategies as st

from platform_common.provider_key.check import check_key
from platform_common.provider_key.result import KeyCheck
from tests.fuzz.conftest import Fuzz
from tests.support.key_tests import CANARY, credentials, provider

LINES = st.sampled_from(
    [
        *(b"HTTP/1.1 200 OK", b"HTTP/1.1 301 Away", b"HTTP/1.0 204 No", b"HTTP/1.1 100 Go on"),
        *(b"Content-Length: 5", b"Content-Length: -1", b"Content-Length: \xb2", b": "),
        *(b"Transfer-Encoding: chunked", b"Content-Encoding: gzip", b" folded", b"X-\0: \xff"),
        *(b"Location: //", b"Location: http://[", b"Location: http://\xff/", b"", b"5", b"0"),
        *(b'{"data": [{}]}', b'{"data": [', b"[" * 2000, b'{"models": 1e999}', CANARY.encode()),
    ]
)
ANSWERS = st.lists(LINES | st.binary(max_size=20), max_size=12).map(b"\r\n".join)


def test_any_response_gives_a_result(fuzz: Fuzz) -> None:
    @fuzz(400, ANSWERS)
    @example(b"HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n" + b'{"data": [{}]}')
    def check(answer: bytes) -> None:
        ours, theirs = socket.socketpair()
        with ours, theirs, patch("platform_common.net.client.connect", return_value=ours):
            theirs.sendall(answer)
            theirs.shutdown(socket.SHUT_WR)
            address = "http://api.example"
            found = check_key(provider(), credentials(), endpoint=address, limit_s=60).check
        assert isinstance(found, KeyCheck)
        assert found.message
        assert CANARY.lower() not in repr(found).lower()
