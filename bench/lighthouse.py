"""Scores of Lighthouse for a page, as on a phone with a slow connection."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
from collections.abc import Mapping

from tests.support.browsers import CHROMIUM, FLAGS
from tests.support.environments import node_modules

_CATEGORIES = ("performance", "accessibility", "best-practices")
_TIMEOUT_S = 180
_TRIES = 3


def scores(url: str) -> Mapping[str, float]:
    """Performance, accessibility and best-practices of the page at `url`, each from 0 to 1.

    Raises what `subprocess.run` raises, and `ValueError` where the page could not be rated.
    """
    for _ in range(_TRIES - 1):
        # Sometimes it loses the trace of a page and asks to be run again.
        with contextlib.suppress(subprocess.CalledProcessError):
            return _scores(url)
    return _scores(url)


def _scores(url: str) -> Mapping[str, float]:
    program = node_modules("lighthouse") / "lighthouse/cli/index.js"
    with tempfile.TemporaryDirectory() as profile:
        flags = ("--headless=new", f"--user-data-dir={profile}", *FLAGS)
        # A flag of several words would be split.
        chromium = " ".join(flag for flag in flags if " " not in flag)
        options = (
            f"--only-categories={','.join(_CATEGORIES)}",
            f"--chrome-flags={chromium}",
            *("--output=json", "--output-path=stdout", "--quiet", "--no-enable-error-reporting"),
        )
        finished = subprocess.run(
            ["node", program, url, *options],
            env=os.environ | {"CHROME_PATH": CHROMIUM},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            timeout=_TIMEOUT_S,
            check=True,
        )
    categories = json.loads(finished.stdout)["categories"]
    found = {name: categories[name]["score"] for name in _CATEGORIES}
    if None in found.values():
        raise ValueError(f"Lighthouse could not rate {url}: {found}")
    return found
