"""What the tests with faults share: runs of programs, and folders in memory."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.subjects import (
    CHANGES,
    CHATS,
    LATE,
    Chatting,
    Naming,
    Publishing,
    SettingUp,
    Start,
    SubjectOf,
    Writing,
)
from tests.faults.walks import Subject
from tests.support.faults import FaultServer, Site, make_site
from tests.support.memory import in_memory
from tests.support.releases import KeyPair


@pytest.fixture
def memory() -> Iterator[Path]:
    """A folder in memory."""
    with in_memory() as folder:
        yield folder


@pytest.fixture(scope="package")
def _stage() -> Iterator[Path]:
    with in_memory() as folder:
        yield folder


@pytest.fixture(scope="package")
def _start() -> Iterator[Start]:
    with contextlib.ExitStack() as stack:
        yield lambda *args: stack.enter_context(FaultServer(*args))


@pytest.fixture(scope="package")
def server(_start: Start, _stage: Path) -> FaultServer:
    """The server that runs release-tools."""
    return _start(_new_folder(_stage / "runs"))


@pytest.fixture(scope="package")
def site(_stage: Path, key_pair: KeyPair, server: FaultServer) -> Site:
    """A distribution with one release; every test resets it."""
    return make_site(_new_folder(_stage / "site"), key_pair, server)


@pytest.fixture(scope="package")
def programs(_start: Start, _stage: Path) -> FaultServer:
    """The server that runs the writers of the device's files, and wizards."""
    late = [*LATE, "tests.support.apply_setups", "wizard_app.chat.history"]
    return _start(_new_folder(_stage / "programs"), "tests.faults.programs", late)


@pytest.fixture(scope="package")
def subject_of(request: pytest.FixtureRequest, _stage: Path) -> SubjectOf:
    """Each subject by its name, created at its first use."""
    made: dict[str, Subject] = {}

    def make(name: str) -> Subject:
        kind, _, which = name.partition(": ")
        folder = _new_folder(_stage / f"{len(made)}")
        start = request.getfixturevalue
        match kind:
            case "publish":
                return Publishing(start("server"), start("site"), which)
            case "write":
                return Writing(start("programs"), folder, CHANGES[which])
            case "chat":
                return Chatting(start("programs"), folder, CHATS[which])
            case "name":
                return Naming(start("programs"), folder)
        return SettingUp(start("_start"), folder, which)

    def subject(name: str) -> Subject:
        if name not in made:
            made[name] = make(name)
        return made[name]

    return subject


def _new_folder(folder: Path) -> Path:
    folder.mkdir()
    return folder
