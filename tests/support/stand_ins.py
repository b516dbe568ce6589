"""The stand-in for a gateway, running in this process."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from dev.gateway import Gateway, Manner


@contextlib.contextmanager
def stand_in(**manner: Any) -> Iterator[str]:
    """The address of a stand-in that behaves so (`dev.gateway.Manner`), while the block lasts."""
    with Gateway("127.0.0.1", 0, Manner(**({"pause_s": 0} | manner))) as gateway:
        thread = threading.Thread(target=gateway.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield gateway.url
        finally:
            gateway.shutdown()
            thread.join()
