"""TOML text of plain values, for tests that make records up."""

from __future__ import annotations

import json
from typing import Any


def toml(document: Any) -> str:
    """`document` as TOML: tables at the top, whatever they hold as inline values."""
    return "".join(f"{_key(name)} = {_value(value)}\n" for name, value in document.items())


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(name)} = {_value(v)}" for name, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, str):
        # A string of JSON is one of TOML, but for two escapes that TOML writes differently.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return json.dumps(value)


def _key(name: str) -> str:
    return json.dumps(name)
