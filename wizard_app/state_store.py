"""What the wizard keeps between requests: the state, which is also on disk, and secrets."""

from __future__ import annotations

import os
import threading

from platform_common.errors import PlatformError
from platform_common.message import Sentence
from wizard_app.setup.pending import PendingSecrets
from wizard_app.setup.snapshot import StoredState
from wizard_app.setup.state import DONE, WizardState
from wizard_app.setup.state_file import StateFile


class StateStore:
    """The state and the pending secrets; callers must serialise changes."""

    def __init__(self, file: StateFile) -> None:
        self.file = file
        self._reading = threading.Lock()
        self._kept = StoredState(file.load())
        self._process = os.getpid()

    def now(self) -> StoredState:
        """The current state and secrets.

        A forked process reads the file again: when a worker ends, gunicorn forks a new one from the
        server, which has not seen the old worker's changes.
        """
        if self._process != os.getpid():
            with self._reading:
                if self._process != os.getpid():
                    self._kept = StoredState(self.file.load())
                    self._process = os.getpid()
        return self._kept

    def keep(self, state: WizardState, pending: PendingSecrets) -> Sentence | None:
        """Replace both, the state on disk first; return why that failed, or None."""
        try:
            self.file.save(state)
        except PlatformError as error:
            return not_saved(error)
        self._kept = StoredState(state, pending)
        return None

    def forget_secrets(self) -> None:
        """Forget all secrets; the state stays."""
        self._kept = StoredState(self.now().state)

    def accept_done(self) -> None:
        """Adopt the state in the file if another process has completed setup."""
        stored = self.file.stored()
        if stored is not None and stored.step == DONE:
            self._kept = StoredState(stored)


def not_saved(error: PlatformError) -> Sentence:
    """The message for a page whose answer could not be saved."""
    return Sentence(
        "This could not be saved: {why}. Check that the disk has free space and can be "
        "written to, then continue again.",
        why=error.message,
    )
