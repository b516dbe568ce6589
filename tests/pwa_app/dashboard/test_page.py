"""The start page and the update page: how they show the answers of the control CLI."""

from __future__ import annotations

import json
import re
import resource
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import html5lib
import pytest
from flask.testing import FlaskClient
from hypothesis import given
from hypothesis import strategies as st

from platform_common.message import Sentence
from platform_common.process.run import Finished
from pwa_app.app import create_app
from pwa_app.settings import PwaSettings
from tests.pwa_app.conftest import Dashboard
from tests.pwa_app.test_overview import children
from tests.support.control_cli import FakeCtl
from tests.support.dashboard_states import STATES, UPDATE_STATES, WITH_STUB, fine, set_answers
from tests.support.devices import Device
from tests.support.properties import examples
from tests.support.releases import program
from tests.support.web_servers import Served, served


def page(client: FlaskClient, address: str = "/app/dashboard", **options: Any) -> str:
    answer = client.get(address, **options)
    assert answer.status_code == 200
    assert answer.content_type == "text/html; charset=utf-8"
    return answer.text


def words(text: str, part: str = "") -> str:
    """The text of a page, or of one card, without its markup."""
    tree = html5lib.parse(text, namespaceHTMLElements=False)
    parts = tree.iter("section") if part else tree.iter("body")
    (found,) = (one for one in parts if one.get("id") == part or not part)
    return " ".join(" ".join(found.itertext()).split())


def shown(client: FlaskClient, ctl: FakeCtl, **changes: dict[str, object]) -> str:
    """The page for the answers of a healthy device with these changes."""
    set_answers(ctl, {call: answer | changes.get(call, {}) for call, answer in fine().items()})
    return page(client)


@pytest.mark.parametrize("state", STATES)
def test_cli_14_every_state_gives_a_valid_page(
    client: FlaskClient, ctl: FakeCtl, state: str
) -> None:
    STATES[state](ctl)
    text = page(client)
    html5lib.HTMLParser(strict=True).parse(text)
    assert "style=" not in text
    assert "<script>" not in text
    assert ("stub" in text) is (state in WITH_STUB)


@pytest.mark.parametrize("state", UPDATE_STATES)
def test_every_update_state_gives_a_valid_page(
    client: FlaskClient, ctl: FakeCtl, state: str
) -> None:
    UPDATE_STATES[state](ctl)
    html5lib.HTMLParser(strict=True).parse(page(client, "/app/update"))


LOOK = "The gateway is running, but something needs your attention"
HEADLINES = {
    "fine": ("Everything is fine", "The gateway is running, and all 4 health checks passed."),
    "warnings": (LOOK, "The cost is close to its cap.", "1 health check shows a warning."),
    "problems": ("Something needs your attention", "1 health check found a problem."),
    "gateway-down": ("The gateway is not running", "Its log says why it stopped."),
    "over-budget": ("Something needs your attention", "A cost cap has been reached."),
    "partial-stub": (
        LOOK,
        *(f"There is no information about the {one}." for one in ("limits", "cost")),
    ),
    "all-stub": ("The control CLI is not answering", "The control CLI did not answer."),
    "empty": (
        "We could not find out whether the gateway is running.",
        "No health check was reported.",
    ),
}


@pytest.mark.parametrize("state", HEADLINES)
def test_the_overall_state_comes_first(client: FlaskClient, ctl: FakeCtl, state: str) -> None:
    STATES[state](ctl)
    said = words(page(client))
    top = said[: said.index(" Gateway ")]
    assert [sentence for sentence in HEADLINES[state] if sentence not in top] == []


def test_all_values_of_the_answers_are_on_the_page(client: FlaskClient, ctl: FakeCtl) -> None:
    STATES["fine"](ctl)
    said = words(page(client))
    for text in (
        *("OpenClaw", "3 days", "openclaw-gateway.service", "platform-tunnel.service"),
        "Provider OpenRouter Model anthropic/claude-sonnet-4.6 ",
        "Channels Telegram, E-mail, Matrix ",
        *("2026.11.3", "stable", "6.1.0-40-arm64", "rpi5", "2026.4.25", "Khoj", "1.32.0"),
        *("8,192 MB", "nvme", "High", "signal", "telegram, slack", "Fit the active cooler"),
        *("$0.91", "of $5.00, 18%", "$14.30", "of $100.00, 14%", "$5.46", "14 messages had no"),
        *("openai gpt-4o", "$0.41", "Oct 23, 2026", "Nov 21, 2026", "Amounts are estimates"),
        *("All 4 checks passed", "disk-space", "secrets-mode"),
    ):
        assert text in said


