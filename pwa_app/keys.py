"""To be filled."""

from __future__ import annotations

from flask import Blueprint

blueprint = Blueprint("keys", __name__)
