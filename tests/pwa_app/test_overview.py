"""The five calls of the dashboard: in parallel, shared, and none delays the page."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest
from flask.testing import FlaskClient

from pwa_app.app import create_app
from pwa_app.settings import PwaSettings
from tests.support.control_cli import FakeCtl
from tests.support.dashboard_states import fine, set_answers
from tests.support.devices import Device
from tests.support.waiting import wait_until

FIVE = ["cost --json", "doctor --json", "limits --json", "status --json", "version --json"]
VIEWERS = 32
LONG_S = 20.0


@pytest.fixture
def impatient(device: Device, ctl: FakeCtl) -> Callable[[float], FlaskClient]:
    """Make a client of a dashboard with another time limit for its calls."""

    def make(limit_s: float) -> FlaskClient:
        settings = PwaSettings.from_env(ctl.environment | {"PLATFORM_ROOT": str(device.root)})
        return create_app(msgspec.structs.replace(settings, call_limit_s=limit_s)).test_client()

    return make


def page(client: FlaskClient) -> str:
    answer = client.get("/app/dashboard")
    assert answer.status_code == 200
    return answer.text


def ended(process: int) -> bool:
    """Whether the process ends soon, and does not remain as a zombie."""
    wait_until(lambda: not Path(f"/proc/{process}").exists(), LONG_S)
    return True


def replace_program(ctl: FakeCtl, script: str) -> None:
    ctl.program.write_text(f"#!/bin/sh\n{script}\n")


def children(process: int) -> list[int]:
    """The child processes that still exist."""
    tasks = Path(f"/proc/{process}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]


def test_the_dashboard_makes_five_calls_in_parallel(client: FlaskClient, ctl: FakeCtl) -> None:
    set_answers(ctl, fine(), held=True)
    with ThreadPoolExecutor(1) as pool:
        shown = pool.submit(page, client)
        wait_until(lambda: sorted(ctl.begun()) == FIVE)
        ctl.release()
        assert "stub" not in shown.result()
    assert sorted(ctl.words()) == FIVE


def test_the_next_request_gets_new_answers(client: FlaskClient, ctl: FakeCtl) -> None:
    set_answers(ctl, fine())
    assert "2026.11.3" in page(client)
    set_answers(ctl, fine() | {"version": fine()["version"] | {"release_version": "2026.12.24"}})
    assert "2026.12.24" in page(client)
    assert sorted(ctl.words()) == sorted(FIVE * 2)


def test_cli_08_many_simultaneous_requests_share_the_five_calls(
    client: FlaskClient, ctl: FakeCtl, joined: list[Hashable]
) -> None:
    set_answers(ctl, fine(), held=True)
    with ThreadPoolExecutor(VIEWERS) as pool:
        shown = [pool.submit(page, client.application.test_client()) for _ in range(VIEWERS)]
        wait_until(lambda: len(joined) == 5 * VIEWERS)
        ctl.release()
        assert all("Everything is fine" in text.result() for text in shown)
    assert sorted(ctl.words()) == FIVE


def test_cli_01_a_hanging_call_becomes_a_stub_and_does_not_delay_the_others(
    impatient: Callable[[float], FlaskClient], ctl: FakeCtl
) -> None:
    set_answers(ctl, fine())
    ctl.answer("limits --json", {}, takes_s=60)
    client = impatient(3)
    begun = time.monotonic()
    text = page(client)
    assert time.monotonic() - begun < LONG_S
    assert "did not finish in 3 s" in text
    assert text.count('class="stub"') == 1
    assert sorted(ctl.words()) == [call for call in FIVE if call != "limits --json"]


def test_cli_01_requests_for_a_hanging_call_share_it(
    impatient: Callable[[float], FlaskClient], ctl: FakeCtl, tmp_path: Path
) -> None:
    replace_program(ctl, f'> {tmp_path}/"$1".$$; exec sleep 60')
    client = impatient(2)
    with ThreadPoolExecutor(8) as pool:
        pages = list(pool.map(lambda _: page(client.application.test_client()), range(8)))
    assert all(text.count("did not finish in 2 s") == 5 for text in pages)
    begun = Counter(path.stem for path in tmp_path.glob("*.*") if path.suffix[1:].isdigit())
    assert set(begun) == {call.split()[0] for call in FIVE}
    # Once, unless a request came so late that the others had finished.
    assert max(begun.values()) <= 2
    assert all(ended(int(path.suffix[1:])) for path in tmp_path.glob("status.*"))


def test_cli_02_children_of_a_call_do_not_delay_the_page(
    client: FlaskClient, ctl: FakeCtl, tmp_path: Path
) -> None:
    replace_program(ctl, f"sleep 60 & echo $! > {tmp_path}/$$.pid; sleep 60 & echo '{{}}'")
    begun = time.monotonic()
    text = page(client)
    assert time.monotonic() - begun < LONG_S
    assert "stub" not in text
    children = [int(path.read_text()) for path in tmp_path.glob("*.pid")]
    assert len(children) == 5
    assert all(ended(child) for child in children)


def test_cli_03_too_much_output_becomes_a_stub(client: FlaskClient, ctl: FakeCtl) -> None:
    replace_program(ctl, "exec yes")
    assert page(client).count("printed more than 1,048,576 bytes") == 5


def test_cli_04_json_of_a_failed_call_is_used(client: FlaskClient, ctl: FakeCtl) -> None:
    set_answers(ctl, fine(), status=1, errors="error: a check failed\n")
    text = page(client)
    assert "Everything is fine" in text
    assert "stub" not in text


def test_cli_05_a_missing_program_gives_stubs_until_it_is_back(
    client: FlaskClient, ctl: FakeCtl
) -> None:
    set_answers(ctl, fine())
    assert "stub" not in page(client)
    aside = ctl.program.rename(ctl.program.with_name("aside"))
    assert page(client).count("could not be started: No such file") == 5
    aside.rename(ctl.program)
    assert "stub" not in page(client)


@pytest.mark.parametrize("program", ["", "\x7fELF", "#!/no/such/shell\n", None])
def test_cli_05_an_unusable_program_gives_stubs(
    client: FlaskClient, ctl: FakeCtl, program: str | None
) -> None:
    if program is None:
        ctl.program.chmod(0o644)
    else:
        ctl.program.write_text(program)
    text = page(client)
    assert text.count('class="stub"') == 6
    assert program is not None or text.count("could not be started: Permission denied") == 5


def test_cli_06_many_pages_leave_no_process(client: FlaskClient, ctl: FakeCtl) -> None:
    replace_program(ctl, "echo '{}'")
    # Children of other tests do not count.
    others = set(children(os.getpid()))
    for _ in range(20):
        page(client)
    assert set(children(os.getpid())) <= others
