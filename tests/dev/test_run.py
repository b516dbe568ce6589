"""The program behind `make run`, run as a newcomer would."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tomllib import loads as parse_toml
from urllib.parse import urlsplit

import pytest

from platform_common.resources import data_path
from tests.support.devices import Device
from tests.support.releases import clean_environment, program
from tests.support.running import printed, run
from tests.support.waiting import wait_until

RUN = Path(__file__).resolve().parents[2] / "dev/run.py"
SAMPLE_DEVICE = RUN.parent / "samples/device.py"
SOON_S, MINUTE_S = 20, 60


def run_once(folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run it once in the parent of `folder`, to its end."""
    command = (sys.executable, RUN, "--folder", folder, "--once")
    return run(*command, cwd=folder.parent, env=clean_environment() | variables, merged=True)


def make_device(folder: Path, *, gateway: str = "http://127.0.0.1:8080") -> str:
    """Make a sample device in `folder`; return the output."""
    options = (folder, "1.1.1", "https://x.example/dev/", gateway)
    return printed(sys.executable, SAMPLE_DEVICE, *options, env=clean_environment())


@contextlib.contextmanager
def port_in_use(port: int) -> Iterator[None]:
    """Occupy a port that no other run uses or is about to use."""

    def claimed() -> bool:
        with contextlib.suppress(OSError):
            claim.bind(f"\0platform-appliance-run-{port}")
        return bool(claim.getsockname())

    with socket.socket(socket.AF_UNIX) as claim, socket.socket() as taken:
        # Another `make run` may hold it for a long time; then it is in use anyway.
        with contextlib.suppress(RuntimeError, OSError):
            wait_until(claimed, SOON_S)
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            taken.bind(("127.0.0.1", port))
            taken.listen()
        yield


