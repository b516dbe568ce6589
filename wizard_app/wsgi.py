"""The wizard for a WSGI server: `gunicorn wizard_app.wsgi:app`."""

from __future__ import annotations

import os

from wizard_app.app import create_app
from wizard_app.settings import WizardSettings

app = create_app(WizardSettings.from_env(os.environ))
