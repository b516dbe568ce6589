"""Work in a process of its own, so that the memory that it needs is given back."""

from __future__ import annotations

import os
from collections.abc import Callable


def done_aside(work: Callable[[], object]) -> None:
    """Do `work` in a copy of this process, which has one thread.

    It must be work that may be done twice: what it could not do there is done here, and
    raises here what it raises.
    """
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        finally:
            # Nothing of what called us is left to the copy.
            os._exit(status)
    _, ended = os.waitpid(child, 0)
    if ended:
        work()