@dataclass
class Serving:
    """A running `make run` that serves; `output` is its output until then."""

    process: subprocess.Popen[str]
    output: str
    folder: Path

    @property
    def launch_link(self) -> str:
        (link,) = re.findall(r"^   (http\S+\?token=\S+)$", self.output, re.MULTILINE)
        return str(link)

    def url(self, service: str) -> str:
        serving = self.output.partition("\nServing ")[2]
        (url,) = re.findall(rf"\b{service} on (http://[0-9.:]+)", serving)
        return str(url)

    @property
    def children(self) -> list[int]:
        tasks = Path(f"/proc/{self.process.pid}/task").glob("*/children")
        return [int(number) for task in tasks for number in task.read_text().split()]

    def end(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        return self.process.wait(MINUTE_S)


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[Serving]:
    with subprocess.Popen(
        [sys.executable, RUN, "--folder", folder],
        cwd=folder.parent,
        env=clean_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            output = ""
            assert process.stdout is not None
            for line in process.stdout:
                output += line
                if line.startswith("Serving "):
                    break
            else:
                pytest.fail(output)
            yield Serving(process, output, folder)
        finally:
            if process.poll() is None:
                process.terminate()


@dataclass
class FirstRun:
    """A run in an empty folder, with --once."""

    folder: Path
    finished: subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def first_run(tmp_path_factory: pytest.TempPathFactory) -> FirstRun:
    folder = tmp_path_factory.mktemp("run") / "out"
    return FirstRun(folder, run_once(folder))


def test_a_first_run_ends_with_a_trusted_release(first_run: FirstRun) -> None:
    said = first_run.finished.stdout
    assert first_run.finished.returncode == 0, said
    assert re.findall(r"^([1-9])\. ", said, re.MULTILINE) == list("12345678")
    assert "TRUSTED: release 2026.11.1 (dev), 4 of 4 artefacts read" in said
    # In a pipe the output has no colour.
    assert "\x1b" not in said


def test_all_three_services_have_answered(first_run: FirstRun) -> None:
    address = r"^(POST )?http://127\.0\.0\.1:\d+"
    for answer in (
        r"/app/dashboard: [\d,]+ bytes of text/html$",
        r"/healthz: 2 bytes of",
        "/chat ",
    ):
        assert re.search(address + answer, first_run.finished.stdout, re.MULTILINE)
    assert "The stand-in has no model" in first_run.finished.stdout
    assert "  **I am a stand-in, not an assistant.**" in first_run.finished.stdout
    assert "  > Hello\n" in first_run.finished.stdout


def test_it_only_writes_into_its_folder_and_removes_the_launch_link(first_run: FirstRun) -> None:
    assert list(first_run.folder.parent.iterdir()) == [first_run.folder]
    (key,) = first_run.folder.rglob("*.key")
    assert key.stat().st_mode & 0o777 == 0o600
    assert not key.is_relative_to(first_run.folder / "dist")
    assert "?token=" in first_run.finished.stdout
    assert list((first_run.folder / "run").rglob("wizard.token")) == []


def test_each_sample_has_the_format_in_its_name(first_run: FirstRun) -> None:
    for pattern, command in {
        "*.qcow2": ["qemu-img", "check", "-f", "qcow2"],
        "*.img.xz": ["xz", "--test"],
        "*.tar.gz": ["tar", "-tzf"],
        "*.oci": ["grep", "-E", "^oci://.+@sha256:[a-f0-9]{64}$"],
    }.items():
        (sample,) = (first_run.folder / "artefacts").glob(pattern)
        printed(*command, sample)


def test_the_minisign_program_accepts_every_signature(first_run: FirstRun) -> None:
    signatures = list((first_run.folder / "dist").rglob("*.minisig"))
    minisign = ("minisign", "-V", "-q", "-p", first_run.folder / "keys/release.pub", "-m")
    for signature in signatures:
        printed(*minisign, signature.with_suffix(""))
    assert len(signatures) == 5


def test_it_serves_a_dashboard_and_a_wizard_of_the_same_device_until_ctrl_c(
    first_run: FirstRun,
) -> None:
    with serving(first_run.folder) as running:
        page = urllib.request.urlopen(running.url("dashboard"), timeout=MINUTE_S).read().decode()
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        wizard = opener.open(running.launch_link, timeout=MINUTE_S).read().decode()
        assert_ends_without_a_process_left(running, signal.SIGINT, 0)
    assert "sample-device" in page
    assert "OpenClaw" in page
    assert 'class="stub"' not in page
    assert "sample values" not in page
    assert "sample-device" in wizard
    assert 'action="/wizard/system"' in wizard


def assert_ends_without_a_process_left(
    running: Serving, number: signal.Signals, status: int
) -> None:
    """Signal the run and check that it ends with `status` and all its processes are gone."""
    key = running.folder / "keys/release.pub"
    printed(program(), "verify", running.url("releases"), "-p", key, env=clean_environment())
    children = running.children
    assert running.end(number) == status
    assert len(children) == 4
    assert not any(Path(f"/proc/{child}").exists() for child in children)


@pytest.mark.long
def test_every_profile_names_the_address_of_the_gateway_and_is_otherwise_as_shipped(
    first_run: FirstRun,
) -> None:
    shipped = data_path("profiles")
    names = sorted(path.name for path in shipped.iterdir())
    for _ in range(2):
        with port_in_use(8080), serving(first_run.folder) as running:
            address = running.url("gateway")
        for name in names:
            text = (first_run.folder / "etc/platform/profiles" / name).read_text()
            there, ours = parse_toml(text), parse_toml((shipped / name).read_text())
            path = urlsplit(ours["health"]["http_check"]).path
            assert there.pop("health") == {"http_check": address + path}
            ours.pop("health")
            assert there == ours
    assert Device(first_run.folder).ctl("profile", "validate").returncode == 0
    assert not address.endswith(":8080")


def test_a_profile_that_make_run_did_not_write_keeps_its_gateway(tmp_path: Path) -> None:
    make_device(tmp_path)
    folder = tmp_path / "etc/platform/profiles"
    mine = 'id = "mine"\n[health]\nhttp_check = "http://127.0.0.1:1/"\n'
    (folder / "mine.toml").write_text(mine)
    broken = (folder / "khoj.toml").read_text() + "["
    (folder / "khoj.toml").write_text(broken)
    said = make_device(tmp_path, gateway="http://127.0.0.1:2")
    assert (folder / "mine.toml").read_text() == mine
    assert (folder / "khoj.toml").read_text() == broken
    assert "http://127.0.0.1:2/healthz" in (folder / "hermes.toml").read_text()
    assert f"left  {folder / 'khoj.toml'}" in said


def test_the_sample_device_has_costs_of_today_and_a_placeholder_key(
    first_run: FirstRun,
) -> None:
    device = Device(first_run.folder)
    cost = json.loads(device.ctl("cost", "--json").stdout)
    assert 0 < cost["today_usd"] < cost["month_usd"] or cost["days"][-1]["usd"] > 0
    assert len({day["usd"] for day in cost["days"]}) > 10
    keys = (first_run.folder / "etc/platform/secrets.env").read_text()
    assert keys == "OPENAI_API_KEY=sk-sample-this-is-not-a-real-key\n"


def test_a_folder_with_only_files_of_the_wizard_becomes_a_sample_device(tmp_path: Path) -> None:
    state = tmp_path / "out/var/lib/platform/wizard-state.json"
    state.parent.mkdir(parents=True)
    state.write_text("mine\n")
    make_device(tmp_path / "out")
    assert (tmp_path / "out/etc/hostname").read_text() == "sample-device\n"
    assert state.read_text() == "mine\n"


@pytest.mark.parametrize("place", ["etc/platform/version", "home/agent/notes", "var/x"])
def test_an_existing_device_is_left_unchanged(tmp_path: Path, place: str) -> None:
    there = tmp_path / "out" / place
    there.parent.mkdir(parents=True)
    there.write_text("mine\n")
    assert make_device(tmp_path / "out") == f"kept  the device in {tmp_path / 'out'}\n"
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [there]
    assert there.read_text() == "mine\n"


@pytest.mark.long
@pytest.mark.parametrize(
    ("variables", "coloured"),
    [pytest.param({}, True, id="plain"), pytest.param({"NO_COLOR": "1"}, False, id="NO_COLOR")],
)
def test_a_terminal_gets_colour_unless_no_color_is_set(
    first_run: FirstRun, variables: dict[str, str], coloured: bool
) -> None:
    terminal, side = pty.openpty()
    with subprocess.Popen(
        [sys.executable, RUN, "--folder", first_run.folder, "--once"],
        env=clean_environment() | variables,
        stdin=subprocess.DEVNULL,
        stdout=side,
        stderr=subprocess.DEVNULL,
    ) as process:
        os.close(side)
        shown = b""
        # Reading a terminal raises an error when its last writer has closed it.
        with contextlib.suppress(OSError):
            while data := os.read(terminal, 1 << 16):
                shown += data
        os.close(terminal)
        assert process.wait(MINUTE_S) == 0
    assert (b"\x1b[" in shown) is coloured


@pytest.mark.long
def test_a_second_run_keeps_the_images_and_the_key_and_avoids_a_port_in_use(
    first_run: FirstRun,
) -> None:
    kept = [first_run.folder / "keys", first_run.folder / "artefacts"]
    before = {path: path.stat().st_mtime_ns for folder in kept for path in folder.iterdir()}
    with port_in_use(8087):
        second = run_once(first_run.folder)
    assert second.returncode == 0, second.stdout
    assert "Port 8087 is in use" in second.stdout
    assert {path: path.stat().st_mtime_ns for folder in kept for path in folder.iterdir()} == before


@pytest.mark.long
def test_a_failed_step_ends_the_run_before_anything_is_served(tmp_path: Path) -> None:
    stranger = tmp_path / "out/artefacts/notes.txt"
    stranger.parent.mkdir(parents=True)
    stranger.write_text("hello")
    finished = run_once(tmp_path / "out")
    assert finished.returncode == 1
    assert "'notes.txt' is not named platform-" in finished.stdout
    assert "This step failed" in finished.stdout
    assert "http.server" not in finished.stdout


def test_a_missing_tool_is_named(tmp_path: Path) -> None:
    finished = run_once(tmp_path / "out", PATH=str(tmp_path))
    assert finished.returncode == 1
    assert re.search(r"(qemu-img|tar|xz) is not installed", finished.stdout)


@pytest.mark.long
def test_the_suggested_next_commands_work(first_run: FirstRun) -> None:
    with serving(first_run.folder) as running:
        suggested = running.output.partition("Try next")[2]
        commands = re.findall(r"^  (\S.*)$", suggested, re.MULTILINE)
        folder = first_run.folder.parent
        statuses = {
            command: run("bash", "-c", command, cwd=folder, env=clean_environment()).returncode
            for command in commands
        }
    refused = [command for command, status in statuses.items() if status == 1]
    assert [" verify out/tampered " in command for command in refused] == [True]
    assert sorted(set(statuses.values())) == [0, 1]
    assert len(commands) >= 8


@pytest.mark.long
@pytest.mark.parametrize(
    ("number", "status"),
    [
        pytest.param(signal.SIGTERM, 143, id="SIGTERM"),
        pytest.param(signal.SIGHUP, 129, id="closed-terminal"),
    ],
)
def test_it_serves_until_it_is_stopped_and_leaves_no_process(
    first_run: FirstRun, number: signal.Signals, status: int
) -> None:
    with serving(first_run.folder) as running:
        assert_ends_without_a_process_left(running, number, status)
