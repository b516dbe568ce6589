"""Errors that a person may see."""

from __future__ import annotations

import pickle

from platform_common.errors import PlatformError, UnreadableError
from platform_common.resources import data_path, schema


def test_an_error_is_its_message_with_a_hint_beside_it() -> None:
    error = PlatformError("it failed", hint="Try again.")
    assert (str(error), error.message, error.hint) == ("it failed", "it failed", "Try again.")
    assert PlatformError("it failed").hint == ""


def test_the_system_tells_why_a_file_cannot_be_read() -> None:
    told = UnreadableError.of("a/b", FileNotFoundError(2, "No such file or directory", "secret"))
    assert told.message == "a/b: No such file or directory"
    assert UnreadableError.of("a/b", OSError("odd")).message == "a/b: odd"


def test_an_error_can_be_handed_to_another_process() -> None:
    assert pickle.loads(pickle.dumps(UnreadableError("x"))).message == "x"


def test_what_ships_inside_the_package_is_found() -> None:
    assert schema("manifest.v1")["title"].startswith("Release manifest")
    assert data_path("targets.toml").is_file()
    assert data_path("profiles").is_dir()
