"""Without the package: the wheel in a virtual environment, and `platformctl services install`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dev.debian_package.device_files import LIBRARIES
from dev.distributions import build_distributions
from tests.support.debian_package import WORKING, both_answer, built_package, unpacked
from tests.support.machine import machine, run_in, writable_tree

ENVIRONMENT = Path("/opt/platform")
# The machine has no pip and no network to fetch it.
PIP = Path("/usr/lib/python3/dist-packages/pip")
OURS = ("platform_*", "platformctl", "pwa_app", "release_tools", "wizard_app")


@pytest.mark.long
def test_the_wheel_and_its_services_serve_both_apps(tmp_path: Path) -> None:
    wheel = build_distributions(tmp_path / "dist").wheel
    package = unpacked(built_package(), tmp_path / "package")
    with writable_tree() as tree:
        run_in(tree, "python3", "-m", "venv", "--without-pip", str(ENVIRONMENT))
        site = tree / str(ENVIRONMENT)[1:] / "lib/python3.11/site-packages"
        shutil.copytree(
            package / LIBRARIES[1:], site, ignore=shutil.ignore_patterns(*OURS), dirs_exist_ok=True
        )
        install = ("-m", "pip", "install", "--no-index", "--no-deps", str(wheel))
        python = ("env", f"PYTHONPATH={PIP.parent}", f"{ENVIRONMENT}/bin/python")
        run_in(tree, *python, *install, shared=[PIP, wheel])
        with machine(tree, programs=False) as running:
            running.run(f"{ENVIRONMENT}/bin/platformctl", "services", "install")
            assert running.states("is-active", *WORKING) == ["active"] * len(WORKING)
            assert both_answer(running)
            started = running.show("platform-pwa", "ExecStart")
            assert f"{ENVIRONMENT}/bin/pwa-app" in started
