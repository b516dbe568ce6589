"""One machine and one store for all tests of a worker; each test must restore their state."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.support.appliances import Appliance, appliance
from tests.support.machine import Machine
from tests.support.nginx import Certificate, make_certificate
from tests.support.object_store import ObjectStore, object_store
from tests.support.releases import clean_environment
from tests.support.web_servers import Served, served
from tests.wizard_app.conftest import environment, out, wizard

__all__ = ["environment", "out", "wizard"]  # Fixtures of a wizard in this process.

Running = Callable[..., AbstractContextManager[Served]]
# The state that a test might have forgotten to restore.
_STATE = r"""
cat /etc/passwd /etc/hostname
find /etc/platform /etc/nftables.d /etc/systemd/system /etc/ssh /home /run/systemd/system \
    /var/lib/platform -not -name '.*.lock' -not -name wizard-state.json | sort
systemctl list-unit-files 'platform-*' --no-legend
systemctl list-units --failed --no-legend
systemctl is-active platform-control.socket platform-pwa.service platform-wizard.service
nft list ruleset
findmnt --noheadings --output TARGET | sort
"""


def call(
    *words: str, env: Mapping[str, str], stdin: str = "", cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command with these variables, without others that affect ours; return the process."""
    return subprocess.run(
        words,
        env=clean_environment() | dict(env),
        input=stdin,
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Appliance]:
    """A machine with our services that is not set up, and a second network connected to it."""
    with appliance(console=tmp_path_factory.mktemp("shared") / "console") as here:
        here.machine.run("platformctl", "services", "install", "--programs=/usr/local/bin")
        here.device.wait_until_served()
        before = here.machine.run("sh", "-c", _STATE).splitlines()
        yield here
        after = here.machine.run("sh", "-c", _STATE).splitlines()
        assert [line for line in after if line not in before] == []
        assert [line for line in before if line not in after] == []
        log = here.machine.log("--unit=platform-*")
        assert "Traceback" not in log
        assert "CaNaRy" not in log


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    """A store without buckets; each test creates its own."""
    with object_store(tmp_path_factory.mktemp("s3")) as running:
        yield running


@pytest.fixture
def running(environment: dict[str, str], tmp_path: Path) -> Running:
    """Run that wizard as installed, under gunicorn; keywords are added to its environment."""
    return lambda **more: served("wizard-app", environment | more, tmp_path / "wizard-app.log")


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    """A valid certificate for loopback, and its certificate authority."""
    return make_certificate(tmp_path_factory.mktemp("certificate"))


@pytest.fixture
def booted(shared: Appliance) -> Machine:
    """Only the machine of `shared`."""
    return shared.machine
