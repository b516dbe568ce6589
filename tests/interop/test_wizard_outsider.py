"""The wizard for who has only its specification: forms as it writes them, over HTTP, to the end."""

from __future__ import annotations

import http.client
import json
from pathlib import Path
from urllib.parse import urlencode

from tests.support.web_servers import Served, served

TOKEN = "5f" * 32
CANARY = "canary-7c1e9b"
# What is sent to each step, and where it leads.
STEPS: list[tuple[str, list[tuple[str, str]], str]] = [
    ("system", [("hostname", "kitchen"), ("timezone", "Europe/Berlin")], "profile"),
    ("profile", [("profile", "openclaw")], "provider"),
    (
        "provider",
        [("provider", "openai"), ("api_key", f"sk-{CANARY}"), ("skip_validation", "1")],
        "channels",
    ),
    ("channels", [("channels", "telegram"), ("channels", "discord")], "ssh"),
    ("ssh", [("ssh_keys", "ssh-ed25519 AAAA me@home\r\nssh-rsa BBBB\r\n")], "mesh-vpn"),
    ("mesh-vpn", [("authkey", f"tskey-{CANARY}")], "tunnel"),
    (
        "tunnel",
        [
            ("choice", "named"),
            ("credentials", json.dumps({"TunnelName": "home", "TunnelSecret": CANARY})),
        ],
        "backup",
    ),
    (
        "backup",
        [
            *(("kind", "store_b"), ("b_account_id", "acct0"), ("b_bucket", "kitchen")),
            *(("b_access_key", f"ak-{CANARY}"), ("b_secret_key", f"sk-{CANARY}")),
        ],
        "review",
    ),
]
ANSWERS = {
    "hostname": "kitchen",
    "timezone": "Europe/Berlin",
    "profile": "openclaw",
    "provider": "openai",
    "model": "",
    "endpoint": "",
    "channels": ["telegram", "discord"],
    "ssh_keys": ["ssh-ed25519 AAAA me@home", "ssh-rsa BBBB"],
    "mesh_vpn_enabled": True,
    "tunnel_choice": "named",
    "tunnel_name": "home",
    "backup_kind": "store_b",
    "backup_meta": {
        "account_id": "acct0",
        "bucket": "kitchen",
        "endpoint": "https://acct0.r2.cloudflarestorage.com",
    },
}
# A value that breaks the rule of each step that has one.
WRONG = [
    ("system", {"hostname": "Kitchen!", "timezone": "Europe/Berlin"}, 200),
    ("profile", {"profile": "nobody"}, 200),
    ("provider", {"provider": "openai", "api_key": "", "skip_validation": "1"}, 200),
    ("channels", {"channels": "nowhere"}, 200),
    ("ssh", {"ssh_keys": "ssh-ed25519"}, 200),
    ("mesh-vpn", {"authkey": "1234567"}, 200),
    ("tunnel", {"choice": "named", "credentials": "{}"}, 200),
    ("backup", {"kind": "store_a", "a_account_id": "acct0"}, 200),
]


def ask(
    app: Served, path: str, cookie: str = "", form: str | None = None
) -> tuple[int, http.client.HTTPMessage, str]:
    """Status, headers and body of an answer."""
    headers = {"Cookie": cookie} if cookie else {}
    if form is not None:
        headers["Content-Type"] = "application/x-www-form-urlencoded"
    connection = http.client.HTTPConnection("127.0.0.1", app.port, timeout=20)
    try:
        connection.request("GET" if form is None else "POST", path, form, headers)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode()
    finally:
        connection.close()


def test_the_forms_of_the_spec_lead_from_the_link_to_review(tmp_path: Path) -> None:
    out = tmp_path / "out"
    places = {"PLATFORM_ROOT": str(tmp_path / "device"), "WIZARD_DEV_OUT": str(out)}
    with served("wizard-app", places, tmp_path / "log", "--token", TOKEN) as app:
        assert ask(app, "/")[0] == 401
        status, headers, _ = ask(app, f"/?token={TOKEN}")
        assert (status, headers["Location"]) == (302, "/wizard/system")
        cookie, *attributes = headers["Set-Cookie"].split("; ")
        assert cookie.startswith("platform-session=")
        assert sorted(attributes) == ["HttpOnly", "Max-Age=3600", "Path=/", "SameSite=Strict"]
        assert ask(app, f"/?token={TOKEN}")[0] == 401
        for slug, fields, status in WRONG:
            answer = ask(app, f"/wizard/{slug}", cookie, urlencode(fields))
            assert (slug, answer[0], '<div class="error">' in answer[2]) == (slug, status, True)
        for slug, form, onward in STEPS:
            status, headers, _ = ask(app, f"/wizard/{slug}", cookie, urlencode(form))
            assert (slug, status, headers["Location"]) == (slug, 302, f"/wizard/{onward}")
            assert ask(app, "/wizard", cookie)[1]["Location"] == f"/wizard/{onward}"
        pages = [ask(app, f"/wizard/{slug}", cookie) for slug, _, _ in STEPS]
        pages.append(ask(app, "/wizard/review", cookie))
        assert {status for status, _, _ in pages} == {200}
        assert not any(CANARY in page for _, _, page in pages)
    stored = json.loads((out / "var/lib/platform/wizard-state.json").read_bytes())
    assert (stored["step"], stored["completed_at"]) == ("review", None)
    assert stored["answers"] == ANSWERS
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path.name for path in kept if CANARY.encode() in path.read_bytes()] == []
