"""A program in place of `cloudflared`, with the command line of the real one.

It tells in one line of JSON what it was given, says that it is connected, and stays. What
the real one refuses it refuses: options that there are not, or that stand elsewhere.
"""

from __future__ import annotations

import json
from typing import Any

from tests.support.machine import Machine

PLACE = "/usr/local/bin/cloudflared"
_SOURCE = """#!/usr/bin/python3 -I
import json, os, pathlib, signal, socket, sys

def leave(words):
    sys.exit(f"Incorrect Usage: {words}")

# An option of `tunnel` may stand before `run`, too; those of `run` are the ones to be connected.
TUNNEL = {"no-autoupdate": False, "config": True, "url": True}
RUN = {"credentials-file": True, "url": True}

def taken(words, known):
    options = {}
    while words and words[0].startswith("-"):
        name, has_value, value = words.pop(0).lstrip("-").partition("=")
        if name not in known:
            leave(f"flag provided but not defined: -{name}")
        options[name] = (value if has_value else words.pop(0)) if known[name] else True
    return options

words = sys.argv[1:]
if not words or words.pop(0) != "tunnel":
    leave("no such command")
options = taken(words, TUNNEL)
named = bool(words) and words.pop(0) == "run"
if named:
    options |= taken(words, RUN)
if words[1:] or (words and not named):
    leave("too many arguments")
given = options.get("config")
config = pathlib.Path(given).read_text() if given else ""
if named and not words and "tunnel:" not in config:
    leave('"cloudflared tunnel run" requires the ID or name of the tunnel to run')
if named and not given and "credentials-file" not in options:
    leave("cannot determine default origin certificate path")
file = options.get("credentials-file")
credentials = json.loads(pathlib.Path(file).read_text()) if file else {}
environment = {name: value for name, value in os.environ.items() if name != "NOTIFY_SOCKET"}
told = {"argv": sys.argv[1:], "options": options, "tunnel": words, "config": config}
told |= {"environ": environment, "user": os.getuid(), "keys": sorted(credentials)}
print(json.dumps(told), flush=True)
with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as service:
    service.connect(os.environ["NOTIFY_SOCKET"].replace("@", "\\0", 1))
    service.send(b"READY=1")
signal.pause()
"""


def install(machine: Machine) -> None:
    """Put it on the machine."""
    machine.write(PLACE, _SOURCE, mode="0755")


def last_call(machine: Machine, unit: str) -> dict[str, Any]:
    """What it was given when the unit was started last."""
    # The journal may come behind.
    machine.run("journalctl", "--sync")
    said = machine.run("journalctl", "--no-pager", "--output=cat", f"--unit={unit}")
    told: dict[str, Any] = json.loads([line for line in said.splitlines() if line[0] == "{"][-1])
    return told
