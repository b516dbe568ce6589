"""Static files: read once, compressed, and cached for ever under a URL that contains their hash."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterable
from pathlib import Path

from flask import Flask, Response, abort, request
from msgspec import Struct
from rjsmin import jsmin

_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml; charset=utf-8",
    ".png": "image/png",
    ".webp": "image/webp",
}
_COMPRESSED = frozenset({".css", ".js", ".svg"})
_FOR_EVER = "public, max-age=31536000, immutable"


class Asset(Struct, frozen=True):
    """One static file."""

    content_type: str
    data: bytes
    compressed: bytes | None
    tag: str


class Assets:
    """The static files of an app, from its folders; later folders override earlier ones."""

    def __init__(self, folders: Iterable[Path]) -> None:
        self.files = {
            path.name: _read(path)
            for folder in folders
            for path in sorted(folder.iterdir())
            if path.suffix in _TYPES
        }

    @property
    def tag(self) -> str:
        """A hash of all files together."""
        tags = "".join(f"{name}{asset.tag}" for name, asset in sorted(self.files.items()))
        return hashlib.sha256(tags.encode()).hexdigest()[:16]

    def url(self, name: str) -> str:
        """The URL of a file, which changes with its contents."""
        return f"/static/{name}?v={self.files[name].tag}"

    def install(self, app: Flask) -> None:
        """Serve the files below `/static/`, and give templates `asset_url`."""
        app.add_url_rule("/static/<name>", "static", self._send)
        app.jinja_env.globals["asset_url"] = self.url

    def respond(self, name: str) -> Response:
        """Return the file `name` for revalidation by browsers each time; 404 without one."""
        asset = self.files.get(name)
        if asset is None:
            abort(404)
        response = Response(asset.data, content_type=asset.content_type)
        if asset.compressed is not None:
            response.vary.add("Accept-Encoding")
            # A client may prefer another encoding and still accept this one.
            if request.accept_encodings["gzip"]:
                response.set_data(asset.compressed)
                response.content_encoding = "gzip"
        response.set_etag(f"{asset.tag}{'-gzip' if response.content_encoding else ''}")
        response.headers["Cache-Control"] = "no-cache"
        response.make_conditional(request)
        return response

    def _send(self, name: str) -> Response:
        response = self.respond(name)
        if request.args.get("v") == self.files[name].tag:
            response.headers["Cache-Control"] = _FOR_EVER
        return response


def _read(path: Path) -> Asset:
    data = path.read_bytes()
    if path.suffix == ".js":
        # Comments and blanks need not be sent.
        data = jsmin(data)
    return Asset(
        content_type=_TYPES[path.suffix],
        data=data,
        compressed=gzip.compress(data, 9, mtime=0) if path.suffix in _COMPRESSED else None,
        tag=hashlib.sha256(data).hexdigest()[:16],
    )
