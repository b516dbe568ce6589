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


@contextmanager
def b2_server(store: B2) -> Iterator[B2]:
    """Run `store` while the block lasts."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            path, query = urlsplit(self.path).path, parse_qs(urlsplit(self.path).query)
            if path.endswith("/b2_authorize_account"):
                _authorize(self, store)
            elif self._let_in():
                by_id = query.get("fileId", [""])[0].removeprefix("id-of-")
                by_name = unquote(path.removeprefix(f"/file/{store.bucket}/"))
                _download(self, store, by_id or by_name)

        def do_HEAD(self) -> None:
            self.do_GET()

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if self._let_in():
                call = urlsplit(self.path).path.rpartition("/")[2]
                _CALLS[call](self, store, body)

        def _let_in(self) -> bool:
            if self.headers["Authorization"] == _TOKEN:
                return True
            _refuse(self, 401, "bad_auth_token")
            return False

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        store.port = server.server_port
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield store
        finally:
            server.shutdown()
            thread.join()


def _say(handler: BaseHTTPRequestHandler, document: dict[str, Any], status: int = 200) -> None:
    data = json.dumps(document).encode()
    handler.send_response(status)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(data)))
    handler.end_headers()
    handler.wfile.write(data)


def _refuse(handler: BaseHTTPRequestHandler, status: int, code: str) -> None:
    _say(handler, {"status": status, "code": code, "message": code}, status)


def _authorize(handler: BaseHTTPRequestHandler, store: B2) -> None:
    scheme, _, encoded = handler.headers.get("Authorization", "").partition(" ")
    said = base64.b64decode(encoded).decode()
    store.asked.append(said)
    if scheme != "Basic" or said != f"{store.account}:{store.key}":
        _refuse(handler, 401, "unauthorized")
        return
    _say(
        handler,
        {
            "accountId": store.account,
            "authorizationToken": _TOKEN,
            "apiUrl": store.url,
            "downloadUrl": store.url,
            "recommendedPartSize": 100_000_000,
            "absoluteMinimumPartSize": 5_000_000,
            "allowed": {
                "bucketId": None,
                "bucketName": None,
                "capabilities": ["listBuckets", "listFiles", "readFiles", "writeFiles"],
                "namePrefix": None,
            },
        },
    )


def _buckets(handler: BaseHTTPRequestHandler, store: B2, body: bytes) -> None:
    wanted = json.loads(body).get("bucketName") or store.bucket
    one = {
        "accountId": store.account,
        "bucketId": _BUCKET_ID,
        "bucketName": store.bucket,
        "bucketType": "allPrivate",
        "bucketInfo": {},
        "lifecycleRules": [],
        "revision": 1,
    }
    _say(handler, {"buckets": [one] if wanted == store.bucket else []})


def _list(handler: BaseHTTPRequestHandler, store: B2, body: bytes) -> None:
    prefix = json.loads(body).get("prefix") or ""
    found = [_described(store, name) for name in sorted(store.files) if name.startswith(prefix)]
    _say(handler, {"files": found, "nextFileName": None})


def _place(handler: BaseHTTPRequestHandler, store: B2, body: bytes) -> None:
    _say(
        handler,
        {
            "bucketId": _BUCKET_ID,
            "uploadUrl": f"{store.url}/upload",
            "authorizationToken": _TOKEN,
        },
    )


def _upload(handler: BaseHTTPRequestHandler, store: B2, body: bytes) -> None:
    digest = handler.headers["X-Bz-Content-Sha1"]
    if digest == "hex_digits_at_end":
        body, digest = body[:-_SHA1_DIGITS], body[-_SHA1_DIGITS:].decode()
    if hashlib.sha1(body).hexdigest() != digest:
        _refuse(handler, 400, "bad_request")
        return
    name = unquote(handler.headers["X-Bz-File-Name"])
    store.files[name] = body, handler.headers["X-Bz-Info-src_last_modified_millis"]
    _say(handler, _described(store, name))


def _described(store: B2, name: str) -> dict[str, Any]:
    data, modified = store.files[name]
    return {
        "accountId": store.account,
        "action": "upload",
        "bucketId": _BUCKET_ID,
        "contentLength": len(data),
        "contentSha1": hashlib.sha1(data).hexdigest(),
        "contentType": "application/octet-stream",
        "fileId": f"id-of-{name}",
        "fileInfo": {"src_last_modified_millis": modified},
        "fileName": name,
        "size": len(data),
        "uploadTimestamp": int(modified),
    }


def _download(handler: BaseHTTPRequestHandler, store: B2, name: str) -> None:
    if name not in store.files:
        _refuse(handler, 404, "not_found")
        return
    data, modified = store.files[name]
    handler.send_response(200)
    handler.send_header("Content-Type", "application/octet-stream")
    handler.send_header("Content-Length", str(len(data)))
    handler.send_header("X-Bz-File-Id", f"id-of-{name}")
    handler.send_header("X-Bz-File-Name", name)
    handler.send_header("X-Bz-Content-Sha1", hashlib.sha1(data).hexdigest())
    handler.send_header("X-Bz-Upload-Timestamp", modified)
    handler.send_header("X-Bz-Info-src_last_modified_millis", modified)
    handler.end_headers()
    if handler.command != "HEAD":
        handler.wfile.write(data)


_CALLS = {
    "b2_list_buckets": _buckets,
    "b2_list_file_names": _list,
    "b2_get_upload_url": _place,
    "upload": _upload,
}
