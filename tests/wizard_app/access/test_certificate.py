"""The wizard's own certificate, read by openssl."""

from __future__ import annotations

import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from platform_common.errors import PlatformError, WrongUsageError
from wizard_app.access import certificate, tls
from wizard_app.access.certificate import own_certificate

ADDRESSES = ("192.0.2.7", "2001:db8::7")
FORMAT = "%b %d %H:%M:%S %Y %Z"


def openssl(path: Path, *options: str) -> str:
    done = subprocess.run(
        ["openssl", "x509", "-noout", "-in", str(path), *options],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def at(clock: str, folder: Path) -> Path:
    """The certificate that a device with this clock creates."""
    code = (
        "import sys; from pathlib import Path;"
        "from wizard_app.access.certificate import own_certificate;"
        "own_certificate(Path(sys.argv[1]), 'kitchen', [])"
    )
    subprocess.run(["faketime", clock, sys.executable, "-c", code, str(folder)], check=True)
    return folder / certificate.FILE


def dates(path: Path) -> tuple[datetime, datetime]:
    lines = openssl(path, "-dates").splitlines()
    begin, end = (
        datetime.strptime(line.partition("=")[2], FORMAT).replace(tzinfo=UTC) for line in lines
    )
    return begin, end


@pytest.fixture
def made(tmp_path: Path) -> Path:
    return own_certificate(tmp_path / "tls", "kitchen", ADDRESSES)


def test_the_certificate_has_the_names_and_addresses_of_the_machine_and_lasts_825_days(
    made: Path,
) -> None:
    names = openssl(made, "-ext", "subjectAltName")
    assert re.findall(r"DNS:([^,\s]+)", names) == ["localhost", "kitchen", "kitchen.local"]
    addresses = re.findall(r"IP Address:([^,\s]+)", names)
    assert addresses == ["127.0.0.1", "0:0:0:0:0:0:0:1", "192.0.2.7", "2001:DB8:0:0:0:0:0:7"]
    assert openssl(made, "-fingerprint", "-sha256").strip().endswith(f"={tls.fingerprint(made)}")
    assert made.stat().st_mode & 0o7777 == 0o600
    assert [path.name for path in made.parent.iterdir()] == [made.name]
    # It is valid from a time in the past.
    begin, end = dates(made)
    now = datetime.now(UTC)
    assert timedelta(days=29) < now - begin < timedelta(days=32)
    assert end - begin == timedelta(days=825)


def test_a_certificate_made_with_a_clock_in_1970_is_valid_today(tmp_path: Path) -> None:
    begin, end = dates(at("1970-01-02 00:00:00", tmp_path))
    assert begin < datetime(2026, 11, 1, tzinfo=UTC) < end
    assert end - begin == timedelta(days=825)


def test_the_certificate_is_kept_until_the_name_changes_or_it_expires(made: Path) -> None:
    first = made.read_bytes()
    assert own_certificate(made.parent, "kitchen", ()) == made
    assert made.read_bytes() == first
    at("2029-06-01 00:00:00", made.parent)
    assert made.read_bytes() != first
    own_certificate(made.parent, "office", ADDRESSES)
    assert "DNS:office" in openssl(made, "-ext", "subjectAltName")


@pytest.mark.parametrize("damage", ["cut", "empty", "text", "other-key", "mode", "link"])
def test_an_untrusted_certificate_is_replaced(made: Path, damage: str, tmp_path: Path) -> None:
    data = made.read_bytes()
    contents = {"cut": data[:-100], "empty": b"", "text": b"\xff\0 nothing"}
    if damage == "other-key":
        other = own_certificate(tmp_path / "other", "kitchen", ()).read_bytes()
        begin = b"-----BEGIN CERT"
        made.write_bytes(other.partition(begin)[0] + data[data.index(begin) :])
    elif damage == "mode":
        made.chmod(0o644)
    elif damage == "link":
        made.rename(tmp_path / "elsewhere")
        made.symlink_to(tmp_path / "elsewhere")
    else:
        made.write_bytes(contents[damage])
    own_certificate(made.parent, "kitchen", ())
    assert made.read_bytes() != data
    assert not made.is_symlink()
    assert made.stat().st_mode & 0o7777 == 0o600
    assert tls.settings(made)


def test_a_name_that_a_certificate_cannot_have_is_reported(tmp_path: Path) -> None:
    with pytest.raises(PlatformError, match="No certificate can be made"):
        own_certificate(tmp_path, "küche", ())


def test_a_file_without_a_certificate_or_its_key_is_reported(made: Path, tmp_path: Path) -> None:
    file = tmp_path / "cert.pem"
    with pytest.raises(PlatformError):
        tls.settings(file)
    for content in (b"", b"\xff\0", b"-----BEGIN CERTIFICATE-----\nAA\n"):
        file.write_bytes(content)
        with pytest.raises(WrongUsageError):
            tls.fingerprint(file)
        with pytest.raises(WrongUsageError):
            tls.settings(file)
    other = own_certificate(tmp_path / "other", "kitchen", ())
    with pytest.raises(WrongUsageError, match="not a certificate whose key"):
        tls.settings(made, other)


def test_a_key_with_a_password_is_refused_without_a_prompt(tmp_path: Path) -> None:
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-passout", "pass:secret"),
            *("-subj", "/CN=x", "-keyout", str(key), "-out", str(cert)),
        ],
        check=True,
        capture_output=True,
    )
    with pytest.raises(WrongUsageError):
        tls.settings(cert, key)
