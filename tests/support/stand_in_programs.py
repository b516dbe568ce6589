"""Stand-ins for the programs that set up a machine; each records its input.

`tailscale` has the command line of the real program. A file beside them sets their behaviour,
because they get almost no environment.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

# What a program may do instead of its work.
OK, FAIL, HANG, BAD_KEY, DAEMON_DOWN = "ok", "fail", "hang", "bad-key", "daemon-down"
_SOURCE = """#!/usr/bin/python3 -I
import hashlib, json, os, pathlib, subprocess, sys, time
here = pathlib.Path(__file__)
name, argv = here.name, sys.argv[1:]
try:
    mode = here.with_name(f"{name}.mode").read_text().strip()
except FileNotFoundError:
    mode = "ok"
told = {"argv": argv, "environ": dict(os.environ), "pid": os.getpid(), "cwd": os.getcwd()}
told["at"] = time.time_ns()
stdin = sys.stdin.read()
told["stdin"] = stdin

def note():
    with here.with_name(f"{name}.log").open("a") as log:
        log.write(json.dumps(told) + "\\n")

def leave(status, words=""):
    note()
    print(words, file=sys.stderr if status else sys.stdout)
    sys.exit(status)

if mode == "hang":
    told["child"] = subprocess.Popen(["sleep", "3600"]).pid
if name == "tailscale":
    # As the real one has them: with one or two hyphens, a value after "=" or as a word.
    valued = {"auth-key", "authkey", "timeout", "hostname", "login-server"}
    switches = {"reset", "json"}
    command, *rest = argv or [""]
    if command == "status":
        state = here.with_name("tailscale.state")
        print(json.dumps({"BackendState": "Running" if state.exists() else "NeedsLogin"}))
        sys.exit(0)
    if command != "up":
        leave(1, f"unknown subcommand: {command}")
    flags, words = {}, iter(rest)
    for word in words:
        flag, _, value = word.lstrip("-").partition("=")
        if not word.startswith("-"):
            leave(1, f"too many non-flag arguments: {word!r}")
        if flag in valued:
            flags[flag] = value if "=" in word else next(words, "")
        elif flag in switches:
            flags[flag] = True
        else:
            leave(1, f"flag provided but not defined: -{flag}")
    told["flags"] = flags
    source = flags.get("auth-key", flags.get("authkey", ""))
    if source.startswith("file:"):
        path = source.removeprefix("file:")
        try:
            status = os.stat(path)
            key = pathlib.Path(path).read_text().strip()
        except OSError as error:
            leave(1, str(error))
        told["file"] = {
            "path": path,
            "mode": f"{status.st_mode & 0o7777:04o}",
            "owner": [status.st_uid, status.st_gid],
            "sha256": hashlib.sha256(key.encode()).hexdigest(),
        }
    if mode == "daemon-down":
        leave(1, "failed to connect to local tailscaled; it doesn't appear to be running")
    if mode == "bad-key":
        # The worst that a program may do with a secret.
        leave(1, f"backend error: invalid key: unable to validate API key {key}")
    if mode == "ok":
        here.with_name("tailscale.state").touch()
if mode == "hang":
    note()
    time.sleep(3600)
if mode == "fail":
    leave(1, f"{name} cannot do that")
leave(0)
"""


class StandIn(NamedTuple):
    """A stand-in for a program; `folder` is the path in this process."""

    folder: Path
    name: str

    def set_behaviour(self, what: str) -> None:
        """Behave like this from now on."""
        self.folder.joinpath(f"{self.name}.mode").write_text(f"{what}\n")

    def calls(self) -> list[dict[str, Any]]:
        """Its input, call by call."""
        log = self.folder / f"{self.name}.log"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def install(folder: Path, name: str) -> StandIn:
    """Install a stand-in for `name` in a folder, which is created."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / name
    program.write_text(_SOURCE)
    program.chmod(0o755)
    return StandIn(folder, name)