def test_an_unreported_value_is_shown_as_a_dash_and_not_as_0(
    client: FlaskClient, ctl: FakeCtl
) -> None:
    STATES["empty"](ctl)
    text = page(client)
    body = words(text)
    body = body[body.index(" Gateway ") :]
    assert re.findall(r"[0-9$]", body.replace("7 days", "")) == []
    assert body.count("—") > 20


def test_a_reported_zero_is_shown_as_zero(client: FlaskClient, ctl: FakeCtl) -> None:
    text = shown(client, ctl, cost={"today_usd": 0, "unknown_messages": 0, "daily_cap_usd": 0})
    said = words(text, "cost")
    assert "Today $0.00 No daily cap" in said
    assert "All messages are counted." in said
    # The share of a cap is calculated if it is not reported.
    cost = {name: value for name, value in fine()["cost"].items() if not name.endswith("_pct")}
    set_answers(ctl, fine() | {"cost": cost})
    assert "of $5.00, 18%" in words(page(client), "cost")


def test_unknown_values_in_limits_are_shown(client: FlaskClient, ctl: FakeCtl) -> None:
    limits: dict[str, object] = {
        "tier": "tiny",
        "ram_class": "8gb",
        "storage_class": "emmc",
        "limitations": [{"id": "no-voice"}, {"reason": "It is hot."}, {}],
    }
    said = words(shown(client, ctl, limits=limits), "limits")
    assert "stub" not in said
    for text in ("tiny", "8gb", "emmc", "no-voice", "It is hot."):
        assert text in said


@pytest.mark.parametrize("call", fine())
def test_cli_04_a_failed_call_only_affects_its_own_part(
    client: FlaskClient, ctl: FakeCtl, call: str
) -> None:
    set_answers(ctl, fine())
    ctl.answer(f"{call} --json", "", status=1, errors="error: the reason\n")
    text = page(client)
    name = {"status": "gateway", "doctor": "health"}.get(call, call)
    assert text.count("stubbed") == 1
    assert f"stub {call} --json failed: the reason" in words(text, name)
    assert "—" in words(text, name) or "No checks were reported." in words(text, name)


def test_only_chosen_values_of_the_provider_are_shown(client: FlaskClient, ctl: FakeCtl) -> None:
    none: dict[str, object] = {"provider": {}, "channels": []}
    said = words(shown(client, ctl, status=none), "gateway")
    assert [word for word in ("Provider", "Model", "Address", "Channels") if word in said] == []
    assert "Profile OpenClaw Running for" in said
    address = "https://models.example/v1"
    for provider, expected in (
        ({"id": "openrouter", "endpoint": address}, f"Provider openrouter Address {address} Chan"),
        ({"id": "somebody"}, "Provider somebody Channels"),
    ):
        assert expected in words(shown(client, ctl, status={"provider": provider}), "gateway")


def test_long_lists_are_shortened_and_the_rest_is_counted(
    client: FlaskClient, ctl: FakeCtl
) -> None:
    checks = [{"name": f"n{n}", "outcome": {"kind": "Fail"}} for n in range(1000)]
    channels = [f"channel-{number}" for number in range(1000)]
    days = [{"date": f"2026-{m:02}-{d:02}", "usd": m} for m in (11, 10) for d in range(1, 29)]
    text = shown(
        client, ctl, doctor={"checks": checks}, status={"channels": channels}, cost={"days": days}
    )
    for part, there, not_there in (
        ("health", "and 970 more", ""),
        ("gateway", "channel-0, channel-1, ", ""),
        ("gateway", "channel-29, … ", "channel-30"),
        ("cost", "7 days $77.00", ""),
        ("cost", "Oct 27, 2026", "Oct 26, 2026"),
    ):
        said = words(text, part)
        assert there in said
        assert not not_there or not_there not in said
    assert len(text) < 60_000


def test_the_gateway_state_is_shown_as_a_word(client: FlaskClient, ctl: FakeCtl) -> None:
    for state, word in (
        *(("active", "Running"), ("activating", "Starting"), ("deactivating", "Stopping")),
        *(("reloading", "Reloading"), ("inactive", "Stopped"), ("failed", "Failed")),
        *(("unavailable", "Unknown"), ("<b>", "Unknown")),
    ):
        status: dict[str, object] = {"active_state": state, "agent": {"active_state": state}}
        said = words(shown(client, ctl, status=status), "gateway")
        assert re.search(rf"Gateway [●▲■○] {word} ", said)


