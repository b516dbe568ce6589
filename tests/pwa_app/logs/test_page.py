"""The page of the log, with any content of the journal, and without a readable journal."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Container
from html import unescape
from pathlib import Path
from typing import Any

import html5lib
import pytest
from flask.testing import FlaskClient
from msgspec import structs

import pwa_app
from pwa_app.app import create_app
from pwa_app.logs.journal_entries import LONGEST_TEXT, visible
from pwa_app.settings import PwaSettings
from tests.pwa_app.conftest import Dashboard
from tests.support.control_cli import FakeCtl
from tests.support.devices import Device
from tests.support.journals import HOSTILE, NEXT_BOOT, NOON_US, Logged, RealJournal
from tests.support.log_states import STATES, STATUS, usual
from tests.support.stand_in import path_without, stand_in

TABLE = "{http://www.w3.org/1999/xhtml}"
KEY = "canary-with-nothing-of-a-key"
# The failures of journalctl, and the message for each.
FAILURES = {
    "status": ("echo no such thing >&2; exit 3", "no such thing"),
    "status-without-a-word": ("exit 3", "exit code 3"),
    "half-an-answer": ('echo \'{"MESSAGE":"x"}\'; exit 1', "MESSAGE"),
    "killed": ("kill -9 $$", "exit code -9"),
    "hangs": ("exec sleep 60", "did not finish in 1 s"),
    "flood": ("exec yes", "more than"),
    "denied": (
        "echo No journal files were opened due to insufficient permissions. >&2; exit 1",
        "Add its user to the group systemd-journal",
    ),
    "tells-a-key": ("echo Bearer 0123456789canary >&2; exit 1", "Bearer •••"),
    "missing": ("", "journalctl could not be started"),
}


@pytest.fixture
def real(tmp_path: Path) -> RealJournal:
    return RealJournal(tmp_path / "journal")


@pytest.fixture
def client(dashboard: Dashboard, real: RealJournal, ctl: FakeCtl) -> FlaskClient:
    """A client of a dashboard with a real journal, on a device with a known profile."""
    ctl.answer("status --json", STATUS)
    return dashboard(**real.environment)


def page(client: FlaskClient, query: str = "") -> str:
    answer = client.get(f"/app/logs{query}")
    assert answer.status_code == 200
    return answer.text


def log_of(html: str) -> str:
    """The text in the single `<pre>` of a page; no message may close that element."""
    tree = html5lib.parse(html)
    (log,) = tree.iter(f"{TABLE}pre")
    assert {element.tag.removeprefix(TABLE) for element in log.iter()} <= {"pre", "span", "i", "b"}
    return "".join(log.itertext())


def tail(client: FlaskClient, cursor: str = "", **query: str) -> Any:
    answer = client.get("/app/logs/tail", query_string={"cursor": cursor} | query)
    assert answer.status_code in (200, 204)
    return answer.json if answer.status_code == 200 else None


def cursor_in(html: str) -> str:
    found = re.search('data-cursor="([^"]*)"', html)
    assert found
    return unescape(found[1])


def test_the_last_hundred_lines_are_shown(client: FlaskClient, real: RealJournal) -> None:
    real.write(*(f"line {number}." for number in range(120)))
    log = log_of(page(client))
    assert log.count("line ") == 100
    assert "line 20." in log
    assert "line 19." not in log
    assert log.index("line 20.") < log.index("line 119.")


def test_the_page_makes_one_call_and_reads_the_journal_once(
    dashboard: Dashboard, ctl: FakeCtl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = f'echo "$@" >>{tmp_path}/reads; echo plain'
    monkeypatch.setenv("PATH", stand_in(tmp_path / "bin", "journalctl", script)["PATH"])
    ctl.answer("status --json", STATUS)
    page(dashboard(), "?lines=57")
    assert ctl.words() == ["status --json"]
    (read,) = (tmp_path / "reads").read_text().splitlines()
    assert "--unit=openclaw.service --lines=57 " in read


def test_cli_10_no_value_for_the_number_of_lines_causes_a_failure(
    client: FlaskClient, real: RealJournal
) -> None:
    real.write(*map(str, range(20)))
    for value in ("5", "-3", "x", "9" * 2000, "５０", "1e3", "", "%00", "50&lines=x"):
        assert "19" in log_of(page(client, f"?lines={value}"))


def test_the_active_unit_is_shown(client: FlaskClient, real: RealJournal, ctl: FakeCtl) -> None:
    ctl.answer("status --json", {"unit": "hermes.service"})
    real.write(Logged("of hermes", unit="hermes.service"), "of openclaw")
    html = page(client)
    assert "of hermes" in log_of(html)
    assert "of openclaw" not in log_of(html)
    assert "active profile is unknown" not in html


def test_cli_09_without_a_profile_the_fallback_is_shown_and_named(
    client: FlaskClient, dashboard: Dashboard, real: RealJournal, ctl: FakeCtl
) -> None:
    real.write("of openclaw")
    said = "Showing openclaw.service, because the active profile is unknown."
    answers: tuple[object, ...] = ({}, {"unit": "-f"}, {"unit": "*"}, {"unit": 7}, "nonsense")
    for answer in answers:
        ctl.answer("status --json", answer)
        html = page(client)
        assert "of openclaw" in log_of(html)
        assert said in html
    html = page(dashboard(PWA_DEV_STUB="1", **real.environment))
    assert "of openclaw" in log_of(html)
    assert said in html


def test_cli_09_only_offered_units_are_shown(client: FlaskClient, real: RealJournal) -> None:
    real.write("of openclaw", Logged("of ssh", unit="ssh.service"))
    real.write(Logged("of the tunnel", unit="platform-tunnel.service"))
    for unit in ("ssh.service", "-f", "*", "a b", "", "../x", "<b>"):
        answer = client.get("/app/logs", query_string={"unit": unit})
        assert "of openclaw" in log_of(answer.text)
        assert "of ssh" not in answer.text
    assert "of the tunnel" in log_of(page(client, "?unit=platform-tunnel.service"))


@pytest.mark.parametrize("message", HOSTILE.values(), ids=HOSTILE)
def test_cli_11_a_hostile_message_is_escaped_inside_the_pre_element(
    client: FlaskClient, real: RealJournal, message: str | bytes
) -> None:
    real.write("before", message, "after")
    html = page(client)
    log = log_of(html)
    assert "before\n" in log
    assert log.endswith("after\n")
    assert visible(log) == log
    assert len(log) <= LONGEST_TEXT + 300
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", html)
    scripts = [element.get("src") for element in html5lib.parse(html).iter(f"{TABLE}script")]
    assert all(scripts)


@pytest.mark.parametrize("text", [*filter(None, HOSTILE.values()), "{{7*7}}", "x" * 3000])
def test_http_14_http_15_a_hostile_search_is_escaped_in_its_field(
    client: FlaskClient, real: RealJournal, text: str | bytes
) -> None:
    real.write("before")
    query = text[:3000].decode("latin-1") if isinstance(text, bytes) else text[:3000]
    html = client.get("/app/logs", query_string={"q": query, "unit": query, "prio": query}).text
    fields = list(html5lib.parse(html).iter(f"{TABLE}input"))
    (search,) = (field for field in fields if field.get("name") == "q")
    assert set(search.keys()) == {
        *("id", "name", "type", "maxlength", "autocomplete", "spellcheck", "autocapitalize"),
        "value",
    }
    assert "49" not in search.get("value", "")
    assert all(element.get("src") for element in html5lib.parse(html).iter(f"{TABLE}script"))


def test_cli_11_the_page_is_always_smaller_than_a_mebibyte(
    client: FlaskClient, real: RealJournal
) -> None:
    real.write(*(f"{number} " + '"' * 4000 for number in range(200)), "the last")
    answer = client.get("/app/logs?lines=1000")
    assert len(answer.data) <= 1 << 20
    assert log_of(answer.text).endswith("the last\n")
    assert "Older lines are not shown" in answer.text


def test_a_read_that_was_cut_short_is_reported(client: FlaskClient, real: RealJournal) -> None:
    real.write(*["k" * 60_000] * 100)
    assert "Only 12 lines were read because some are very long." in page(client)


def test_cli_12_no_key_of_the_device_is_shown_sent_downloaded_or_found(
    client: FlaskClient, real: RealJournal, device: Device
) -> None:
    device.put("/etc/platform/secrets.env", f"SOME_API_KEY={KEY}\n")
    real.write(f"401 for {KEY}", f"url ?x={KEY}", KEY.encode() + b"\xff")
    for path in ("", "/tail", "/download", "/download?format=json"):
        answer = client.get(f"/app/logs{path}")
        assert answer.status_code == 200
        assert "•••" in answer.text
        assert "canary" not in answer.text
    assert "401 for" not in log_of(page(client, f"?q={KEY[:9]}"))


@pytest.mark.parametrize("failure", FAILURES)
def test_cli_13_an_unreadable_journal_is_reported_on_the_page_with_a_reason(
    device: Device, ctl: FakeCtl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: str
) -> None:
    script, why = FAILURES[failure]
    folder = tmp_path / "bin"
    there = stand_in(folder, "journalctl", script) if script else path_without("journalctl", folder)
    monkeypatch.setenv("PATH", there["PATH"])
    ctl.answer("status --json", STATUS)
    settings = PwaSettings.from_env(ctl.environment | {"PLATFORM_ROOT": str(device.root)})
    limit_s = 1 if failure == "hangs" else 30
    client = create_app(structs.replace(settings, call_limit_s=limit_s)).test_client()
    html = page(client, "?lines=57")
    assert log_of(html).strip() == "(journal task failed)"
    assert why in " ".join("".join(html5lib.parse(html).itertext()).split())
    assert re.search('href="/app/logs[?]unit=[a-z.]+&amp;lines=57">Try again</a>', html)
    assert "canary" not in html
    assert "problem" in tail(client)
    assert client.get("/app/logs/download").status_code == 503


def test_lines_that_are_not_json_are_shown_unchanged(
    dashboard: Dashboard, ctl: FakeCtl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = STATES["plain-lines"].prepare(ctl, tmp_path)
    monkeypatch.setenv("PATH", environment["PATH"])
    client = dashboard()
    assert log_of(page(client)) == "first line\nsecond line\n"
    # Without a cursor it is unknown which of them are new.
    assert tail(client) is None


@pytest.mark.parametrize(
    ("query", "said", "seen"),
    [
        ("", "The last 22 lines.", "message 3"),
        ("?prio=error", "Showing 1 of the last 22 lines.", "401"),
        ("?prio=warning&q=telegram", "Showing 1 of the last 22 lines.", "slow reply"),
        ("?q=nowhere", "Showing 0 of the last 22 lines.", "No lines match the filters."),
    ],
)
def test_filters_show_matching_lines_and_count_all_lines(
    client: FlaskClient, real: RealJournal, query: str, said: str, seen: str
) -> None:
    usual(real)
    html = page(client, query)
    assert said in html
    assert seen in log_of(html)
    for count in ("1 error", "1 warning", "20 others"):
        assert count in " ".join(html.split())
    assert ("Clear filters" in html) == bool(query)


def test_a_unit_without_lines_is_reported(client: FlaskClient, real: RealJournal) -> None:
    real.write(Logged("x", unit="other.service"))
    assert log_of(page(client)).strip() == "openclaw.service has not logged anything."


def test_a_restart_of_the_device_is_marked_in_the_log(
    client: FlaskClient, real: RealJournal
) -> None:
    real.write("before", Logged("after", boot=NEXT_BOOT, after_s=30))
    before, _, after = log_of(page(client)).partition("device restarted ")
    assert "before" in before
    assert re.match("[0-9:]{8}\n", after)
    assert "after" in after
    assert "before" not in log_of(page(client, "?boot=1"))


def test_the_tail_sends_new_lines(client: FlaskClient, real: RealJournal) -> None:
    real.write("old")
    cursor = cursor_in(page(client))
    assert tail(client, cursor) is None
    real.write(Logged("new", 4), Logged("newer", 3, boot=NEXT_BOOT))
    answer = tail(client, cursor)
    assert [(line["level"], line["text"]) for line in answer["lines"]] == [
        ("warning", "new"),
        ("error", "newer"),
    ]
    assert "boot" in answer["lines"][1]
    assert "boot" not in answer["lines"][0]
    assert (answer["gap"], answer["unit"]) == (False, "openclaw.service")
    assert tail(client, answer["cursor"]) is None


def test_the_tail_of_a_unit_without_lines_begins_with_its_first_line(
    client: FlaskClient, real: RealJournal
) -> None:
    real.write(Logged("x", unit="other.service"))
    assert cursor_in(page(client)) == ""
    assert tail(client) is None
    real.write("the first")
    assert [line["text"] for line in tail(client)["lines"]] == ["the first"]


def test_the_tail_continues_after_filtered_lines(client: FlaskClient, real: RealJournal) -> None:
    real.write("old")
    cursor = cursor_in(page(client))
    real.write("unimportant")
    answer = tail(client, cursor, prio="error")
    assert answer["lines"] == []
    assert answer["cursor"] != cursor


def test_an_invalid_cursor_gives_the_last_lines(client: FlaskClient, real: RealJournal) -> None:
    real.write(*map(str, range(20)))
    for cursor in ("x", "--help", "s=1;i=1", "\0", "<b>", "x" * 3000):
        answer = tail(client, cursor, lines="10")
        assert answer["gap"] is True
        assert [line["text"] for line in answer["lines"]] == [str(n) for n in range(10, 20)]
    # A cursor of another journal points somewhere, or to the end.
    for stamp in ("ffffffffffffffff", "1"):
        nobody = f"s={'0' * 32};i=1;b={'0' * 32};m=1;t={stamp};x=1"
        answer = tail(client, nobody, lines="10")
        assert answer is None or answer["lines"][-1]["text"] == "19"


@pytest.mark.parametrize(
    ("missed", "counts"),
    [([str(n) for n in range(700)], {500}), (['"' * 4000] * 400, range(1, 400))],
)
def test_after_a_long_absence_the_newest_lines_are_sent_with_a_note(
    client: FlaskClient, real: RealJournal, missed: list[str], counts: Container[int]
) -> None:
    real.write("old")
    cursor = cursor_in(page(client))
    real.write(*missed)
    sent = client.get("/app/logs/tail", query_string={"cursor": cursor, "lines": "1000"})
    assert len(sent.data) <= 1 << 20
    answer = tail(client, cursor, lines="1000")
    assert answer["gap"] is True
    assert len(answer["lines"]) in counts
    assert answer["lines"][-1]["text"] == missed[-1]


def test_only_the_first_poll_after_a_start_makes_a_call(
    client: FlaskClient, real: RealJournal, ctl: FakeCtl
) -> None:
    ctl.answer("status --json", {"unit": "hermes.service"})
    real.write(Logged("of hermes", unit="hermes.service"))
    for _ in range(3):
        assert tail(client, unit="hermes.service")["unit"] == "hermes.service"
    assert len(ctl.calls()) == 1


def test_the_download_contains_the_shown_lines(client: FlaskClient, real: RealJournal) -> None:
    real.write("one", Logged("two\nlines", 3), Logged("</pre>", 4))
    answer = client.get("/app/logs/download?prio=warning")
    assert answer.content_type == "text/plain; charset=utf-8"
    assert re.fullmatch(
        r"attachment; filename=openclaw-\d{8}-\d{6}\.txt", answer.headers["Content-Disposition"]
    )
    assert re.fullmatch(
        r"2026-11-2\S+ error   two\nlines\n2026-11-2\S+ warning </pre>\n", answer.text
    )


def test_the_download_as_json_is_for_programs(client: FlaskClient, real: RealJournal) -> None:
    real.write("one", Logged(HOSTILE["bytes"], 3))
    answer = client.get("/app/logs/download?format=json&lines=10")
    assert answer.content_type == "application/json"
    first, second = json.loads(answer.data)
    assert (first["level"], first["text"], second["level"]) == ("info", "one", "error")
    assert first["at"].startswith("2026-11-2")


def test_the_file_name_of_the_download_is_safe(
    client: FlaskClient, real: RealJournal, ctl: FakeCtl
) -> None:
    ctl.answer("status --json", {"unit": "a:b@c.service"})
    real.write(Logged("x", unit="a:b@c.service"))
    header = client.get("/app/logs/download?unit=a:b@c.service").headers["Content-Disposition"]
    assert re.fullmatch(r"attachment; filename=a-b-c-[0-9-]+\.txt", header)


def test_an_entry_from_1970_or_the_future_is_shown(client: FlaskClient, real: RealJournal) -> None:
    real.write(Logged("then", after_s=-NOON_US / 1e6 + 1), Logged("much later", after_s=4e9))
    log = log_of(page(client))
    assert "then" in log
    assert "much later" in log


def test_the_script_is_small() -> None:
    script = (Path(pwa_app.__path__[0]) / "static/logs.js").read_bytes()
    assert len(gzip.compress(script, 9)) <= 2_500
