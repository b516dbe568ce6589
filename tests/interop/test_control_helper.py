"""The root helper, started by systemd's socket activator, and by systemd on a real machine."""

from __future__ import annotations

import contextlib
import json
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from platform_common.control_answers import Verdict
from platform_common.errors import AccessError, PlatformError, WrongUsageError
from platform_common.resources import data_path
from platform_common.root_helper import client as control_helper
from platform_common.storage.file_lock import LockedError, changing
from platformctl.answers import ModelSet
from platformctl.keys.models import Listing
from tests.interop.conftest import call
from tests.support.appliances import Appliance
from tests.support.devices import Device
from tests.support.machine import Machine
from tests.support.own_packages import packages
from tests.support.process_users import as_user
from tests.support.raw_server import RawServer, serving
from tests.support.releases import program
from tests.support.waiting import wait_until

CANARY = "sk-canary-0123456789"
SECRETS = "/etc/platform/secrets.env"
ACTIVE = "/etc/platform/active-provider"
LEDGER = "/home/agent/.openclaw/cost-ledger.jsonl"
SET = ("model", "set", "--key-from-stdin", "--yes", "--provider")
NOBODY = 65534
Connection = socket.socket
STRANGER = 61234


@dataclass(frozen=True)
class Helped:
    """A device with a helper that serves the user nobody; `log` is the output of the helper."""

    device: Device
    log: Path

    @property
    def socket(self) -> Path:
        """The helper's socket."""
        return self.device.path("/run/platform/control.sock")

    def has_logged(self, line: str, times: int = 1) -> bool:
        """Whether the helper logs the line exactly `times` times; it may log after its response."""
        wait_until(lambda: self.log.read_text().count(line) >= times)
        return self.log.read_text().count(line) == times

    def files(self) -> dict[str, bytes]:
        """The records of the device, by name."""
        folder = self.device.path("/etc/platform/x").parent
        return {p.name: p.read_bytes() for p in folder.iterdir() if not p.name.startswith(".")}

    def ctl(
        self, user: int, *args: str, stdin: str = "", **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Run `platformctl` as that user."""
        become = (sys.executable, str(Path(__file__).with_name("another_user.py")), str(user))
        # Every user can read this copy, wherever the checkout is.
        places = {"PLATFORM_ROOT": str(self.device.root), "PYTHONPATH": str(packages())}
        return call(*become, *args, stdin=stdin, env=places | environment)

    @contextlib.contextmanager
    def connected(self) -> Iterator[Connection]:
        """Open a connection to the helper, as root."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(20)
            connection.connect(str(self.socket))
            yield connection

    def send(self, request: bytes) -> str:
        """Send these bytes as root; return the whole response."""
        with self.connected() as connection:
            with contextlib.suppress(BrokenPipeError):
                connection.sendall(request)
                connection.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: connection.recv(65536), b"")).decode()


