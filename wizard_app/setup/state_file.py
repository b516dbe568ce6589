"""The wizard's state on disk: read once at the start, replaced at every change."""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from platform_common.clock import now
from platform_common.errors import PlatformError
from platform_common.paths import Found
from platform_common.records import record_file
from platform_common.records.record_file import MissingRecordError, RecordError
from platform_common.storage.atomic_write import fsync_directory, rename_to_free
from platform_common.storage.file_lock import changing
from platform_common.storage.stale_files import remove_left_overs
from wizard_app.setup import state as states
from wizard_app.setup.state import WizardState
from wizard_app.setup.steps.base import AnyStep

_MODE = 0o600
_MOST_ASIDE = 1000
_log = logging.getLogger("wizard_app")


class StateFile:
    """The file; `set_aside` is the path of a renamed damaged one until a new one is saved."""

    def __init__(self, path: Path, steps: Sequence[AnyStep]) -> None:
        self._path = path
        self._steps = steps
        self.set_aside: Path | None = None

    def load(self) -> WizardState:
        """Load the state; the initial one if there is no usable file.

        A damaged file is renamed and kept. Raises `PlatformError` if that is not possible.
        """
        self._sweep()
        try:
            return record_file.read(Found(self._path), lambda data: states.parse(data, self._steps))
        except MissingRecordError:
            # Renamed by an earlier wizard that ended before it saved a new one.
            self.set_aside = self._last_aside()
        except RecordError as error:
            self.set_aside = self._put_aside(error)
            _log.warning("The stored answers are now %s. %s", self.set_aside, error.message)
        return WizardState(now(), self._steps[0].slug)

    def stored(self) -> WizardState | None:
        """The current file, perhaps written by another process; None without a usable one."""
        try:
            return record_file.read(Found(self._path), lambda data: states.parse(data, self._steps))
        except RecordError:
            return None

    def save(self, state: WizardState) -> None:
        """Replace the file durably; raises `PlatformError`, after which the old one stays."""
        record_file.replace(self._path, states.render(state), mode=_MODE)
        self.set_aside = None

    def _sweep(self) -> None:
        """Remove temporary files of killed wizards, as every save does."""
        if self._path.parent.is_dir():
            with contextlib.suppress(PlatformError), changing(self._path):
                remove_left_overs(self._path.parent, of_name=self._path.name)

    def _names_aside(self) -> Iterator[Path]:
        for number in range(1, _MOST_ASIDE):
            yield self._path.with_name(f"{self._path.name}.bad-{number}")

    def _last_aside(self) -> Path | None:
        last = None
        for path in itertools.takewhile(os.path.lexists, self._names_aside()):
            last = path
        return last

    def _put_aside(self, problem: RecordError) -> Path:
        """Rename whatever is there, file or not, to a free name."""
        for to in self._names_aside():
            try:
                rename_to_free(str(self._path), str(to))
            except FileExistsError:
                continue
            except OSError as error:
                raise RecordError(
                    f"{problem.message}; it cannot be renamed either: {error.strerror}",
                    hint="Repair or move it, then start again.",
                ) from error
            # If the rename is lost, the next start finds the damaged file in its old place.
            with contextlib.suppress(OSError):
                fsync_directory(to.parent)
            return to
        raise RecordError(f"{self._path}: there are too many damaged files beside it")
