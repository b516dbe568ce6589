"""The state file on disk: private, kept, and renamed with a notice if it is damaged."""

from __future__ import annotations

import json
import logging
import os
import signal
import stat
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from tests.support import odd_files
from tests.support.devices import Device
from tests.support.releases import clean_environment, program
from tests.support.web_servers import Served, served
from tests.support.wizard_files import GOOD
from tests.support.wizard_secrets import files, found
from tests.support.wizard_states import ANSWERS, SECRETS
from tests.wizard_app.conftest import SMALL, MakeWizard

NOTICE = "The stored answers could not be used, so setup starts again"
SECRET = "CaNaRy-of-the-damaged-file"
_GOOD = json.dumps(GOOD).encode()
DAMAGED = {
    "empty": b"",
    "blank": b"\n",
    "cut": _GOOD[:-9],
    "twice": _GOOD * 2,
    "not JSON": f"this is {SECRET}".encode(),
    "null": b"null",
    "not finite": _GOOD.replace(b": 2", b": NaN"),
    "NUL in a word": _GOOD.replace(b"kitchen", b"k\0tchen"),
    "half a character": _GOOD.replace(b'"kitchen-agent"', rb'"\ud800"'),
    "UTF-16": "{}".encode("utf-16"),
    "wrong types": json.dumps(GOOD | {"answers": [SECRET]}).encode(),
    "wrong answer": json.dumps(GOOD | {"answers": {"profile": f"../{SECRET}"}}).encode(),
    "unknown step": json.dumps(GOOD | {"step": SECRET}).encode(),
    "other version": json.dumps(GOOD | {"version": 1}).encode(),
    "NULs": b"\0" * 4096,
    "BOM": b"\xef\xbb\xbf" + _GOOD,
    "huge": json.dumps(GOOD | {"more": SECRET * 50_000}).encode(),
    "nested": b"[" * 100_000,
    "nested objects": b'{"a":' * 100_000,
    "one name twice": f'{{"{SECRET}": 1, "{SECRET}": 2}}'.encode(),
}


@pytest.fixture
def stored(state_file: Path) -> Path:
    """The state file, in a folder that exists already."""
    state_file.parent.mkdir(parents=True)
    return state_file


def _small(wizard: MakeWizard) -> FlaskClient:
    return wizard(steps=SMALL)


def test_the_state_file_is_private_and_says_when_setup_began(
    wizard: MakeWizard, out: Path, state_file: Path
) -> None:
    client = _small(wizard)
    # A start creates no folder and no file.
    assert not out.exists()
    mask = os.umask(0)
    try:
        client.post("/wizard/colour", data={"colour": "red"})
    finally:
        os.umask(mask)
    assert stat.S_IMODE(state_file.stat().st_mode) == 0o600
    stored = json.loads(state_file.read_bytes())
    assert {**stored, "started_at": ""} == {
        "version": 2,
        "started_at": "",
        "completed_at": None,
        "step": "word",
        "answers": {"colour": "red"},
    }
    _small(wizard).post("/wizard/colour", data={"colour": "blue"})
    assert json.loads(state_file.read_bytes())["started_at"] == stored["started_at"]


