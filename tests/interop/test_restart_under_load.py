"""Our services on a machine with systemd: restarted, killed and stopped while they are asked."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from dev.gateway import Gateway, Manner
from tests.support.gateways import definition
from tests.support.network_namespaces import Network
from tests.support.raw_server import RawServer, Request, response
from tests.support.services import SECONDS, Service, services
from tests.support.waiting import wait_until
from tests.support.web_load import load

STREAM = "text/x-chat-stream"
CHAT = "http://127.0.0.1:8070"
FORMS = {
    "system": [("hostname", "kitchen"), ("timezone", "Europe/Berlin")],
    "provider": [("provider", "slow"), ("api_key", "sk-CaNaRy-0123456789")],
}


@pytest.fixture(scope="module")
def device() -> Iterator[tuple[Service, Service]]:
    with services() as both:
        yield both


@pytest.fixture
def dashboard(device: tuple[Service, Service]) -> Service:
    return device[0]


@pytest.fixture
def wizard(device: tuple[Service, Service]) -> Service:
    return device[1]


@pytest.fixture(params=["dashboard", "wizard"])
def service(request: pytest.FixtureRequest) -> Service:
    """Each of the two."""
    found: Service = request.getfixturevalue(request.param)
    return found


def reload(service: Service) -> None:
    before = service.others()
    service.systemctl("kill", "--kill-who=main", "--signal=HUP")
    wait_until(lambda: set(service.others()).isdisjoint(before))


def restart(service: Service) -> None:
    service.systemctl("restart")


def stop_and_start(service: Service) -> None:
    # As a package is upgraded. Whoever comes meanwhile has systemd start it.
    service.systemctl("stop")
    time.sleep(0.2)
    service.systemctl("start")


@pytest.mark.parametrize("change", [restart, reload, stop_and_start])
def test_a_service_that_begins_anew_under_load_refuses_nobody(
    service: Service, change: Callable[[Service], None]
) -> None:
    with load(service.connect, "/healthz") as ended:
        time.sleep(0.3)
        for _ in range(2):
            change(service)
            time.sleep(0.3)
    assert ended.failed == {}
    assert set(ended.statuses) == {200}
    assert ended.answered > 50


def test_a_service_is_ready_once_systemd_says_so(service: Service) -> None:
    for _ in range(3):
        service.systemctl("stop")
        service.systemctl("start")
        assert service.answers() == "ok"


def test_a_service_that_cannot_serve_is_never_ready(service: Service) -> None:
    settings = "/etc/default/platform-appliance"
    service.machine.write(settings, "GUNICORN_CMD_ARGS=--workers=2\n")
    try:
        service.systemctl("stop")
        asked = service.machine.call("systemctl", "start", f"{service.name}.service")
        assert asked.returncode != 0
        # More often than systemd lets a unit fail by default, which would close the socket.
        for _ in range(5):
            service.machine.call("systemctl", "restart", f"{service.name}.service")
    finally:
        service.machine.run("rm", settings)
    # Who comes now waits for the next try.
    assert service.answers() == "ok"


def test_fs_06_what_is_killed_comes_back_and_nobody_is_refused(service: Service) -> None:
    for victim in (service.others()[0], service.process()):
        with load(service.connect, "/healthz") as ended:
            time.sleep(0.3)
            service.machine.run("kill", "-KILL", str(victim))
            wait_until(lambda gone=victim: gone not in (service.process(), *service.others()))  # type: ignore[misc]  # a default holds it
            wait_until(lambda: service.process() != 0)
            assert service.answers() == "ok"
            time.sleep(0.3)
        # Those that were under way, one of each client at most; the others waited.
        assert "ConnectionRefusedError" not in ended.failed
        assert ended.failed.total() <= 8
        assert ended.answered > 50


def test_fs_06_after_a_crash_the_wizard_asks_for_what_it_forgot(wizard: Service) -> None:
    visitor = wizard.visitor()
    forms = {**FORMS, "provider": [*FORMS["provider"], ("skip_validation", "1")]}
    forms["provider"][0] = ("provider", "openai")
    visitor.answer({"system": forms["system"], "profile": [("profile", "openclaw")]})
    visitor.answer({"provider": forms["provider"]})
    before = wizard.process()
    wizard.machine.run("kill", "-KILL", str(before))
    wait_until(lambda: wizard.process() not in (0, before))
    assert wizard.answers() == "ok"
    # The session is gone, too; answers are kept, secrets never were.
    assert visitor.ask("/wizard/system").status == 401
    again = wizard.visitor()
    page = again.ask("/wizard/review").body
    assert "enter again" in page
    assert "kitchen" in page


def slow_server(network: Network, began: threading.Event) -> RawServer:
    """A provider that answers after some seconds."""

    def answer(_: Request, connection: socket.socket) -> None:
        began.set()
        time.sleep(3)
        connection.sendall(response(json.dumps({"data": []}).encode()))

    with network.inside():
        return RawServer(answer)


def test_fs_10_a_key_test_under_way_gets_its_answer_when_the_wizard_restarts(
    wizard: Service,
) -> None:
    began = threading.Event()
    with slow_server(wizard.network, began) as provider:
        entry = {
            "id": "slow",
            "display_name": "Slow",
            "kind": "chat-compatible",
            "endpoint_default": f"{provider.url}/v1",
            "key_env_var": "SLOW_API_KEY",
            "key_format": "anything",
        }
        records = json.dumps({"providers": [entry]})
        wizard.machine.write("/etc/platform/providers.json", records)
        visitor = wizard.visitor()
        with ThreadPoolExecutor(1) as beside:
            asked = beside.submit(visitor.ask, "/wizard/provider", FORMS["provider"])
            assert began.wait(SECONDS)
            restart(wizard)
            answer = asked.result()
        wizard.machine.run("rm", "/etc/platform/providers.json")
    assert answer.status == 302
    assert visitor.ask("/wizard/provider").status == 401


def test_fs_10_an_answer_in_the_chat_goes_on_while_the_wizard_restarts(wizard: Service) -> None:
    wizard.machine.write(
        "/etc/platform/profiles/box.toml", definition(CHAT, 'protocol = "chat-completions"')
    )
    with wizard.network.inside():
        gateway = Gateway("127.0.0.1", 8070, Manner(pause_s=0.1))
    with gateway:
        serving = threading.Thread(target=gateway.serve_forever, args=(0.01,))
        serving.start()
        try:
            visitor = wizard.visitor()
            visitor.answer({"profile": [("profile", "box")]})
            message = [("message", "hello")]
            with ThreadPoolExecutor(1) as beside:
                asked = beside.submit(visitor.ask, "/chat/message", message, accept=STREAM)
                time.sleep(0.5)
                assert not asked.done()
                restart(wizard)
                answer = asked.result()
        finally:
            gateway.shutdown()
            serving.join()
    wizard.machine.run("rm", "-r", "/etc/platform/profiles")
    assert answer.status == 200
    # To its end.
    assert '{"thoughts": 0}' in answer.body
    history = wizard.machine.run("cat", "/var/lib/platform/chat-history.jsonl")
    (reply,) = [turn for turn in map(json.loads, history.splitlines()) if turn["role"] != "user"]
    assert '{"thoughts": 0}' in reply["content"]
    assert "stopped" not in reply


def test_what_the_services_start_has_neither_sockets_nor_their_variables(
    dashboard: Service,
) -> None:
    told = "/run/platform/told"
    script = f"#!/bin/sh\n(env; ls -l /proc/$$/fd) >>{told}\necho '{{}}'\n"
    dashboard.machine.write("/usr/local/bin/telling", script, mode="0755")
    dashboard.machine.write(
        "/etc/default/platform-appliance", "PLATFORM_CTL=/usr/local/bin/telling\n"
    )
    try:
        restart(dashboard)
        connection = dashboard.connect()
        connection.request("GET", "/app/dashboard")
        assert connection.getresponse().status == 200
        connection.close()
        found = dashboard.machine.run("cat", told)
    finally:
        dashboard.machine.run("rm", "-f", told, "/etc/default/platform-appliance")
        restart(dashboard)
    assert "PATH=" in found
    assert re.findall(r"LISTEN_\w+|NOTIFY_SOCKET|socket:", found) == []


def test_the_wizard_has_not_kept_what_made_its_certificate(wizard: Service) -> None:
    restart(wizard)
    for process in (wizard.process(), *wizard.others()):
        assert "cryptography" not in wizard.machine.run("cat", f"/proc/{process}/maps")
