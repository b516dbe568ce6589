"""How Debian's Chromium is started for tests."""

from __future__ import annotations

CHROMIUM = "/usr/bin/chromium"
FLAGS = [
    "--no-sandbox",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-default-apps",
    # Names of other sites, and of devices beside loopback, that all lead to this machine.
    "--host-resolver-rules=MAP *.example 127.0.0.1, MAP *.local 127.0.0.1",
]
