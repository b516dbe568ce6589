"""The wizard's state on the disk: read once at the start, replaced at every transition."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from platform_common.errors import UnreadableError
from platform_common.files import fsync_directory, rename_to_free
from platform_common.paths import Found
from platform_common.records import record_file
from platform_common.records.record_file import MissingRecordError, RecordError
from wizard_app import state as states
from wizard_app.state import WizardState
from wizard_app.steps.step import AnyStep

_MODE = 0o600
_MOST_ASIDE = 1000


class StateFile:
    """The file; `set_aside` is where a damaged one is now, `problem` what was wrong with it."""

    def __init__(self, path: Path, steps: Sequence[AnyStep]) -> None:
        self._path = path
        self._steps = steps
        self.set_aside: Path | None = None
        self.problem = ""

    def load(self) -> WizardState:
        """The state; the first one when there is none, or one that cannot be used.

        A damaged file is put aside under another name, and kept. Raises `PlatformError`
        when that cannot be done.
        """
        try:
            return record_file.read(Found(self._path), lambda data: states.parse(data, self._steps))
        except MissingRecordError:
            pass
        except RecordError as error:
            self.problem = error.message
            self.set_aside = self._put_aside()
        return WizardState(states.now(), self._steps[0].slug)

    def save(self, state: WizardState) -> None:
        """Replace the file, durably; raises `PlatformError`, and the old one then stays."""
        record_file.replace(self._path, states.render(state), mode=_MODE)

    def _put_aside(self) -> Path:
        """Rename whatever is there, a file or not, to a name that is free."""
        for number in range(1, _MOST_ASIDE):
            to = self._path.with_name(f"{self._path.name}.bad-{number}")
            try:
                rename_to_free(str(self._path), str(to))
                fsync_directory(to.parent)
            except FileExistsError:
                continue
            except OSError as error:
                raise UnreadableError.of(self._path, error) from error
            return to
        raise RecordError(f"{self._path}: too many damaged files lie beside it")
