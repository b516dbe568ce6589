"""Other sites cannot make a browser change anything on the dashboard; its own forms work.

To loopback Chromium sends `Sec-Fetch-Site`, to other http addresses only `Origin`.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import pytest
from playwright.sync_api import Page, Response

from tests.browser.conftest import OpenPage
from tests.support.browsers import SUBMIT
from tests.support.control_cli import FakeCtl
from tests.support.devices import Device
from tests.support.key_states import several
from tests.support.raw_server import RawServer
from tests.support.trees import tree
from tests.support.web_servers import Served, served

pytestmark = pytest.mark.long

KEY = "sk-canary-0123456789abcdef"
LOOPBACK = "127.0.0.1"
LOCAL_NAME = "agent.local"
SUBSCRIPTION = json.dumps(
    {
        "endpoint": "https://push.example/1",
        "keys": {"p256dh": "B" + "A" * 86, "auth": "A" * 22},
    }
)
# Every address that changes something, with the fields of its form.
FORMS: Mapping[str, Mapping[str, str]] = {
    "/app/keys/rotate": {"provider": "openai", "api_key": KEY},
    "/app/keys/test": {"provider": "openai"},
    "/app/push/subscribe": {SUBSCRIPTION: ""},
    "/app/push/unsubscribe": {SUBSCRIPTION: ""},
    "/app/voice/check": {"consent": "yes"},
    "/app/voice/disable": {},
    "/app/voice/enable": {"consent": "yes"},
    "/preferences": {"theme": "dark"},
}


@dataclass(frozen=True)
class Site:
    """A dashboard at every address of this machine, its device, and its calls."""

    served: Served
    device: Device
    ctl: FakeCtl


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    device, ctl = Device(folder / "device"), FakeCtl(folder / "ctl")
    device.root.mkdir()
    several(ctl)
    variables = {"PLATFORM_ROOT": str(device.root)} | ctl.environment
    with served("pwa-app", variables, folder / "pwa-app.log", host="0.0.0.0") as running:
        yield Site(running, device, ctl)


@pytest.fixture
def dashboard(site: Site) -> Served:
    """The server of the dashboard."""
    return site.served


@pytest.fixture
def nothing_changes(site: Site) -> Iterator[None]:
    """Check that the test causes no call and changes no file."""
    before = site.ctl.words(), tree(site.device.root)
    yield
    assert (site.ctl.words(), tree(site.device.root)) == before


def at(server: Served | RawServer, name: str) -> str:
    """The address of a server under another host name."""
    return f"http://{name}:{server.url.rpartition(':')[2]}"


def own_address() -> str:
    """The machine's address in its network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        # No packet is sent; the system only chooses an interface.
        probe.connect(("198.51.100.1", 9))
        address: str = probe.getsockname()[0]
        return address


def answer_to(page: Page, act: Callable[[], object]) -> Response:
    """The response of the dashboard to the POST that `act` makes the page send."""
    with page.expect_response(lambda response: response.request.method == "POST") as caught:
        act()
    return caught.value


def submit(page: Page, action: str, fields: Mapping[str, str]) -> Response:
    """Submit a form in the page; return the response, once the browser shows the result."""
    with page.expect_navigation():
        return answer_to(page, lambda: page.evaluate(SUBMIT, [action, dict(fields)]))


@pytest.mark.parametrize("name", [LOOPBACK, LOCAL_NAME])
@pytest.mark.usefixtures("nothing_changes")
def test_http_09_a_form_of_another_site_is_refused(
    name: str, stranger: Page, foreign: RawServer, dashboard: Served
) -> None:
    for path, fields in FORMS.items():
        stranger.goto(at(foreign, "evil.example"))
        answer = submit(stranger, at(dashboard, name) + path, fields)
        assert answer.status == 403, path
        assert ("sec-fetch-site" in answer.request.all_headers()) == (name == LOOPBACK)
        title = stranger.get_by_role("heading", level=1)
        assert title.inner_text() == "This request came from another site", path
    assert stranger.context.cookies() == []


