"""The command line of cloudflared: where the tunnel leads, and no secret in it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from platform_common.errors import PlatformError
from platformctl.tunnel import command
from tests.support.devices import Device

ID = "6ff42ae2-765d-4adf-8112-31c55c1551ef"
GATEWAY = "http://127.0.0.1:8080"
CREDENTIALS = "/etc/platform/tunnel/credentials.json"
START = ["cloudflared", "tunnel", "--no-autoupdate"]


@pytest.fixture(autouse=True)
def _with_an_active_profile(device: Device) -> None:
    device.put("/etc/platform/active-profile", "openclaw\n")


def told(device: Device, copies: Path | None = None) -> list[str]:
    """What cloudflared is told on that device."""
    return command(device.paths, copies)


def test_a_named_tunnel_is_called_by_its_id_where_that_is_known(device: Device) -> None:
    named, by_id = {"TunnelName": "kitchen"}, {"TunnelID": ID}
    for credentials, name in ((named | by_id, ID), (named, "kitchen"), (by_id, ID)):
        file = device.put(CREDENTIALS, json.dumps(credentials | {"TunnelSecret": "CaNaRy"}))
        words = told(device)
        assert words == [*START, "run", "--credentials-file", str(file), "--url", GATEWAY, name]


def test_systemds_copies_are_used_instead_of_the_original_files(
    device: Device,
) -> None:
    device.put(CREDENTIALS, "{}")
    file = device.path("/copies/tunnel_credentials.json")
    assert told(device, file.parent) == [*START, "--url", GATEWAY]
    file.write_text(json.dumps({"TunnelID": ID}))
    words = told(device, file.parent)
    assert words[-5:] == ["--credentials-file", str(file), "--url", GATEWAY, ID]


def test_settings_of_the_operator_say_themselves_where_it_leads(device: Device) -> None:
    device.path("/etc/platform/active-profile").unlink()
    config = device.put("/etc/platform/tunnel/config.yml", "tunnel: mine\n")
    assert told(device) == [*START, "--config", str(config), "run"]


def test_tun_02_invalid_credentials_start_nothing(device: Device) -> None:
    for credentials, said in {
        "": "must be JSON",
        "{}": "TunnelID or TunnelName",
        '{"TunnelName": "--url"}': "cannot start with",
        '{"TunnelName": "../x"}': "can only contain",
        '{"TunnelName": "a", "TunnelName": "b"}': "without duplicate names",
        "x" * 70_000: "65,536",
    }.items():
        device.put(CREDENTIALS, credentials)
        with pytest.raises(PlatformError, match=said):
            told(device)


def test_no_tunnel_leads_anywhere_but_to_this_device(device: Device) -> None:
    profile = '[profile]\nid = "openclaw"\n[health]\nhttp_check = "http://192.0.2.1:8080/health"\n'
    device.put("/etc/platform/profiles/openclaw.toml", profile)
    with pytest.raises(PlatformError, match="http_check"):
        told(device)


def test_what_would_fail_again_ends_with_a_status_of_its_own(device: Device) -> None:
    missing = device.call("tunnel", "run", env={"PATH": str(device.root)})
    assert missing.returncode == 65
    assert "error: cloudflared could not be started: No such file" in missing.stderr
    device.path("/etc/platform/active-profile").unlink()
    none = device.call("tunnel", "run")
    assert (none.returncode, none.stdout) == (65, "")
    assert none.stderr.startswith("error: No profile is active")
