"""Secrets: which values are valid, and that none is shown."""

from __future__ import annotations

import copy
import pickle
import subprocess
import traceback
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from platform_common.secret import Secret, SecretError, parse_secret
from tests.support.releases import clean_environment, program

CANARY = "sk-canary-0123456789"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(CANARY, CANARY, id="as-it-is"),
        pytest.param(f" \t{CANARY}\r\n", CANARY, id="blanks-at-the-ends"),
        pytest.param("a=b#c$d;e!~", "a=b#c$d;e!~", id="odd-characters"),
        pytest.param("k" * 4096, "k" * 4096, id="the-longest"),
    ],
)
def test_a_valid_key_is_accepted_without_blanks_around_it(text: str, expected: str) -> None:
    assert parse_secret(text).reveal() == expected


UNFIT = [
    pytest.param("", id="empty"),
    pytest.param(" \r\n\t", id="blanks"),
    pytest.param("k" * 4097, id="too-long"),
    *(
        pytest.param(f"{CANARY}{character}x", id=ascii(character))
        for character in "\n\r\0 \x1b\x7f\"'\\`…é\u00a0🔑Ａ\udc80"
    ),
    pytest.param(f'"{CANARY}"', id="in-quotes"),
    pytest.param(f"'{CANARY}'", id="in-single-quotes"),
    pytest.param(f"{CANARY}\\", id="trailing-backslash"),
]


@pytest.mark.parametrize("text", UNFIT)
def test_env_01_an_invalid_key_is_refused_without_being_shown(text: str) -> None:
    with pytest.raises(SecretError) as caught:
        parse_secret(text)
    trace = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    # The frame of this test contains the text; the frames below are the project's.
    del trace.stack[0]
    shown = f"{caught.value.message} {caught.value.hint} {''.join(trace.format())}"
    assert "canary" not in shown
    assert "kkkk" not in shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        pytest.param("abc", "…", id="short"),
        pytest.param("abcdefgh", "ab…", id="a-quarter"),
        pytest.param("sk-or-v1-" + "x" * 60, "sk-or-…", id="six-at-most"),
    ],
)
def test_a_masked_key_shows_at_most_a_quarter_and_six_characters(value: str, shown: str) -> None:
    assert Secret(value).masked() == shown


@pytest.mark.parametrize(
    "show",
    [repr, str, "{}".format, "%s".__mod__, lambda secret: f"{[secret]}{ {'key': secret} }"],
    ids=["repr", "str", "format", "percent", "inside-others"],
)
def test_leak_08_a_secret_does_not_show_itself(show: Callable[[Secret], str]) -> None:
    assert "•••" in show(Secret(CANARY))
    assert CANARY not in show(Secret(CANARY))


@pytest.mark.parametrize(
    "write",
    [pickle.dumps, copy.copy, msgspec.json.encode, msgspec.to_builtins],
    ids=["pickle", "copy", "json", "plain-objects"],
)
def test_leak_08_a_secret_cannot_be_serialised(write: Callable[[Secret], object]) -> None:
    with pytest.raises(TypeError):
        write(Secret(CANARY))


@pytest.mark.parametrize(
    "command",
    [("platformctl", "doctor"), ("platformctl", "status"), ("release-tools", "inspect", "none")],
    ids=" ".join,
)
def test_no_program_of_ours_leaves_a_core_file(tmp_path: Path, command: tuple[str, ...]) -> None:
    name, *args = command
    calls = tmp_path / "calls"
    subprocess.run(
        ["strace", "-o", calls, "-e", "trace=prlimit64", program(name), *args],
        env=clean_environment() | {"PLATFORM_ROOT": str(tmp_path)},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert "RLIMIT_CORE, {rlim_cur=1," in calls.read_text()
