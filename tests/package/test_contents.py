"""The contents of the Debian package: every file in its place, and nothing superfluous."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dev.debian_package.deb import changelog
from dev.debian_package.device_files import PROGRAMS
from dev.distributions import ROOT
from platform_common.version import VERSION
from platformctl.services import install as services
from tests.support.debian_package import NAME, built_package, field, unpacked

LONG_S = 300
MOST_INSTALLED_KIB = 40 * 1024
PLACES = re.compile(
    r"etc/default/platform-appliance"
    r"|lib/systemd/system/platform-[a-z@-]+\.(path|service|socket)"
    r"|lib/systemd/system/nftables\.service\.d/50-platform\.conf"
    r"|usr/bin/(platformctl|pwa-app|release-tools|wizard-app)"
    r"|usr/lib/platform-appliance/.+"
    r"|usr/lib/(sysusers|tmpfiles)\.d/platform\.conf"
    r"|usr/lib/systemd/system-preset/50-platform\.preset"
    r"|usr/share/bash-completion/completions/[a-z-]+"
    r"|usr/share/fish/vendor_completions\.d/[a-z-]+\.fish"
    r"|usr/share/zsh/vendor-completions/_[a-z-]+"
    r"|usr/share/doc/platform-appliance/.+"
    r"|usr/share/lintian/overrides/platform-appliance"
    r"|usr/share/man/man1/[a-z-]+\.1\.gz"
)
DEVELOPERS = re.compile(r"__pycache__|\.pyc$|\.pyi$|\.[chx]$|/tests?/|/RECORD$|^usr/lib/[^/]+/bin/")


# Imports every module, so no import of a program is missing, not even one on demand.
IMPORT_ALL = """
import importlib, pkgutil, sys
sys.path.insert(0, sys.argv[1])
import platform_common, platformctl, pwa_app, release_tools, wizard_app
import rich.console, rich.progress
for package in (platform_common, platformctl, pwa_app, release_tools, wizard_app):
    assert package.__file__.startswith(sys.argv[1]), package.__file__
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        # The first two start an app; the third needs an extra that the package does not have.
        if module.name not in ("pwa_app.wsgi", "wizard_app.wsgi",
                               "release_tools.origins.object_origin"):
            importlib.import_module(module.name)
"""
SHOW_EVERY_TEMPLATE = """
import sys
sys.path.insert(0, sys.argv[1])
from jinja2 import Environment
from platform_common.resources import templates
from platform_common.web.factory import new_application
def compiles(*words, **options):
    raise AssertionError(words)
Environment.compile = compiles
environment = new_application("any", after_preferences="/").jinja_env
for path in templates().rglob("*.html"):
    print(environment.get_template(str(path.relative_to(templates()))).name)
"""
WRITE_IN_EVERY_LANGUAGE = """
import datetime, sys
sys.path[:0] = sys.argv[1:]
from platform_common.web.language import LANGUAGES, language
moment = datetime.datetime(2026, 11, 1, 8, 9)
for code in LANGUAGES:
    one = language(code)
    print(one.money(1234.5), one.money(0.001), one.number(12345.6), one.percent(81))
    print(one.day("2026-11-01"))
    print(one.moment(moment), one.time(moment), *map(one.duration, (59, 3600, 10**6, 10**9)))
"""


@pytest.fixture(scope="module")
def package() -> Path:
    """The Debian package of this checkout."""
    return built_package()


@pytest.fixture(scope="module")
def tree(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked files of the package, with dpkg's files in DEBIAN."""
    return unpacked(package, tmp_path_factory.mktemp("package") / "tree")


def files(tree: Path) -> Iterator[Path]:
    """Every file except those of dpkg."""
    for folder, _, names in os.walk(tree):
        if Path(folder).relative_to(tree).parts[:1] != ("DEBIAN",):
            yield from (Path(folder, name) for name in names)