def test_a_tripped_cap_is_stated_plainly(client: FlaskClient, ctl: FakeCtl) -> None:
    day, month = {"daily_state": "tripped"}, {"monthly_state": "tripped"}
    one = "A cost cap has been reached."
    cases: list[tuple[dict[str, Any], str]] = [
        ({"cost": day | {"tripped": True}}, "The daily cap has been reached."),
        ({"cost": month}, "The monthly cap has been reached."),
        ({"cost": day | month}, "The daily cap and the monthly cap have been reached."),
        *(({"cost": {"tripped": True}}, one), ({"status": {"cost_tripped": True}}, one)),
    ]
    for answers, sentence in cases:
        text = shown(client, ctl, **answers)
        assert sentence in words(text, "cost")
        assert "A cost cap has been reached." in words(text)


def test_problems_come_first_and_say_what_to_do(client: FlaskClient, ctl: FakeCtl) -> None:
    STATES["problems"](ctl)
    said = words(page(client), "health")
    problem, warning = said.index("disk-space 91 % of / is full"), said.index("secrets-mode")
    assert problem < warning < said.index("1 check passed")
    assert "What to do: Remove what is not needed, or add room" in said


def test_counts_without_checks_are_shown(client: FlaskClient, ctl: FakeCtl) -> None:
    text = shown(client, ctl, doctor={"checks": [], "fails": 2, "warns": 0, "passes": 9})
    assert "Problems: 2, warnings: 0. The control CLI did not name them." in words(text, "health")
    assert "2 health checks found a problem." in words(text)


def test_the_page_shows_its_time_and_is_also_in_german(client: FlaskClient, ctl: FakeCtl) -> None:
    STATES["fine"](ctl)
    english, german, again = (
        page(client, headers={"Accept-Language": code}) for code in ("en", "de", "en")
    )
    assert re.search(r"Checked [0-9]{2}:[0-9]{2}:[0-9]{2} Refresh", words(english))
    assert 'href="/app/dashboard">Refresh' in english
    assert "$14.30" in english
    assert "14,30\xa0$" in german
    assert "$14.30" in again


# Dev-stub mode.


def test_without_a_control_cli_or_in_dev_stub_mode_sample_values_are_shown(
    dashboard: Dashboard, ctl: FakeCtl, tmp_path: Path
) -> None:
    text = page(dashboard(PWA_DEV_STUB="1"))
    assert "stub The dashboard runs in dev-stub mode, so these are sample values." in words(text)
    assert "OpenClaw" in words(text)
    text = page(dashboard(PLATFORM_CTL="platformctl", PATH=str(tmp_path)))
    assert text.count('class="stub"') == 6
    assert "The control CLI was not found, so these are sample values." in words(text)
    assert ctl.calls() == []


def test_cli_05_the_served_dashboard_needs_no_control_cli(device: Device, tmp_path: Path) -> None:
    environment = {"PLATFORM_ROOT": str(device.root), "PLATFORM_CTL": "/nowhere/ctl"}
    with served("pwa-app", environment, tmp_path / "log") as running:
        assert get(running, "/").count('class="stub"') == 6


def get(running: Served, path: str) -> str:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(running.url + path, timeout=60) as answer:
        text: str = answer.read().decode()
        return text


def test_fs_05_a_server_without_descriptors_answers_and_recovers(
    device: Device, ctl: FakeCtl, tmp_path: Path
) -> None:
    set_answers(ctl, fine())
    environment = ctl.environment | {"PLATFORM_ROOT": str(device.root)}
    with served("pwa-app", environment, tmp_path / "log") as running:
        assert "stub" not in get(running, "/app/dashboard")
        (worker,) = children(running.process.pid)
        usual = resource.prlimit(worker, resource.RLIMIT_NOFILE)
        used = len(list(Path(f"/proc/{worker}/fd").iterdir()))
        seen = []
        for free in range(3, 9):
            resource.prlimit(worker, resource.RLIMIT_NOFILE, (used + free, usual[1]))
            seen.append(get(running, "/app/dashboard").count("Too many open files"))
        resource.prlimit(worker, resource.RLIMIT_NOFILE, usual)
        assert seen[0] == 5
        assert "stub" not in get(running, "/app/dashboard")
        assert len(list(Path(f"/proc/{worker}/fd").iterdir())) <= used + 2


# Updates.


