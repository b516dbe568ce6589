"""Reading the journal: which unit, how many lines, and which text is shown."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from platform_common.control_answers import Agent, Status, Tunnel
from platform_common.message import Sentence
from platform_common.paths import Paths
from pwa_app.control_client import Slice
from pwa_app.keys.known_secrets import KnownSecrets
from pwa_app.logs.journal import Extract, Journal, Units, number_of_lines, place_of, units_of
from pwa_app.logs.journal_entries import Entry, read_entries, shown, visible
from pwa_app.logs.rows import Filters, newest, rows_of
from tests.support.devices import Device
from tests.support.journals import BOOT, HOSTILE, NEXT_BOOT, NOON_US, UNIT, Logged, RealJournal
from tests.support.properties import examples
from tests.support.stand_in import stand_in


@pytest.fixture
def real(tmp_path: Path) -> RealJournal:
    return RealJournal(tmp_path / "journal")


@pytest.fixture
def journal(real: RealJournal, device: Device) -> Journal:
    return Journal(KnownSecrets(device.paths), real.folder, limit_s=20)


def unchanged(text: str) -> str:
    return text


def texts(journal: Journal, lines: int = 100, **more: Any) -> list[str]:
    return [entry.text for entry in journal.read(Extract(UNIT, lines, **more)).entries]


@pytest.mark.parametrize(
    ("texts", "lines"),
    [
        (["10", "9", "0", "-1", "-0", "-" + "9" * 5000, "0" * 4000], 10),
        (["57", "0" * 4000 + "57"], 57),
        (["1000", "1001", "9" * 5000], 1000),
        (["", "NaN", "Infinity", "null", "true", "0" * 4000 + "x", "50\0", "50;id"], 100),
        (["００５７", "٥٠", "५०", "²", "1_000", " 50 ", "50\n", "50.0"], 100),
        (["+50", "--50", "-", "5e2", "0x50"], 100),
    ],
    ids=["least", "in-range", "most", "no-number", "other-digits", "other-forms"],
)
def test_cli_10_the_number_of_lines_is_limited_to_between_10_and_1000(
    texts: list[str], lines: int
) -> None:
    assert {text: number_of_lines(text) for text in texts} == dict.fromkeys(texts, lines)


@examples(100)
@given(st.text(max_size=50))
def test_cli_10_any_text_gives_a_number_of_lines(text: str) -> None:
    assert 10 <= number_of_lines(text) <= 1000


@pytest.mark.parametrize(
    "unit",
    [
        *("", "-f", "--help", "-u.service", "*", "*.service", "openclaw*.service", "a?.service"),
        *("a b.service", " a.service", "a.service ", "a.service\n", "a\n.service", "$(id).service"),
        *("`id`.service", "a;b.service", "a|b.service", "../a.service", "/etc/a.service"),
        *("[a].service", "a.service\0", "ä.service", "ａ.service", "a.socket", "service"),
        *(".SERVICE", "a.service.", "a\\x2d.service", "a" * 10_240 + ".service", "%i.service"),
    ],
)
def test_cli_09_an_invalid_unit_is_replaced_by_the_fallback(unit: str) -> None:
    status = Status(unit=unit, agent=Agent(unit=unit, journal_unit=unit), tunnel=Tunnel(unit))
    units = units_of(Slice(status))
    assert (units.active, units.known) == ("openclaw.service", False)
    assert unit not in units.choices


def test_the_unit_is_the_most_specific_one_in_the_status() -> None:
    exact = Agent(unit="b.service", journal_unit="c@1.service")
    for status, why, expected in (
        (Status("a", "a.service"), None, ("a.service", True)),
        (Status("a", "a.service", agent=Agent(unit="b.service")), None, ("b.service", True)),
        (Status("a", "a.service", agent=exact), None, ("c@1.service", True)),
        (Status(unit="hermes.service"), Sentence("a sample"), ("openclaw.service", False)),
    ):
        units = units_of(Slice(status, why))
        assert (units.active, units.known) == expected


def test_only_listed_units_can_be_chosen() -> None:
    units = units_of(Slice(Status(unit="a.service", tunnel=Tunnel("t.service"))))
    assert units.choose("t.service") == "t.service"
    assert units.choose("platform-pwa.service") == "platform-pwa.service"
    assert units.choose("ssh.service") == "a.service"
    assert Units().choose("-f") == "openclaw.service"


def test_an_entry_has_its_level_time_boot_and_cursor(journal: Journal, real: RealJournal) -> None:
    real.write(Logged("x", 4, after_s=1.5), Logged("y", None))
    first, second = journal.read(Extract(UNIT, 10)).entries
    assert first.time() == datetime(2026, 11, 20, 12, 0, 1, 500_000, UTC)
    assert (first.level, first.stamp_us, first.boot) == ("warning", NOON_US + 1_500_000, BOOT)
    place = place_of(first.cursor)
    assert place is not None
    assert (place.boot, place.stamp_us) == (BOOT, first.stamp_us)
    # The default of journald for entries without a priority.
    assert second.level == "info"


def test_only_the_requested_unit_and_boot_are_read(journal: Journal, real: RealJournal) -> None:
    real.write("before", Logged("theirs", unit="other.service"), Logged("after", boot=NEXT_BOOT))
    assert texts(journal) == ["before", "after"]
    assert texts(journal, boot=True) == ["after"]
    assert journal.read(Extract("nobody.service", 10)).entries == ()


def test_only_newer_entries_follow_a_cursor(journal: Journal, real: RealJournal) -> None:
    real.write("old")
    (old,) = journal.read(Extract(UNIT, 10)).entries
    assert texts(journal, after=old.cursor) == []
    real.write("new", "newer")
    assert texts(journal, after=old.cursor) == ["new", "newer"]


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("script", "<script>alert(1)</script>"),
        ("colour", "red rgb"),
        ("screen", "·c cleared"),
        ("link", "text ·]open"),
        ("carriage", "good·bad"),
        ("bell", "a·b·c·d·e·f"),
        ("bidi", "user ·gnp.exe· ·x· ·"),
        ("unseen", "a·b·c·d·e·f"),
        ("lines", "one\n  two\n\tthree"),
        ("emoji", "🛠️ fertig – 完了 ✔ 👩‍💻"),
        ("empty", ""),
    ],
)
def test_cli_11_a_message_is_cleaned_for_display(
    journal: Journal, real: RealJournal, message: str, text: str
) -> None:
    real.write(HOSTILE[message])
    assert texts(journal) == [text]


def test_cli_11_a_long_message_is_cut(journal: Journal, real: RealJournal) -> None:
    real.write("n" * 4096, "n" * 4097, "m" * (1 << 20))
    assert texts(journal) == ["n" * 4096, "n" * 4096 + " …", "m" * 4096 + " …"]


def test_cli_12_a_secret_across_the_cut_is_not_shown_in_part(
    journal: Journal, real: RealJournal, device: Device
) -> None:
    key = "canary0" * 50
    device.put("/etc/platform/secrets.env", f"SOME_API_KEY={key}\n")
    for start in (4000, 4090, 4096):
        real.write("- " * (start // 2) + key + " -" * 20_000)
    assert not any("canary" in text for text in texts(journal))


def test_cli_12_a_changed_keys_file_is_read_again_and_an_unreadable_one_does_not_hide_the_log(
    journal: Journal, real: RealJournal, device: Device
) -> None:
    secrets = device.path("/etc/platform/secrets.env")
    real.write("canary-one and canary-two and sk-canary-0123456789abcdef")
    for content, expected in (
        ("", "canary-one and canary-two and •••"),
        ("A_KEY=canary-one\n", "••• and canary-two and •••"),
        ("A_KEY=canary-one\nA_KEY='canary-two'\n", "••• and ••• and •••"),
    ):
        secrets.write_text(content)
        assert texts(journal) == [expected]
    secrets.unlink()
    secrets.mkdir()
    assert texts(journal) == ["canary-one and canary-two and •••"]


def test_a_line_that_is_too_long_is_reported(journal: Journal, real: RealJournal) -> None:
    real.write("before", "k" * (5 << 20))
    assert texts(journal) == ["before", "(too long to show)"]


def test_at_most_a_thousand_of_the_last_lines_are_read_at_once(
    journal: Journal, real: RealJournal
) -> None:
    real.write(*map(str, range(1200)))
    assert texts(journal, 10) == [str(number) for number in range(1190, 1200)]
    assert texts(journal, 1000) == [str(number) for number in range(200, 1200)]


def test_cli_09_journalctl_gets_each_value_as_one_argument(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = f'for word; do echo "$word"; done >{tmp_path}/words'
    monkeypatch.setenv("PATH", stand_in(tmp_path / "bin", "journalctl", script)["PATH"])
    journal = Journal(KnownSecrets(Paths(tmp_path, {})), Path("/some/journal"), limit_s=5)
    journal.read(Extract(UNIT, 57, boot=True, after="s=1"))
    assert (tmp_path / "words").read_text().splitlines() == [
        "--unit=openclaw.service",
        "--lines=57",
        "--output=json",
        "--no-pager",
        "--quiet",
        "--utc",
        "--all",
        "--output-fields=MESSAGE,PRIORITY",
        "--directory=/some/journal",
        "--boot",
        "--after-cursor=s=1",
    ]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (b"Nov 20 12:00:00 host openclaw[1]: plain", "Nov 20 12:00:00 host openclaw[1]: plain"),
        (b"\xff\x1b[31mx", "\ufffdx"),
        (b"[1, 2]", "[1, 2]"),
        (b'"text"', '"text"'),
        (b"{", "{"),
        (b"[" * 5000, "[" * 4096 + " …"),
        (b'{"MESSAGE":null}', "(too long to show)"),
        (b'{"MESSAGE":["a","b"]}', "a\nb"),
        (b'{"MESSAGE":[[104,105],"b",null]}', "hi\nb\n(too long to show)"),
        (b'{"MESSAGE":[104,999]}', "[104, 999]"),
        (b'{"MESSAGE":[-1]}', "[-1]"),
        (b'{"MESSAGE":[]}', ""),
        (b'{"MESSAGE":7}', "7"),
        (b'{"MESSAGE":{"a":[1]}}', "{'a': [1]}"),
        (b"{}", ""),
    ],
)
def test_any_line_of_journalctl_is_an_entry(line: bytes, text: str) -> None:
    (entry,) = read_entries(line + b"\n", unchanged)
    assert entry.text == text


@pytest.mark.parametrize("value", [None, 3, "x", "-1", "٣", "9" * 30, ["3"], "99"])
def test_odd_priorities_and_times_cause_no_failure(value: object) -> None:
    line = {"MESSAGE": "x", "PRIORITY": value, "__REALTIME_TIMESTAMP": value, "_BOOT_ID": value}
    (entry,) = read_entries(json.dumps(line | {"__CURSOR": 5}).encode(), unchanged)
    assert entry.level in ("info", "debug")
    assert entry.cursor == ""
    entry.time()
    assert Entry("x", stamp_us=10**19).time() is None


@examples(100)
@given(st.text(max_size=300))
def test_cleaning_shown_text_again_changes_nothing(text: str) -> None:
    assert visible(shown(text, unchanged)) == shown(text, unchanged)


@examples(100)
@given(st.binary(max_size=300))
def test_any_bytes_are_read_as_entries(data: bytes) -> None:
    for entry in read_entries(data, unchanged):
        entry.text.encode()


@pytest.mark.parametrize(
    "cursor", ["", "x", "s=1;i=1", "--help", "s=" + "0" * 32, "a" * 5000, "s=;i=;b=;m=;t=;x=", "\0"]
)
def test_an_invalid_cursor_is_ignored(cursor: str) -> None:
    assert place_of(cursor) is None


def entries(*levels: int | None, boot: str = BOOT) -> list[Entry]:
    return [
        Entry(f"Line {number} <b>", level, NOON_US + number * 1_000_000, boot)
        for number, level in enumerate(levels)
    ]


TODAY = date(2026, 11, 20)


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ({}, [0, 1, 2, 3]),
        ({"prio": "error"}, [1]),
        ({"prio": "warning"}, [1, 2]),
        ({"prio": "nonsense"}, [0, 1, 2, 3]),
        ({"q": "LINE 2"}, [2]),
        ({"q": "<b>", "prio": "info"}, [0, 1, 2]),
        ({"q": ".*"}, []),
        ({"q": "  "}, [0, 1, 2, 3]),
    ],
)
def test_filters_keep_the_matching_lines(query: dict[str, str], numbers: list[int]) -> None:
    filters = Filters.of(query, Units())
    rows = rows_of(entries(6, 3, 4, None), filters, boot="", day=TODAY)
    assert [int(row.text.split()[1]) for row in rows] == numbers


def test_filters_survive_a_round_trip_through_an_address() -> None:
    filters = Filters("platform-pwa.service", 57, "warning", "a&b=c #%", boot=True)
    assert Filters.of(dict(parse_qsl(filters.query)), Units()) == filters


def test_a_restart_and_a_new_day_are_marked_before_their_first_line() -> None:
    logged = [*entries(6, 6), *entries(6, 3, boot=NEXT_BOOT)]
    shown_ = rows_of(logged, Filters(UNIT, prio="error"), boot="", day=TODAY)
    assert [(row.level, bool(row.boot)) for row in shown_] == [("error", True)]
    every = rows_of(logged, Filters(UNIT), boot=BOOT, day=date(2026, 11, 21))
    assert [bool(row.boot) for row in every] == [False, False, True, False]
    assert [bool(row.day) for row in every] == [True, False, False, False]


def test_the_newest_rows_are_kept_when_there_are_too_many() -> None:
    rows = rows_of(entries(*[6] * 50), Filters(UNIT), boot="", day=TODAY)
    assert newest(rows, 1 << 20) == rows
    kept = newest(rows, 2_000)
    assert kept == rows[-len(kept) :]
    assert 0 < len(kept) < 50
    assert newest(rows, 10) == []