def call(*argv: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a program on the files of the package; return the finished process."""
    return subprocess.run(
        argv,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8", **variables},
        capture_output=True,
        text=True,
        timeout=LONG_S,
        check=False,
    )


@pytest.mark.long
def test_the_package_has_this_version_and_depends_on_debians_python(package: Path) -> None:
    assert field(package, "Version") == VERSION
    needed = field(package, "Depends").split(", ")
    assert {"python3 (>= 3.11)", "python3 (<< 3.12)", "nftables", "systemd"} <= set(needed)
    assert any(one.startswith("libc6 (") for one in needed)


@pytest.mark.long
def test_it_is_small_once_installed(package: Path, tree: Path) -> None:
    assert int(field(package, "Installed-Size")) < MOST_INSTALLED_KIB
    used = sum(path.lstat().st_blocks * 512 for path in files(tree))
    assert used < MOST_INSTALLED_KIB * 1024


@pytest.mark.long
def test_lintian_finds_nothing(package: Path) -> None:
    checked = call("lintian", "--allow-root", "--fail-on", "error,warning", package)
    assert (checked.returncode, checked.stdout) == (0, ""), checked.stderr


@pytest.mark.long
def test_every_file_is_in_its_place_and_only_programs_are_executable(tree: Path) -> None:
    modes = {str(path.relative_to(tree)): path.lstat().st_mode for path in files(tree)}
    assert [name for name in modes if not PLACES.fullmatch(name)] == []
    assert [name for name in modes if DEVELOPERS.search(name)] == []
    runnable = {name for name, mode in modes.items() if mode & stat.S_IXUSR}
    assert runnable == {f"usr/bin/{program}" for program in PROGRAMS}


@pytest.mark.long
def test_only_root_can_write_the_files(package: Path) -> None:
    listed = call("dpkg-deb", "--contents", package).stdout.splitlines()
    # Links have no permissions of their own.
    rights = [line.split()[:2] for line in listed if not line.startswith("l")]
    assert {owner for _, owner in rights} == {"root/root"}
    assert {mode for mode, _ in rights} == {"drwxr-xr-x", "-rw-r--r--", "-rwxr-xr-x"}


@pytest.mark.long
def test_the_package_contains_no_path_of_the_build_machine(tree: Path) -> None:
    built = re.compile(rb"/platform-appliance/debian/|" + re.escape(bytes(ROOT)) + rb"/")
    named = [path for path in files(tree) if built.search(path.read_bytes())]
    assert named == []


@pytest.mark.long
def test_its_units_are_those_of_an_installation_without_a_package(tree: Path) -> None:
    for place, text in services.files(Path("/usr/bin")):
        below = "lib" if place.is_relative_to("systemd/system") else "usr/lib"
        assert (tree / below / place).read_bytes() == text


@pytest.mark.long
def test_a_program_imports_nothing_from_elsewhere(tree: Path) -> None:
    for program in PROGRAMS:
        first, *_ = (tree / "usr/bin" / program).read_text().splitlines()
        # Isolated: no variables, no folder of the caller, and no other packages.
        assert first == "#!/usr/bin/python3 -IS"


@pytest.mark.long
def test_a_program_finds_all_its_imports(tree: Path) -> None:
    libraries = tree / "usr/lib/platform-appliance"
    done = call("/usr/bin/python3", "-ISB", "-c", IMPORT_ALL, libraries)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.long
def test_templates_are_compiled_at_build_time(tree: Path) -> None:
    libraries = tree / "usr/lib/platform-appliance"
    done = call("/usr/bin/python3", "-ISB", "-c", SHOW_EVERY_TEMPLATE, libraries)
    shipped = [*(libraries / "platform_common/templates").rglob("*.html")]
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == len(shipped) > 0


@pytest.mark.long
def test_numbers_and_dates_are_formatted_as_with_the_whole_of_babel(tree: Path) -> None:
    libraries = tree / "usr/lib/platform-appliance"
    ours = call("/usr/bin/python3", "-ISB", "-c", WRITE_IN_EVERY_LANGUAGE, libraries)
    whole = call(sys.executable, "-c", WRITE_IN_EVERY_LANGUAGE)
    assert (ours.returncode, ours.stderr, ours.stdout) == (0, "", whole.stdout)


def test_its_changelog_is_ours_and_begins_with_this_version(tmp_path: Path) -> None:
    text = changelog((ROOT / "CHANGELOG.md").read_text("utf-8"), "Somebody <a@example.org>")
    assert text.startswith(f"{NAME} ({VERSION}) stable; urgency=medium\n\n  * ")
    (tmp_path / "changelog").write_text(text)
    read = call("dpkg-parsechangelog", "--file", tmp_path / "changelog", "--show-field", "Version")
    assert (read.stdout, read.stderr) == (f"{VERSION}\n", "")


def test_a_release_candidate_comes_before_its_release() -> None:
    text = changelog("## 2026.11.2-rc.1\n\n- `one`\n  of them\n\n", "Somebody <a@example.org>")
    assert text == (
        "platform-appliance (2026.11.2~rc.1) stable; urgency=medium\n\n  * one of them\n\n"
        " -- Somebody <a@example.org>  Mon, 02 Nov 2026 00:00:00 +0000\n"
    )


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.long
def test_a_manual_page_reads_well(tree: Path, program: str) -> None:
    page = tree / f"usr/share/man/man1/{program}.1.gz"
    shown = call("man", "--warnings=w", "--local-file", page, MANWIDTH="80")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert call("mandoc", "-T", "lint", "-W", "warning", page).stdout == ""
    headings = re.findall(r"^[A-Z][A-Z ]+$", shown.stdout, re.MULTILINE)
    assert headings == [
        *("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS"),
        *("COMMANDS", "EXIT STATUS", "FILES", "SEE ALSO"),
    ]


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.long
def test_bash_completes_a_command(tree: Path, program: str, tmp_path: Path) -> None:
    script = tree / f"usr/share/bash-completion/completions/{program}"
    function = f"_{program.replace('-', '_')}_completion"
    # Here the program's folder of libraries is elsewhere.
    (tmp_path / program).write_text(
        (tree / "usr/bin" / program)
        .read_text()
        .replace("'/usr/lib/", f"'{tree}/usr/lib/")
        .replace("-IS", "-ISB")
    )
    (tmp_path / program).chmod(0o755)
    ask = f'. "{script}"; COMP_WORDS=({program} ""); COMP_CWORD=1; {function} {program}; '
    done = call("bash", "-c", ask + 'echo "${COMPREPLY[*]}"', PATH=f"{tmp_path}:/usr/bin:/bin")
    assert done.stderr == ""
    assert set(done.stdout.split()) & {"status", "serve", "verify"}


@pytest.mark.long
def test_other_shells_have_a_completion_for_each_program(tree: Path) -> None:
    for shell in ("fish/vendor_completions.d", "zsh/vendor-completions"):
        found = {path.stem.removeprefix("_") for path in (tree / "usr/share" / shell).iterdir()}
        assert found == set(PROGRAMS)


@pytest.mark.long
def test_its_settings_are_commented_out_by_default(tree: Path) -> None:
    settings = (tree / "etc/default/platform-appliance").read_text()
    assert [line for line in settings.splitlines() if line and not line.startswith("#")] == []
    assert (tree / "DEBIAN/conffiles").read_text() == "/etc/default/platform-appliance\n"
