"""A store that speaks Backblaze's own protocol, as far as `rclone` uses it, on loopback.

It keeps one bucket in memory, lets in one account, and notes who asked to be let in.
"""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

_TOKEN, _BUCKET_ID = "a-session-token", "bucket-1"
_RIGHTS = ["listBuckets", "listFiles", "readFiles", "writeFiles"]
_SHA1_DIGITS = 40


@dataclass
class B2:
    """A running store: who may use it, what is in it, and who asked."""

    account: str
    key: str
    bucket: str
    port: int = 0
    files: dict[str, tuple[bytes, str]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def described(self, name: str) -> dict[str, Any]:
        """A file as the protocol describes it."""
        data, modified = self.files[name]
        return {
            "accountId": self.account,
            "bucketId": _BUCKET_ID,
            "action": "upload",
            "fileId": f"id-of-{name}",
            "fileName": name,
            "contentType": "text/plain",
            "size": len(data),
            "contentLength": len(data),
            "uploadTimestamp": int(modified),
            "contentSha1": hashlib.sha1(data).hexdigest(),
            "fileInfo": {"src_last_modified_millis": modified},
        }

    def answer(self, call: str, told: dict[str, Any]) -> dict[str, Any]:
        """What a call of the protocol is answered to whom it lets in."""
        if call == "b2_list_buckets":
            one = {"accountId": self.account, "bucketId": _BUCKET_ID, "bucketName": self.bucket}
            one |= {"bucketType": "allPrivate"}
            return {"buckets": [one] if told.get("bucketName") in (None, self.bucket) else []}
        if call == "b2_list_file_names":
            found = [name for name in sorted(self.files) if name.startswith(told.get("prefix", ""))]
            return {"files": [self.described(name) for name in found], "nextFileName": None}
        assert call == "b2_get_upload_url", call
        place = {"bucketId": _BUCKET_ID, "uploadUrl": f"{self.url}/upload"}
        return place | {"authorizationToken": _TOKEN}

    def account_of(self, login: str) -> dict[str, Any] | None:
        """What is answered to a login; None when it is a wrong one."""
        said = base64.b64decode(login.removeprefix("Basic ")).decode()
        self.asked.append(said)
        if said != f"{self.account}:{self.key}":
            return None
        allowed = {"bucketId": None, "bucketName": None, "namePrefix": None}
        return {
            "accountId": self.account,
            "authorizationToken": _TOKEN,
            "apiUrl": self.url,
            "downloadUrl": self.url,
            "recommendedPartSize": 100_000_000,
            "absoluteMinimumPartSize": 5_000_000,
            "allowed": allowed | {"capabilities": _RIGHTS},
        }


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    store: B2

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        if address.path.endswith("/b2_authorize_account"):
            self._say(self.store.account_of(self.headers.get("Authorization", "")))
            return
        by_id = parse_qs(address.query).get("fileId", [""])[0].removeprefix("id-of-")
        name = by_id or unquote(address.path.removeprefix(f"/file/{self.store.bucket}/"))
        if self.headers["Authorization"] != _TOKEN or name not in self.store.files:
            self._say(None, 401 if name in self.store.files else 404)
            return
        data, modified = self.store.files[name]
        digest = hashlib.sha1(data).hexdigest()
        headers = {"File-Id": f"id-of-{name}", "File-Name": name, "Content-Sha1": digest}
        headers |= {"Upload-Timestamp": modified, "Info-src_last_modified_millis": modified}
        self._send(data, {f"X-Bz-{header}": value for header, value in headers.items()})

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        call = urlsplit(self.path).path.rpartition("/")[2]
        if self.headers["Authorization"] != _TOKEN:
            self._say(None)
        elif call != "upload":
            self._say(self.store.answer(call, json.loads(body)))
        else:
            digest = self.headers["X-Bz-Content-Sha1"]
            if digest == "hex_digits_at_end":
                body, digest = body[:-_SHA1_DIGITS], body[-_SHA1_DIGITS:].decode()
            name, modified = (
                self.headers[f"X-Bz-{one}"]
                for one in ("File-Name", "Info-src_last_modified_millis")
            )
            assert hashlib.sha1(body).hexdigest() == digest
            self.store.files[unquote(name)] = body, modified
            self._say(self.store.described(unquote(name)))

    def _say(self, document: dict[str, Any] | None, status: int = 401) -> None:
        if document is None:
            refused = {"status": status, "code": "unauthorized", "message": ""}
            self._send(json.dumps(refused).encode(), {}, status)
        else:
            self._send(json.dumps(document).encode(), {})

    def _send(self, data: bytes, headers: dict[str, str], status: int = 200) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(data))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def b2_server(store: B2) -> Iterator[B2]:
    """Run `store` while the block lasts."""
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
