"""The command line of cloudflared: where the tunnel leads, and that it contains no secret."""

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


def command_line(device: Device, copies: Path | None = None) -> list[str]:
    """The command line of cloudflared on that device."""
    return command(device.paths, copies)


def test_a_named_tunnel_is_run_by_its_id_if_that_is_known(device: Device) -> None:
    named, by_id = {"TunnelName": "kitchen"}, {"TunnelID": ID}
    for credentials, name in ((named | by_id, ID), (named, "kitchen"), (by_id, ID)):
        file = device.put(CREDENTIALS, json.dumps(credentials | {"TunnelSecret": "CaNaRy"}))
        words = command_line(device)
        assert words == [*START, "run", "--credentials-file", str(file), "--url", GATEWAY, name]


def test_systemds_copies_are_used_instead_of_the_original_files(
    device: Device,
) -> None:
    device.put(CREDENTIALS, "{}")
    file = device.path("/copies/tunnel_credentials.json")
    assert command_line(device, file.parent) == [*START, "--url", GATEWAY]
    file.write_text(json.dumps({"TunnelID": ID}))
    words = command_line(device, file.parent)
    assert words[-5:] == ["--credentials-file", str(file), "--url", GATEWAY, ID]


def test_the_operators_own_settings_are_used_unchanged(device: Device) -> None:
    device.path("/etc/platform/active-profile").unlink()
    config = device.put("/etc/platform/tunnel/config.yml", "tunnel: mine\n")
    assert command_line(device) == [*START, "--config", str(config), "run"]


def test_tun_02_invalid_credentials_start_no_tunnel(device: Device) -> None:
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
            command_line(device)


def test_a_tunnel_only_leads_to_this_device(device: Device) -> None:
    profile = '[profile]\nid = "openclaw"\n[health]\nhttp_check = "http://192.0.2.1:8080/health"\n'
    device.put("/etc/platform/profiles/openclaw.toml", profile)
    with pytest.raises(PlatformError, match="http_check"):
        command_line(device)


def test_a_failure_that_a_restart_cannot_fix_has_its_own_exit_status(device: Device) -> None:
    missing = device.call("tunnel", "run", env={"PATH": str(device.root)})
    assert missing.returncode == 65
    assert "error: cloudflared could not be started: No such file" in missing.stderr
    device.path("/etc/platform/active-profile").unlink()
    none = device.call("tunnel", "run")
    assert (none.returncode, none.stdout) == (65, "")
    assert none.stderr.startswith("error: No profile is active")
