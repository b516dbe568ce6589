"""The wizard for a WSGI server: `gunicorn wizard_app.wsgi:app`."""

from __future__ import annotations

import atexit
import os

import msgspec

from wizard_app.access.sessions import new_token
from wizard_app.access.token_file import TokenFile
from wizard_app.app import create_app
from wizard_app.setup.serving_file import Serving, ServingFile
from wizard_app.setup.settings import WizardSettings

_settings = WizardSettings.from_env(os.environ)
_token = _settings.token or new_token()
_mine = os.getpid()

app = create_app(msgspec.structs.replace(_settings, token=_token))
# The app does not know where the server listens.
ServingFile(_settings.token_file).write(Serving(_mine, behind_proxy=_settings.behind_proxy))


@atexit.register
def _clear() -> None:
    # Only this process removes the token: forked workers end earlier and are replaced.
    if os.getpid() == _mine:
        TokenFile(_settings.token_file).remove(_token)
        ServingFile(_settings.token_file).clear(_mine)
