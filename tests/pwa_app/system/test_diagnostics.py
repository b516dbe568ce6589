"""The diagnostics archive: its contents, and what it must not contain."""

from __future__ import annotations

import base64
import io
import json
import re
import time
import zipfile
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

import pytest
from flask.testing import FlaskClient

from platform_common.redaction import Redactor
from pwa_app.app import create_app
from pwa_app.context import context
from pwa_app.settings import PwaSettings
from pwa_app.system.archive_masking import masked
from pwa_app.system.diagnostics import LEFT_OUT, PARTS, archive
from tests.pwa_app.conftest import Dashboard
from tests.support import system_states
from tests.support.control_cli import FakeCtl
from tests.support.devices import Device
from tests.support.journals import Logged, RealJournal
from tests.support.trees import tree
from tests.support.waiting import wait_until

ADDRESS = "/app/system/diagnostics.zip"
NAMES = [part.name for part in PARTS]
MOST_BYTES = 4 << 20
# Keys in the formats of providers, and one without a recognisable format.
CANARIES = {
    "dashes": "sk-canary-0123456789abcdef",
    "underscores": "hf_canaryCANARYcanary0123456789",
    "letters": "AIzaSyCanaryCanaryCanaryCanary0123456789",
    "marks": "Canary/0123+456789=abcdef",
    "shapeless": "canary7f3a9c0d1e5b8a2464cd",
}
FORMS: Mapping[str, Callable[[str], str]] = {
    "as-it-is": str,
    "in-an-address": lambda key: quote(key, safe=""),
    "base64": lambda key: base64.b64encode(key.encode()).decode(),
    "base64-of-more": lambda key: base64.b64encode(f"user:{key}".encode()).decode(),
    "base64-in-an-address": lambda key: base64.urlsafe_b64encode(key.encode()).decode(),
    "hexadecimal": lambda key: key.encode().hex(),
    "capital-hexadecimal": lambda key: key.encode().hex().upper(),
    "numbers-in-an-address": lambda key: "".join(f"%{byte:02X}" for byte in key.encode()),
    "escaped-json": lambda key: "".join(f"\\u{ord(letter):04x}" for letter in key),
    "escaped-bytes": lambda key: "".join(f"\\x{byte:02x}" for byte in key.encode()),
}


@pytest.fixture
def ctl(ctl: FakeCtl) -> FakeCtl:
    """A control CLI that answers all six calls."""
    system_states.fine(ctl)
    ctl.answer("limits --json", {"target": "rpi5-16gb", "ram_mb": 16_000})
    ctl.answer("cost --json", {"today_usd": 1.5})
    ctl.answer("doctor --json", {"checks": [{"name": "disk", "outcome": {"kind": "Pass"}}]})
    ctl.answer(
        "model list --json", [{"id": "openai", "configured": True, "masked_key_prefix": "sk-pre…"}]
    )
    return ctl


@pytest.fixture
def journal(tmp_path: Path) -> RealJournal:
    """The journal of the device, with one line of its gateway."""
    found = RealJournal(tmp_path / "journal")
    found.write(Logged("gateway listening", unit=system_states.UNIT))
    return found


@pytest.fixture
def client(dashboard: Dashboard, journal: RealJournal) -> FlaskClient:
    """A client of a dashboard that reads that journal."""
    return dashboard(**journal.environment)


def parts_of(data: bytes) -> dict[str, str]:
    """The files in an archive, in order, without the name of their folder."""
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        assert packed.testzip() is None
        texts = {name: packed.read(name).decode("utf-8") for name in packed.namelist()}
    return {name.partition("/")[2]: text for name, text in texts.items()}


def downloaded(client: FlaskClient) -> dict[str, str]:
    answer = client.get(ADDRESS)
    assert answer.status_code == 200
    assert len(answer.data) <= MOST_BYTES
    return parts_of(answer.data)


def test_the_page_lists_exactly_the_parts_of_the_archive(client: FlaskClient, ctl: FakeCtl) -> None:
    shown = client.get("/app/system/diagnostics").text
    assert re.findall(r"<dt><code>([^<]+)</code></dt>", shown) == NAMES
    assert [str(what) for what in LEFT_OUT if str(what) not in shown] == []
    assert ctl.words() == []
    assert list(downloaded(client)) == NAMES


def test_each_part_has_its_content(client: FlaskClient) -> None:
    found = downloaded(client)
    read = {name: json.loads(text) for name, text in found.items() if name.endswith(".json")}
    assert read["status.json"]["uptime_seconds"] == 273_600
    assert read["version.json"]["release_version"] == "2026.11.3"
    assert read["limits.json"]["ram_mb"] == 16_000
    assert read["cost.json"]["today_usd"] == 1.5
    assert read["doctor.json"]["checks"][0]["name"] == "disk"
    assert read["models.json"][0]["configured"]
    assert set(read["software.json"]["packages"]) > {"Flask", "gunicorn", "msgspec"}
    assert read["settings.json"]["set"] == ["PLATFORM_JOURNAL_DIR", "PLATFORM_ROOT"]
    log = found["log.txt"].splitlines()
    assert log[0] == f"The log of {system_states.UNIT}"
    assert log[1].endswith("info    gateway listening")
    assert "Not available" not in found["README.txt"]


