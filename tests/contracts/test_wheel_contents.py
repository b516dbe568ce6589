"""The wheel contains the tracked files of the packages, and nothing else."""

from __future__ import annotations

import configparser
import fnmatch
import re
import tarfile
import zipfile
from pathlib import Path

import pytest

from dev.distributions import ROOT, Distributions, build_distributions, tracked_files

SHIPPED = re.compile(
    r".*\.(py|json|toml|html|css|js|svg|png|webp|po|conf|path|preset|service|socket)|.*/py\.typed"
)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Distributions:
    return build_distributions(tmp_path_factory.mktemp("distributions"))


@pytest.fixture(scope="module")
def settings() -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg", "utf-8")
    return parser


def folders(settings: configparser.ConfigParser) -> dict[str, str]:
    """Folder in the checkout to folder in the wheel, for every package."""
    mapped = dict(
        line.split(" = ") for line in settings["options"]["package_dir"].strip().splitlines()
    )
    packages = settings["options"]["packages"].split()
    return {
        mapped.get(package, package.replace(".", "/")): package.replace(".", "/")
        for package in packages
    }


def expected(settings: configparser.ConfigParser) -> set[str]:
    """The names in the wheel of the tracked files below the packages' folders."""
    names = set()
    for name in filter(SHIPPED.fullmatch, tracked_files()):
        for source in sorted(folders(settings), key=len, reverse=True):
            if name.startswith(f"{source}/"):
                names.add(folders(settings)[source] + name.removeprefix(source))
                break
    return names


def names_in(wheel: Path) -> set[str]:
    """The files in a wheel, without its metadata."""
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


@pytest.mark.long
def test_the_wheel_contains_the_tracked_files_of_the_packages_and_no_other_top_level_name(
    built: Distributions, settings: configparser.ConfigParser
) -> None:
    assert names_in(built.wheel) == expected(settings)
    tops = {"platform_common", "platformctl", "pwa_app", "release_tools", "wizard_app"}
    assert {name.split("/")[0] for name in names_in(built.wheel)} == tops


@pytest.mark.long
def test_the_wheel_contains_files_of_every_kind(built: Distributions) -> None:
    assert names_in(built.wheel) >= {
        *("platform_common/data/profiles/khoj.toml", "platform_common/data/limits/rpi5.json"),
        *("platform_common/data/targets.toml", "platform_common/data/providers.json"),
        *("platform_common/schemas/wizard-state.schema.json", "platform_common/py.typed"),
        "platform_common/schemas/control/status.schema.json",
        *("platform_common/systemd/platform-pwa.service", "platform_common/web/locales/de.po"),
        *("platform_common/templates/__init__.py", "platform_common/templates/base.html"),
        *("platform_common/templates/wizard/steps/mesh-vpn.html", "pwa_app/static/icon-180.png"),
        *("platform_common/web/static/style.css", "platform_common/web/static/icon.svg"),
        *("platformctl/commands/status.py", "platformctl/py.typed", "pwa_app/py.typed"),
        *("release_tools/py.typed", "wizard_app/py.typed", "wizard_app/static/wizard.js"),
    }


def test_the_settings_name_every_tracked_file_of_the_packages(
    settings: configparser.ConfigParser,
) -> None:
    data = settings["options.package_data"]
    patterns = {
        package.replace(".", "/"): re.split(r", |\n", data.get(package, "").replace("**/", ""))
        for package in settings["options"]["packages"].split()
    }

    def is_named(name: str) -> bool:
        package = max((one for one in patterns if name.startswith(f"{one}/")), key=len)
        inside = name.removeprefix(f"{package}/")
        return any(fnmatch.fnmatchcase(inside, pattern) for pattern in patterns[package])

    assert [
        name for name in expected(settings) if not name.endswith(".py") and not is_named(name)
    ] == []


def test_every_folder_of_modules_is_a_package_of_the_wheel(
    settings: configparser.ConfigParser,
) -> None:
    tops = {folder.split("/")[0] for folder in folders(settings)}
    with_modules = {
        str(Path(name).parent)
        for name in tracked_files()
        if name.endswith(".py") and name.split("/")[0] in tops
    }
    assert with_modules == set(folders(settings))


@pytest.mark.long
def test_the_metadata_names_the_licence_and_the_commands(built: Distributions) -> None:
    with zipfile.ZipFile(built.wheel) as archive:
        (points,) = (name for name in archive.namelist() if name.endswith("/entry_points.txt"))
        for name in ("release-tools", "platformctl", "pwa-app", "wizard-app"):
            line = f"{name} = {name.replace('-', '_')}.cli:program"
            assert line in archive.read(points).decode()
        assert any(name.endswith("/LICENSE") for name in archive.namelist())


@pytest.mark.long
def test_the_sdist_contains_only_what_builds_the_wheel(built: Distributions) -> None:
    with tarfile.open(built.sdist) as archive:
        tops = {name.split("/")[1] for name in archive.getnames() if "/" in name}
    assert tops == {
        *("LICENSE", "PKG-INFO", "README.md", "pyproject.toml", "setup.cfg"),
        *("platform_common", "platformctl", "pwa_app", "release_tools", "schemas", "systemd"),
        "templates",
        "wizard_app",
        "platform_appliance.egg-info",
    }
