"""Lines of `authorized_keys`: which are taken, and what `ssh-keygen` knows of them."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from platform_common.message import Sentence
from platform_common.process import run as processes
from platform_common.process.run import ProcessError
from wizard_app.setup.sentence_list import listed

MOST_KEYS = 100
LONGEST_LINE = 16 << 10
# The spec's words for it: a key starts with one of them, as they stand here.
PREFIXES = (
    *("ssh-rsa ", "ssh-ed25519 ", "ssh-ecdsa"),
    *("ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521"),
    *("sk-ssh-ed25519@openssh.com", "sk-ecdsa-sha2-nistp256@openssh.com"),
)
_BLANKS = " \t"
_PRINTABLE = bytes(range(0x20, 0x7F)) + b"\t"
# How private keys begin: PEM and SSH2, PuTTY, age, and for who leaves out the first line,
# the inside of an OpenSSH key and that of a PEM one, which is a sequence in DER.
_PRIVATE = re.compile(
    r"BEGIN [A-Z0-9 ]*PRIVATE KEY|PuTTY-User-Key-File|Private-(?:Lines|MAC|Hash):|AGE-SECRET-KEY-"
    r"|b3BlbnNzaC1rZXktdjE|^M[A-P][A-Za-z0-9+/]{40}"
)
# One of these is in all of that, but for what begins with an M; looking for them costs little.
_PRIVATE_WORDS = ("PRIVATE KEY", "PuTTY-User-Key-File", "Private-", "AGE-SECRET", "b3BlbnNzaC1r")
_PIECE = re.compile(r"[A-Za-z0-9+/]{40,}={0,2}")
_MOST_NAMED = 5
# `ssh-keygen -l`: bits, fingerprint, comment, kind.
_LISTED = re.compile(rb"(?P<bits>[0-9]+) (?P<print>SHA256:[A-Za-z0-9+/]+) .*\((?P<kind>[!-~]+)\)\n")
_LIMIT_S = 5.0
_REMEMBERED = 512


class Line(NamedTuple):
    """A line that is not blank, without blanks around it; `number` counts all, from 1."""

    number: int
    text: str


class Key(NamedTuple):
    """A line that was taken, and what `ssh-keygen` knows of it.

    Without a `fingerprint` it refused the line, or was not to be had: then it is not `judged`.
    """

    line: str
    judged: bool = False
    kind: str = ""
    bits: int = 0
    fingerprint: str = ""

    @property
    def algorithm(self) -> str:
        """Its first word."""
        return self.line.split(" ", 1)[0]

    @property
    def comment(self) -> str:
        """What stands behind the key itself."""
        return " ".join(self.line.split()[2:])

    @property
    def doubtful(self) -> bool:
        """Whether `ssh-keygen` refused it."""
        return self.judged and not self.fingerprint


def lines(text: str) -> Iterator[Line]:
    """The lines of a text area, which end at a line feed and nowhere else."""
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), start=1):
        if stripped := line.strip(_BLANKS):
            yield Line(number, stripped)


def is_private(line: str) -> bool:
    """Whether a line looks like one of a private key, wherever in the line that begins."""
    if not line.startswith("M") and not any(word in line for word in _PRIVATE_WORDS):
        return False
    return _PRIVATE.search(line) is not None


def check_line(line: str) -> None:
    """Refuse what is no line for `authorized_keys`; raises `ValueError`, without the line."""
    if (wrong := wrong_with(line)) is not None:
        raise ValueError(str(wrong))


def wrong_with(line: str) -> Sentence | None:
    """What is wrong with a line without blanks around it; None when it may be stored."""
    if len(line) > LONGEST_LINE:
        return Sentence("it is too long")
    if is_private(line):
        return Sentence("it looks like a private key")
    if not _is_printable(line):
        return Sentence("it contains a character that no key has")
    if _is_piece(line):
        return Sentence("it may be part of a private key, so it is not shown again")
    if not line.startswith(PREFIXES):
        return Sentence("it must start with the type of the key, such as ssh-ed25519")
    if len(line.split(None, 1)) < 2:
        return Sentence("the key is missing after its type")
    return None


def _is_printable(line: str) -> bool:
    # So looked at, the most keys that there may be take a fifth of the time.
    if line.isascii():
        return not line.encode().translate(None, _PRINTABLE)
    return line.replace("\t", " ").isprintable()


def private_among(found: Sequence[Line]) -> Sentence | None:
    """Which of the lines begins a private key; None when none does."""
    number = next((line.number for line in found if is_private(line.text)), None)
    if number is None:
        return None
    return Sentence(
        "Line {number} looks like a private key. Do not paste private keys.", number=number
    )


def wrong_among(found: Sequence[Line]) -> Sentence | None:
    """Which of the lines may not be stored; None when all may be."""
    wrong = [(line.number, why) for line in found if (why := wrong_with(line.text)) is not None]
    if len(wrong) == 1:
        number, why = wrong[0]
        return Sentence(
            "Line {number} is not an SSH public key: {because}", number=number, because=why
        )
    if wrong:
        numbers = listed([str(number) for number, _ in wrong[:_MOST_NAMED]])
        if len(wrong) > _MOST_NAMED:
            return Sentence(
                "Lines {numbers} and {count} more are not SSH public keys",
                numbers=numbers,
                count=len(wrong) - _MOST_NAMED,
            )
        return Sentence("Lines {numbers} are not SSH public keys", numbers=numbers)
    return None


def without_private(text: str) -> str:
    """What of a text may be shown again.

    Of one that holds a private key, these are the lines alone that may be stored.
    """
    found = [line for _, line in lines(text)]
    if any(map(is_private, found)):
        return "\n".join(line for line in found if wrong_with(line) is None)
    if any(map(_is_piece, found)):
        return "\n".join(line for line in found if not _is_piece(line))
    return text


def stored(accepted: Iterable[str]) -> tuple[str, ...]:
    """Lines as they are stored: each key once, in the order of their first lines."""
    keys: dict[tuple[str, ...], str] = {}
    for line in accepted:
        keys.setdefault(tuple(line.split()[:2]), line.replace("\t", " "))
    return tuple(keys.values())


def examined(accepted: Iterable[str]) -> Iterator[Key]:
    """What `ssh-keygen` knows of each line; past five seconds, no more is asked."""
    deadline = time.monotonic() + _LIMIT_S
    for line in accepted:
        key = Key(line)
        if time.monotonic() < deadline:
            try:
                key = _examined(line)
            except ProcessError:
                deadline = 0.0
        yield key


@lru_cache(_REMEMBERED)
def _examined(line: str) -> Key:
    """One line for each call: of several, it passes over those that it refuses."""
    done = processes.run(
        ("ssh-keygen", "-l", "-f", "-"), stdin=line.encode() + b"\n", timeout_s=_LIMIT_S
    )
    if done.status < 0:
        raise ProcessError("ssh-keygen was ended")
    found = _LISTED.fullmatch(done.output) if done.status == 0 else None
    if found is None:
        return Key(line, judged=True)
    fingerprint, kind = found["print"].decode(), found["kind"].decode()
    return Key(line, True, kind, int(found["bits"]), fingerprint)


def _is_piece(line: str) -> bool:
    """Whether a line may be from the middle of a private key; no line of its own is one."""
    return _PIECE.fullmatch(line) is not None and not line.startswith("AAAA")