@pytest.mark.parametrize("year", [1970, 1980, 2107, 2108])
def test_the_archive_is_created_even_with_a_wrong_clock(year: int, device: Device) -> None:
    app = create_app(PwaSettings.from_env({"PLATFORM_ROOT": str(device.root), "PATH": ""}))
    with app.app_context():
        made = archive(context(), "device", datetime(year, 1, 1, tzinfo=UTC))
    assert made.name == f"diagnostics-device-{year}0101T000000Z.zip"
    assert "README.txt" in parts_of(made.data)


def test_the_archive_is_an_attachment_with_a_safe_name(client: FlaskClient, device: Device) -> None:
    device.put("/etc/hostname", '../Küche "1"\n')
    before = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    answer = client.get(ADDRESS)
    assert answer.headers["Content-Type"] == "application/zip"
    assert answer.headers["Cache-Control"] == "no-store"
    found = re.fullmatch(
        r"attachment; filename=(diagnostics-K-che-1-([0-9T]+Z))\.zip",
        answer.headers["Content-Disposition"],
    )
    assert found
    assert before <= found[2] <= datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    with zipfile.ZipFile(io.BytesIO(answer.data)) as packed:
        assert {name.partition("/")[0] for name in packed.namelist()} == {found[1]}


def test_a_device_without_a_usable_name_is_called_device(
    client: FlaskClient, device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "...")
    for name in ("...", "", "\n"):
        device.put("/etc/hostname", name)
        said = client.get(ADDRESS).headers["Content-Disposition"]
        assert "filename=diagnostics-device-2" in said


def test_a_missing_part_is_named_with_its_reason_in_the_archive(
    client: FlaskClient, ctl: FakeCtl
) -> None:
    for call in ("status", "version", "limits", "cost", "doctor", "model list"):
        ctl.answer(f"{call} --json", status=1, errors=f"error: the disk of {call} is gone\n")
        found = downloaded(client)
        name = f"{call.removesuffix(' list')}{'s' * call.endswith('list')}.json"
        assert name in NAMES
        assert name not in found
        problems = found["README.txt"].partition("Not available:\n")[2]
        assert re.search(rf"^  {name} +.*the disk of {call} is gone\n", problems, re.MULTILINE)
    assert list(found) == ["README.txt", "software.json", "settings.json", "log.txt"]


def test_without_any_call_and_any_journal_there_is_still_an_archive(
    dashboard: Dashboard, tmp_path: Path
) -> None:
    nothing = FakeCtl(tmp_path / "nothing")
    client = dashboard(**nothing.environment, PLATFORM_JOURNAL_DIR=str(tmp_path / "no-journal"))
    found = downloaded(client)
    missing = {"README.txt", "software.json", "settings.json"} ^ set(found)
    assert missing <= {"log.txt"}
    for name in set(NAMES) - set(found):
        assert f"  {name} " in found["README.txt"].partition("Not available:\n")[2]


def test_sample_values_are_labelled_as_such(dashboard: Dashboard) -> None:
    found = downloaded(dashboard(PWA_DEV_STUB="1"))
    assert "These are sample values, not the device's own" in found["README.txt"]
    assert "status.json" in found


@pytest.mark.parametrize("form", FORMS)
def test_leak_01_no_part_contains_an_unknown_key_in_any_form(
    client: FlaskClient, ctl: FakeCtl, journal: RealJournal, form: str
) -> None:
    written = [FORMS[form](canary) for canary in CANARIES.values()]
    lines = ("{}", "got {}, and more", "url=http://x/y?z={}&b=1", '{{"value": "{}"}}', "/app/{}")
    for text in written:
        journal.write(*(Logged(line.format(text), unit=system_states.UNIT) for line in lines))
    checks = [{"name": text, "fix": f"do {text}"} for text in written]
    ctl.answer("doctor --json", {"checks": checks})
    ctl.answer("model list --json", [{"id": "x", "default_model": text} for text in written])
    ctl.answer("cost --json", status=1, errors=f"error: {written[0]}\n")
    found = downloaded(client)
    whole = "\n".join(found.values())
    assert [text for text in (*CANARIES.values(), *written) if text in whole] == []
    assert "cost.json" not in found
    # Three in the answers, those in lines, one in the failed call, and one in the README itself.
    assert whole.count("•••") >= len(CANARIES) * (3 + len(lines)) + 2


