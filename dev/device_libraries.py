"""The libraries of a device without what only those who develop with them need.

`python3 -m dev.device_libraries FOLDER` tidies a folder that pip has filled.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from platform_common.web.language import LANGUAGES

# Whole projects: Debian has the time zones, and keeps them up to date; and rich shows no
# program text of ours, in colours or without.
_PROJECTS = ("tzdata", "tzdata-*.dist-info", "pygments", "pygments-*.dist-info")
_TESTS = ("*/tests",)
# Sources of modules that are compiled, types for type checkers.
_FILES = ("**/*.c", "**/*.h", "**/*.pyi", "**/*.pyx", "**/py.typed")
# What pip needs to install or remove; who asks for a version or an entry point reads the rest.
_NOTES = ("INSTALLER", "RECORD", "REQUESTED", "WHEEL", "direct_url.json", "top_level.txt")
_LOCALES = "babel/locale-data/*.dat"


def unneeded(libraries: Path) -> Iterator[Path]:
    """Files and folders that no program of a device opens."""
    yield libraries / "bin"
    for pattern in (*_PROJECTS, *_TESTS, *_FILES):
        yield from libraries.glob(pattern)
    for note in _NOTES:
        yield from libraries.glob(f"*.dist-info/{note}")
    for locale in libraries.glob(_LOCALES):
        # What a language does not say itself it has from the root.
        if locale.stem.partition("_")[0] not in {*LANGUAGES, "root"}:
            yield locale


def main(libraries: Path) -> None:
    """Remove them all; no module that is left is a program."""
    for path in [*unneeded(libraries)]:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    for module in libraries.rglob("*.py"):
        text = module.read_bytes()
        if text.startswith(b"#!"):
            # The line stays, empty, so that all others keep their numbers.
            module.write_bytes(text[text.index(b"\n") :])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
