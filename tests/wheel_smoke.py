"""Test the wheel without the checkout: `python -m tests.wheel_smoke`.

Builds it through the sdist, installs it with the extras `release`, `control`, `web`, `push` and
`wizard` into a fresh environment, and uses it from an empty folder outside the checkout. Plain
Python, because it runs before the test environment exists.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from dev.distributions import ROOT, build_distributions

TIMEOUT_S = 300
VERSION, CHANNEL = "2026.11.1", "stable"
IMAGE = f"platform-khoj-wsl2-{VERSION}-{CHANNEL}.tar.gz"
# Asks the installed package itself, so that no file of the checkout can be found instead.
READ_RESOURCES = """
from pathlib import Path
import platform_common, platformctl, pwa_app, release_tools, wizard_app
from platform_common.resources import data_path, schema
from release_tools.building.naming import profile_ids, target_matrix
assert schema("manifest.v1")["properties"]["schema_version"]
assert schema("wizard-state")["properties"]["answers"]
assert profile_ids(data_path("profiles")) == ["hermes", "khoj", "openclaw"]
assert target_matrix(data_path("targets.toml"))["wsl2"] == "tar.gz"
for package in (platform_common, platformctl, pwa_app, release_tools, wizard_app):
    assert "site-packages" in Path(package.__file__).parts, package.__file__
"""
# As if only `release` and `control` were installed.
IMPORT_WITHOUT_THE_WEB = """
import importlib, pkgutil, sys
for name in ("babel", "flask", "gunicorn", "jinja2", "werkzeug", "cryptography", "py_vapid",
             "segno", "tzdata"):
    sys.modules[name] = None
import platformctl, release_tools
for package in (platformctl, release_tools):
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        # The other one needs an extra that is not installed.
        if not module.name.endswith(("__main__", ".object_origin")):
            importlib.import_module(module.name)
