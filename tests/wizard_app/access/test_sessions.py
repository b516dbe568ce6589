"""The launch token and the sessions, without a web server."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.wizard_app.conftest import Clock
from wizard_app.access.secret_expiry import ALONE_S, SecretExpiry
from wizard_app.access.sessions import LIFETIME_S, SessionStore, boot_time, new_token
from wizard_app.access.token_file import TokenFile

THREADS, ROUNDS = 20, 50


class TokenInMemory:
    """A token in memory instead of a file."""

    def __init__(self, token: str) -> None:
        self.token = token
        self.looks = 0

    def spend(self, matches: Callable[[str], bool]) -> bool:
        self.looks += 1
        if not self.token or not matches(self.token):
            return False
        self.token = ""
        return True


@pytest.fixture
def tokens() -> TokenInMemory:
    return TokenInMemory(new_token())


@pytest.fixture
def access(tokens: TokenInMemory, clock: Clock) -> SessionStore:
    return SessionStore(tokens, clock=clock)


def entered(access: SessionStore, tokens: TokenInMemory) -> str:
    """A new session, for a new token."""
    tokens.token = new_token()
    session = access.enter(tokens.token)
    assert session is not None
    return session


def test_tok_03_a_token_is_32_random_bytes_in_hex() -> None:
    made = {new_token() for _ in range(100)}
    assert len(made) == 100
    assert {len(bytes.fromhex(token)) for token in made} == {32}


def test_a_token_that_could_not_be_removed_is_still_spent(clock: Clock) -> None:
    class Stuck(TokenInMemory):
        def spend(self, matches: Callable[[str], bool]) -> bool:
            return matches(self.token)

    tokens = Stuck(new_token())
    access = SessionStore(tokens, clock=clock)
    assert access.enter(tokens.token) is not None
    assert access.was_used(tokens.token)
    assert access.enter(tokens.token) is None


def test_tok_02_of_20_threads_exactly_one_gets_a_session(tmp_path: Path) -> None:
    file = TokenFile(tmp_path / "run/wizard.token")
    # Two stores with one file, as two processes would have.
    stores = [SessionStore(file), SessionStore(file)]
    together = threading.Barrier(THREADS)

    def enter(number: int) -> str | None:
        together.wait()
        return stores[number % 2].enter(token)

    with ThreadPoolExecutor(THREADS) as pool:
        for _ in range(ROUNDS):
            token = new_token()
            file.write(token)
            sessions = list(pool.map(enter, range(THREADS)))
            assert len([session for session in sessions if session]) == 1


def test_tok_03_tok_05_ten_thousand_wrong_tokens_spend_nothing(
    access: SessionStore, tokens: TokenInMemory
) -> None:
    wrong = ["\ud800", "é" * 64, "x" * (1 << 20), *(f"{number:064x}" for number in range(10_000))]
    assert not any(map(access.enter, wrong))
    assert access.enter(tokens.token) is not None


def test_ses_02_the_age_of_a_session_does_not_depend_on_the_wall_clock() -> None:
    before = time.clock_gettime(time.CLOCK_BOOTTIME)
    assert before <= boot_time() <= time.clock_gettime(time.CLOCK_BOOTTIME)


def test_sessions_are_bounded_in_number(access: SessionStore, tokens: TokenInMemory) -> None:
    sessions = [entered(access, tokens) for _ in range(100)]
    assert sum(access.is_live([session]) for session in sessions) == 64
    assert access.is_live([sessions[-1]])


def test_neither_token_nor_session_is_kept_in_memory(
    access: SessionStore, tokens: TokenInMemory
) -> None:
    token = tokens.token
    session = access.enter(token)
    assert session is not None
    told = repr({name: getattr(access, name) for name in vars(access)})
    assert token not in told
    assert session not in told


def test_wiz_07_secrets_are_wiped_after_an_hour_without_a_session(
    access: SessionStore, tokens: TokenInMemory, clock: Clock
) -> None:
    wiped = threading.Event()
    # Each check is ten minutes later.
    looks: list[float] = []

    def sleep(seconds: float) -> None:
        looks.append(clock.now)
        clock.now += 600

    session = entered(access, tokens)
    SecretExpiry(access.alone_s, wiped.set, sleep=sleep).watch()
    assert wiped.wait(120)
    assert clock.now - 1000 == LIFETIME_S + ALONE_S
    assert not access.is_live([session])


def test_wiz_07_secrets_are_not_wiped_too_early(
    access: SessionStore, tokens: TokenInMemory, clock: Clock
) -> None:
    wipes: list[None] = []
    wiping = SecretExpiry(access.alone_s, lambda: wipes.append(None))
    assert not wiping.check()
    entered(access, tokens)
    clock.now += LIFETIME_S + ALONE_S - 1
    assert not wiping.check()
    entered(access, tokens)
    clock.now += 2
    assert not wiping.check()
    assert wipes == []
    clock.now += LIFETIME_S + ALONE_S
    assert wiping.check()
    assert wipes == [None]


# The file.


@pytest.fixture
def file(tmp_path: Path) -> TokenFile:
    return TokenFile(tmp_path / "run/platform/wizard.token")


def test_tok_09_only_the_owner_can_read_the_file(file: TokenFile) -> None:
    file.write("a" * 64)
    assert file.path.stat().st_mode & 0o7777 == 0o600
    assert file.path.parent.stat().st_mode & 0o7022 == 0
    assert file.path.read_text() == "a" * 64


def test_tok_09_a_planted_link_is_replaced_and_not_followed(
    file: TokenFile, tmp_path: Path
) -> None:
    victim = tmp_path / "known"
    victim.write_text("b" * 64)
    file.path.parent.mkdir(parents=True)
    for plant in (file.path.symlink_to, file.path.hardlink_to):
        plant(victim)
        assert not file.spend(lambda token: True)
        file.write("a" * 64)
        assert victim.read_text() == "b" * 64
        assert not file.path.is_symlink()
        assert file.read() == "a" * 64
        file.path.unlink()


def test_tok_05_an_invalid_token_file_opens_no_session(file: TokenFile) -> None:
    file.write("a")
    access = SessionStore(file)
    for content in (b"", b"\xff" * 64, b"a" * 2000, b"\n"):
        file.path.write_bytes(content)
        assert access.enter(content.decode("latin-1")) is None
        assert access.enter("") is None
    file.path.unlink()
    file.path.mkdir()
    assert access.enter("a" * 64) is None


def test_only_the_given_token_is_removed(file: TokenFile) -> None:
    file.write("a" * 64)
    file.write("b" * 64)
    assert SessionStore(file).enter("a" * 64) is None
    file.remove("a" * 64)
    assert file.read() == "b" * 64
    file.remove("b" * 64)
    assert file.read() == ""
