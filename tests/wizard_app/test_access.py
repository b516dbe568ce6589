"""The launch token and the sessions, without a web server."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.wizard_app.conftest import Clock
from wizard_app.access import LIFETIME_S, Access, boot_time, new_token
from wizard_app.token_file import TokenFile
from wizard_app.wiping import ALONE_S, Wiping

THREADS, ROUNDS = 20, 50


class Held:
    """A token in memory in place of a file."""

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
def tokens() -> Held:
    return Held(new_token())


@pytest.fixture
def access(tokens: Held, clock: Clock) -> Access:
    return Access(tokens, clock=clock)


def entered(access: Access, tokens: Held) -> str:
    """A new session for a new token."""
    tokens.token = new_token()
    session = access.enter(tokens.token)
    assert session is not None
    return session


def test_tok_03_a_token_is_32_random_bytes_in_hex() -> None:
    made = {new_token() for _ in range(100)}
    assert len(made) == 100
    assert {len(bytes.fromhex(token)) for token in made} == {32}


def test_tok_01_a_token_opens_one_session(access: Access, tokens: Held) -> None:
    token = tokens.token
    assert access.enter(token) is not None
    assert access.was_used(token)
    assert access.enter(token) is None


def test_a_token_that_could_not_be_removed_is_spent_all_the_same(clock: Clock) -> None:
    class Stuck(Held):
        def spend(self, matches: Callable[[str], bool]) -> bool:
            return matches(self.token)

    tokens = Stuck(new_token())
    access = Access(tokens, clock=clock)
    assert access.enter(tokens.token) is not None
    assert access.enter(tokens.token) is None


def test_tok_02_of_20_threads_exactly_one_gets_a_session(tmp_path: Path) -> None:
    file = TokenFile(tmp_path / "run/wizard.token")
    # Two doors to one file: two processes could do no more.
    doors = [Access(file), Access(file)]
    for _ in range(ROUNDS):
        token = new_token()
        file.write(token)
        sessions = at_once(partial(_enter, doors, token))
        assert len(sessions) == THREADS
        assert len([session for session in sessions if session]) == 1


def _enter(doors: list[Access], token: str, number: int) -> str | None:
    return doors[number % 2].enter(token)


def at_once(call: Callable[[int], str | None]) -> list[str | None]:
    """What `call` gives to each of many threads that call it together."""
    together = threading.Barrier(THREADS)
    answers: list[str | None] = []

    def run(number: int) -> None:
        together.wait()
        answers.append(call(number))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


WRONG = ["", " ", "a" * 64, "\0", "\0" * 64, "é" * 64, "\ud800", "\ufffd" * 64, "x" * (1 << 20)]


@pytest.mark.parametrize("token", WRONG, ids=range(len(WRONG)))
def test_tok_05_what_is_not_the_token_opens_nothing_and_spends_nothing(
    token: str, access: Access, tokens: Held
) -> None:
    assert access.enter(token) is None
    assert access.enter(tokens.token.upper()) is None
    assert access.enter(f" {tokens.token}") is None
    assert access.enter(tokens.token[:-1]) is None
    assert access.enter(f"{tokens.token}\0") is None
    assert access.enter(tokens.token) is not None


def test_without_a_token_an_empty_one_opens_nothing(access: Access, tokens: Held) -> None:
    tokens.token = ""
    assert access.enter("") is None


def test_tok_03_ten_thousand_wrong_tries_do_not_spend_the_token(
    access: Access, tokens: Held
) -> None:
    assert not any(access.enter(f"{number:064x}") for number in range(10_000))
    assert access.enter(tokens.token) is not None


@pytest.mark.parametrize(("seconds", "live"), [(0, True), (3599, True), (3600, False)])
def test_ses_04_a_session_lasts_an_hour(
    seconds: float, live: bool, access: Access, tokens: Held, clock: Clock
) -> None:
    session = entered(access, tokens)
    clock.now += seconds
    assert access.is_live([session]) is live
    assert access.is_used is live


def test_ses_02_its_age_is_told_by_no_clock_that_can_be_set() -> None:
    before = time.clock_gettime(time.CLOCK_BOOTTIME)
    assert before <= boot_time() <= time.clock_gettime(time.CLOCK_BOOTTIME)


def test_ses_01_a_session_that_was_not_opened_here_is_none(access: Access, tokens: Held) -> None:
    entered(access, tokens)
    assert not access.is_live([new_token(), "", "\0", "x" * 8192])


def test_ses_07_one_live_session_among_others_counts(access: Access, tokens: Held) -> None:
    session = entered(access, tokens)
    assert access.is_live([*(str(number) for number in range(200)), session])


def test_an_ended_session_is_dead_and_others_go_on(access: Access, tokens: Held) -> None:
    first, second = entered(access, tokens), entered(access, tokens)
    access.end([first, "no session"])
    assert not access.is_live([first])
    assert access.is_live([second])


def test_sessions_are_bounded_in_number(access: Access, tokens: Held) -> None:
    sessions = [entered(access, tokens) for _ in range(100)]
    assert sum(access.is_live([session]) for session in sessions) == 64
    assert access.is_live([sessions[-1]])


def test_neither_token_nor_session_is_kept_in_memory(access: Access, tokens: Held) -> None:
    token = tokens.token
    session = access.enter(token)
    assert session is not None
    told = repr({name: getattr(access, name) for name in vars(access)})
    assert token not in told
    assert session not in told


def test_alone_is_counted_from_the_end_of_the_last_session(
    access: Access, tokens: Held, clock: Clock
) -> None:
    assert access.alone_s() == 0
    entered(access, tokens)
    clock.now += 1800
    entered(access, tokens)
    clock.now += LIFETIME_S - 1
    assert access.alone_s() == 0
    clock.now += 11
    assert access.alone_s() == 10


def test_wiz_07_secrets_are_wiped_an_hour_after_the_last_session(
    access: Access, tokens: Held, clock: Clock
) -> None:
    wiped = threading.Event()
    # Each look is ten minutes later.
    looks: list[float] = []

    def sleep(seconds: float) -> None:
        looks.append(clock.now)
        clock.now += 600

    session = entered(access, tokens)
    Wiping(access.alone_s, wiped.set, sleep=sleep).watch()
    assert wiped.wait(10)
    assert clock.now - 1000 == LIFETIME_S + ALONE_S
    assert not access.is_live([session])


def test_wiz_07_nothing_is_wiped_while_somebody_may_come_back(
    access: Access, tokens: Held, clock: Clock
) -> None:
    wipes: list[None] = []
    wiping = Wiping(access.alone_s, lambda: wipes.append(None))
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


def test_tok_09_the_file_is_for_its_owner_alone(file: TokenFile) -> None:
    file.write("a" * 64)
    assert file.path.stat().st_mode & 0o7777 == 0o600
    assert file.path.parent.stat().st_mode & 0o7022 == 0
    assert file.path.read_text() == "a" * 64


def test_tok_09_a_planted_link_is_replaced_and_not_followed(
    file: TokenFile, tmp_path: Path
) -> None:
    victim = tmp_path / "shadow"
    victim.write_text("root:x")
    file.path.parent.mkdir(parents=True)
    file.path.symlink_to(victim)
    file.write("a" * 64)
    assert victim.read_text() == "root:x"
    assert not file.path.is_symlink()
    assert file.read() == "a" * 64


def test_tok_09_a_link_that_is_planted_later_is_no_token(file: TokenFile, tmp_path: Path) -> None:
    victim = tmp_path / "known"
    victim.write_text("b" * 64)
    file.path.parent.mkdir(parents=True)
    file.path.symlink_to(victim)
    assert not file.spend(lambda token: True)
    file.path.unlink()
    file.path.hardlink_to(victim)
    assert not file.spend(lambda token: True)
    assert victim.read_text() == "b" * 64


@pytest.mark.parametrize("content", [b"", b"\xff" * 64, b"a" * 2000, b"\n"])
def test_what_is_no_token_in_the_file_opens_nothing(content: bytes, file: TokenFile) -> None:
    file.write("a")
    file.path.write_bytes(content)
    access = Access(file)
    assert access.enter(content.decode("latin-1")) is None
    assert access.enter("") is None


def test_a_folder_in_the_place_of_the_token_is_none(file: TokenFile) -> None:
    file.path.mkdir(parents=True)
    assert Access(file).enter("a" * 64) is None


def test_a_newer_token_takes_the_place_of_an_unused_one(file: TokenFile) -> None:
    access = Access(file)
    file.write("a" * 64)
    file.write("b" * 64)
    assert access.enter("a" * 64) is None
    assert access.enter("b" * 64) is not None
    assert not file.path.exists()


def test_only_the_token_that_is_named_is_removed(file: TokenFile) -> None:
    file.write("b" * 64)
    file.remove("a" * 64)
    assert file.read() == "b" * 64
    file.remove("b" * 64)
    assert file.read() == ""
