"""How gunicorn serves our apps: `gunicorn -c python:platform_common.web.gunicorn_conf APP`.

One process, as what is kept in memory is in one place; more threads than
slow clients, as each of them holds a thread (ADR 18).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from typing import Any

from platform_common.web.serving.gunicorn_log import OneLineLog

bind = ["127.0.0.1:8089"]
workers = 1
worker_class = "platform_common.web.serving.worker.Worker"
threads = 1024
# What is above the number of threads may be kept alive between two requests.
worker_connections = 1100
keepalive = 5
graceful_timeout = 15
limit_request_line = 4094
limit_request_fields = 100
limit_request_field_size = 8190
# A proxy may tell the scheme, and nothing else.
forwarder_headers = ""
control_socket_disable = True
# Where its processes tell each other that they live: in memory, as a disk may be full,
# slow, or not writable at all. None is the folder for temporary files.
_IN_MEMORY = "/dev/shm"  # noqa: S108 - gunicorn makes a file of a random name there, and unlinks it
worker_tmp_dir = _IN_MEMORY if os.access(_IN_MEMORY, os.W_OK) else None
# The access log would hold what is in queries.
accesslog = None
errorlog = "-"
loglevel = "warning"
logger_class = OneLineLog

# Of mallopt(3): how many heaps threads may spread over. The usual eight for each core
# hold many megabytes that each has freed, and our threads take turns anyhow.
_M_ARENA_MAX, _ARENAS = -8, 2

ONE_WORKER = "This app keeps state in memory: run it with one worker"


def on_starting(server: Any) -> None:
    """Refuse more workers, whoever asks for them."""
    if server.cfg.workers != 1:
        raise RuntimeError(ONE_WORKER)


def post_fork(server: Any, worker: Any) -> None:
    """Keep the memory of many threads together, before there are any."""
    # Only glibc has heaps of this kind.
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _ARENAS)


def nworkers_changed(server: Any, new: int, old: int | None) -> None:
    """Stay with one worker when a signal (SIGTTIN) asks for another."""
    if old is not None and new != 1:
        server.num_workers = 1
