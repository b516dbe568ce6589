"""Work in a process of its own, so that the memory that it needs is given back."""

from __future__ import annotations

import os
from collections.abc import Callable


def begun_aside(work: Callable[[], object]) -> Callable[[], None]:
    """Begin `work` in a copy of this process, which has one thread; what is returned ends it.

    It must be work that may be done twice: what could not be done there is done here, and
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

    def end() -> None:
        _, ended = os.waitpid(child, 0)
        if ended:
            work()

    return end
