"""gunicorn's log as we keep it: one line an event, and nothing of what a request held."""

from __future__ import annotations

import re
import sys
from typing import Any

from gunicorn.glogging import Logger

from platform_common.errors import PlatformError
from platform_common.web.traceback_summary import places

# gunicorn goes on with the line or header that it refused.
_REFUSED = re.compile(r"Invalid request from ip=\S*: [A-Za-z -]*")


class OneLineLog(Logger):  # type: ignore[misc]  # gunicorn has no types
    """The log of gunicorn's events."""

    def warning(self, msg: str, *args: Any, **options: Any) -> None:
        """Log a warning; of a request that was refused only from where and why."""
        refused = _REFUSED.match(msg)
        if refused:
            msg, args = "%s", (refused[0].rstrip(": "),)
        super().warning(msg, *args, **options)

    def exception(self, msg: str, *args: Any, **options: Any) -> None:
        """Log the exception that is being handled by its kind and its places."""
        error = sys.exception()
        # The words before the first value, as one of them is a request's address.
        self.error(
            "%s: %s in %s",
            msg.partition("%")[0].strip(),
            _kind(error),
            places(error) if error else "",
        )


def _kind(error: BaseException | None) -> str:
    # Their messages are ours, or name a module.
    is_safe = isinstance(error, PlatformError | ImportError)
    return f"{type(error).__name__} ({error})" if is_safe else type(error).__name__
