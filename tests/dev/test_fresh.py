"""What `make test-fresh` copies to its machine, how it enters it, and what it reports."""

from __future__ import annotations

from pathlib import Path

import pytest

from dev import fresh

PIP = """\
[global]
index-{u} = https://mirror.example/simple
extra-index-{u} =
    file:///srv/packages/simple
    https://more.example/simple
{f} = /srv/packages
user = yes
[list]
format = columns
"""
NPM = """\
registry=https://npm.example/
@ours:registry = https://ours.example/
//npm.example/:_authToken=a-secret
fund=false
"""


def test_only_the_package_sources_are_copied_from_the_settings_of_pip() -> None:
    text = PIP.format(u="url", f="find-" + "links")
    assert fresh.settings(fresh.PIP, [text], {}) == {
        "index-" + "url": "https://mirror.example/simple",
        "extra-index-" + "url": "https://more.example/simple",
    }


def test_no_token_is_copied_from_the_settings_of_npm() -> None:
    assert fresh.settings(fresh.NPM, [NPM], {}) == {
        "registry": "https://npm.example/",
        "@ours:registry": "https://ours.example/",
    }


def test_a_variable_overrides_a_file_and_a_later_file_an_earlier_one() -> None:
    texts = ["[global]\nproxy = one\ntimeout = 1\n", "[global]\nproxy = two\ntimeout = 2\n"]
    variables = {"PIP_PROXY": "three", "PIPX_TIMEOUT": "3", "PROXY": "4"}
    found = fresh.settings(fresh.PIP, texts, variables)
    assert found == {"proxy": "three", "timeout": "2"}


def test_a_bundle_of_certificates_is_copied_as_a_file(tmp_path: Path) -> None:
    bundle = tmp_path / "bundle.pem"
    bundle.write_text("")
    variables = {"PIP_CERT": str(bundle), "PIP_PROXY": str(tmp_path)}
    found = fresh.settings(fresh.PIP, [], variables)
    assert found == {"cert": str(bundle)}


def test_only_mirrors_of_debian_are_copied() -> None:
    indexes = (
        "http://mirror.example/debian/ bookworm main\n"
        "http://mirror.example/debian/ bookworm contrib\n"
        "http://mirror.example/debian/ bookworm-updates main\n"
        "http://security.example/ bookworm-security main\n"
        "http://other.example/ bookworm-pgdg main\n"
        "http://new.example/debian/ trixie main\n"
        "http://flat.example/ ./\n"
    )
    assert fresh.mirrors(indexes) == [
        "deb http://mirror.example/debian/ bookworm main",
        "deb http://mirror.example/debian/ bookworm-updates main",
        "deb http://security.example/ bookworm-security main",
    ]


def test_the_fetch_settings_of_apt_are_copied_without_programs_of_this_machine() -> None:
    kept = [
        'Acquire::http::Proxy "http://proxy.example:3142";',
        'Acquire::Check-Valid-Until "false";',
    ]
    dropped = [
        'Acquire::http::Proxy-Auto-Detect "/usr/bin/detect";',
        'Acquire::Languages "none";',
        'APT::Install-Recommends "0";',
    ]
    assert fresh.apt_options("\n".join(kept + dropped)) == kept


def test_the_environment_is_that_of_a_new_user() -> None:
    here = {
        "HOME": "/nowhere",
        "LANG": "C.UTF-8",
        "PYTHONPATH": "/nowhere",
        "CI": "true",
        "TERM": "xterm",
        "https_proxy": "http://proxy.example",
        "NO_PROXY": "localhost",
    }
    machine = fresh.Machine({"TZ": "Pacific/Chatham"})
    assert fresh.environment(machine, here) == {
        "HOME": "/root",
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "CI": "true",
        "TERM": "xterm",
        "https_proxy": "http://proxy.example",
        "NO_PROXY": "localhost",
        "TZ": "Pacific/Chatham",
    }


@pytest.mark.parametrize(
    ("line", "summary"),
    [
        pytest.param("===== 3 passed in 1.20s =====\n", "3 passed in 1.20s", id="passed"),
        pytest.param(
            "\x1b[31m=== \x1b[1m1 failed\x1b[0m, 2 passed in 61.00s (0:01:01) ===\x1b[0m\n",
            "1 failed, 2 passed in 61.00s (0:01:01)",
            id="coloured",
        ),
        pytest.param("====== FAILURES ======\n", "", id="a-heading"),
        pytest.param("py311: OK (3.20=setup[1.00]+cmd[2.20] seconds)\n", "", id="tox"),
    ],
)
def test_the_summary_of_pytest_is_found(line: str, summary: str) -> None:
    assert fresh.summary_of(line) == summary


def test_the_report_has_a_line_for_each_command_and_says_what_failed() -> None:
    outcomes = {
        "make run ARGS=--once": fresh.Outcome(0, 41.26, ""),
        "make test": fresh.Outcome(2, 1234.5, "1 failed, 2 passed in 900.00s (0:15:00)"),
    }
    assert fresh.report(outcomes).splitlines() == [
        "make run ARGS=--once      41.3 s",
        "make test               1234.5 s   failed with 2",
        "  pytest: 1 failed, 2 passed in 900.00s (0:15:00)",
    ]
