"""Lines of `authorized_keys`: which are accepted, and what `ssh-keygen` says about them."""

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
# A key starts with exactly one of these (docs/reference/wizard-steps.md, "SSH keys").
PREFIXES = (
    *("ssh-rsa ", "ssh-ed25519 ", "ssh-ecdsa"),
    *("ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521"),
    *("sk-ssh-ed25519@openssh.com", "sk-ecdsa-sha2-nistp256@openssh.com"),
)
_BLANKS = " \t"
_PRINTABLE = bytes(range(0x20, 0x7F)) + b"\t"
# How private keys start: PEM and SSH2, PuTTY, age; and without their first line, the contents
# of an OpenSSH key and of a PEM one, which is a DER sequence.
_PRIVATE = re.compile(
    r"BEGIN [A-Z0-9 ]*PRIVATE KEY|PuTTY-User-Key-File|Private-(?:Lines|MAC|Hash):|AGE-SECRET-KEY-"
    r"|b3BlbnNzaC1rZXktdjE|^M[A-P][A-Za-z0-9+/]{40}"
)
# A cheap test first: all of these contain one of the words or start with M.
_PRIVATE_WORDS = ("PRIVATE KEY", "PuTTY-User-Key-File", "Private-", "AGE-SECRET", "b3BlbnNzaC1r")
_PIECE = re.compile(r"[A-Za-z0-9+/]{40,}={0,2}")
_MOST_NAMED = 5
# `ssh-keygen -l`: bits, fingerprint, comment, kind.
_LISTED = re.compile(rb"(?P<bits>[0-9]+) (?P<print>SHA256:[A-Za-z0-9+/]+) .*\((?P<kind>[!-~]+)\)\n")
_LIMIT_S = 5.0
_REMEMBERED = 512


class Line(NamedTuple):
    """A stripped line that is not blank; `number` counts all lines, from 1."""

    number: int
    text: str


class Key(NamedTuple):
    """An accepted line, and what `ssh-keygen` says about it.

    Without a `fingerprint`, `ssh-keygen` refused the line, or could not be run: then it is not
    `judged`.
    """

    line: str
    judged: bool = False
    kind: str = ""
    bits: int = 0
    fingerprint: str = ""

    @property
    def algorithm(self) -> str:
        """The first word of the key."""
        return self.line.split(" ", 1)[0]

    @property
    def comment(self) -> str:
        """The comment after the key."""
        return " ".join(self.line.split()[2:])

    @property
    def doubtful(self) -> bool:
        """Whether `ssh-keygen` refused it."""
        return self.judged and not self.fingerprint


def lines(text: str) -> Iterator[Line]:
    """The lines of a text area, which only a line feed ends."""
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), start=1):
        if stripped := line.strip(_BLANKS):
            yield Line(number, stripped)


def is_private(line: str) -> bool:
    """Whether a line contains the start of a private key, anywhere in the line."""
    if not line.startswith("M") and not any(word in line for word in _PRIVATE_WORDS):
        return False
    return _PRIVATE.search(line) is not None


def check_line(line: str) -> None:
    """Check a line for `authorized_keys`; raises `ValueError`, which does not contain the line."""
    if (wrong := wrong_with(line)) is not None:
        raise ValueError(str(wrong))


def wrong_with(line: str) -> Sentence | None:
    """What is wrong with a stripped line; None if it may be stored."""
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
    # This shortcut makes checking the most keys that a form may have five times as fast.
    if line.isascii():
        return not line.encode().translate(None, _PRINTABLE)
    return line.replace("\t", " ").isprintable()


def private_among(found: Sequence[Line]) -> Sentence | None:
    """The error for the first line that starts a private key, if any."""
    number = next((line.number for line in found if is_private(line.text)), None)
    if number is None:
        return None
    return Sentence(
        "Line {number} looks like a private key. Do not paste private keys.", number=number
    )


def wrong_among(found: Sequence[Line]) -> Sentence | None:
    """The error for the lines that may not be stored, if any."""
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
    """The part of a text that may be shown again.

    If it contains a private key, only the lines that may be stored.
    """
    found = [line for _, line in lines(text)]
    if any(map(is_private, found)):
        return "\n".join(line for line in found if wrong_with(line) is None)
    if any(map(_is_piece, found)):
        return "\n".join(line for line in found if not _is_piece(line))
    return text


def stored(accepted: Iterable[str]) -> tuple[str, ...]:
    """Lines as they are stored: each key once, in the order of first appearance."""
    keys: dict[tuple[str, ...], str] = {}
    for line in accepted:
        keys.setdefault(tuple(line.split()[:2]), line.replace("\t", " "))
    return tuple(keys.values())


def examine(accepted: Iterable[str]) -> Iterator[Key]:
    """Run `ssh-keygen` on each line, for at most five seconds in all."""
    deadline = time.monotonic() + _LIMIT_S
    for line in accepted:
        key = Key(line)
        if time.monotonic() < deadline:
            try:
                key = _examined(line)
            except ProcessError:
                deadline = 0.0
        yield key


# Remembered, because each page about the keys examines them again.
@lru_cache(_REMEMBERED)
def _examined(line: str) -> Key:
    """One call for each line, because in a longer file it silently skips bad lines."""
    done = processes.run(
        ("ssh-keygen", "-l", "-f", "-"), stdin=line.encode() + b"\n", timeout_s=_LIMIT_S
    )
    if done.status < 0:
        raise ProcessError("ssh-keygen was stopped")
    found = _LISTED.fullmatch(done.output) if done.status == 0 else None
    if found is None:
        return Key(line, judged=True)
    fingerprint, kind = found["print"].decode(), found["kind"].decode()
    return Key(line, True, kind, int(found["bits"]), fingerprint)


def _is_piece(line: str) -> bool:
    """Whether a line may be from the middle of a private key; no valid public key is."""
    return _PIECE.fullmatch(line) is not None and not line.startswith("AAAA")
