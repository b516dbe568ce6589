"""Removes the parts of libraries that a device does not need, such as tests and types.

`python3 -m dev.debian_package.device_libraries FOLDER` tidies a folder that pip has filled.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from platform_common.web.language import LANGUAGES

# Whole projects: Debian has the time zones and updates them, and rich needs pygments only to
# highlight code.
_PROJECTS = ("tzdata", "tzdata-*.dist-info", "pygments", "pygments-*.dist-info")
_TESTS = ("*/tests",)
# Sources of modules that are compiled, types for type checkers.
_FILES = ("**/*.c", "**/*.h", "**/*.pyi", "**/*.pyx", "**/py.typed")
# Only pip reads these, to install or remove; programs read versions and entry points elsewhere.
_NOTES = ("INSTALLER", "RECORD", "REQUESTED", "WHEEL", "direct_url.json", "top_level.txt")
_LOCALES = "babel/locale-data/*.dat"


def unneeded(libraries: Path) -> Iterator[Path]:
    """Yield files and folders that no program of a device opens."""
    yield libraries / "bin"
    for pattern in (*_PROJECTS, *_TESTS, *_FILES):
        yield from libraries.glob(pattern)
    for note in _NOTES:
        yield from libraries.glob(f"*.dist-info/{note}")
    for locale in libraries.glob(_LOCALES):
        # A language inherits from the root what it does not define itself.
        if locale.stem.partition("_")[0] not in {*LANGUAGES, "root"}:
            yield locale


def main(libraries: Path) -> None:
    """Remove them all, and the shebang lines of the remaining modules."""
    for path in [*unneeded(libraries)]:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    for module in libraries.rglob("*.py"):
        text = module.read_bytes()
        if text.startswith(b"#!"):
            # Keep the line, empty, so that line numbers do not change.
            module.write_bytes(text[text.index(b"\n") :])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
