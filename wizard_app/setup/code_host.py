"""Fetches a user's public SSH keys from a code host: `https://github.com/<user>.keys`."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import NamedTuple

from platform_common.errors import PlatformError
from platform_common.message import Sentence
from platform_common.net.client import Answer, Bounds, fetch, server_of
from platform_common.net.errors import TooLongAnswerError
from platform_common.validation import check_base_url, passes
from wizard_app.setup import ssh_keys

LIMIT_S = 10.0
LIMIT_BYTES = 64 << 10
# No slash, `.` or `..`: it becomes a part of a path.
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,38}")
_AT_ONCE = 4
_VARIABLE = "WIZARD_CODE_HOST"
_NAMES = {"github.com": "GitHub", "gitlab.com": "GitLab", "codeberg.org": "Codeberg"}
_HEADERS = {"User-Agent": "platform-wizard", "Accept": "text/plain"}
_slots = threading.BoundedSemaphore(_AT_ONCE)


class Fetched(NamedTuple):
    """Keys without duplicates, and the number of lines left out as invalid or too many."""

    keys: tuple[str, ...]
    left_out: int


def name_of(base: str) -> str:
    """The name of the code host at `base`, for people."""
    if not passes(check_base_url, base):
        return _VARIABLE
    server = server_of(base)
    return _NAMES.get(server, server)


def fetch_keys(
    base: str, user: str, *, limit_s: float = LIMIT_S, ca_file: Path | None = None
) -> Fetched | Sentence:
    """Fetch the keys of `user` from the code host at `base`, or return why there are none.

    No request is made for an impossible user name.
    """
    try:
        check_base_url(base)
    except ValueError as error:
        return Sentence("The address in {name} cannot be used: it {why}", name=_VARIABLE, why=error)
    host = name_of(base)
    if not _USER.fullmatch(user):
        return Sentence("Enter a {host} user name with only letters, digits and . _ -", host=host)
    if not _slots.acquire(blocking=False):
        return Sentence("Other keys are being fetched. Try again in a few seconds.")
    try:
        url = f"{base.rstrip('/')}/{user}.keys"
        bounds = Bounds(limit_s=limit_s, limit_bytes=LIMIT_BYTES, ca_file=ca_file)
        answer = fetch(url, _HEADERS, bounds)
    except TooLongAnswerError:
        return Sentence("{host} sent a response that is too large", host=host)
    except PlatformError as error:
        return Sentence("The keys could not be fetched: {reason}", reason=error.said)
    finally:
        _slots.release()
    return _read(answer, host, user)


def _read(answer: Answer, host: str, user: str) -> Fetched | Sentence:
    if answer.status == 404:
        return Sentence("{host} has no user called {user}", host=host, user=user)
    if 300 <= answer.status < 400:
        return Sentence(
            "{host} redirects elsewhere for {user}, and redirects are not followed: check the name",
            host=host,
            user=user,
        )
    if answer.status != 200:
        return Sentence(
            "{host} answered with HTTP {status}: try again later", host=host, status=answer.status
        )
    found = [line for _, line in ssh_keys.lines(answer.body.decode(errors="replace"))]
    if not found:
        return Sentence("{user} has no public keys on {host}", host=host, user=user)
    fit = [line for line in found if ssh_keys.wrong_with(line) is None]
    if not fit:
        return Sentence("{host} sent something other than public keys", host=host)
    keys = ssh_keys.stored(fit)
    left_out = len(found) - len(fit) + len(keys[ssh_keys.MOST_KEYS :])
    return Fetched(keys[: ssh_keys.MOST_KEYS], left_out)
