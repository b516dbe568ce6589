"""A program that says something in a chat's history, or clears it.

`python -m tests.support.chat_turns append|clear|send PATH [TEXT]`; `send` does it by the
wizard's page, and prints that.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from platform_common.command_line import tell
from platform_common.errors import PlatformError
from wizard_app.app import create_app
from wizard_app.chat_history import ChatHistory, turn
from wizard_app.settings import WizardSettings


def _append(path: Path, text: str) -> None:
    ChatHistory(path).append(turn("user", text))


def _clear(path: Path, _: str) -> None:
    ChatHistory(path).clear()


def _send(path: Path, text: str) -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as out:
        environment = {"WIZARD_DEV_OUT": out, "WIZARD_NO_TOKEN": "1"}
        settings = WizardSettings.from_env(environment | {"WIZARD_CHAT_HISTORY": str(path)})
        answer = create_app(settings).test_client().post("/chat/message", data={"message": text})
        print(answer.status_code, answer.text)


WAYS: Mapping[str, Callable[[Path, str], None]] = {
    "append": _append,
    "clear": _clear,
    "send": _send,
}


def main() -> int:
    """Do what the command line says; the exit code."""
    os.umask(0)
    way, path, *text = sys.argv[1:]
    try:
        WAYS[way](Path(path), *text or [""])
    except PlatformError as error:
        tell(error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