@pytest.mark.parametrize(
    ("neighbour", "name"),
    [
        pytest.param(LOOPBACK, LOOPBACK, id="another-port"),
        pytest.param("localhost", LOOPBACK, id="another-name-of-loopback"),
        pytest.param(LOCAL_NAME, LOCAL_NAME, id="another-port-of-the-device"),
        pytest.param(f"sibling.{LOCAL_NAME}", LOCAL_NAME, id="a-sibling-host"),
    ],
)
@pytest.mark.usefixtures("nothing_changes")
def test_http_10_a_form_of_a_neighbour_is_refused(
    neighbour: str, name: str, stranger: Page, foreign: RawServer, dashboard: Served
) -> None:
    stranger.goto(at(foreign, neighbour))
    address = at(dashboard, name) + "/app/keys/rotate"
    assert submit(stranger, address, FORMS["/app/keys/rotate"]).status == 403


@pytest.mark.parametrize("name", [LOOPBACK, LOCAL_NAME])
@pytest.mark.usefixtures("nothing_changes")
def test_http_10_a_sandboxed_frame_is_refused(
    name: str, stranger: Page, foreign: RawServer, dashboard: Served
) -> None:
    stranger.goto(at(foreign, "evil.example"))
    address = at(dashboard, name) + "/app/keys/rotate"
    form = f"<form method=post target=_top action={address}><input name=provider></form>"
    answer = answer_to(
        stranger,
        lambda: stranger.evaluate(
            """form => {
              const frame = document.createElement("iframe");
              frame.sandbox = "allow-forms allow-scripts allow-top-navigation";
              frame.srcdoc = form + "<script>document.forms[0].submit()</script>";
              document.body.append(frame);
            }""",
            form,
        ),
    )
    assert (answer.request.all_headers()["origin"], answer.status) == ("null", 403)


@pytest.mark.parametrize("name", [LOOPBACK, LOCAL_NAME])
@pytest.mark.usefixtures("nothing_changes")
def test_http_09_a_script_of_another_site_cannot_subscribe(
    name: str, stranger: Page, foreign: RawServer, dashboard: Served
) -> None:
    stranger.goto(at(foreign, "evil.example"))
    address = at(dashboard, name) + "/app/push/subscribe"
    said = stranger.evaluate(
        """([address, body]) => fetch(address, {method: "POST", mode: "no-cors", body})
          .then(answer => answer.type, () => "refused")""",
        [address, SUBSCRIPTION],
    )
    assert said in {"opaque", "refused"}


def expect_no_frame(page: Page, address: str) -> None:
    """Try to show `address` in a frame of the open page, which the browser must refuse."""
    with page.expect_event("console", lambda said: "frame" in said.text.lower()):
        page.evaluate(
            """address => {
              const frame = document.createElement("iframe");
              frame.src = address;
              document.body.append(frame);
            }""",
            address,
        )
    page.frames[-1].wait_for_url("chrome-error://chromewebdata/")


@pytest.mark.parametrize("name", [LOOPBACK, LOCAL_NAME])
def test_http_13_no_page_is_shown_in_a_frame(
    name: str, stranger: Page, foreign: RawServer, dashboard: Served
) -> None:
    for path in ("/app/dashboard", "/app/keys", "/no-such-page", "/healthz"):
        stranger.goto(at(foreign, "evil.example"))
        expect_no_frame(stranger, at(dashboard, name) + path)


@pytest.mark.usefixtures("nothing_changes")
def test_http_07_a_foreign_name_bound_to_this_machine_gets_no_page(
    stranger: Page, dashboard: Served
) -> None:
    answer = stranger.goto(at(dashboard, "evil.example") + "/app/dashboard")
    assert answer is not None
    assert answer.status == 421
    assert "PLATFORM_ALLOWED_HOSTS" in stranger.inner_text("main")
    # For the browser this page and the dashboard are the same site now.
    for path, fields in FORMS.items():
        refused = submit(stranger, at(dashboard, "evil.example") + path, fields)
        assert refused.status == 421
    assert stranger.context.cookies() == []


@pytest.mark.parametrize(
    "name", [LOOPBACK, "localhost", LOCAL_NAME, pytest.param(own_address(), id="own-address")]
)
def test_http_09_the_forms_of_its_own_pages_work(
    name: str, open_page: OpenPage, dashboard: Served
) -> None:
    page = open_page(at(dashboard, name) + "/app/system")
    secure = name in {LOOPBACK, "localhost"}
    answer = submit(page, at(dashboard, name) + "/preferences", FORMS["/preferences"])
    assert ("sec-fetch-site" in answer.request.all_headers()) == secure
    assert answer.status == 302
    assert page.locator("html").get_attribute("data-theme") == "dark"