"""

# As on a device without the system's time zones.
NAME_TIME_ZONES = """
import zoneinfo
assert not zoneinfo.TZPATH
assert {"Europe/Berlin", "UTC"} <= zoneinfo.available_timezones()
"""


class Installed:
    """An environment with the wheel, used from an empty folder."""

    def __init__(self, environment: Path, folder: Path) -> None:
        self.folder = folder
        self._programs = environment / "bin"

    def __call__(
        self, program: str, *arguments: str | Path, exit_code: int = 0, **variables: str
    ) -> str:
        """Run one of its programs; return the output."""
        finished = subprocess.run(
            [self._programs / program, *arguments],
            cwd=self.folder,
            env=outside() | variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        if finished.returncode != exit_code:
            print(finished.stdout, file=sys.stderr)
            sys.exit(f"{program} {arguments[0]}: exit code {finished.returncode}, not {exit_code}")
        return finished.stdout

    @contextlib.contextmanager
    def running(self, program: str, *arguments: str, **variables: str) -> Iterator[None]:
        """Run one of its programs until the block ends; it must not end by itself."""
        environment = outside() | {"PATH": f"{self._programs}:{os.defpath}"} | variables
        with subprocess.Popen(
            [self._programs / program, *arguments],
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
        ) as process:
            try:
                yield
                assert process.poll() is None, f"{program} ended by itself"
            finally:
                process.terminate()
        assert process.returncode == 0, f"{program}: exit code {process.returncode}"


def outside() -> dict[str, str]:
    """The environment without variables that lead to the checkout or to a key."""
    dropped = ("PYTHON", "VIRTUAL_ENV", "SIGNING_", "PLATFORM_", "SOURCE_DATE_EPOCH", "TOX_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    return kept | {"PATH": os.defpath}


def main() -> None:
    """Build, install and use the wheel; a failure ends the program."""
    with tempfile.TemporaryDirectory() as scratch:
        wheel = build_distributions(Path(scratch, "dist")).wheel
        environment, folder = Path(scratch, "environment"), Path(scratch, "empty")
        folder.mkdir()
        subprocess.run(
            [sys.executable, "-m", "venv", environment],
            env=outside(),
            timeout=TIMEOUT_S,
            check=True,
        )
        installed = Installed(environment, folder)
        install(installed, wheel)
        check_imports(installed)
        check_a_release(installed, folder)
        check_a_device(installed, folder)
        check_the_dashboard(installed, folder)
        check_the_wizard(installed, folder)
    print(f"{wheel.name} works from an empty folder")


def install(installed: Installed, wheel: Path) -> None:
    """Install the wheel; the dependencies of its extra must be those of the lock file."""
    pip = ("-m", "pip", "install", "--quiet")
    lock = ROOT / "requirements/run.txt"
    installed("python", *pip, "--require-hashes", "--no-deps", "-r", lock)
    # Nothing else may be needed, because it could not be downloaded.
    installed("python", *pip, "--no-index", f"{wheel}[release,control,web,push,wizard]")
    installed("python", "-m", "pip", "check")


def check_imports(installed: Installed) -> None:
    """Modules and data come from the package, and two of the programs need no web framework."""
    installed("python", "-c", READ_RESOURCES)
    installed("python", "-c", IMPORT_WITHOUT_THE_WEB)
    for module in ("tests", "schemas", "templates", "dev"):
        said = installed("python", "-c", f"import {module}", exit_code=1)
        assert f"No module named '{module}'" in said, said


def check_a_release(installed: Installed, folder: Path) -> None:
    """Create a key and a release, sign and verify it, and refuse a changed one."""
    keys = ("--secret-key", "release.key", "--public-key", "release.pub")
    installed("release-tools", "keygen", *keys, "--no-password")
    (folder / "images").mkdir()
    (folder / "images" / IMAGE).write_bytes(os.urandom(100_000))
    release = ("--version", VERSION, "--channel", CHANNEL)
    installed("release-tools", "build", "images", *release)
    unsigned = f"dist/{CHANNEL}/manifest.json.unsigned"
    installed("release-tools", "sign", unsigned, SIGNING_SECRET_KEY="release.key")
    verify = ("verify", "dist", "--public-key", "release.pub")
    assert "TRUSTED: release" in installed("release-tools", *verify)
    image = folder / "dist" / CHANNEL / VERSION / IMAGE
    image.chmod(0o644)
    data = image.read_bytes()
    image.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    installed("release-tools", *verify, exit_code=1)


def check_a_device(installed: Installed, folder: Path) -> None:
    """Call the control CLI on a device in a folder, with the shipped records."""
    device = folder / "device"
    device.mkdir()

    def control(*arguments: str) -> str:
        return installed("platformctl", *arguments, PLATFORM_ROOT=str(device))

    for call in ("status", "version", "limits", "cost", "model list", "profile list"):
        assert json.loads(control(*call.split(), "--json"))
    control("cost", "set", "--daily", "3")
    assert json.loads(control("cost", "--json"))["daily_cap_usd"] == 3
    assert not json.loads(control("voice", "status", "--json"))["voice"]["enabled"]


def check_the_dashboard(installed: Installed, folder: Path) -> None:
    """The pages and files of a dashboard of that device, with values of its own control CLI."""
    bind, device = free_address(), str(folder / "device")
    base = f"http://{bind}"
    with installed.running("pwa-app", "serve", "--bind", bind, PLATFORM_ROOT=device):
        assert fetch(f"{base}/healthz") == b"ok"
        page = fetch(f"{base}/").decode()
        assert "3.00" in page, page  # The cap that was set before.
        assert fetch_all(base, page) >= {"css", "js", "png", "svg"}


def check_the_wizard(installed: Installed, folder: Path) -> None:
    """The wizard of a folder: the link opens the first page, and the page loads its files."""
    bind = free_address()
    base, here = f"http://{bind}", ("--dev-out", str(folder / "setup"))
    installed("python", "-c", NAME_TIME_ZONES, PYTHONTZPATH="")
    with installed.running("wizard-app", "serve", "--bind", bind, *here):
        assert fetch(f"{base}/healthz") == b"ok"
        link = json.loads(installed("wizard-app", "launch-url", "--json", *here))["url"]
        page = fetch(link).decode()
        assert 'name="hostname"' in page, page
        assert "Europe/Berlin" in page, page
        assert fetch_all(base, page) >= {"css", "js", "svg"}


def free_address() -> str:
    """A loopback address where nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def fetch_all(base: str, page: str) -> set[str]:
    """Fetch all files that a page refers to; return their suffixes."""
    addresses = re.findall(r'"(/static/[^"]+)"', page)
    assert all(fetch(base + address) for address in addresses)
    return {address.rpartition(".")[2].partition("?")[0] for address in addresses}


def fetch(url: str) -> bytes:
    """The content at the address, once something listens there."""
    # A launch link opens a session, whose cookie the next page needs.
    sessions = urllib.request.HTTPCookieProcessor()
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), sessions)
    deadline = time.monotonic() + 30
    while True:
        try:
            with opener.open(url, timeout=30) as answer:
                data: bytes = answer.read()
                return data
        except urllib.error.URLError as error:
            if not isinstance(error.reason, ConnectionError) or time.monotonic() > deadline:
                raise
        time.sleep(0.1)


if __name__ == "__main__":
    main()
