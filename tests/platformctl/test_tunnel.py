"""What cloudflared is told: where the tunnel leads, and no secret among its words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from platform_common.errors import PlatformError
from platform_common.paths import Paths
from platformctl.cli import main
from platformctl.tunnel import command

ID = "6ff42ae2-765d-4adf-8112-31c55c1551ef"
GATEWAY = "http://127.0.0.1:8080"
START = ["cloudflared", "tunnel", "--no-autoupdate"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A device with an active profile."""
    put(tmp_path / "etc/platform/active-profile", "openclaw\n")
    return tmp_path


def put(path: Path, text: str) -> Path:
    """Write a file, and make the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def told(root: Path, copies: Path | None = None) -> list[str]:
    """What cloudflared is told on that device."""
    return command(Paths(root, {}), copies)


def test_a_named_tunnel_is_called_by_its_id_where_that_is_known(root: Path) -> None:
    path = root / "etc/platform/tunnel/credentials.json"
    named, by_id = {"TunnelName": "kitchen"}, {"TunnelID": ID}
    for credentials, name in ((named | by_id, ID), (named, "kitchen"), (by_id, ID)):
        file = put(path, json.dumps(credentials | {"TunnelSecret": "CaNaRy"}))
        words = told(root)
        assert words == [*START, "run", "--credentials-file", str(file), "--url", GATEWAY, name]


def test_copies_of_systemd_count_and_not_what_they_are_copies_of(
    root: Path, tmp_path: Path
) -> None:
    put(root / "etc/platform/tunnel/credentials.json", "{}")
    copies = tmp_path / "copies"
    assert told(root, copies) == [*START, "--url", GATEWAY]
    file = put(copies / "tunnel_credentials.json", json.dumps({"TunnelID": ID}))
    assert told(root, copies)[-5:] == ["--credentials-file", str(file), "--url", GATEWAY, ID]


def test_settings_of_the_operator_say_themselves_where_it_leads(root: Path) -> None:
    (root / "etc/platform/active-profile").unlink()
    config = put(root / "etc/platform/tunnel/config.yml", "tunnel: mine\n")
    assert told(root) == [*START, "--config", str(config), "run"]


def test_tun_02_credentials_that_are_none_start_nothing(root: Path) -> None:
    for credentials, said in {
        "": "must be JSON",
        "{}": "TunnelID or TunnelName",
        '{"TunnelName": "--url"}': "cannot start with",
        '{"TunnelName": "../x"}': "can only contain",
        '{"TunnelName": "a", "TunnelName": "b"}': "twice",
        "x" * 70_000: "65,536",
    }.items():
        put(root / "etc/platform/tunnel/credentials.json", credentials)
        with pytest.raises(PlatformError, match=said):
            told(root)


def test_no_tunnel_leads_anywhere_but_to_this_device(root: Path) -> None:
    profile = '[profile]\nid = "openclaw"\n[health]\nhttp_check = "http://192.0.2.1:8080/health"\n'
    put(root / "etc/platform/profiles/openclaw.toml", profile)
    with pytest.raises(PlatformError, match="http_check"):
        told(root)


def test_what_would_fail_again_ends_with_a_status_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = {"PLATFORM_ROOT": str(tmp_path)}
    none = CliRunner().invoke(main, ["tunnel", "run"], env=environment)
    assert (none.exit_code, none.stdout) == (65, "")
    assert none.stderr.startswith("error: No profile is active")
    put(tmp_path / "etc/platform/active-profile", "openclaw\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    missing = CliRunner().invoke(main, ["tunnel", "run"], env=environment)
    assert missing.exit_code == 65
    assert "error: cloudflared could not be started: No such file" in missing.stderr
