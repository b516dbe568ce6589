"""A stand-in for the control CLI: gives prepared answers and records each call."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_PROGRAM = """\
#!{python} -IS
import fcntl, json, os, sys, time
HERE = {here!r}
words = sys.argv[1:]
with open(HERE + "/answers.json") as file:
    answers = json.load(file)
answer = answers.get(" ".join(words), answers.get("*", {{}}))
with open(HERE + "/begun", "a") as file:
    file.write(" ".join(words) + "\\n")
while answer.get("held") and not os.path.exists(HERE + "/released"):
    time.sleep(0.01)
note = {{
    "words": words,
    "environment": dict(os.environ),
    "folder": os.getcwd(),
    "descriptors": sorted(os.listdir("/proc/self/fd")),
    "process": os.getpid(),
    "began": time.monotonic(),
}}
if answer.get("reads", True):
    note["stdin"] = sys.stdin.read()
time.sleep(answer.get("takes_s", 0))
note["ended"] = time.monotonic()
with open(HERE + "/calls.jsonl", "a") as file:
    fcntl.flock(file, fcntl.LOCK_EX)
    file.write(json.dumps(note) + "\\n")
    file.flush()
sys.stderr.write(answer.get("errors", ""))
sys.stderr.flush()
os.write(1, answer.get("output", "").encode("utf-8", "surrogateescape"))
sys.exit(answer.get("status", 0))
"""


@dataclass
class FakeCtl:
    """A folder that contains an executable `platformctl`."""

    folder: Path

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.program = self.folder / "platformctl"
        self.program.write_text(_PROGRAM.format(python=sys.executable, here=str(self.folder)))
        self.program.chmod(0o755)
        self._answers: dict[str, dict[str, Any]] = {"*": {"status": 64, "errors": "error: no\n"}}
        self._write()

    def answer(
        self,
        words: str,
        output: object = "",
        *,
        status: int = 0,
        errors: str = "",
        takes_s: float = 0,
        reads: bool = True,
        held: bool = False,
    ) -> None:
        """Answer the call `words` like this from now on; output that is not text becomes JSON.

        A call that is `held` does not answer before `release`.
        """
        text = output if isinstance(output, str) else json.dumps(output)
        self._answers[words] = {
            "output": text,
            "status": status,
            "errors": errors,
            "takes_s": takes_s,
            "reads": reads,
            "held": held,
        }
        self._write()

    def calls(self) -> list[dict[str, Any]]:
        """The calls so far, in the order in which they ended."""
        path = self.folder / "calls.jsonl"
        if not path.exists():
            return []
        return [json.loads(line) for line in path.read_text().splitlines()]

    def words(self) -> list[str]:
        """The words of the calls so far."""
        return [" ".join(call["words"]) for call in self.calls()]

    def begun(self) -> list[str]:
        """The words of the calls that have started so far."""
        path = self.folder / "begun"
        return path.read_text().splitlines() if path.exists() else []

    def release(self) -> None:
        """Let the held calls answer."""
        (self.folder / "released").touch()

    @property
    def environment(self) -> dict[str, str]:
        """The environment with which an app uses it."""
        return {"PLATFORM_CTL": str(self.program), "PATH": os.environ["PATH"]}

    def _write(self) -> None:
        waiting = self.folder / "answers.new"
        waiting.write_text(json.dumps(self._answers))
        waiting.replace(self.folder / "answers.json")
