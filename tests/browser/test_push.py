"""Web Push and installing in a browser: each step from the page to the message.

Tests cannot reach a push service, so the browser's part of subscribing has a stand-in, whose
private key the test holds.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, Playwright, Worker, expect
from py_vapid import Vapid02
from pywebpush import WebPushException, webpush

from dev.icons import FOLDER, ICONS, SVG
from tests.browser.conftest import OpenPage, ServeDashboard
from tests.support.accessibility import violations
from tests.support.browsers import CHROMIUM, FLAGS, until
from tests.support.control_cli import FakeCtl
from tests.support.devices import Device
from tests.support.fonts import Environment
from tests.support.layout import sideways_scroll
from tests.support.markup import parse_errors
from tests.support.push_receivers import Receiver
from tests.support.raw_server import RawServer, response
from tests.support.waiting import wait_until
from tests.support.web_servers import Served

pytestmark = pytest.mark.long

PAGE = "/app/notifications"
PATIENCE_S = 5
FILE = "/var/lib/platform/push-subscriptions.jsonl"
KEY = "/var/lib/platform/vapid.pem"
# A browser whose push service returns `MADE`; a subscription survives a reload.
_STAND_IN = """(() => {
  const made = MADE;
  const kept = () => JSON.parse(localStorage.getItem("subscription"));
  const subscription = (key) => ({
    endpoint: made.endpoint,
    options: { applicationServerKey: Uint8Array.from(key).buffer },
    toJSON: () => made,
    unsubscribe: async () => { localStorage.removeItem("subscription"); return true; },
  });
  PushManager.prototype.getSubscription = async () => kept() && subscription(kept());
  PushManager.prototype.subscribe = async (options) => {
    if (!options.userVisibleOnly) throw new TypeError("userVisibleOnly");
    const key = [...options.applicationServerKey];
    localStorage.setItem("subscription", JSON.stringify(key));
    return subscription(key);
  };
})();"""


@pytest.fixture
def app(serve_dashboard: ServeDashboard, ctl: FakeCtl) -> Served:
    return serve_dashboard(**ctl.environment)


def opened(open_page: OpenPage, app: Served, script: str = "", **options: Any) -> Page:
    """The page, in a browser that allows notifications and has run `script` before."""
    page = open_page("about:blank", permissions=["notifications"], **options)
    if script:
        page.add_init_script(script)
    page.goto(app.url + PAGE)
    return page


def stand_in(receiver: Receiver) -> str:
    return _STAND_IN.replace("MADE", json.dumps(receiver.subscription()))


def lines(device: Device) -> list[Any]:
    path = device.path(FILE)
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def requirement_states(page: Page) -> dict[str, str]:
    """The state that the page shows for each requirement of notifications."""
    return {
        name: page.locator(f"[data-need={name}] .pill:visible").inner_text().split(maxsplit=1)[1]
        for name in ("secure", "worker", "push", "permission")
    }


# Subscribing.


def test_a_browser_subscribes_stays_subscribed_and_unsubscribes(
    open_page: OpenPage, app: Served, device: Device
) -> None:
    receiver = Receiver()
    page = opened(open_page, app, stand_in(receiver), phone=True)
    turn_on = page.get_by_role("button", name="Turn on notifications")
    turn_on.click()
    expect(page.get_by_text("Notifications are on in this browser.")).to_be_visible()
    expect(page.get_by_text("One browser has subscribed.")).to_be_visible()
    assert lines(device) == [receiver.subscription()]
    assert requirement_states(page) == dict.fromkeys(
        ("secure", "worker", "push", "permission"), "Yes"
    )
    assert [*violations(page), *parse_errors(page.content())] == []
    # Subscribed with the key that the device publishes.
    used = bytes(json.loads(page.evaluate("localStorage.getItem('subscription')")))
    assert base64.urlsafe_b64encode(used).decode().rstrip("=") == page.evaluate(
        "fetch('/app/push/vapid-public').then((answer) => answer.text())"
    )
    page.reload()
    turn_off = page.get_by_role("button", name="Turn off notifications")
    turn_off.click()
    expect(turn_on).to_be_visible()
    expect(page.get_by_text("No browser has subscribed yet.")).to_be_visible()
    assert lines(device) == []


def test_the_keyboard_focus_moves_to_the_outcome(open_page: OpenPage, app: Served) -> None:
    page = opened(open_page, app, stand_in(Receiver()))
    page.get_by_role("button", name="Turn on notifications").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#state")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Turn off notifications")).to_be_focused()


def test_a_push_service_that_never_answers_is_abandoned_after_ten_seconds(
    open_page: OpenPage, app: Served, device: Device
) -> None:
    script = "PushManager.prototype.subscribe = () => new Promise(() => { window.asked = true; });"
    page = open_page("about:blank", permissions=["notifications"])
    page.add_init_script(script)
    page.clock.install()
    page.goto(app.url + PAGE)
    page.get_by_role("button", name="Turn on notifications").click()
    until(page, "window.asked")
    expect(page.get_by_text("Contacting the push service")).to_be_visible()
    page.clock.run_for(9_000)
    expect(page.get_by_text("did not answer within 10 seconds")).to_be_hidden()
    page.clock.run_for(1_100)
    expect(page.get_by_text("did not answer within 10 seconds")).to_be_visible()
    expect(page.get_by_role("button", name="Turn on notifications")).to_be_visible()
    assert lines(device) == []


def test_a_refusal_by_the_push_service_is_reported(open_page: OpenPage, app: Served) -> None:
    refuse = """PushManager.prototype.subscribe = async () => {
      throw new DOMException("push service not available", "AbortError"); };"""
    page = opened(open_page, app, refuse)
    page.get_by_role("button", name="Turn on notifications").click()
    expect(page.get_by_text("The push service did not accept this browser.")).to_be_visible()


def test_the_browser_does_not_keep_a_subscription_that_the_device_refuses(
    stranger: Page, app: Served, device: Device
) -> None:
    device.put(FILE, "{}\n" * 1000)
    # The browser itself reports the refusal on the console.
    page = stranger
    page.context.grant_permissions(["notifications"])
    page.add_init_script(stand_in(Receiver()))
    page.goto(app.url + PAGE)
    with page.expect_response("**/app/push/subscribe") as answer:
        page.get_by_role("button", name="Turn on notifications").click()
    assert answer.value.status == 507
    expect(page.get_by_text("This device cannot store any more subscriptions.")).to_be_visible()
    expect(page.get_by_role("button", name="Turn on notifications")).to_be_visible()
    assert page.evaluate("localStorage.getItem('subscription')") is None


def test_after_a_change_of_the_devices_key_the_page_asks_to_subscribe_again(
    open_page: OpenPage, app: Served, device: Device
) -> None:
    receiver = Receiver()
    page = opened(open_page, app, stand_in(receiver))
    page.get_by_role("button", name="Turn on notifications").click()
    expect(page.get_by_text("Notifications are on")).to_be_visible()
    device.path(KEY).unlink()
    page.reload()
    expect(page.get_by_text("This device's key has changed since")).to_be_visible()
    page.get_by_role("button", name="Subscribe again").click()
    expect(page.get_by_text("Notifications are on")).to_be_visible()
    assert lines(device) == [receiver.subscription()]


# Missing requirements.


def test_push_07_a_missing_key_of_the_device_is_reported(
    open_page: OpenPage, app: Served, device: Device
) -> None:
    device.put(KEY, "nothing of use")
    page = opened(open_page, app)
    expect(page.get_by_text("Push is off on this device")).to_be_visible()
    expect(page.get_by_role("button")).to_have_count(0)


def test_a_blocked_permission_is_explained(open_page: OpenPage, app: Served) -> None:
    denied = "Object.defineProperty(Notification, 'permission', { get: () => 'denied' });"
    page = opened(open_page, app, denied)
    expect(page.get_by_text("Notifications are blocked in this browser.")).to_be_visible()
    expect(page.get_by_text("Notifications from this address are blocked.")).to_be_visible()
    assert requirement_states(page)["permission"] == "No"


def test_in_a_browser_without_push_the_missing_requirement_is_shown(
    open_page: OpenPage, app: Served
) -> None:
    page = opened(open_page, app, "delete window.PushManager; navigator.standalone = false;")
    expect(page.get_by_text("something above is missing")).to_be_visible()
    expect(page.get_by_text("This browser does not support push messages.")).to_be_visible()
    expect(page.get_by_text("first add the dashboard to the Home Screen")).to_be_visible()
    assert requirement_states(page)["push"] == "No"


def test_over_http_in_the_local_network_the_page_explains_that_https_is_needed(
    open_page: OpenPage, serve_dashboard: ServeDashboard, ctl: FakeCtl
) -> None:
    app = serve_dashboard(host="0.0.0.0", **ctl.environment)
    page = open_page(f"http://agent.local:{app.port}{PAGE}", phone=True)
    expect(page.get_by_text("You opened this page over http.")).to_be_visible()
    expect(
        page.get_by_text("This page checks the rest once the address is secure.")
    ).to_be_visible()
    assert requirement_states(page) == {
        "secure": "No",
        **dict.fromkeys(("worker", "push", "permission"), "Not checked"),
    }
    assert violations(page) == []
    page.get_by_role("link", name="ways to get https").click()
    page.get_by_text("A name in your private network").click()
    expect(page.get_by_text("tailscale serve --bg 8089")).to_be_visible()
    assert sideways_scroll(page) == []


def test_without_javascript_the_page_says_that_it_is_needed(
    open_page: OpenPage, app: Served
) -> None:
    page = open_page(app.url + PAGE, java_script_enabled=False, phone=True)
    assert set(requirement_states(page).values()) == {"Not checked"}
    expect(page.get_by_text("JavaScript is off")).to_be_visible()
    expect(page.get_by_role("button")).to_have_count(0)
    page.get_by_text("iPhone and iPad", exact=True).click()
    expect(page.get_by_text("Open this page in Safari.")).to_be_visible()


# Sending: how a sender would use the file and the key.


def test_only_the_subscribed_browser_can_read_a_message_encrypted_for_the_stored_line(
    open_page: OpenPage,
    app: Served,
    device: Device,
) -> None:
    receiver = Receiver()
    page = opened(open_page, app, stand_in(receiver))
    page.get_by_role("button", name="Turn on notifications").click()
    expect(page.get_by_text("Notifications are on")).to_be_visible()
    (line,) = lines(device)
    message = json.dumps({"title": "Kosten", "body": "Grenze überschritten ✔"})
    answers = iter((response(status="201 Created"), response(status="410 Gone")))

    def send() -> int:
        status: int = webpush(
            {**line, "endpoint": service.url},
            message,
            vapid_private_key=str(device.path(KEY)),
            vapid_claims={"sub": "mailto:operator@example.com"},
            ttl=60,
            timeout=60,
        ).status_code
        return status

    with RawServer(lambda _, connection: connection.sendall(next(answers))) as service:
        assert send() == 201
        with pytest.raises(WebPushException) as gone:
            send()
    assert gone.value.response.status_code == 410
    taken = service.requests[0]
    assert message.encode() not in taken.body
    assert receiver.read(taken.body) == message
    with pytest.raises(Exception, match=r".+"):
        Receiver().read(taken.body)
    authorization = taken.headers["authorization"]
    assert Vapid02.verify(authorization)
    key = page.evaluate("fetch('/app/push/vapid-public').then((answer) => answer.text())")
    assert f"k={key}" in authorization


# The service worker, in a browser that keeps it.


@pytest.fixture(scope="module")
def browser_with_a_profile(
    playwright: Playwright, fonts: Environment, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrowserContext]:
    """A browser that receives messages and installs apps, which a private window does not."""
    context = playwright.chromium.launch_persistent_context(
        tmp_path_factory.mktemp("profile"),
        executable_path=CHROMIUM,
        args=FLAGS,
        env=fonts,
        permissions=["notifications"],
    )
    # Without another page, the browser would end with its last one.
    context.new_page()
    yield context
    context.close()


@pytest.fixture
def lasting(browser_with_a_profile: BrowserContext, app: Served) -> Iterator[BrowserContext]:
    """That browser; afterwards the pages of the test are closed."""
    before = set(browser_with_a_profile.pages)
    yield browser_with_a_profile
    browser_with_a_profile.set_offline(False)
    for page in set(browser_with_a_profile.pages) - before:
        page.close()


def worker_of(context: BrowserContext, app: Served) -> Worker:
    """The service worker of this app, which must be the only one."""
    (worker,) = (one for one in context.service_workers if one.url.startswith(f"{app.url}/"))
    return worker


def controlled(context: BrowserContext, app: Served, path: str = PAGE) -> Page:
    """A page that the service worker controls."""
    page = context.new_page()
    page.goto(app.url + path)
    page.evaluate("navigator.serviceWorker.ready.then(() => null)")
    page.reload()
    until(page, "Boolean(navigator.serviceWorker.controller)")
    return page


# A message, and the title and the text of its notification; None means our own.
MESSAGES = {
    '{"title": "Cost", "body": "The daily cap ü is reached."}': (
        "Cost",
        "The daily cap ü is reached.",
    ),
    "plain words": (None, "plain words"),
    "": (None, None),
    '{"title": 5, "body": ["x"]}': (None, None),
    "null": (None, None),
    '{"title": " ", "body": "<b>bold</b>"}': (None, "<b>bold</b>"),
    '{"title": "%s"}' % ("t" * 200): ("t" * 100, None),
}
_SHOWN = """navigator.serviceWorker.ready
  .then((registration) => registration.getNotifications())
  .then((all) => all.map(({ title, body, icon }) => ({ title, body, icon })))"""
_CLOSED = """navigator.serviceWorker.ready
  .then((registration) => registration.getNotifications())
  .then((all) => { for (const one of all) one.close(); return all.length === 0; })"""


def test_a_message_is_shown_with_its_own_text_or_with_our_default(
    lasting: BrowserContext, app: Served
) -> None:
    page = controlled(lasting, app)
    name = page.locator("header .brand").inner_text()
    for message, (title, body) in MESSAGES.items():
        shown = deliver(page, app, message)
        assert shown["title"] == (title or name), message
        assert shown["body"] == (body or "This device has news for you."), message
        assert shown["icon"].startswith(f"{app.url}/static/icon-192.png")
        until(page, _CLOSED)


def deliver(page: Page, app: Served, message: str) -> dict[str, str]:
    """Deliver a push message to the browser; return the notification."""
    tools = page.context.new_cdp_session(page)
    registrations: dict[str, str] = {}
    tools.on(
        "ServiceWorker.workerRegistrationUpdated",
        lambda event: registrations.update(
            {found["scopeURL"]: found["registrationId"] for found in event["registrations"]}
        ),
    )
    tools.send("ServiceWorker.enable")
    scope = f"{app.url}/"
    wait_until(lambda: page.evaluate("true") and scope in registrations)
    handed = {"origin": app.url, "registrationId": registrations[scope], "data": message}
    # Soon after its start, Chromium clears notifications that it takes for old ones, sometimes
    # including the one just shown. Then the message is deliver again.
    for _ in range(10):
        tools.send("ServiceWorker.deliverPushMessage", handed)
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            shown: list[dict[str, str]] = page.evaluate(_SHOWN)
            if shown:
                return shown[0]
    raise AssertionError("the worker shows nothing")


@pytest.mark.parametrize(
    ("path", "outcome"),
    [(PAGE, "opened /app/dashboard"), ("/app/dashboard", "focused /app/dashboard")],
    ids=["closed", "open"],
)
def test_a_click_on_a_notification_leads_to_the_dashboard(
    lasting: BrowserContext, app: Served, path: str, outcome: str
) -> None:
    controlled(lasting, app, path)
    worker = worker_of(lasting, app)
    # Only a real click may open a window, so the worker's requests are recorded instead.
    asked = worker.evaluate("""async () => {
      const asked = [];
      clients.openWindow = async (url) => { asked.push(`opened ${url}`); };
      WindowClient.prototype.focus = async function () {
        asked.push(`focused ${new URL(this.url).pathname}`);
      };
      let closed = 0, done;
      const event = new Event("notificationclick");
      event.notification = { close: () => { closed += 1; } };
      event.waitUntil = (promise) => { done = promise; };
      dispatchEvent(event);
      await done;
      return [asked, closed];
    }""")
    assert asked == [[outcome], 1]


def test_a_subscription_that_the_browser_renews_is_sent_to_the_device(
    lasting: BrowserContext, app: Served, device: Device
) -> None:
    controlled(lasting, app)
    old, new = (Receiver(f"https://push.example.com/{name}") for name in ("old", "new"))
    device.put(FILE, json.dumps(old.subscription()) + "\n")
    worker = worker_of(lasting, app)
    worker.evaluate(
        """async ([old, renewed]) => {
          let done;
          const event = new Event("pushsubscriptionchange");
          event.oldSubscription = old;
          event.newSubscription = renewed;
          event.waitUntil = (promise) => { done = promise; };
          dispatchEvent(event);
          await done;
        }""",
        [old.subscription(), new.subscription()],
    )
    assert lines(device) == [new.subscription()]


def test_push_09_without_a_network_the_offline_page_is_shown_and_no_other_page_is_cached(
    lasting: BrowserContext, app: Served
) -> None:
    page = controlled(lasting, app, "/app/dashboard")
    for path in ("/app/keys", "/app/logs", "/app/system", PAGE, "/app/dashboard"):
        page.goto(app.url + path)
    kept = """async () => (await Promise.all((await caches.keys()).map(async (name) =>
      (await (await caches.open(name)).keys()).map(({ url }) => new URL(url).pathname)))).flat()"""
    assert sorted(page.evaluate(kept)) == [
        "/offline",
        "/static/app.js",
        "/static/icon.svg",
        "/static/style.css",
    ]
    lasting.set_offline(True)
    for path in ("/app/keys", "/app/dashboard", "/app/logs?lines=10"):
        page.goto(app.url + path)
        expect(page.get_by_role("heading", level=1)).to_have_text("This device can't be reached")
        assert page.url == app.url + path
        # The offline page has its style, too.
        assert page.evaluate("getComputedStyle(document.querySelector('main')).maxWidth") != "none"
    assert page.evaluate("fetch('/app/keys').then(() => 'kept', () => 'gone')") == "gone"
    lasting.set_offline(False)
    page.get_by_role("link", name="Try again").click()
    expect(page.get_by_role("heading", level=1)).not_to_have_text("This device can't be reached")
    assert page.url == f"{app.url}/app/logs?lines=10"


def test_push_09_a_new_version_waits_for_open_pages_and_then_removes_the_old_cache(
    lasting: BrowserContext, app: Served
) -> None:
    page = controlled(lasting, app)
    names = "caches.keys()"
    (first,) = page.evaluate(names)
    # Another theme changes the offline page, and so the worker.
    page.goto(app.url + "/app/system")
    page.evaluate("""fetch("/preferences", { method: "POST", redirect: "manual",
      body: new URLSearchParams({ theme: "dark" }) })""")
    page.evaluate("""async () => {
      const registration = await navigator.serviceWorker.getRegistration();
      await registration.update();
      while (!registration.waiting) await new Promise((done) => setTimeout(done, 20));
    }""")
    assert first in page.evaluate(names)
    # The old worker ends some time after its last page.
    changed = f"{names}.then((found) => found.length === 1 && found[0] !== {first!r})"

    def cleared() -> bool:
        page.goto("about:blank")
        # A page that is opened while the workers change places can wait for the old one for good.
        page.wait_for_timeout(500)
        page.goto(app.url + PAGE)
        done: bool = page.evaluate(changed)
        return done

    wait_until(cleared)


def test_the_dashboard_can_be_installed(lasting: BrowserContext, app: Served) -> None:
    page = lasting.new_page()
    page.goto(app.url + "/app/dashboard")
    tools = lasting.new_cdp_session(page)
    manifest = tools.send("Page.getAppManifest")
    assert manifest["url"] == f"{app.url}/manifest.webmanifest"
    assert manifest["errors"] == []
    assert tools.send("Page.getInstallabilityErrors")["installabilityErrors"] == []


# The icons.

_DIFFERENCE = """async ([drawn, svg, width, full]) => {
  const pixels = async (url) => {
    const image = new Image();
    image.src = url;
    await image.decode();
    const canvas = new OffscreenCanvas(width, width).getContext("2d");
    canvas.drawImage(image, 0, 0, width, width);
    return canvas.getImageData(0, 0, width, width).data;
  };
  const wanted = full ? svg.replace('rx="112"', 'rx="0"') : svg;
  const [one, other] = await Promise.all(
    [pixels(drawn), pixels("data:image/svg+xml;base64," + btoa(wanted))]);
  return one.reduce((sum, value, at) => sum + Math.abs(value - other[at]), 0) / one.length;
}"""


@pytest.mark.parametrize("name", ICONS)
def test_an_icon_looks_like_its_drawing(open_page: OpenPage, name: str) -> None:
    width, full = ICONS[name]
    drawn = base64.b64encode((FOLDER / name).read_bytes()).decode()
    page = open_page("about:blank")
    arguments = [f"data:image/png;base64,{drawn}", SVG.read_text("utf-8"), width, full]
    assert page.evaluate(_DIFFERENCE, arguments) < 2
    other = SVG.read_text("utf-8").replace("#1f5fd1", "#1f5f11")
    assert page.evaluate(_DIFFERENCE, [arguments[0], other, width, full]) > 10
