"""Errors that a person may see."""

from __future__ import annotations

import os
import pickle

import pytest

from platform_common.errors import AccessError, PlatformError


def test_an_error_has_a_message_and_a_separate_hint() -> None:
    error = PlatformError("it failed", hint="Try again.")
    assert (str(error), error.message, error.hint) == ("it failed", "it failed", "Try again.")
    assert PlatformError("it failed").hint == ""
    # It can be pickled.
    assert pickle.loads(pickle.dumps(AccessError("x"))).message == "x"


def test_an_access_error_has_the_reason_of_the_system() -> None:
    told = AccessError.of("a/b", FileNotFoundError(2, "No such file or directory", "secret"))
    assert told.message == "a/b: No such file or directory"
    assert AccessError.of("a/b", OSError("odd")).message == "a/b: odd"


@pytest.mark.parametrize(("user", "hinted"), [(0, False), (1000, True)], ids=["root", "another"])
def test_a_user_without_permission_is_told_who_has_it(
    monkeypatch: pytest.MonkeyPatch, user: int, hinted: bool
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    assert ("root" in AccessError.of("x", PermissionError(13, "Permission denied")).hint) == hinted
    assert AccessError.of("x", OSError(28, "No space left on device")).hint == ""
