"""Errors that a person may see."""

from __future__ import annotations

import os
import pickle

import pytest

from platform_common.errors import AccessError, PlatformError


def test_an_error_is_its_message_with_a_hint_beside_it() -> None:
    error = PlatformError("it failed", hint="Try again.")
    assert (str(error), error.message, error.hint) == ("it failed", "it failed", "Try again.")
    assert PlatformError("it failed").hint == ""
    # It can be handed to another process.
    assert pickle.loads(pickle.dumps(AccessError("x"))).message == "x"


def test_the_system_tells_why_a_file_cannot_be_read() -> None:
    told = AccessError.of("a/b", FileNotFoundError(2, "No such file or directory", "secret"))
    assert told.message == "a/b: No such file or directory"
    assert AccessError.of("a/b", OSError("odd")).message == "a/b: odd"


@pytest.mark.parametrize(("user", "hinted"), [(0, False), (1000, True)], ids=["root", "another"])
def test_a_forbidden_user_learns_who_is_allowed(
    monkeypatch: pytest.MonkeyPatch, user: int, hinted: bool
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    assert ("root" in AccessError.of("x", PermissionError(13, "Permission denied")).hint) == hinted
    assert AccessError.of("x", OSError(28, "No space left on device")).hint == ""
