"""What ships inside the package: schemas, data files, templates."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

from platform_common import data


def schema(name: str) -> dict[str, Any]:
    """The JSON Schema `schemas/<name>.schema.json` as parsed JSON."""
    text = (_folder("platform_common.schemas") / f"{name}.schema.json").read_text("utf-8")
    return cast("dict[str, Any]", json.loads(text))


def data_path(name: str) -> Path:
    """Where the shipped data file or folder `name` lies."""
    return Path(data.__path__[0]) / name


def templates() -> Path:
    """The folder of the templates."""
    return _folder("platform_common.templates")


def compiled_templates() -> Path:
    """Where they are as Python modules, in a package that has them so."""
    return templates() / "compiled"


def units() -> Path:
    """The folder of the systemd units, and of the users and folders that they need."""
    return _folder("platform_common.systemd")


def _folder(package: str) -> Path:
    # Here, as the bench row of `platformctl version` misses with it.
    from importlib.resources import files

    return Path(str(files(package)))
