"""Releases with any manifest, signed as if it were correct."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from release_tools.signing.minisign import prehash
from release_tools.signing.secret_key import parse_secret_key, sign
from release_tools.signing.trusted_comment import render_comment
from tests.support.releases import KeyPair


def sign_bytes(data: bytes, key_pair: KeyPair, comment: str) -> bytes:
    """The signature file of `data` with that trusted comment."""
    key = parse_secret_key(key_pair.secret.read_bytes(), str)
    return sign(key, prehash(data), comment).render()


def sign_file(path: Path, key_pair: KeyPair, comment: str | None = None) -> None:
    """Write the signature of `path` beside it, by default with the correct comment."""
    said = render_comment(path.name, 1_700_000_000) if comment is None else comment
    signature = sign_bytes(path.read_bytes(), key_pair, said)
    path.with_name(f"{path.name}.minisig").write_bytes(signature)


def change_manifest(
    channel_dir: Path, key_pair: KeyPair, change: Callable[[dict[str, Any]], object]
) -> Path:
    """Change the manifest in `channel_dir` and sign it again; return its path."""
    path = channel_dir / "manifest.json"
    document = json.loads(path.read_bytes())
    change(document)
    path.write_text(json.dumps(document))
    sign_file(path, key_pair)
    return path