@pytest.mark.parametrize("damage", DAMAGED)
def test_wiz_01_a_damaged_file_is_renamed_and_the_pages_say_so(
    wizard: MakeWizard, stored: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    stored.write_bytes(DAMAGED[damage])
    with caplog.at_level(logging.WARNING):
        client = wizard()
    aside = stored.with_name("wizard-state.json.bad-1")
    assert aside.read_bytes() == DAMAGED[damage]
    assert not stored.exists()
    assert client.get("/").location == "/wizard/system"
    for page in ("system", "mesh-vpn", "review"):
        text = client.get(f"/wizard/{page}").text
        assert NOTICE in text
        assert "bad-1" in text
        assert SECRET not in text
    [line] = [record.getMessage() for record in caplog.records]
    assert "wizard-state.json.bad-1" in line
    assert line.isprintable()
    assert len(line) < 400


def test_wiz_01_all_damaged_files_are_kept_and_mentioned_for_some_time(
    wizard: MakeWizard, stored: Path
) -> None:
    for number in range(1, 4):
        stored.write_text(f"damage {number}")
        _small(wizard)
        # Even if the wizard ended before anybody saw the notice.
        client = _small(wizard)
        page = client.get("/wizard/colour").text
        assert NOTICE in page
        assert f"bad-{number}" in page
        assert stored.with_name(f"{stored.name}.bad-{number}").read_text() == f"damage {number}"
    assert stored.with_name("wizard-state.json.bad-1").read_text() == "damage 1"
    client.post("/wizard/colour", data={"colour": "red"})
    for again in (client, _small(wizard)):
        assert NOTICE not in again.get("/wizard/word").text


@pytest.mark.parametrize("kind", [*odd_files.NOT_REGULAR, *odd_files.LINKS])
def test_fs_07_a_linked_or_special_file_is_renamed(
    wizard: MakeWizard, stored: Path, kind: str
) -> None:
    odd_files.make(kind, stored)
    precious = stored.with_name("precious")
    before = precious.read_bytes() if precious.exists() else None
    client = _small(wizard)
    assert NOTICE in client.get("/wizard/colour").text
    assert client.post("/wizard/colour", data={"colour": "red"}).status_code == 302
    assert json.loads(stored.read_bytes())["answers"] == {"colour": "red"}
    assert os.path.lexists(stored.with_name("wizard-state.json.bad-1"))
    assert (precious.read_bytes() if precious.exists() else None) == before


@pytest.mark.parametrize("kind", odd_files.NOT_REGULAR)
def test_fs_07_a_later_replacement_is_refused(wizard: MakeWizard, stored: Path, kind: str) -> None:
    client = _small(wizard)
    odd_files.make(kind, stored)
    refused = client.post("/wizard/colour", data={"colour": "red"})
    assert refused.status_code == 500
    assert "This could not be saved" in refused.text
    assert "is not a regular file" in refused.text
    assert client.get("/").location == "/wizard/colour"


def test_leak_06_left_overs_are_removed_at_the_start(wizard: MakeWizard, stored: Path) -> None:
    left_over = stored.with_name(".wizard-state.json.4711.0123abcd.tmp")
    other = stored.with_name(".vapid.pem.4711.0123abcd.tmp")
    for path in (left_over, other):
        path.write_bytes(b"half")
    _small(wizard)
    assert not left_over.exists()
    assert other.exists()


def test_wiz_01_start_up_fails_with_one_sentence_if_a_damaged_file_cannot_be_renamed(
    environment: dict[str, str], out: Path, stored: Path
) -> None:
    stored.write_bytes(b"damage")
    # A mount that only this process sees, and that ends with it.
    folder = stored.parent
    mount = f"mount --bind '{folder}' '{folder}' && mount -o remount,bind,ro '{folder}'"
    ended = subprocess.run(
        [
            *("unshare", "-rm", "sh", "-c", f'{mount} && exec "$@"', "sh"),
            *(program("wizard-app"), "serve", "--bind", f"unix:{out}/socket"),
        ],
        env=clean_environment() | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    first, hint = ended.stderr.splitlines()
    assert ended.returncode == 1
    assert first.startswith(f"error: {stored}: not valid JSON")
    assert first.endswith("it cannot be renamed either: Read-only file system")
    assert hint.startswith("hint: ")
    assert stored.read_bytes() == b"damage"


def _ask(wizard: Served, address: str, body: bytes | None = None) -> str:
    """The page that an address, or a form sent there, redirects to."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(wizard.url + address, body, timeout=30) as answer:
        return str(answer.read().decode())


def test_wiz_04_after_a_worker_dies_the_next_one_continues_with_the_same_answers(
    environment: dict[str, str], tmp_path: Path, state_file: Path
) -> None:
    with served("wizard-app", environment, tmp_path / "log") as wizard:
        for name in (b"first", b"second"):
            _ask(wizard, "/wizard/system", b"timezone=UTC&hostname=" + name)
        [worker] = (
            Path(f"/proc/{wizard.process.pid}/task/{wizard.process.pid}/children")
            .read_text("ascii")
            .split()
        )
        os.kill(int(worker), signal.SIGKILL)
        deadline = time.monotonic() + 120
        page = ""
        while "second" not in page:
            assert time.monotonic() < deadline
            try:
                page = _ask(wizard, "/wizard/system")
            except OSError:
                time.sleep(0.05)
            else:
                assert 'value="second"' in page
        assert "Step 2 of 9" in _ask(wizard, "/")
        assert json.loads(state_file.read_bytes())["answers"]["hostname"] == "second"


def test_wiz_02_and_leak_01_no_secret_of_any_step_is_on_the_disk_or_on_a_page(
    wizard: MakeWizard, out: Path, device: Device, caplog: pytest.LogCaptureFixture
) -> None:
    client = wizard()
    texts: list[str | bytes] = []
    for slug, form in ANSWERS.items():
        stale = client.post(f"/wizard/{slug}", data={**form, "revision": "another"})
        assert stale.status_code == 409
        bad = {name: f"{value}\0" for name, value in form.items()}
        texts += [stale.text, client.post(f"/wizard/{slug}", data=bad).text]
        assert client.post(f"/wizard/{slug}", data=form).status_code == 302
    pages = (*ANSWERS, "review", "answers.json", "import")
    for _ in range(2):
        texts += [client.get(f"/wizard/{page}").text for page in pages]
        client = wizard()
    texts += [caplog.text, *files(out), *files(device.root)]
    assert [leak for secret in SECRETS for leak in found(secret, *texts)] == []
