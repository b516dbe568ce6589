"""Work in a copy of this process."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from platform_common.errors import PlatformError
from wizard_app.launch.aside import begun_aside


def test_work_is_done_in_another_process(tmp_path: Path) -> None:
    done = tmp_path / "done"
    begun_aside(lambda: done.write_text(str(os.getpid())))()
    assert int(done.read_text()) != os.getpid()


def test_other_work_is_done_meanwhile(tmp_path: Path) -> None:
    meanwhile = tmp_path / "meanwhile"
    os.mkfifo(meanwhile)
    # It ends once what is done here has been read there.
    end = begun_aside(meanwhile.read_bytes)
    meanwhile.write_bytes(b"done")
    end()


def test_what_fails_there_is_done_here_and_told_here(tmp_path: Path) -> None:
    tries = tmp_path / "tries"

    def work() -> None:
        with tries.open("a") as file:
            file.write(f"{os.getpid()}\n")
        raise PlatformError("There is no way.")

    with pytest.raises(PlatformError, match="There is no way"):
        begun_aside(work)()
    first, second = tries.read_text().split()
    assert first != second == str(os.getpid())


def test_a_copy_that_is_killed_is_no_end_of_it(tmp_path: Path) -> None:
    here, done = os.getpid(), tmp_path / "done"

    def work() -> None:
        if os.getpid() != here:
            os.kill(os.getpid(), 9)
        done.touch()

    begun_aside(work)()
    assert done.exists()
