"""The closed sets of words."""

from __future__ import annotations

import subprocess
import sys

from platform_common.resources import data_path
from release_tools.building.naming import target_matrix
from release_tools.manifest.vocabulary import FORMATS


def test_no_format_ends_with_another_format() -> None:
    for one in FORMATS:
        assert not any(other.endswith(f".{one}") for other in FORMATS)


def test_the_shipped_target_matrix_matches_the_contract() -> None:
    assert target_matrix(data_path("targets.toml")) == {
        **dict.fromkeys(("qemu-aarch64", "qemu-x86_64", "oracle-arm-free", "macos-qemu"), "qcow2"),
        **dict.fromkeys(("rpi5", "rpi4", "arm64-generic", "x86_64-mini-pc"), "img.xz"),
        "wsl2": "tar.gz",
        "digitalocean": "do-snapshot",
        "fly-machines": "oci",
    }


def test_importing_the_vocabulary_imports_nothing_else() -> None:
    program = (
        "import sys; before = set(sys.modules); import release_tools.manifest.vocabulary;"
        "print(sorted(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", program],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert done.stdout.strip() == (
        "['release_tools', 'release_tools.manifest', 'release_tools.manifest.vocabulary']"
    )
