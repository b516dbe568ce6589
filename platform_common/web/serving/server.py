"""Serves an app with gunicorn, in this process, with the settings of `gunicorn_conf`."""

from __future__ import annotations

import resource
import tempfile
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NoReturn

from flask import Flask
from gunicorn.app.base import BaseApplication
from gunicorn.arbiter import Arbiter

from platform_common.errors import AccessError, PlatformError, WrongUsageError
from platform_common.web import gunicorn_conf
from platform_common.web.serving.listening import addresses

# Descriptors reserved for calls of the control CLI and for the server's own files.
_SPARE_FILES = 256
# A connection, and the selector with which a gunicorn thread waits for it.
_FILES_PER_CONNECTION = 2
_NONE: Mapping[str, Any] = MappingProxyType({})


def serve(app: Flask, bind: str, *, settings: Mapping[str, Any] = _NONE) -> NoReturn:
    """Serve `app` on `bind` until a signal ends this process.

    Sockets passed by systemd replace `bind`. `GUNICORN_CMD_ARGS` may have further options of
    gunicorn, such as `--certfile`; `settings` are gunicorn settings that only the caller decides.
    Raises `WrongUsageError` and `AccessError` if serving is not possible.
    """
    server = _Server(app, addresses(bind), settings)
    if server.cfg.workers != 1:
        raise WrongUsageError(gunicorn_conf.ONE_WORKER)
    if server.cfg.worker_tmp_dir is None:
        _check_temporary()
    try:
        Arbiter(server).run()
    except (RuntimeError, ValueError) as error:
        raise PlatformError(f"The server did not start: {error}") from error
    raise SystemExit(0)


def _check_temporary() -> None:
    """Raise `AccessError` if gunicorn has no folder for its temporary file."""
    try:
        tempfile.gettempdir()
    except FileNotFoundError as error:
        raise AccessError(
            "There is no writable folder for temporary files",
            hint="Mount a tmpfs on /tmp, or on /dev/shm.",
        ) from error


class _Server(BaseApplication):  # type: ignore[misc]  # gunicorn has no types
    """gunicorn's application object, which gives it the settings and the app.

    gunicorn's own program would let modules in the current folder shadow installed ones, and read
    a settings file there.
    """

    def __init__(self, app: Flask, bind: list[str], settings: Mapping[str, Any]) -> None:
        self._app = app
        self._bind = bind
        self._settings = settings
        super().__init__()

    def load_config(self) -> None:
        for name, value in vars(gunicorn_conf).items():
            if name in self.cfg.settings:
                self.cfg.set(name, value)
        words = self.cfg.get_cmd_args_from_env()
        given: dict[str, Any] = vars(self.cfg.parser().parse_args(words))
        for name, value in given.items():
            if value is not None and name != "args":
                self.cfg.set(name, value)
        for name, value in self._settings.items():
            self.cfg.set(name, value)
        self._fit_descriptors()
        self.cfg.set("bind", self._bind)
        # The app is created before the fork, so that its errors appear before the fork.
        self.cfg.set("preload_app", True)

    def _fit_descriptors(self) -> None:
        """Limit connections to the available descriptors: gunicorn's worker ends if it runs out."""
        wanted = _SPARE_FILES + _FILES_PER_CONNECTION * self.cfg.worker_connections
        limit, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        if limit < wanted:
            limit = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, most))
        connections = max(8, (limit - _SPARE_FILES) // _FILES_PER_CONNECTION)
        if connections < self.cfg.worker_connections:
            self.cfg.set("worker_connections", connections)
            self.cfg.set("threads", min(self.cfg.threads, connections * 7 // 8))

    def load(self) -> Flask:
        return self._app