@contextlib.contextmanager
def activated(*options: str) -> Iterator[Helped]:
    """A device with a helper; `options` are additional options of the activator."""
    # Not below tmp_path, which only its owner can enter.
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        root.chmod(0o755)
        found = Helped(Device(root), root / "log")
        shutil.copy(data_path("providers.json"), found.device.path("/etc/platform/providers.json"))
        with found.log.open("wb") as log:
            activator = subprocess.Popen(
                [
                    *("systemd-socket-activate", "--accept", "--inetd", "-l", str(found.socket)),
                    # The helper must ignore these variables.
                    *(f"-EPLATFORM_SECRETS_FILE={root}/elsewhere", f"-EPLATFORM_ROOT={root}/other"),
                    *options,
                    *(program("platformctl"), "control-helper"),
                    *("--root", str(root), "--user", "nobody"),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
            )
        try:
            # The socket's file exists before the activator listens.
            wait_until(lambda: "Listening on" in found.log.read_text())
            found.socket.chmod(0o666)
            yield found
        finally:
            activator.terminate()
            activator.wait(10)
        assert CANARY not in found.log.read_text()
        assert not (root / "elsewhere").exists()
        assert not (root / "other").exists()


@pytest.fixture
def helped() -> Iterator[Helped]:
    with activated() as found:
        yield found


@pytest.fixture
def stored(helped: Helped) -> Helped:
    """A device that already has a key."""
    helped.device.put(SECRETS, "OPENAI_API_KEY=old\n", mode=0o600)
    helped.device.put(ACTIVE, "openai\n")
    return helped


def request(operation: str = "model-set", **arguments: object) -> bytes:
    return json.dumps({"operation": operation, "arguments": arguments}).encode() + b"\n"


def test_without_root_keys_are_set_and_listed(helped: Helped) -> None:
    done = helped.ctl(NOBODY, *SET, "anthropic", stdin=f"{CANARY}\n")
    assert done.returncode == 0, done.stderr
    path = helped.device.path(SECRETS)
    assert path.read_text() == f"ANTHROPIC_API_KEY={CANARY}\n"
    assert (path.stat().st_mode & 0o777, path.stat().st_uid) == (0o600, 0)
    assert helped.device.path(ACTIVE).read_text() == "anthropic\n"
    listed = helped.ctl(NOBODY, "model", "list", "--json")
    assert listed.stdout == helped.device.ctl("model", "list", "--json").stdout
    assert '"masked_key_prefix": "sk-ca\\u2026"' in listed.stdout
    assert CANARY not in done.stdout + done.stderr + listed.stdout
    assert helped.has_logged("model-set by user 65534: done")


@pytest.fixture
def provider_server(stored: Helped) -> Iterator[RawServer]:
    """A provider whose address is configured on the device."""
    with serving({"/v1/models": b'{"data": []}'}) as running:
        stored.device.put("/etc/platform/active-endpoint", f"{running.url}/v1\n")
        yield running


def test_without_root_a_stored_key_is_tested_by_the_helper_and_a_given_one_directly(
    stored: Helped, provider_server: RawServer
) -> None:
    stored.device.put(SECRETS, f"OPENAI_API_KEY={CANARY}-stored\n", mode=0o600)
    by_name = ("model", "test", "--provider", "openai", "--json")
    given = ("model", "test", "--key-from-stdin", "--json")
    for words, key in ((given, f"{CANARY}-given"), (by_name, f"{CANARY}-stored")):
        assert "model-test" not in stored.log.read_text()
        done = stored.ctl(NOBODY, *words, stdin=key if words is given else "")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["endpoint"] == f"{provider_server.url}/v1"
        assert provider_server.requests[-1].headers["authorization"] == f"Bearer {key}"
        assert CANARY not in done.stdout + done.stderr
    assert stored.has_logged("model-test by user 65534: done")


def test_the_helper_completes_a_given_key_with_stored_values(
    stored: Helped, provider_server: RawServer
) -> None:
    stored.device.put(SECRETS, "AWS_ACCESS_KEY_ID=a\nAWS_REGION=eu-west-1\n", mode=0o600)
    stored.device.put(ACTIVE, "bedrock\n")
    sent = f"{CANARY}\nAWS_SECRET_ACCESS_KEY=s\n"
    done = stored.ctl(NOBODY, "model", "test", "--key-from-stdin", "--json", stdin=sent)
    assert json.loads(done.stdout)["http_status"] == 404
    scope = provider_server.requests[0].headers["authorization"]
    assert f"Credential={CANARY}/" in scope
    assert "/eu-west-1/bedrock/" in scope


def test_the_helper_connects_to_no_address_that_its_caller_gives(
    stored: Helped, provider_server: RawServer
) -> None:
    stored.device.put("/etc/platform/airgap.flag", "")
    stored.device.put(SECRETS, "LOCAL_OLLAMA_BASE_URL=http://127.0.0.1:9/v1\n", mode=0o600)
    given = {"LOCAL_OLLAMA_BASE_URL": f"{provider_server.url}/v1"}
    answer = stored.send(request("model-test", provider="local-ollama", given=given))
    assert "does not accept an address from its caller" in answer
    assert provider_server.requests == []


def test_the_helper_run_by_hand_says_that_systemd_starts_it(helped: Helped) -> None:
    done = helped.device.ctl("control-helper", stdin="x")
    assert (done.returncode, done.stdout) == (64, "")
    assert "hint: systemd starts this helper" in done.stderr


def test_an_error_of_the_helper_is_shown_like_our_own(stored: Helped) -> None:
    stored.device.put(SECRETS, "A=x\\\nB=1\nOPENAI_API_KEY='\n")
    here = stored.device.ctl(*SET, "openai", stdin=CANARY)
    there = stored.ctl(NOBODY, *SET, "openai", stdin=CANARY)
    assert here.returncode == there.returncode
    assert here.stderr == there.stderr


@pytest.mark.parametrize(
    ("provider", "key", "family"),
    [("nope", "k", WrongUsageError), ("openai", "a b", PlatformError)],
)
def test_an_error_keeps_its_class(
    stored: Helped, provider: str, key: str, family: type[PlatformError]
) -> None:
    with pytest.raises(PlatformError) as caught:
        control_helper.ask(stored.socket, "model-set", {"provider": provider, "key": key}, ModelSet)
    assert type(caught.value) is family


@pytest.fixture
def spent(helped: Helped) -> Helped:
    """A device whose ledger only its owner can read."""
    device = helped.device
    device.put("/etc/platform/active-profile", "openclaw\n")
    stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    message = {"timestamp": stamp, "provider": "openai", "model": "m", "cost_usd": 7.0}
    device.put(LEDGER, json.dumps(message) + "\n", mode=0o600)
    device.path("/home/agent/x").parent.chmod(0o750)
    return helped


def test_without_root_the_cost_is_shown(spent: Helped) -> None:
    # The caller itself reads a ledger that a variable names.
    other = spent.device.put("/ledger", "", mode=0o644)
    done = spent.ctl(NOBODY, "cost", "--json", PLATFORM_COST_LEDGER=str(other))
    assert json.loads(done.stdout)["today_usd"] == 0
    assert "cost by user" not in spent.log.read_text()
    for words in (("cost", "--json"), ("cost", "ledger", "--json"), ("cost",)):
        there, here = spent.ctl(NOBODY, *words), spent.device.ctl(*words)
        assert (there.returncode, there.stdout, there.stderr) == (0, here.stdout, here.stderr)
        assert "7.0" in there.stdout
    assert json.loads(spent.ctl(NOBODY, "status", "--json").stdout)["cost_tripped"]
    assert spent.has_logged("read: cost by user 65534: done", 3)
    assert spent.has_logged("read: cost-ledger by user 65534: done")
    assert "change:" not in spent.log.read_text()


def test_without_root_caps_are_changed_and_a_new_ledger_is_started(spent: Helped) -> None:
    words = ("--daily", "2.5", "--on-trip", "warn", "--warn-at", "50")
    done = spent.ctl(NOBODY, "cost", "set", *words)
    assert done.returncode == 0, done.stderr
    assert "$2.50" in done.stdout
    caps = spent.device.path("/etc/platform/cost.toml")
    assert (caps.stat().st_mode & 0o777, caps.stat().st_uid) == (0o644, 0)
    assert 'on_cap_trip = "warn"' in caps.read_text()
    done = spent.ctl(NOBODY, "cost", "reset", "--yes")
    assert "The old ledger is" in done.stdout, done.stderr
    assert spent.ctl(NOBODY, "cost", "reset", "--yes").stdout.startswith("There is no ledger")
    assert spent.has_logged("change: cost-set by user 65534: done")
    assert spent.has_logged("change: cost-reset by user 65534: done", 2)


def test_without_root_the_helper_checks_the_device(stored: Helped) -> None:
    stored.device.put(SECRETS, "x" * (2 << 20), mode=0o600)
    done = stored.ctl(NOBODY, "doctor", "--json")
    found = {one["name"]: one["outcome"] for one in json.loads(done.stdout)["checks"]}
    # Only root can see this problem.
    assert "secrets.env is larger than" in found["records-readable"]["detail"]
    assert (done.returncode, done.stderr) == (1, "")
    assert stored.has_logged("read: doctor by user 65534: done")
    assert stored.device.path("/run/platform/doctor.json").stat().st_uid == 0


def test_only_one_examination_of_the_device_runs_at_a_time(stored: Helped) -> None:
    with (
        changing(stored.device.path("/etc/platform/doctor")),
        pytest.raises(LockedError),
    ):
        control_helper.ask(stored.socket, "doctor", {}, Verdict)


def test_without_an_answer_from_the_helper_the_other_checks_run(stored: Helped) -> None:
    stored.socket.unlink()
    with socket.socket(socket.AF_UNIX) as nobody_listens:
        nobody_listens.bind(str(stored.socket))
        stored.socket.chmod(0o666)
        done = stored.ctl(NOBODY, "doctor", "--json")
    assert "warning:" in done.stderr
    assert "Connection refused" in done.stderr
    assert len(json.loads(done.stdout)["checks"]) > 10


def test_without_root_voice_is_switched_and_the_microphone_is_checked(helped: Helped) -> None:
    shutil.copy(data_path("limits/rpi5.json"), helped.device.path("/etc/platform/limits.json"))
    path = helped.device.path("/etc/platform/voice.toml")
    for words, line in ((("enable", "--yes"), "enabled = true"), (("disable",), "enabled = false")):
        done = helped.ctl(NOBODY, "voice", *words)
        assert done.returncode == 0, done.stderr
        assert line in path.read_text()
        assert (path.stat().st_mode & 0o777, path.stat().st_uid) == (0o644, 0)
    assert helped.has_logged("voice-switch by user 65534: done", 2)
    # The microphone from the settings is checked.
    path.write_text('[voice]\naudio_device = "plughw:7,3"\n')
    done = helped.ctl(NOBODY, "voice", "check", "--json")
    assert (done.returncode, json.loads(done.stdout)["device"]) == (1, "plughw:7,3")
    assert done.stdout == helped.device.ctl("voice", "check", "--json").stdout
    assert helped.has_logged("voice-check by user 65534: done")


def model_set(**more: object) -> bytes:
    return request("model-set", **({"provider": "openai", "key": "k"} | more))


def members(number: int) -> bytes:
    return b'{"a":' * number


def model_test(provider: str = "openai", **more: object) -> bytes:
    return request("model-test", provider=provider, **more)


LIST = b'{"operation": "model-list", "arguments": '
# By the error message.
ATTACKS: dict[str, list[bytes]] = {
    "not a single line": [
        *(b"", model_set()[:-1], model_set() * 2),
        LIST + b'{"a": ' + members(500) + b"1" + b"}" * 502,
    ],
    "not valid JSON": [b"\n", model_set()[:-9] + b"\n", b"\0\n"],
    "not UTF-8": [b"\xff\n"],
    "nested too deeply": [LIST + members(500) + b"1" + b"}" * 501 + b"\n"],
    "": [b"[" * 9000 + b"\n"],
    "expected object": [b"[]\n"],
    "longer than 16,384 bytes": [model_set(key="k" * 20_000)],
    "longer than 262,144 bytes": [b"x" * 3_000_000],
    "no operation": [
        *map(request, ("model-get", "__class__", "model-set/../cost", "MODEL-LIST", "x" * 9000)),
        *map(request, ("model-list\0", "__proto__")),
    ],
    "twice": [b'{"operation": "model-list", "operation": "model-set"}\n'],
    "unknown": [
        *(LIST + b'{}, "root": "/"}\n', LIST + b'{"__proto__": {"x": 1}}}\n'),
        *(request("model-list", x="y"), model_set(mode=511)),
        model_test(endpoint="http://203.0.113.1/"),
        *(request("voice-check", device="file:x"), request("cost", ledger="/etc/shadow")),
        *(request("cost-reset", to="/etc/cron.d/x"), request("cost-set", path="/etc/passwd")),
        request("doctor", checks=["x"]),
    ],
    "missing": [
        *(request(), request(provider="openai"), b'{"operation": "model-list"}\n'),
        *(request("model-test"), request("voice-switch")),
    ],
    "expected str": [
        *(model_set(key=1), model_set(provider=["openai"])),
        model_test(given={"OPENAI_API_KEY": 1}),
    ],
    "expected bool": [LIST + b'{}, "progress": 1}\n', request("voice-switch", on="yes")],
    "expected int": [request("cost-ledger", lines="5")],
    "expected float": [request("cost-set", daily_usd=True)],
    "There is no provider": [
        *(model_set(provider=word) for word in ("../x", "--help", "openai\n")),
        model_test("../x"),
    ],
    "no key has": [model_set(key=f"{CANARY}\nB=2"), model_set(key=f'"{CANARY}"')],
    "is empty": [model_set(key="")],
    "no such variable": [model_set(variable="LD_PRELOAD")],
    "no provider": [model_set(provider="local-ollama", key="http://203.0.113.1/")],
    "no voice": [request("voice-switch", on=True)],
    "must be 1 to 10,000": [request("cost-ledger", lines=lines) for lines in (0, 10_001)],
    "lines": [request("cost-ledger", lines=10**30)],
    "must be 0 to": [request("cost-set", daily_usd=amount) for amount in (-1, 1e9)],
    "NaN": [request("cost-set", daily_usd=float("nan"))],
    "on_cap_trip": [request("cost-set", on_cap_trip="rm")],
    "must be 1 to 100": [request("cost-set", warn_at_pct=0)],
}


@pytest.mark.parametrize(("reason", "attacks"), ATTACKS.items(), ids=ATTACKS)
def test_an_invalid_request_changes_nothing(
    stored: Helped, reason: str, attacks: list[bytes]
) -> None:
    before = stored.files()
    for sent in attacks:
        try:
            answer = stored.send(sent)
        except ConnectionResetError:
            # A request that is too long is not read to its end.
            assert "longer than" in reason
        else:
            assert reason in json.loads(answer)["error"]["message"], sent
            assert "canary" not in answer
            assert answer.count("\n") == 1
    assert stored.files() == before


def test_an_endless_request_is_dropped_and_does_not_block_others(stored: Helped) -> None:
    before = stored.files()
    with stored.connected() as connection:
        connection.sendall(b'{"operation"')
        assert "gpt-4o" in stored.send(request("model-list"))
        assert select.select([connection], [], [], 0)[0] == []
        assert "did not arrive within 5 s" in connection.recv(65536).decode()
    assert stored.files() == before


def test_key_14_simultaneous_callers_lose_no_key(helped: Helped) -> None:
    listing = control_helper.ask(helped.socket, "model-list", {}, Listing)

    def store(provider: str) -> None:
        setting = {"provider": provider, "key": f"k-{provider}"}
        control_helper.ask(helped.socket, "model-set", setting, ModelSet)

    with ThreadPoolExecutor(len(listing.models)) as pool:
        list(pool.map(store, [model.id for model in listing.models]))
    stored = helped.device.path(SECRETS).read_text().splitlines()
    assert sorted(stored) == sorted(f"{m.key_env_var}=k-{m.id}" for m in listing.models)


@contextlib.contextmanager
def answering_once(path: Path, answer: bytes) -> Iterator[None]:
    """Answer one connection to a new socket at `path` with these bytes."""

    def accept() -> None:
        with server, server.accept()[0] as connection:
            while connection.recv(65536):
                pass
            with contextlib.suppress(BrokenPipeError):
                connection.sendall(answer)

    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen()
    thread = threading.Thread(target=accept)
    thread.start()
    yield
    thread.join()


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        pytest.param(b"", "gave no answer", id="nothing"),
        pytest.param(b"{", "is not valid", id="half"),
        pytest.param(b"{}", "is not valid", id="no-result"),
        pytest.param(b'{"result": {"models": 1}}', "is not valid", id="wrong-shape"),
        pytest.param(b"x" * (2 << 20), "longer than", id="huge"),
        pytest.param(b'{"error": {"kind": "new", "message": "Because"}}', "Because", id="new-kind"),
    ],
)
def test_an_invalid_response_is_reported_in_a_sentence(
    tmp_path: Path, answer: bytes, reason: str
) -> None:
    with (
        answering_once(tmp_path / "s", answer),
        pytest.raises(PlatformError, match=reason),
    ):
        control_helper.ask(tmp_path / "s", "model-list", {}, Listing)


