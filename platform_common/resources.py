"""Files shipped in the package: schemas, data, templates."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

from platform_common import data


def schema(name: str) -> dict[str, Any]:
    """Return the parsed JSON Schema `schemas/<name>.schema.json`."""
    text = (_folder("platform_common.schemas") / f"{name}.schema.json").read_text("utf-8")
    return cast("dict[str, Any]", json.loads(text))


def data_path(name: str) -> Path:
    """The path of the shipped data file or folder `name`."""
    return Path(data.__path__[0]) / name


def templates() -> Path:
    """The folder of the templates."""
    return _folder("platform_common.templates")


def compiled_templates() -> Path:
    """The folder of the templates compiled to Python modules, if the package has them."""
    return templates() / "compiled"


def units() -> Path:
    """The folder of the systemd units and of the definitions of their users and folders."""
    return _folder("platform_common.systemd")


def _folder(package: str) -> Path:
    # Imported here: at the top it makes `platformctl version` miss its benchmark.
    from importlib.resources import files

    return Path(str(files(package)))
