"""`doctor`: what it runs, and what happens to a check that hangs or breaks."""

from __future__ import annotations

import json
import socket
import threading
import time
from pathlib import Path

import pytest

from platform_common.errors import PlatformError
from platform_common.paths import Paths
from platformctl.checks.doctor import CHECKS, Row, examine
from platformctl.checks.finding import Finding, passed
from tests.support.devices import Device, set_up
from tests.support.network import free_port
from tests.support.raw_server import RawServer, Request


@pytest.mark.parametrize(
    ("error", "detail", "fix"),
    [
        (PlatformError("It is broken", hint="Mend it."), "It is broken", "Mend it."),
        (PlatformError("It is broken"), "It is broken", "Correct that, then run"),
        (PermissionError(13, "Permission denied", "/x"), "/x: Permission denied", "Correct that"),
        (OSError("odd"), "the system: odd", "Correct that"),
        (KeyError("canary"), "internal error: KeyError", "Report this error"),
        (RecursionError("canary"), "internal error: RecursionError", "Report this error"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_a_check_that_raises_is_a_failure_with_the_reason(
    error: Exception, detail: str, fix: str
) -> None:
    def look(paths: Paths) -> Finding:
        raise error

    check = examine(Paths(Path("/"), {}), {"it": Row(look)}, time_limit_s=5).checks[0]
    assert (check.outcome.kind, check.outcome.detail) == ("Fail", detail)
    assert check.fix.startswith(fix)


def test_hanging_checks_are_failures_and_do_not_delay_the_others() -> None:
    over = threading.Event()

    def hang(paths: Paths) -> Finding:
        over.wait(60)
        return passed()

    begun = time.monotonic()
    checks = {f"hangs-{number}": Row(hang) for number in range(50)}
    checks["good"] = Row(lambda paths: passed("well"))
    verdict = examine(Paths(Path("/"), {}), checks, time_limit_s=0.3)
    over.set()
    assert time.monotonic() - begun < 30
    assert (verdict.fails, verdict.passes) == (50, 1)
    assert verdict.checks[0].outcome.detail == "it did not finish within 0.3 s"
    assert [check.name for check in verdict.checks] == list(checks)


def test_checks_run_in_parallel() -> None:
    together = threading.Barrier(8, timeout=10)

    def wait(paths: Paths) -> Finding:
        together.wait()
        return passed()

    verdict = examine(Paths(Path("/"), {}), {str(number): Row(wait) for number in range(8)})
    assert verdict.passes == 8


def test_on_a_device_in_a_folder_checks_of_the_machine_are_skipped(tmp_path: Path) -> None:
    verdict = examine(Paths(tmp_path, {}))
    skipped = {
        c.name
        for c in verdict.checks
        if c.outcome.detail == "this device is a folder, not a machine"
    }
    assert skipped == {name for name, row in CHECKS.items() if row.machine}


# The program.


def finding(device: Device, name: str) -> tuple[str, str]:
    """The result and the detail of one check, as the program prints them."""
    done = device.call("doctor", "--json")
    verdict = json.loads(done.stdout)
    assert done.returncode == (1 if verdict["fails"] else 0)
    for check in verdict["checks"]:
        assert bool(check["fix"]) == (check["outcome"]["kind"] in {"Warn", "Fail"})
    (found,) = (check["outcome"] for check in verdict["checks"] if check["name"] == name)
    return found["kind"], found["detail"].replace(str(device.root), "")


def gateway_finding(url: str, device: Device) -> tuple[str, str]:
    """The finding about a gateway that listens at `url`."""
    health = f'[health]\nhttp_check = "{url}/healthz"\n'
    device.put("/etc/platform/profiles/mine.toml", health)
    device.put("/etc/platform/active-profile", "mine\n")
    return finding(device, "profile-health-endpoint")


def test_an_empty_device_has_no_failures(device: Device) -> None:
    done = device.ctl("doctor")
    assert done.returncode == 0, done.stdout
    assert "0 failed, " in done.stdout.splitlines()[-1]


def test_failures_give_exit_code_one_and_are_shown_with_their_fix(device: Device) -> None:
    set_up(device)
    device.put("/etc/platform/limits.json", "{")
    done = device.ctl("doctor")
    assert done.returncode == 1
    assert "\nWhat to do:\n" in done.stdout
    assert "  records-readable: Correct each file" in done.stdout
    assert done.stderr == ""


def test_every_record_that_cannot_be_read_is_named_with_the_place(device: Device) -> None:
    records = {
        "providers.json": ("[]", "expected object, got array"),
        "limits.json": ("{", "not valid JSON"),
        "voice.toml": ("[voice]\nenabled = 3", "voice.enabled: "),
        "cost.toml": ("caps", "not valid TOML"),
        "cost-defaults.json": ("null", ""),
        "active-provider": ("a\nb\n", "must be one line"),
        "profiles/mine.toml": ("[", "not valid TOML"),
    }
    for name, (content, _) in records.items():
        device.put(f"/etc/platform/{name}", content)
    kind, said = finding(device, "records-readable")
    assert kind == "Fail"
    for name, (_, detail) in records.items():
        assert f"/etc/platform/{name}: {detail}" in said


def test_a_record_that_a_variable_names_must_exist(device: Device) -> None:
    device.environment["PLATFORM_COST_CONFIG"] = "/nowhere/cost.toml"
    said = finding(device, "records-readable")
    assert said == ("Fail", "/nowhere/cost.toml: there is no such file")


def test_only_root_and_the_gateways_may_read_the_keys(device: Device, tmp_path: Path) -> None:
    keys = device.put("/etc/platform/secrets.env", "OPENAI_API_KEY=sk-canary-0123456789\n")
    said = "/etc/platform/secrets.env has the mode {}, not 0640"
    for mode in (0o600, 0o640, 0o644, 0o660):
        keys.chmod(mode)
        refused = ("Fail", said.format(f"{mode:04o}"))
        expected = ("Pass", "") if mode in (0o600, 0o640) else refused
        assert finding(device, "secrets-mode") == expected
    keys.unlink()
    keys.symlink_to(tmp_path / "elsewhere")
    refused = ("Fail", "/etc/platform/secrets.env is not a regular file")
    assert finding(device, "secrets-mode") == refused


def test_an_active_profile_that_is_not_installed_fails(device: Device) -> None:
    device.put("/etc/platform/active-profile", "gone\n")
    kind, said = finding(device, "active-profile-manifest")
    assert kind == "Fail"
    assert said.startswith("/etc/platform/active-profile: the profile ")
    assert said.endswith(" is not installed")


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "Pass"),
        (b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n", "Fail answers with status 503, not 200"),
        (
            b"HTTP/1.1 302 To\r\nLocation: http://127.0.0.1:1/\r\n\r\n",
            "Fail answers with status 302, not 200",
        ),
        (b"\x16\x03\x01 this is TLS", "Fail does not speak HTTP"),
        (b"", "Fail Remote end closed connection without response"),
        (b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 200 + b"\r\n", "Fail does not speak HTTP"),
    ],
    ids=["good", "unhealthy", "redirect", "not-http", "nothing", "too-many-headers"],
)
def test_the_gateway_must_report_that_it_is_healthy(
    answer: bytes, expected: str, device: Device
) -> None:
    with RawServer(lambda request, connection: connection.sendall(answer)) as server:
        kind, said = gateway_finding(server.url, device)
    words = said.partition("/healthz")[2].strip(": ")
    assert f"{kind} {words}".strip() == expected


@pytest.mark.parametrize(
    "pieces",
    [[b""], [b"HTTP/1.1 200 OK\r\n", *[b"a: b\r\n"] * 200]],
    ids=["nothing", "one-byte-at-a-time"],
)
def test_a_gateway_that_answers_too_slowly_fails(pieces: list[bytes], device: Device) -> None:
    def drip(request: Request, connection: socket.socket) -> None:
        for piece in pieces:
            connection.sendall(piece)
            if server.stopping.wait(0.3):
                return
        server.stopping.wait(60)

    begun = time.monotonic()
    with RawServer(drip) as server:
        kind, said = gateway_finding(server.url, device)
    assert (kind, "not" in said) == ("Fail", True)
    assert time.monotonic() - begun < 30


def test_a_gateway_that_does_not_listen_fails(device: Device) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    assert gateway_finding(url, device) == ("Fail", f"{url}/healthz: Connection refused")


def test_the_result_is_kept_for_status(device: Device) -> None:
    device.put("/etc/platform/secrets.env", "", 0o644)
    assert json.loads(device.ctl("status", "--json").stdout)["doctor_fails"] is None
    assert device.ctl("doctor").returncode == 1
    assert json.loads(device.ctl("status", "--json").stdout)["doctor_fails"] == 1


def test_a_user_who_cannot_store_the_result_still_sees_it(device: Device) -> None:
    device.put("/run/platform", "a file in the way")
    done = device.ctl("doctor")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_missing_device_folder_is_reported_and_not_created(
    device: Device, tmp_path: Path
) -> None:
    device.root = tmp_path / "nowhere"
    finished = device.ctl("doctor", "--json")
    assert finished.returncode == 1
    checks = {check["name"]: check for check in json.loads(finished.stdout)["checks"]}
    found = checks["data-partition-free"]["outcome"]
    assert found == {"kind": "Fail", "detail": f"{device.root}: there is no such folder"}
    assert not device.root.exists()
