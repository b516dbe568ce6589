"""A wizard that is asked to name the device, once and again, while something goes wrong.

`python -m tests.support.wizard_posts OUT NAME…`: its state is in the folder OUT. Prints, as
JSON, what each NAME was answered.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from flask.testing import FlaskClient

from platform_common.command_line import tell
from platform_common.errors import PlatformError
from wizard_app.app import create_app
from wizard_app.settings import WizardSettings

STATE = "var/lib/platform/wizard-state.json"
TIME_ZONE = "Europe/Berlin"
# Looked for, and never there: between the two the first name is sent.
BEGIN, END = "/the-first-name-is-sent", "/the-first-name-was-sent"


def main() -> int:
    """Do what the command line says; the exit code."""
    out, *names = sys.argv[1:]
    settings = WizardSettings.from_env(
        {"PLATFORM_ROOT": f"{out}/device", "WIZARD_DEV_OUT": out, "WIZARD_NO_TOKEN": "1"}
    )
    try:
        client = create_app(settings).test_client()
    except PlatformError as error:
        tell(error)
        return 1
    # Once, so that what is made at first use is there.
    client.get("/wizard/system")
    answers = []
    for name in names:
        Path(BEGIN).exists()
        answer = client.post("/wizard/system", data={"hostname": name, "timezone": TIME_ZONE})
        Path(END).exists()
        answers.append(
            {
                "status": answer.status_code,
                "text": answer.text,
                "stored": _stored(Path(out, STATE)),
                "held": _held(client),
            }
        )
    print(json.dumps(answers))
    return 0


def _stored(path: Path) -> str:
    return json.loads(path.read_bytes())["answers"]["hostname"] if path.exists() else ""


def _held(client: FlaskClient) -> str:
    saved = json.loads(client.get("/wizard/answers.json").data)
    return str(saved["answers"].get("hostname", ""))


if __name__ == "__main__":
    sys.exit(main())
