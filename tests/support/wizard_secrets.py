"""The secrets that a wizard holds, and whether they occur where they must not."""

from __future__ import annotations

import base64
import html
import json
from pathlib import Path
from urllib.parse import quote

from flask.testing import FlaskClient


def held(client: FlaskClient, slug: str) -> dict[str, str]:
    """The secrets that the wizard of `client` holds for a step."""
    wizard = client.application.extensions["wizard_app"]
    secrets = wizard.snapshot().pending.of(slug).secrets
    return {name: secret.reveal() for name, secret in secrets.items()}


def forms(secret: str) -> set[str]:
    """The forms in which a secret may occur: plain, and encoded."""
    data = secret.encode()
    return {
        secret,
        quote(secret, safe=""),
        html.escape(secret),
        json.dumps(secret)[1:-1],
        data.hex(),
        # The part of its base64 that is the same wherever it is in a longer text.
        *(base64.b64encode(bytes(at) + data)[4 if at else 0 : -4].decode() for at in range(3)),
    }


def found(secret: str, *texts: str | bytes) -> list[str]:
    """The forms of a secret that occur in one of the texts."""
    whole = "\n".join(
        text.decode("utf-8", "replace") if isinstance(text, bytes) else text for text in texts
    )
    return sorted(form for form in forms(secret) if form in whole)


def files(folder: Path) -> list[bytes]:
    """The content of every file in a folder, and their names."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return [str(paths).encode(), *(path.read_bytes() for path in paths)]