def test_a_key_is_not_sent_to_a_socket_that_is_not_roots(helped: Helped) -> None:
    path = helped.device.path("/run/platform/mine.sock")
    path.parent.chmod(0o777)
    with socket.socket(socket.AF_UNIX) as server:
        with as_user(STRANGER):
            server.bind(str(path))
            server.listen()
        with pytest.raises(AccessError, match="is not root's"):
            control_helper.ask(path, "model-set", {"key": CANARY}, ModelSet)
        with server.accept()[0] as connection:
            assert connection.recv(65536) == b""


GATEWAY = """Type=oneshot
User=agent
EnvironmentFile=/etc/platform/secrets.env
RuntimeDirectory=seen
RuntimeDirectoryPreserve=yes
ExecStart=/bin/sh -c 'env >/run/seen/environment'
"""
UNIT = "openclaw-gateway.service"


@pytest.fixture
def real(shared: Appliance) -> Iterator[Machine]:
    run = shared.machine.run
    shared.machine.unit(UNIT, GATEWAY)
    shared.machine.write("/etc/platform/active-profile", "openclaw\n")
    shared.machine.write(SECRETS, "OPENAI_API_KEY=old\n", mode="0600")
    run("chown", "root:agent", SECRETS)
    yield shared.machine
    records = "/etc/platform/active-profile", "/etc/platform/active-provider"
    run("rm", "-rf", *records, SECRETS, "/run/seen", f"/etc/systemd/system/{UNIT}")
    run("systemctl", "daemon-reload")


def test_on_a_real_machine_the_web_user_rotates_a_key_and_the_gateway_gets_it(
    real: Machine,
) -> None:
    as_web = ("runuser", "-u", "platform", "--", "platformctl")
    key = f"{CANARY}$HOME#;%h"
    said = real.run(*as_web, *SET, "openai", stdin=f"{key}\n")
    assert "systemctl restart openclaw-gateway.service" in said
    listed = real.run(*as_web, "model", "list")
    real.run("systemctl", "start", UNIT)
    assert f"OPENAI_API_KEY={key}\n" in real.run("cat", "/run/seen/environment")
    rights = [real.rights(path) for path in (SECRETS, ACTIVE)]
    assert rights == ["600 root:agent", "644 root:root"]
    # The helper logs after its response.
    wait_until(lambda: "model-set by user" in real.log("--unit=platform-control@*"))
    assert CANARY not in said + listed + real.log()
