"""How gunicorn serves our apps: `gunicorn -c python:platform_common.web.gunicorn_conf APP`.

One process, as what is kept in memory is in one place; more threads than
connections, as a slow client holds a thread (ADR 18).
"""

from __future__ import annotations

from typing import Any

wsgi_app = ""
bind = ["127.0.0.1:8089"]
workers = 1
worker_class = "gthread"
threads = 1024
worker_connections = 1100
keepalive = 5
graceful_timeout = 15
limit_request_line = 4094
limit_request_fields = 100
limit_request_field_size = 8190
control_socket_disable = True
# The access log would hold what is in queries.
accesslog = None
errorlog = "-"
loglevel = "warning"


def on_starting(server: Any) -> None:
    """Refuse more workers, whoever asks for them."""
    if server.cfg.workers != 1:
        raise RuntimeError("this app keeps state in memory: run it with one worker")
