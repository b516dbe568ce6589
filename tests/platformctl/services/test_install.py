"""Installing the units of a device, and removing them."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from platform_common.errors import AccessError, PlatformError
from platform_common.storage.atomic_write import write_atomic
from platformctl.cli import main
from platformctl.services import checks as service_checks
from platformctl.services import install as services
from tests.support.trees import tree

LOCAL = services.LOCAL
PRESET = "systemd/system-preset/50-platform.preset"
PWA = LOCAL / "systemd/system/platform-pwa.service"


def call(*words: str, **environment: str) -> Result:
    """Run `platformctl services` and return the result."""
    return CliRunner().invoke(main, ["services", *words], env=environment)


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """The folder of a system that is not running, with our programs."""
    root = tmp_path / "image"
    for name in service_checks.PROGRAMS:
        program = root / "opt/ours/bin" / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    (root / "etc").mkdir()
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    return root


def install(image: Path, *words: str) -> Result:
    """Install everything into the image; return the result."""
    return call("install", "--root", str(image), "--programs", "/opt/ours/bin", *words)


def test_files_are_readable_for_all_and_name_the_programs(image: Path) -> None:
    assert install(image, "--files-only").exit_code == 0
    for place, _ in services.files(Path("/")):
        file = image / LOCAL / place
        assert stat.S_IMODE(file.stat().st_mode) == 0o644
        assert "@programs@" not in file.read_text()
    assert "ExecStart=/opt/ours/bin/pwa-app serve\n" in (image / PWA).read_text()
    assert not (image / "etc/systemd").exists()


def test_an_image_gets_users_folders_and_the_links_for_the_boot(image: Path) -> None:
    done = install(image, "--json")
    assert done.exit_code == 0, done.stderr
    told = json.loads(done.stdout)
    assert str(image / PWA) in told["files"]
    assert "platform-pwa.socket" in told["enabled"]
    assert "platform-tunnel.service" not in told["enabled"]
    names = re.findall("^[a-z]+", (image / "etc/passwd").read_text(), re.MULTILINE)
    assert names == ["root", "agent", "platform"]
    assert stat.S_IMODE((image / "var/lib/platform").stat().st_mode) == 0o1770
    started = {link.name for link in (image / "etc/systemd/system").rglob("*") if link.is_symlink()}
    assert started == set(told["enabled"])


def test_installing_again_changes_nothing_and_keeps_units_disabled(image: Path) -> None:
    install(image, "--files-only")
    install(image)
    before = tree(image)
    assert install(image).exit_code == 0
    assert tree(image) == before
    link = image / "etc/systemd/system/platform-wizard.service.wants/platform-wizard-qr.service"
    link.unlink()
    assert "platform-wizard-qr.service" not in json.loads(install(image, "--json").stdout)
    assert not link.is_symlink()


def test_a_masked_unit_stays_masked_and_the_others_are_installed(image: Path) -> None:
    mask = image / "etc/systemd/system/platform-pwa.service"
    mask.parent.mkdir(parents=True)
    mask.symlink_to("/dev/null")
    done = install(image, "--json")
    assert done.exit_code == 0, done.stderr
    assert "platform-wizard.service" in json.loads(done.stdout)["enabled"]
    assert "platform-pwa.service" not in json.loads(done.stdout)["enabled"]
    assert mask.readlink() == Path("/dev/null")


@pytest.mark.parametrize(
    "link",
    ["usr/local", "usr/local/lib/systemd/system", "etc/systemd/system", "etc", "var", "home"],
)
def test_fs_08_nothing_is_written_through_a_link_that_leads_out_of_the_image(
    image: Path, tmp_path: Path, link: str
) -> None:
    outside = tmp_path / "outside"
    if link == "etc":
        (image / "etc").rename(outside)
    else:
        outside.mkdir()
    (image / link).parent.mkdir(parents=True, exist_ok=True)
    (image / link).symlink_to(outside)
    before = tree(tmp_path)
    done = install(image)
    assert (done.exit_code, done.stdout) == (1, "")
    assert f"leads out of {image}" in done.stderr
    if link.startswith("usr"):
        assert install(image, "--files-only").exit_code == 1
        assert call("remove", "--root", str(image)).exit_code == 1
    assert tree(tmp_path) == before


def test_a_link_within_an_image_is_followed(image: Path) -> None:
    (image / "usr").mkdir()
    (image / "opt/local").mkdir()
    (image / "usr/local").symlink_to("../opt/local")
    assert install(image).exit_code == 0
    assert (image / "opt/local/lib/systemd/system/platform-pwa.service").is_file()


def test_remove_keeps_files_that_install_did_not_write(image: Path) -> None:
    install(image)
    kept = image / "etc/platform/secrets.env"
    kept.write_text("A=b\n")
    done = call("remove", "--root", str(image))
    assert done.exit_code == 0, done.stderr
    assert done.stdout.count("Removed ") == len(list(services.files(Path("/"))))
    assert [path for path in (image / LOCAL).rglob("*") if path.is_file()] == []
    assert [path for path in (image / "etc/systemd").rglob("*") if path.is_symlink()] == []
    assert kept.exists()
    again = call("remove", "--root", str(image))
    assert again.stdout == f"There are no files of ours below {image / LOCAL}.\n"


def test_a_full_disk_during_installation_changes_nothing(
    image: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (image / PWA).parent.mkdir(parents=True)
    (image / PWA).write_text("# of an older version\n")
    before = {path for path in image.rglob("*") if path.is_file()}

    def full(path: Path, data: bytes) -> None:
        if path.name == "platform-wizard.socket":
            raise AccessError(f"{path}: No space left on device")
        write_atomic(path, data)

    monkeypatch.setattr(services, "write_atomic", full)
    done = install(image)
    assert (done.exit_code, done.stdout) == (1, "")
    assert "No space left" in done.stderr
    assert {path for path in image.rglob("*") if path.is_file()} == before
    assert (image / PWA).read_text() == "# of an older version\n"


@pytest.mark.parametrize(
    ("spoilt", "said"),
    [
        ("etc/passwd", "is not a system: it has no /etc/passwd"),
        ("opt/ours/bin/pwa-app", "does not contain pwa-app"),
        ("", "systemd-sysusers is not installed"),
    ],
    ids=["no-system", "no-programs", "no-tools"],
)
def test_an_impossible_installation_is_refused_before_anything_is_written(
    image: Path, spoilt: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if spoilt:
        (image / spoilt).unlink()
    else:
        monkeypatch.setenv("PATH", str(image))
    before = tree(image)
    done = install(image)
    assert (done.exit_code, done.stdout) == (1, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 2
    assert tree(image) == before


def test_only_root_can_enable_units(image: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    done = install(image)
    assert (done.exit_code, done.stderr.splitlines()[0]) == (1, "error: Only root may do that")
    assert not (image / "usr").exists()


def test_a_machine_without_systemd_or_with_a_read_only_folder_is_reported(
    monkeypatch: pytest.MonkeyPatch, image: Path
) -> None:
    monkeypatch.setattr(service_checks, "_BOOTED", image / "run/systemd/system")
    with pytest.raises(PlatformError, match="systemd does not run here"):
        service_checks.check_system(Path("/"), LOCAL)
    # The error of the kernel for a file system that is mounted read-only, even for root.
    monkeypatch.setattr(os, "access", lambda path, mode: path != image / "etc")
    with pytest.raises(PlatformError, match=f"{image}/etc cannot be written"):
        service_checks.check_system(image, LOCAL)


def test_a_missing_folder_or_one_that_no_unit_can_name_is_wrong_usage(image: Path) -> None:
    done = call("install", "--root", str(image / "none"))
    assert (done.exit_code, done.stdout) == (64, "")
    for folder in ("/opt/my programs", "/opt/100%", "relative", "/opt/a\nb", "/$x"):
        done = call("install", "--root", str(image), "--programs", folder, "--files-only")
        assert (done.exit_code, done.stdout) == (64, "")
    assert not (image / "usr").exists()


def test_programs_that_the_services_cannot_reach_are_refused(image: Path) -> None:
    for hidden in ("home/agent/venv/bin", "root", "tmp/x", "var/tmp/x"):
        shutil.copytree(image / "opt/ours/bin", image / hidden)
        with pytest.raises(PlatformError, match="which the services cannot see"):
            service_checks.check_programs(image, Path("/", hidden))


def test_the_folder_of_the_programs_is_found_behind_a_link(image: Path, tmp_path: Path) -> None:
    link = tmp_path / "bin/platformctl"
    link.parent.mkdir()
    link.symlink_to(image / "opt/ours/bin/platformctl")
    assert service_checks.own_programs(link) == image / "opt/ours/bin"
    assert service_checks.own_programs(image / "opt/ours/bin/platformctl") == link.resolve().parent


def test_the_units_of_a_machine_without_systemd_are_listed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    done = call("list")
    assert done.exit_code == 0
    assert re.search(r"^platform-pwa\.service +unavailable +no$", done.stdout, re.MULTILINE)
    assert "@" not in done.stdout