def test_leak_01_and_http_12_a_known_key_without_a_format_is_masked_and_nothing_is_written(
    client: FlaskClient, device: Device, journal: RealJournal
) -> None:
    keys = "A_KEY=correct-horse\nA_PASSWORD=battery.staple\n"
    device.put("/etc/platform/secrets.env", keys, mode=0o640)
    journal.write(Logged("with correct-horse and battery.staple", unit=system_states.UNIT))
    before = tree(device.root)
    found = downloaded(client)
    client.get("/app/system/diagnostics")
    assert "with ••• and •••" in found["log.txt"]
    assert "correct-horse" not in "".join(found.values())
    assert tree(device.root) == before


def test_the_archive_contains_neither_prefixes_of_keys_nor_values_of_settings(
    dashboard: Dashboard, journal: RealJournal, tmp_path: Path
) -> None:
    client = dashboard(
        **journal.environment,
        PLATFORM_ALLOWED_HOSTS="kitchen.example",
        PWA_DATA_DIR=str(tmp_path / "where-it-is"),
    )
    found = downloaded(client)
    whole = "".join(found.values())
    assert [text for text in ("sk-pre", "kitchen.example", "where-it-is") if text in whole] == []
    names = json.loads(found["settings.json"])["set"]
    assert {"PLATFORM_ALLOWED_HOSTS", "PWA_DATA_DIR"} < set(names)


def test_the_archive_contains_the_newest_thousand_lines(
    client: FlaskClient, journal: RealJournal
) -> None:
    journal.write(*(Logged(f"line {n}.", unit=system_states.UNIT) for n in range(1200)))
    lines = downloaded(client)["log.txt"].splitlines()[1:]
    assert len(lines) == 1000
    assert (lines[0].split()[-1], lines[-1].split()[-1]) == ("200.", "1199.")


def test_the_archive_is_small_whatever_the_log_and_the_answers(
    client: FlaskClient, ctl: FakeCtl, journal: RealJournal
) -> None:
    noise = "".join(f"{chr(0x4E00 + n * 7919 % 20_000)} " for n in range(1900))
    journal.write(*(Logged(f"{n} {noise}", unit=system_states.UNIT) for n in range(400)))
    checks = [{"name": f"{n}", "fix": noise} for n in range(60)]
    ctl.answer("doctor --json", {"checks": checks})
    answer = client.get(ADDRESS)
    found = parts_of(answer.data)
    assert len(answer.data) <= MOST_BYTES
    assert sum(len(text.encode()) for text in found.values()) < MOST_BYTES
    assert found["log.txt"].splitlines()[-1].split()[2] == "399"
    assert "doctor.json    It is larger than 262,144 bytes" in found["README.txt"]


def test_concurrent_requests_get_the_same_archive(
    client: FlaskClient, ctl: FakeCtl, joined: list[Hashable]
) -> None:
    ctl.answer("doctor --json", {}, held=True)
    app = client.application
    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(app.test_client().get, ADDRESS) for _ in range(4)]
        # Each of the four joins the archive, and the one that creates it joins six calls.
        wait_until(lambda: len(joined) == 10)
        ctl.release()
        assert len({answer.result().data for answer in asked}) == 1
    assert len(ctl.words()) == 6


def test_the_same_answers_give_the_same_archive_except_for_its_time(client: FlaskClient) -> None:
    with client.application.app_context():
        made = [archive(context(), "x", datetime(2026, 1, 1, 0, 0, n, tzinfo=UTC)) for n in (1, 2)]
    first, second = (parts_of(one.data) for one in made)
    assert first.pop("README.txt") != second.pop("README.txt")
    assert first == second


@pytest.mark.parametrize(
    "text",
    [
        "gateway listening on http://127.0.0.1:18789/v1/chat/completions",
        "claude-3-5-sonnet-20241022 and gpt-4o-2024-08-06 cost 0.0123 at 2026-11-21T19:43:12.123Z",
        "ConnectionRefusedError in site-packages/werkzeug/serving.py",
        "/home/agent/.openclaw/Sessions2/cost-ledger.jsonl: platform-voice-relay.service",
        "OPENAI_API_KEY of openai is not set; ANOTHER_VERY_LONG_VARIABLE_NAME neither",
        "6.12.48+deb13-arm64, internationalisation, 1234567890123",
        "/home/agent/data-of-March/sessions-2026/x and /var/lib/App2/a-b-c-d-e-f",
        "=" * 60 + " " + "-" * 60 + " " + "_" * 60,
    ],
)
def test_ordinary_words_are_not_masked(text: str) -> None:
    assert masked(text, Redactor().redact) == text


@pytest.mark.parametrize("run", ["a", "A", "aA", "_", "-", "%", "/", "+a", "\\u0061", "A_", "a1-"])
def test_long_runs_of_characters_are_masked_in_bounded_time(run: str) -> None:
    began = time.monotonic()
    masked(run * (1_000_000 // len(run)), Redactor().redact)
    assert time.monotonic() - began < 20
