"""Serves the wizard: certificate, launch token, then gunicorn."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import msgspec

from platform_common.errors import PlatformError
from platform_common.net.connect import own_addresses
from platform_common.storage.atomic_write import make_folder
from platform_common.storage.file_lock import LockedError, hold, open_lock
from platform_common.storage.safe_read import close
from platform_common.web.serving.listening import addresses
from platform_common.web.serving.server import serve
from wizard_app.access import tls
from wizard_app.access.sessions import new_token
from wizard_app.app import create_app
from wizard_app.launch import launch_url
from wizard_app.setup import serving_file
from wizard_app.setup.serving_file import Serving
from wizard_app.setup.settings import WizardSettings

# If the server was killed, its worker ends by itself, but keeps the lock until then.
_WAIT_S = 5.0


class Certificate(NamedTuple):
    """PEM files; without `key`, the first one has both."""

    file: Path
    key: Path | None = None


def serve_wizard(
    settings: WizardSettings,
    bind: str,
    given: Certificate | None,
    show: Callable[[Serving, str], None],
) -> NoReturn:
    """Serve the wizard until a signal ends this process.

    `given` is the certificate to use; in production one is made unless there is one, or a proxy
    provides https. `show` gets the launch token once it is written. Raises `PlatformError`.
    """
    # Before anything is written, because another program may already listen there.
    served = addresses(bind)
    with _alone(settings.token_file):
        _serve(settings, served, given, show)


def _serve(
    settings: WizardSettings,
    served: Sequence[str],
    given: Certificate | None,
    show: Callable[[Serving, str], None],
) -> NoReturn:
    used = given or _own_certificate(settings)
    gunicorn: dict[str, Any] = {}
    if not settings.behind_proxy:
        # Clients' headers must not decide whether a request came over https.
        gunicorn["secure_scheme_headers"] = {}
    bind = " ".join(served)
    serving = Serving(
        os.getpid(),
        _bases(settings, served, "http" if used is None else "https"),
        bind=bind,
        behind_proxy=settings.behind_proxy,
    )
    if used is not None:
        gunicorn.update(tls.settings(*used))
        serving = msgspec.structs.replace(serving, fingerprint=tls.fingerprint(used.file))
    token = (settings.token or new_token()) if settings.require_token else ""
    with launch_url.announced(settings.token_file, serving):
        app = create_app(msgspec.structs.replace(settings, token=token, bind=bind))
        show(serving, token)
        # More than one come from systemd, whose sockets replace this address.
        serve(app, served[0], settings=gunicorn)


@contextlib.contextmanager
def _alone(token_file: Path) -> Iterator[None]:
    """Keep any other wizard from setting up the same device until the block ends.

    Each would overwrite the other's answers. Unlike a PID file, a lock does not survive a power
    cut.
    """
    make_folder(token_file.parent)
    place = token_file.with_name(f".{token_file.name}.served.lock")
    # Opened read-only: a file open for writing would prevent remounting the disk read-only.
    descriptor = open_lock(place, os.O_RDONLY)
    try:
        try:
            hold(descriptor, place, wait_s=_WAIT_S)
        except LockedError as error:
            raise PlatformError(
                "Another wizard is already running for this device",
                hint="See its link with wizard-app launch-url, or end it first;"
                " another --dev-out is another device.",
            ) from error
        yield
    finally:
        close(descriptor)


def _own_certificate(settings: WizardSettings) -> Certificate | None:
    """The wizard's own certificate, made if necessary; None if it serves plain HTTP."""
    if not settings.production or settings.behind_proxy:
        return None
    # Loading it takes 60 ms; in dev mode the bench row "from the start to the first answer of
    # /healthz" would miss.
    from wizard_app.access.certificate import own_certificate

    reached = [*own_addresses(), *serving_file.interface_addresses()]
    return Certificate(own_certificate(settings.tls_folder, serving_file.machine_name(), reached))


def _bases(settings: WizardSettings, served: Sequence[str], scheme: str) -> tuple[str, ...]:
    """The base URLs of the launch URLs; behind a proxy, its allowed names."""
    if settings.behind_proxy:
        return tuple(f"https://{name}" for name in sorted(settings.allowed_hosts))
    return serving_file.all_bases(served, scheme)
