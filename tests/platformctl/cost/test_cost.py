"""`platformctl cost`."""

from __future__ import annotations

import json
import re
import stat
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from platform_common import control_answers
from platform_common.errors import PlatformError
from platform_common.formats.decode import from_json
from platformctl.answers import Ledger
from platformctl.cost import service
from platformctl.cost import summary as costs
from platformctl.root_helper.remote_operation import NOTHING
from tests.platformctl.conftest import run_at_terminal
from tests.support.devices import Device
from tests.support.memory import peak_kib
from tests.support.releases import clean_environment, program

CAPS = "/etc/platform/cost.toml"
SHEET = "/etc/platform/cost-defaults.json"
LEDGER = "/home/agent/.openclaw/cost-ledger.jsonl"
NOW = datetime.now(UTC)


@pytest.fixture
def device(tmp_path: Path) -> Device:
    """A device whose active profile is openclaw."""
    device = Device(tmp_path)
    device.put("/etc/platform/active-profile", "openclaw\n")
    return device


def line(days_ago: float = 0, **members: Any) -> str:
    when = (NOW - timedelta(days=days_ago)).isoformat()
    return json.dumps({"timestamp": when, "provider": "openai", "model": "gpt-4o"} | members) + "\n"


def cost(device: Device, **env: str) -> control_answers.Cost:
    """The answer to `cost --json`, read as the apps read it."""
    done = device.call("cost", "--json", env=env)
    assert done.returncode == 0, done.stderr
    return from_json(done.stdout.encode(), control_answers.Cost)


def test_the_answer_has_the_amounts_spent_and_their_share_of_the_caps(device: Device) -> None:
    device.put(CAPS, "[caps]\ndaily_usd = 5.0\nmonthly_usd = 0\n[behaviour]\nwarn_at_pct = 60\n")
    device.put(LEDGER, line(cost_usd=0.1) * 40 + line(provider="nobody"))
    answer = cost(device)
    assert (answer.today_usd, answer.month_usd) == (4.0, 4.0)
    assert (answer.daily_cap_usd, answer.daily_pct, answer.daily_state) == (5.0, 80.0, "warn")
    assert (answer.monthly_cap_usd, answer.monthly_pct, answer.monthly_state) == (0.0, 0.0, "ok")
    assert (answer.tripped, answer.unknown_messages) == (False, 1)
    assert (len(answer.days), answer.days[-1].usd) == (30, 4.0)
    assert answer.days[-1].date == NOW.date().isoformat()
    assert (len(answer.recent_expensive), answer.recent_expensive[0].cost_usd) == (10, 0.1)
    assert answer.recent_expensive[0].timestamp == NOW.isoformat().replace("+00:00", "Z")


def test_the_state_of_a_window_is_ok_warn_or_tripped() -> None:
    for spent_nano, cap_usd, pct, state in (
        # Without a cap.
        *((10**12, 0.0, 0.0, "ok"), (10**12, -1.0, 0.0, "ok"), (0, 5.0, 0.0, "ok")),
        # Around the share at which it warns, and around the cap.
        *((3_999_999_999, 5.0, 79.99999998, "ok"), (4 * 10**9, 5.0, 80.0, "warn")),
        *((4_999_999_999, 5.0, 99.99999998, "warn"), (5 * 10**9, 5.0, 100.0, "tripped")),
        (15 * 10**9, 5.0, 300.0, "tripped"),
        # A cap that a float cannot represent exactly, and a tiny one.
        (300_000_000, 0.3, 100.0, "tripped"),
        *((0, 1e-12, 0.0, "ok"), (1, 1e-12, 100.0, "tripped")),
    ):
        found = costs.window_state(spent_nano, cap_usd, 80.0)
        assert found[0] == pytest.approx(pct)
        assert found[1] == state


def test_fifty_times_ten_cents_reach_a_cap_of_five_dollars(device: Device) -> None:
    device.put(LEDGER, line(cost_usd=0.1) * 49)
    assert not service.SUMMARY(device.paths, NOTHING).cost.tripped
    device.put(LEDGER, line(cost_usd=0.1) * 50)
    assert service.SUMMARY(device.paths, NOTHING).cost.tripped


def test_a_message_without_a_cost_is_priced_by_the_rate_sheet_of_the_device(device: Device) -> None:
    device.put(SHEET, '{"providers": {"openai": {"input_per_1m_usd": 2, "output_per_1m_usd": 10}}}')
    device.put(LEDGER, line(input_tokens=500_000, output_tokens=100_000))
    assert cost(device).today_usd == 2.0


