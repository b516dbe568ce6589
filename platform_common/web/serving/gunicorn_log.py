"""gunicorn's log: one line for each event, without any content of a request."""

from __future__ import annotations

import re
import sys
from typing import Any

from gunicorn.glogging import Logger

from platform_common.errors import PlatformError
from platform_common.web.traceback_summary import places

# gunicorn's message continues with the refused line or header.
_REFUSED = re.compile(r"Invalid request from ip=\S*: [A-Za-z -]*")


class OneLineLog(Logger):  # type: ignore[misc]  # gunicorn has no types
    """The logger for gunicorn's events."""

    def warning(self, msg: str, *args: Any, **options: Any) -> None:
        """Log a warning; for a refused request, only its address and the reason."""
        refused = _REFUSED.match(msg)
        if refused:
            msg, args = "%s", (refused[0].rstrip(": "),)
        super().warning(msg, *args, **options)

    def exception(self, msg: str, *args: Any, **options: Any) -> None:
        """Log the current exception: its type and its places in the code."""
        error = sys.exception()
        # Only the text before the first value, because one value is the request's URL.
        self.error(
            "%s: %s in %s",
            msg.partition("%")[0].strip(),
            _kind(error),
            places(error) if error else "",
        )


def _kind(error: BaseException | None) -> str:
    # Their messages are our own, or name a module.
    is_safe = isinstance(error, PlatformError | ImportError)
    return f"{type(error).__name__} ({error})" if is_safe else type(error).__name__
