"""The output on a terminal, and in a pipe."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.nginx import nginx
from tests.support.releases import KeyPair, Tools
from tests.support.terminals import at_a_terminal

ESCAPE = "\x1b["


Shown = Callable[..., str]


@pytest.fixture
def shown(tmp_path: Path, key_pair: KeyPair) -> Shown:
    """Run a verification at a terminal, check its status, and return the output."""

    def shown(release: str | Path, status: int = 0, **environment: str) -> str:
        words = ("verify", release, "-p", key_pair.public)
        ended, text = at_a_terminal(tmp_path, *words, env=environment)
        assert ended == status
        return text

    return shown


def test_a_slow_verification_shows_bytes_rate_and_time_left(
    signed_release: Path, tmp_path: Path, shown: Shown
) -> None:
    with nginx(signed_release, tmp_path / "nginx", "limit_rate 250k;") as server:
        text = shown(server.url)
    assert re.search(r"Verifying .*[0-9.]+/[0-9.]+ KiB", text)
    assert re.search(r"[0-9.]+ [kKM]i?B/s", text)
    assert re.search(r"[0-9]+:[0-9]{2}:[0-9]{2}", text)


def test_the_bar_disappears_and_the_verdict_is_the_last_line_in_green_or_red(
    signed_release: Path, shown: Shown
) -> None:
    text = shown(signed_release)
    assert text.rstrip().splitlines()[-1].startswith(f"{ESCAPE}32m{ESCAPE}1mTRUSTED: ")
    assert f"{ESCAPE}2K" in text  # a cleared line
    plain = shown(signed_release, NO_COLOR="1")
    assert "TRUSTED: " in plain
    assert not re.search(r"\x1b\[[0-9;]*[34][0-7][0-9;]*m", plain)
    (signed_release / "stable/manifest.json").write_bytes(b"{}")
    assert f"{ESCAPE}31m{ESCAPE}1mDO NOT TRUST: " in shown(signed_release, 1)


@pytest.mark.parametrize("options", [(), ("--json",)], ids=["text", "json"])
def test_a_pipe_gets_neither_bar_nor_colour(
    options: tuple[str, ...], signed_release: Path, tools: Tools, key_pair: KeyPair
) -> None:
    done = tools("verify", signed_release, "-p", key_pair.public, *options)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert "\r" not in done.stdout
