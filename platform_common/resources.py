"""What ships inside the package: schemas, data files."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any, cast


def schema(name: str) -> dict[str, Any]:
    """The JSON Schema `schemas/<name>.schema.json` as parsed JSON."""
    text = (files("platform_common.schemas") / f"{name}.schema.json").read_text("utf-8")
    return cast("dict[str, Any]", json.loads(text))


def data_path(name: str) -> Path:
    """Where the shipped data file or folder `name` lies."""
    return Path(str(files("platform_common.data") / name))
