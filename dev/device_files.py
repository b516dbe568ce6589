"""What a device has of us beside the libraries: programs, manual pages, completions.

`python3 -m dev.device_files ROOT` puts them below ROOT. The Debian package is made with it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from dev.manual import page

LIBRARIES = "/usr/lib/platform-appliance"
# Program to the module that holds its `main` and `program`.
PROGRAMS = {
    "platformctl": "platformctl.cli",
    "pwa-app": "pwa_app.cli",
    "release-tools": "release_tools.cli",
    "wizard-app": "wizard_app.cli",
}
# Without the variables, folders and packages of whoever starts it: what is shipped, and
# Python's own library, are all that it can import.
_LAUNCHER = """#!/usr/bin/python3 -IS
import sys
sys.path.insert(0, {libraries!r})
from {module} import program
program()
"""
# Shell to where it looks for what completes a program.
_COMPLETIONS = {
    "bash": "usr/share/bash-completion/completions/{program}",
    "fish": "usr/share/fish/vendor_completions.d/{program}.fish",
    "zsh": "usr/share/zsh/vendor-completions/_{program}",
}


def device_files(moment: int) -> Iterator[tuple[str, int, str]]:
    """Each file: its path below the root, its mode, and its text."""
    for program, module in PROGRAMS.items():
        main = import_module(module).main
        launcher = _LAUNCHER.format(libraries=LIBRARIES, module=module)
        yield f"usr/bin/{program}", 0o755, launcher
        yield f"usr/share/man/man1/{program}.1", 0o644, page(program, main, moment)
        for shell, place in _COMPLETIONS.items():
            yield place.format(program=program), 0o644, _completion(shell, program, main)


def _completion(shell: str, program: str, main: click.Group) -> str:
    """The script that completes a program, as click generates it."""
    generator = get_completion_class(shell)
    assert generator is not None
    variable = f"_{program}_COMPLETE".replace("-", "_").upper()
    return generator(main, {}, program, variable).source().strip() + "\n"


def main(root: Path) -> None:
    """Write all files below `root`, with the time that SOURCE_DATE_EPOCH says."""
    for place, mode, text in device_files(int(os.environ["SOURCE_DATE_EPOCH"])):
        path = root / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        path.chmod(mode)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
