"""The operations that meet faults: `python -m tests.faults.programs WAY PATH [TEXT…]`.

Each way is a change that programs of the device make. The responses of a wizard are printed as
JSON, with the state after each.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from platform_common.cli.group import print_error
from platform_common.errors import PlatformError
from platform_common.records import record_file
from platform_common.storage.append_log import append_line, put_aside
from tests.support.writers import MODE, OWNER

if TYPE_CHECKING:
    from flask.testing import FlaskClient

TIME_ZONE = "Europe/Berlin"
# Looked up, but never there: the calls between these two meet the faults.
BEGIN, END = "/what-is-tested-begins", "/what-is-tested-ended"
# Wizards that have every answer and every secret, by the folder of their device.
_prepared: dict[str, FlaskClient] = {}


def _edit(path: Path, text: str) -> None:
    record_file.edit(path, lambda _: text.encode(), mode=MODE, owner=OWNER)


def _overwrite(path: Path, text: str) -> None:
    """The wrong way to write a file."""
    path.write_text(text)


def _append(path: Path, text: str) -> None:
    append_line(path, text.encode(), mode=MODE, owner=OWNER)


def _put_aside(path: Path, text: str) -> None:
    if not put_aside(path, path.with_name(text)):
        raise PlatformError("there is nothing to put aside")


def _say(path: Path, text: str) -> None:
    from wizard_app.chat.history import ChatHistory, turn

    ChatHistory(path).append(turn("user", text))


def _clear(path: Path) -> None:
    from wizard_app.chat.history import ChatHistory

    ChatHistory(path).clear()


def _send(path: Path, text: str) -> None:
    """Send a message on the wizard's page."""
    from tests.support.apply_setups import started

    with tempfile.TemporaryDirectory() as out:
        client = started(Path(out), WIZARD_CHAT_HISTORY=str(path))
        answer = client.post("/chat/message", data={"message": text})
    print(answer.status_code, answer.text)


def _name(out: Path, *names: str) -> None:
    """Name the device in a new wizard, with each name in turn."""
    from tests.support.apply_setups import started

    client = started(out)
    # Opened once, so that files created at first use exist.
    client.get("/wizard/system")
    answers = []
    for name in names:
        form = {"hostname": name, "timezone": TIME_ZONE}
        told = _posted(client, "/wizard/system", form)
        saved = json.loads(client.get("/wizard/answers.json").data)
        answers.append({**told, "held": saved["answers"].get("hostname"), "stored": stored(out)})
    print(json.dumps(answers))


def stored(out: Path) -> str | None:
    """The name of the device on its disk."""
    path = out / "var/lib/platform/wizard-state.json"
    if not path.exists():
        return None
    assert path.stat().st_mode & 0o777 == 0o600
    return str(json.loads(path.read_bytes())["answers"]["hostname"])


def prepare(out: str, setup: str) -> None:
    """Start a wizard for the device `out`, and enter the secrets of that setup."""
    from tests.support.apply_setups import SETUPS, answer, started, steps_with_lost_secrets

    client = started(Path(out))
    answer(client, SETUPS[setup].forms, steps_with_lost_secrets(client))
    client.get("/wizard/review")
    _prepared[out] = client


def _set_up(out: Path, presses: str) -> None:
    """Apply `presses` times; copy the device after the first time to `first`, beside it."""
    from tests.support.apply_setups import wizard_of

    client = _prepared[str(out)]
    # Make the forked copy count as the process that was given the secrets.
    wizard_of(client)._store._process = os.getpid()
    answers = []
    for _ in range(int(presses)):
        answers.append(_posted(client, "/wizard/review/apply", {}))
        if not answers[1:]:
            shutil.copytree(out, out.with_name("first"))
    print(json.dumps(answers))


def _posted(client: FlaskClient, page: str, form: Mapping[str, str]) -> dict[str, Any]:
    Path(BEGIN).exists()
    answer = client.post(page, data=form)
    Path(END).exists()
    return {"status": answer.status_code, "to": answer.location, "text": answer.text}


WAYS: Mapping[str, Callable[..., None]] = {
    "edit": _edit,
    "overwrite": _overwrite,
    "append": _append,
    "put-aside": _put_aside,
    "say": _say,
    "clear": _clear,
    "send": _send,
    "name": _name,
    "set-up": _set_up,
}


def main() -> int:
    """Run the command line and return the exit code."""
    os.umask(0)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    way, path, *text = sys.argv[1:]
    try:
        WAYS[way](Path(path), *text)
    except PlatformError as error:
        print_error(error)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