def test_without_a_ledger_or_a_profile_nothing_was_spent_and_nothing_can_be_reset(
    device: Device,
) -> None:
    for _ in range(2):
        answer = cost(device)
        assert (answer.month_usd, answer.daily_cap_usd, answer.monthly_cap_usd) == (0.0, 5.0, 100.0)
        done = device.call("cost", "reset", "--yes")
        assert (done.returncode, done.stdout) == (0, "There is no ledger; nothing was spent.\n")
        device.path("/etc/platform/active-profile").unlink(missing_ok=True)


def test_a_variable_names_another_ledger(device: Device, tmp_path: Path) -> None:
    broken = device.put("/etc/platform/active-profile", "not\na profile\n")
    assert device.call("cost").stderr.startswith(f"error: {broken}: must be one line")
    other = device.put("/elsewhere", line(cost_usd=2))
    assert cost(device, PLATFORM_COST_LEDGER=str(other)).today_usd == 2.0


@pytest.mark.parametrize("last", ["\n", ""], ids=["whole", "torn"])
def test_invalid_lines_are_reported_and_skipped(device: Device, last: str) -> None:
    device.put(LEDGER, line(cost_usd=1) + "\x00\x1b[31m\n" + line(cost_usd=2) + '{"timest' + last)
    done = device.call("cost", "--json")
    assert (done.returncode, json.loads(done.stdout)["today_usd"]) == (0, 3.0)
    ledger = device.path(LEDGER)
    assert done.stderr == f"warning: {ledger}: 2 lines could not be read and count as 0\n"


def test_clk_01_a_day_in_the_future_is_reported(device: Device) -> None:
    device.put(LEDGER, line(cost_usd=1) + line(-400, cost_usd=9))
    done = device.call("cost")
    assert "left out 1 line of a day that has not come" in done.stderr
    assert "hint: Check the clock" in done.stderr
    assert "$1.00 of $5.00" in done.stdout


def test_a_large_ledger_uses_little_memory(device: Device) -> None:
    one = line(cost_usd=0.001, request_id="r" * 100)
    path = device.put(LEDGER, one * 200_000)
    assert path.stat().st_size > 40 << 20
    env = clean_environment() | {"PLATFORM_ROOT": str(device.root)}
    assert peak_kib([program("platformctl"), "cost"], cwd=device.root, env=env) < 60 << 10


def test_the_text_for_people_has_the_windows_the_days_and_the_most_expensive_messages(
    device: Device,
) -> None:
    device.put(LEDGER, line(cost_usd=4.2) + line(3, model="evil\x1b[2J", cost_usd=0.00001))
    status, shown = run_at_terminal(device, "cost")
    assert status == 0
    assert re.search(r"Today.*\$4\.20 of \$5\.00.*█.*84 %.*\x1b\[33mwarn", shown)
    assert "▁▁█" in shown
    assert "<$0.0001" in shown
    assert "evil\\x1b[2J" in shown


def test_a_pipe_gets_plain_text(device: Device) -> None:
    device.put(LEDGER, line(cost_usd=6))
    done = device.ctl("cost", env={"PYTHONIOENCODING": "ascii"})
    assert done.stdout.splitlines()[0] == (
        f"Today       {'$6.00 of $5.00':<20}  {'#' * 20}  120 %  tripped"
    )


def test_set_changes_the_given_values_and_keeps_the_others(device: Device) -> None:
    text = '# mine\n[behaviour]\non_cap_trip = "warn" # not pause\n\n[caps]\ndaily_usd = 1\nx = 2\n'
    device.put(CAPS, text, mode=0o600)
    done = device.call("cost", "set", "--daily", "2.5", "--warn-at", "75")
    assert done.returncode == 0, done.stderr
    assert device.path(CAPS).read_text() == text.replace(
        "not pause\n", "not pause\nwarn_at_pct = 75\n"
    ).replace("daily_usd = 1", "daily_usd = 2.5")
    assert stat.S_IMODE(device.path(CAPS).stat().st_mode) == 0o644
    assert done.stdout.splitlines() == [
        "Daily cap    $2.50",
        "Monthly cap  $100.00",
        "At a cap     warn",
        "Warning at   75 %",
    ]


@pytest.mark.parametrize(
    "options",
    [
        *("set", "set --daily nan", "set --daily inf", "set --monthly -1", "set --monthly 1e7"),
        *("set --daily five", "set --warn-at 0", "set --warn-at 101", "set --on-trip stop"),
        *("set 5", "ledger --lines 0", "ledger --lines 10001", "ledger --lines x", "--json ledger"),
    ],
)
def test_meaningless_options_are_wrong_usage(device: Device, options: str) -> None:
    assert device.call("cost", *options.split()).returncode == 64
    assert not device.path(CAPS).exists()


