"""A wizard that has every answer and every secret, and sets up while something goes wrong.

`prepare` makes the wizard and enters the secrets; each run is then a copy of that process, in
which the button is pressed as often as the argument says. Prints, as JSON, what each press
was answered; what was on the device after the first one is in the folder `first` beside it.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

from flask.testing import FlaskClient

from tests.support.apply_setups import SETUPS, answer, lost, started, wizard_of

# Looked for, and never there: between the two the button is pressed for the first time.
BEGIN, END = "/the-button-is-pressed", "/the-button-was-pressed"
_clients: list[FlaskClient] = []
_outs: list[Path] = []


def prepare(out: str, name: str) -> None:
    """Make the wizard of the folder `out`, and enter the secrets of the setup of that name."""
    os.umask(0)
    client = started(Path(out))
    answer(client, SETUPS[name].forms, lost(client))
    client.get("/wizard/review")
    _clients.append(client)
    _outs.append(Path(out))


def main() -> int:
    """Do what the command line says; the exit code."""
    [client] = _clients
    # A copy is the process that was told the secrets, not one that a server started anew.
    wizard_of(client)._process = os.getpid()
    answers = []
    for _ in range(int(sys.argv[1])):
        Path(BEGIN).exists()
        done = client.post("/wizard/review/apply")
        Path(END).exists()
        answers.append({"status": done.status_code, "to": done.location, "text": done.text})
        if not answers[1:]:
            shutil.copytree(_outs[0], _outs[0].with_name("first"))
    print(json.dumps(answers))
    return 0
