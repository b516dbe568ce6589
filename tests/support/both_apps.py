"""Whether the services of a machine run, and what its two apps answer."""

from __future__ import annotations

from tests.support.machine import Machine

WORKING = (
    "platform-control.socket",
    "platform-pwa.socket",
    "platform-pwa.service",
    "platform-wizard.socket",
    "platform-wizard.service",
)
ANSWERS = """
import ssl, sys, urllib.request
for url in ("http://127.0.0.1:8089/healthz", "https://127.0.0.1:8088/healthz"):
    unverified = ssl._create_unverified_context() if url.startswith("https") else None
    print(urllib.request.urlopen(url, timeout=30, context=unverified).read().decode())
"""


def both_answer(running: Machine) -> bool:
    """Whether the dashboard and the wizard say that they are well."""
    return running.run("python3", "-c", ANSWERS).split() == ["ok", "ok"]
