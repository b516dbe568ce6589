"""The dashboard for a WSGI server: `gunicorn pwa_app.wsgi:app`."""

from __future__ import annotations

import os

from pwa_app.app import create_app
from pwa_app.settings import PwaSettings

app = create_app(PwaSettings.from_env(os.environ))
