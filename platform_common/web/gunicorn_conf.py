"""gunicorn's settings for our apps: `gunicorn -c python:platform_common.web.gunicorn_conf APP`.

One process, because state is in memory; more threads than slow clients, because each slow
client occupies a thread (ADR 18).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from typing import Any

from platform_common import ports
from platform_common.web.serving.gunicorn_log import OneLineLog

bind = [f"127.0.0.1:{ports.DASHBOARD}"]
workers = 1
worker_class = "platform_common.web.serving.worker.Worker"
threads = 1024
# Connections beyond the number of threads can be idle between two requests.
worker_connections = 1100
# Long enough for the parts of a page, short enough that idle browsers do not fill the server.
keepalive = 5
graceful_timeout = 15
# gunicorn's own limits, written down because the memory limits of our units rely on them.
limit_request_line = 4094
limit_request_fields = 100
limit_request_field_size = 8190
# A proxy may only tell us the scheme.
forwarder_headers = ""
control_socket_disable = True
# Folder of gunicorn's heartbeat file: in memory, because a disk may be full, slow or read-only.
# None means the folder for temporary files.
_IN_MEMORY = "/dev/shm"  # noqa: S108 - gunicorn makes a file of a random name there, and unlinks it
worker_tmp_dir = _IN_MEMORY if os.access(_IN_MEMORY, os.W_OK) else None
# The access log would contain queries.
accesslog = None
errorlog = "-"
loglevel = "warning"
logger_class = OneLineLog

# M_ARENA_MAX of mallopt(3). The default of eight arenas per core keeps many megabytes of freed
# memory, and our threads run one at a time anyway.
_M_ARENA_MAX, _ARENAS = -8, 2

ONE_WORKER = "This app keeps state in memory: run it with one worker"


def on_starting(server: Any) -> None:
    """Refuse more than one worker, however it was configured."""
    if server.cfg.workers != 1:
        raise RuntimeError(ONE_WORKER)


def post_fork(server: Any, worker: Any) -> None:
    """Limit malloc's arenas before there are threads."""
    # Only glibc has arenas.
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _ARENAS)


def nworkers_changed(server: Any, new: int, old: int | None) -> None:
    """Stay with one worker if a signal (SIGTTIN) adds another."""
    if old is not None and new != 1:
        server.num_workers = 1
