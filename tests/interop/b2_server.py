"""A local store with Backblaze's own protocol, as far as `rclone` needs it to list a bucket.

It has one bucket, and records the logins.
"""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_TOKEN, _BUCKET_ID = "a-session-token", "bucket-1"
_NAME = "notes.txt"


@dataclass
class B2:
    """A running store: its account, its bucket, and the logins so far."""

    account: str
    key: str
    bucket: str
    port: int = 0
    asked: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        """The address of the store."""
        return f"http://127.0.0.1:{self.port}"

    def log_in(self, login: str) -> dict[str, Any]:
        """Record a login, and return the response."""
        self.asked.append(base64.b64decode(login.removeprefix("Basic ")).decode())
        allowed = {"bucketId": None, "bucketName": None, "namePrefix": None}
        places = dict.fromkeys(("apiUrl", "downloadUrl"), self.url)
        sizes = {"recommendedPartSize": 100_000_000, "absoluteMinimumPartSize": 5_000_000}
        rights = {"capabilities": ["listBuckets", "listFiles"]}
        who = {"accountId": self.account, "authorizationToken": _TOKEN}
        return {**who, **places, **sizes, "allowed": allowed | rights}

    def listed(self, call: str) -> dict[str, Any]:
        """The bucket, or the single file in it."""
        whose = {"accountId": self.account, "bucketId": _BUCKET_ID}
        if call == "b2_list_buckets":
            return {"buckets": [whose | {"bucketName": self.bucket, "bucketType": "allPrivate"}]}
        assert call == "b2_list_file_names", call
        file = {"action": "upload", "fileId": "1", "fileName": _NAME, "size": 1, "fileInfo": {}}
        return {"files": [whose | file | {"uploadTimestamp": 1}], "nextFileName": None}


class _Handler(BaseHTTPRequestHandler):
    store: B2

    def do_GET(self) -> None:
        assert self.path.endswith("/b2_authorize_account")
        self._say(self.store.log_in(self.headers.get("Authorization", "")))

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        assert self.headers["Authorization"] == _TOKEN
        self._say(self.store.listed(self.path.rpartition("/")[2]))

    def _say(self, document: dict[str, Any]) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(document).encode())

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@contextmanager
def b2_server(store: B2) -> Iterator[B2]:
    """Run `store` until the block ends."""
    handler = type("Handler", (_Handler,), {"store": store})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        store.port = server.server_port
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield store
        finally:
            server.shutdown()
            thread.join()