def test_an_update_is_shown_with_what_happens(client: FlaskClient, ctl: FakeCtl) -> None:
    UPDATE_STATES["available"](ctl)
    said = words(page(client, "/app/update"))
    for text in (
        *("An update is available", "2026.11.3 → 2026.11.9", "stable", "rpi5", "openclaw"),
        *("platform-openclaw-rpi5-2026.11.9-stable.img.xz", "What happens"),
        *("https://releases.example/stable/manifest.json", "platformctl update --apply"),
    ):
        assert text in said
    assert ctl.words() == ["update --check --json"]


def test_without_an_update_the_page_says_why(client: FlaskClient, ctl: FakeCtl) -> None:
    for state, sentence in {
        "current": "This device is up to date",
        "not-checked": "We could not check for updates: the origin does not answer",
        "no-command": "The control CLI does not support update --check --json",
        "empty": "The control CLI did not say whether there is an update.",
    }.items():
        UPDATE_STATES[state](ctl)
        said = words(page(client, "/app/update"))
        assert sentence in said
        assert "--apply" not in said
        assert client.get("/app/update?notice").status_code == 204


def test_the_notice_for_the_start_page_is_one_paragraph(client: FlaskClient, ctl: FakeCtl) -> None:
    UPDATE_STATES["hostile"](ctl)
    text = page(client, "/app/update?notice=1")
    assert text.startswith("<p")
    assert "<script" not in text
    UPDATE_STATES["available"](ctl)
    assert "Release 2026.11.9 is available." in page(client, "/app/update?notice=1")


def test_our_own_control_cli_does_not_support_updates(dashboard: Dashboard) -> None:
    client = dashboard(PLATFORM_CTL=program("platformctl"))
    assert "We could not check for updates: The control CLI does not support" in words(
        page(client, "/app/update")
    )


# Any answer at all.


class PreparedCli:
    """A control CLI that answers each call with prepared JSON."""

    sample: Sentence | None = None

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}

    def run(
        self, words: Sequence[str], *, stdin: bytes = b"", limit_s: float | None = None
    ) -> Finished:
        return Finished(0, json.dumps(self.answers[words[0]]).encode())


def _like(sample: Any) -> st.SearchStrategy[Any]:
    """JSON like `sample`, with random values of the same types and sometimes of another type."""
    match sample:
        case bool():
            usual: st.SearchStrategy[Any] = st.booleans()
        case int() | float():
            usual = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
            usual |= st.sampled_from([0, -1, -0.0, 10**30, -(10**400), 1e308, -1e308, 5e-324])
        case str():
            texts = ["", "active", "tripped", "Pass", "Fail", "low", "2026-11-21", "9999-12-31"]
            usual = st.just(sample) | st.text() | st.sampled_from([*texts, "x" * 10_000, "\0"])
        case list():
            usual = st.lists(_like(sample[0]), max_size=40) if sample else st.just([])
        case dict():
            usual = st.fixed_dictionaries(
                {}, optional={name: _like(value) for name, value in sample.items()}
            )
        case _:
            usual = st.none()
    odd: st.SearchStrategy[Any] = (
        st.none() | st.text(max_size=3) | st.integers() | st.just([]) | st.just({})
    )
    return st.integers(0, 30).flatmap(lambda chance: odd if chance == 0 else usual)


ANSWERS = st.fixed_dictionaries({call: _like(answer) for call, answer in fine().items()})


@pytest.fixture(scope="module")
def any_answer(tmp_path_factory: pytest.TempPathFactory) -> tuple[PreparedCli, FlaskClient]:
    root = tmp_path_factory.mktemp("device")
    cli = PreparedCli()
    settings = PwaSettings.from_env({"PLATFORM_ROOT": str(root), "PATH": ""})
    return cli, create_app(settings, cli=cli).test_client()


@pytest.mark.parametrize("most", [30, pytest.param(300, marks=pytest.mark.long)])
def test_cli_14_no_answer_breaks_the_page(
    any_answer: tuple[PreparedCli, FlaskClient], most: int
) -> None:
    cli, client = any_answer

    @examples(most)
    @given(answers=ANSWERS)
    def check(answers: dict[str, Any]) -> None:
        cli.answers = answers
        html5lib.HTMLParser(strict=True).parse(page(client))

    check()


@examples(50)
@given(
    answer=st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_cli_14_no_json_breaks_the_page(
    any_answer: tuple[PreparedCli, FlaskClient], answer: object
) -> None:
    cli, client = any_answer
    cli.answers = dict.fromkeys(fine(), answer)
    page(client)
