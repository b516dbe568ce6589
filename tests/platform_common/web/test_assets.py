"""Static files as the apps send them: compressed, cached, and without comments."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest
from flask.testing import FlaskClient

import pwa_app
from dev.distributions import ROOT
from platform_common.web.assets import Assets
from platform_common.web.factory import new_application
from tests.support.http_tables import assert_common_headers

SCRIPTS = sorted([*ROOT.glob("*_app/static/*.js"), *ROOT.glob("platform_common/web/static/*.js")])


@pytest.fixture(scope="module")
def client() -> FlaskClient:
    """A client of an app without a page."""
    static = [Path(pwa_app.__path__[0], "static")]
    return new_application("test", static=static, after_preferences="/").test_client()


@pytest.mark.parametrize("name", ["style.css", "app.js", "icon.svg"])
def test_a_static_file_is_compressed_and_revalidated(client: FlaskClient, name: str) -> None:
    plain = client.get(f"/static/{name}")
    asked = {"Accept-Encoding": "br, gzip"}
    small = client.get(f"/static/{name}", headers=asked)
    assert gzip.decompress(small.data) == plain.data
    assert small.headers["Content-Encoding"] == "gzip"
    assert "Content-Encoding" not in plain.headers
    assert small.headers["Vary"] == plain.headers["Vary"] == "Accept-Encoding"
    assert small.headers["ETag"] != plain.headers["ETag"]
    assert plain.headers["Cache-Control"] == "no-cache"
    known = asked | {"If-None-Match": small.headers["ETag"]}
    again = client.get(f"/static/{name}", headers=known)
    assert (again.status_code, again.data) == (304, b"")
    assert_common_headers(again)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_script_is_sent_without_comments_and_blanks_and_otherwise_unchanged(script: Path) -> None:
    own = re.sub(r"(?m)(?:^|\s)//.*$|/\*.*?\*/", "", script.read_text())
    sent = Assets([script.parent]).files[script.name].data.decode()
    assert len(sent) < len(own)
    for part in (r"\S", r"[\w$]+", r'"[^"]*"|`[^`]*`'):
        assert re.findall(part, sent) == re.findall(part, own)


def test_all_scripts_and_styles_together_are_small() -> None:
    files = {name: file for one in SCRIPTS for name, file in Assets([one.parent]).files.items()}
    for suffix, limit in ((".js", 8 << 10), (".css", 14_000)):
        sizes = {name: len(file.compressed or b"") for name, file in files.items()}
        assert sum(size for name, size in sizes.items() if name.endswith(suffix)) <= limit, sizes
