"""Load on a server: clients that send requests continuously, and the results."""

from __future__ import annotations

import collections
import contextlib
import http.client
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

Connect = Callable[[], http.client.HTTPConnection]


@dataclass
class Results:
    """The results of the requests: complete responses, and the kinds of the others."""

    answered: int = 0
    longest_s: float = 0
    statuses: collections.Counter[int] = field(default_factory=collections.Counter)
    # By the class of the error.
    failed: collections.Counter[str] = field(default_factory=collections.Counter)


@contextlib.contextmanager
def load(connect: Connect, path: str, clients: int = 8) -> Iterator[Results]:
    """Let clients request a page until the block ends, half of them with keep-alive."""
    ended, over, lock = Results(), threading.Event(), threading.Lock()
    threads = [
        threading.Thread(target=_ask, args=(connect, path, number % 2 == 0, ended, over, lock))
        for number in range(clients)
    ]
    for thread in threads:
        thread.start()
    try:
        yield ended
    finally:
        over.set()
        for thread in threads:
            thread.join()


def _ask(
    connect: Connect,
    path: str,
    keeping: bool,
    ended: Results,
    over: threading.Event,
    lock: threading.Lock,
) -> None:
    connection = connect()
    while not over.is_set():
        began = time.monotonic()
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            # A response that is cut off raises an error.
            answer.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            with lock:
                ended.failed[type(error).__name__] += 1
            continue
        if not keeping:
            connection.close()
        with lock:
            ended.answered += 1
            ended.statuses[answer.status] += 1
            ended.longest_s = max(ended.longest_s, time.monotonic() - began)
    connection.close()
