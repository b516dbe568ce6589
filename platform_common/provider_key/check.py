"""The key test: whether a provider accepts a key.

Every message is a sentence of ours, without the key in any form.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

from platform_common.errors import PlatformError
from platform_common.message import Sentence
from platform_common.net.client import Answer, Bounds, fetch
from platform_common.net.connect import RefusedAddressError
from platform_common.provider_key.request import KeyRequest, build_request
from platform_common.provider_key.result import Outcome, outcome, verdict
from platform_common.records.catalogue import Provider
from platform_common.secret import Secret

LIMIT_S = 10.0
_AT_ONCE = 4
_PATIENCE_S = 2.0
_OTHER_ADDRESS = Sentence("Enter the provider's address.")
_slots = threading.BoundedSemaphore(_AT_ONCE)


class BusyError(PlatformError):
    """The maximum number of key tests is already running."""


def check_key(
    provider: Provider,
    credentials: Mapping[str, Secret],
    *,
    endpoint: str = "",
    model: str = "",
    limit_s: float = LIMIT_S,
    ca_file: Path | None = None,
) -> Outcome:
    """Ask `provider` whether it accepts `credentials` (values by variable), within `limit_s`.

    `endpoint` replaces the provider's own. Every failure is a result that is not ok; raises only
    `BusyError`, if four tests are running and none ends within two seconds.
    """
    began = time.monotonic()
    request = None
    try:
        request = build_request(provider, credentials, endpoint=endpoint, model=model)
        answer = _answer(request, began + limit_s, ca_file)
        found = verdict(provider, credentials, request, answer)
    except BusyError:
        raise
    except RefusedAddressError as error:
        found = outcome(error.said, _OTHER_ADDRESS)
    except PlatformError as error:
        found = outcome(error.said, error.advice)
    check = msgspec.structs.replace(
        found.check,
        elapsed_ms=round((time.monotonic() - began) * 1000),
        endpoint=request.endpoint if request else "",
    )
    return found._replace(check=check)


def _answer(request: KeyRequest, deadline: float, ca_file: Path | None) -> Answer:
    if not _slots.acquire(timeout=_PATIENCE_S):
        raise BusyError(
            Sentence("Other keys are being tested"), hint=Sentence("Try again in a few seconds.")
        )
    try:
        limit_s = deadline - time.monotonic()
        bounds = Bounds(limit_s=limit_s, ca_file=ca_file)
        return fetch(request.url, request.headers, bounds)
    finally:
        _slots.release()
