"""Debian's nginx, run on loopback with a configuration of its own."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.network import free_port, listening
from tests.support.running import printed

_PROGRAM = "/usr/sbin/nginx"
_CONFIGURATION = """
{user}
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log {folder}/error.log warn;
events {{ worker_connections 64; }}
http {{
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    default_type application/octet-stream;
    log_format asked escape=none
        '$status|$request_uri|$http_range|$http_if_range|$http_accept_encoding';
    access_log {folder}/access.log asked;
    server {{
        listen 127.0.0.1:{port}{tls};
        {certificate}
        root {root};
        {extra}
    }}
}}
"""


@dataclass(frozen=True)
class LoggedRequest:
    """One request, as nginx logged it; the value of a missing header is empty."""

    status: int
    path: str
    range: str
    if_range: str
    accept_encoding: str


@dataclass(frozen=True)
class Certificate:
    """A server's certificate and key, and the certificate of its authority."""

    authority: Path
    chain: Path
    key: Path


@dataclass(frozen=True)
class Nginx:
    """A running nginx."""

    port: int
    folder: Path
    scheme: str

    @property
    def url(self) -> str:
        """The address of its root."""
        return f"{self.scheme}://127.0.0.1:{self.port}"

    @property
    def requests(self) -> list[LoggedRequest]:
        """The requests so far, in the order in which they ended."""
        lines = (self.folder / "access.log").read_text().splitlines()
        return [
            LoggedRequest(int(status), *others)
            for status, *others in (line.split("|") for line in lines)
        ]


@contextlib.contextmanager
def nginx(
    root: Path, folder: Path, extra: str = "", *, certificate: Certificate | None = None
) -> Iterator[Nginx]:
    """Serve `root` until the block ends; `folder` takes the files of nginx.

    `extra` goes into the server block. Works for root and for other users.
    """
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    lines = ""
    if certificate is not None:
        lines = f"ssl_certificate {certificate.chain}; ssl_certificate_key {certificate.key};"
    configuration = folder / "nginx.conf"
    configuration.write_text(
        _CONFIGURATION.format(
            # Only root can set a user; other users keep theirs.
            user="user root;" if os.getuid() == 0 else "",
            folder=folder,
            port=port,
            tls=" ssl" if certificate else "",
            certificate=lines,
            root=root,
            extra=extra,
        )
    )
    command = (_PROGRAM, "-p", folder, "-c", configuration, "-e", folder / "error.log")
    with listening(port, folder / "output.log", *command):
        yield Nginx(port, folder, "https" if certificate else "http")


def make_certificate(folder: Path, name: str = "IP:127.0.0.1", *, made_on: str = "") -> Certificate:
    """Create an authority, and its certificate for `name`, valid for two days.

    `made_on` is the first day if it is not today.
    """
    folder.mkdir(parents=True, exist_ok=True)
    made = Certificate(folder / "authority.pem", folder / "server.pem", folder / "server.key")
    authority_key = folder / "authority.key"
    _openssl_req("/CN=Test authority", "-keyout", authority_key, "-out", made.authority)
    _openssl_req(
        "/CN=127.0.0.1",
        *("-addext", f"subjectAltName={name}", "-addext", "basicConstraints=CA:FALSE"),
        *("-CA", made.authority, "-CAkey", authority_key),
        *("-keyout", made.key, "-out", made.chain),
        made_on=made_on,
    )
    return made


def _openssl_req(subject: str, *args: str | Path, made_on: str = "") -> None:
    clock = ("faketime", made_on) if made_on else ()
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-noenc")
    printed(*clock, "openssl", "req", "-x509", *curve, "-days", "2", "-subj", subject, *args)