def test_two_simultaneous_changes_are_both_kept(device: Device) -> None:
    with ThreadPoolExecutor() as pool:
        ended = pool.map(
            lambda options: device.ctl("cost", "set", *options),
            [("--daily", "1"), ("--monthly", "2"), ("--warn-at", "3"), ("--on-trip", "warn")],
        )
        assert [done.stderr for done in ended if done.returncode] == []
    caps = costs.read_caps(device.paths)
    assert (caps.caps.daily_usd, caps.caps.monthly_usd) == (1.0, 2.0)
    assert (caps.behaviour.warn_at_pct, caps.behaviour.on_cap_trip) == (3.0, "warn")


def test_reset_puts_the_ledger_aside_and_loses_no_line(device: Device) -> None:
    text = line(cost_usd=6) + "torn"
    device.put(LEDGER, text)
    done = device.call("cost", "reset", "--yes")
    assert done.returncode == 0, done.stderr
    (aside,) = device.path(LEDGER).parent.iterdir()
    assert re.fullmatch(r"cost-ledger\.[0-9]{8}T[0-9]{6}\.[0-9]{6}Z\.jsonl", aside.name)
    assert str(aside) in done.stdout
    assert aside.read_text() == text
    assert not cost(device).tripped


def test_two_resets_within_a_second_lose_no_line(device: Device) -> None:
    for number in (1, 2):
        device.put(LEDGER, line(cost_usd=number))
        if number == 1:
            assert costs.reset(device.paths, NOW) is not None
    with pytest.raises(PlatformError, match="already exists"):
        costs.reset(device.paths, NOW)
    assert len(list(device.path(LEDGER).parent.glob("cost-ledger*.jsonl"))) == 2


@pytest.mark.parametrize(
    ("typed", "status", "kept"),
    [("y\n", 0, False), ("n\n", 1, True), ("\n", 1, True), ("\x04", 130, True)],
    ids=["yes", "no", "enter", "end-of-input"],
)
def test_a_reset_needs_confirmation(device: Device, typed: str, status: int, kept: bool) -> None:
    path = device.put(LEDGER, line())
    ended, shown = run_at_terminal(device, "cost", "reset", typed=typed)
    assert (ended, path.exists()) == (status, kept), shown
    device.put(LEDGER, line())
    # Without a terminal an option is needed.
    done = device.ctl("cost", "reset", stdin=typed)
    assert (done.returncode, path.exists()) == (64, True)
    assert "hint: To agree, add --yes" in done.stderr


def test_the_ledger_shows_the_newest_messages_last(device: Device) -> None:
    lines = [
        *(line(2, cost_usd=1), "foreign\n", line(1, cost_usd=0.25, request_id="a"), "torn\n"),
        *(line(provider="openai", input_tokens=1_000_000), line(provider="nobody")),
    ]
    device.put(LEDGER, "".join(lines))
    done = device.call("cost", "ledger", "--lines", "3", "--json")
    answer = from_json(done.stdout.encode(), Ledger)
    found = [
        (one.provider, one.cost_usd, one.estimated, one.cost_unknown) for one in answer.entries
    ]
    assert found == [
        ("openai", 0.25, False, False),
        ("openai", 2.5, True, False),
        ("nobody", 0.0, False, True),
    ]
    assert (answer.entries[0].request_id, answer.unreadable_lines) == ("a", 1)
    assert done.stderr == "warning: 1 line among these could not be read\n"
    table = device.call("cost", "ledger").stdout.splitlines()
    assert [row.split()[-1] for row in table] == ["NOTE", "$1.00", "$0.25", "estimated", "unknown"]


def test_an_empty_ledger_is_reported_and_a_time_before_year_one_in_utc_is_shown(
    device: Device,
) -> None:
    done = device.call("cost", "ledger")
    assert (done.returncode, done.stdout) == (0, "There are no messages in the ledger.\n")
    device.put(LEDGER, '{"timestamp": "0001-01-01T00:00:00+14:00", "provider": "x"}\n')
    assert "0001-01-01 00:00:00" in device.call("cost", "ledger").stdout


@pytest.mark.parametrize("call", ["cost", "cost ledger"])
def test_a_file_of_junk_is_refused_after_a_limited_number_of_lines(
    device: Device, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    most = 1_000_000 if call == "cost" else 1_000
    monkeypatch.setattr(costs, "MOST_UNREADABLE", most)
    device.put(LEDGER, "xx\n" * (most + 100_000))
    done = device.call(*call.split())
    assert done.returncode == 1
    assert f"is not a ledger: more than {most:,} of its lines are not messages" in done.stderr
    assert "cost reset" in done.stderr
