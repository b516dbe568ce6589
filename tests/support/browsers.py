"""The settings of Debian's Chromium for tests."""

from __future__ import annotations

from collections.abc import Mapping

from playwright.sync_api import Page, Response

from tests.support.waiting import wait_until

CHROMIUM = "/usr/bin/chromium"
FLAGS = [
    "--no-sandbox",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-default-apps",
    # Host names of other sites and of devices, all of which resolve to this machine.
    "--host-resolver-rules=MAP *.example 127.0.0.1, MAP *.local 127.0.0.1",
]

SUBMIT = """([action, fields]) => {
  const form = document.createElement("form");
  Object.assign(form, {method: "post", action});
  for (const [name, values] of Object.entries(fields)) for (const value of [values].flat()) {
    // As text a form may look like JSON.
    if (name.startsWith("{")) form.enctype = "text/plain";
    // As a text area it keeps line ends, which a hidden field keeps too, and no limits.
    const input = document.createElement("textarea");
    Object.assign(input, {name, value, hidden: true});
    form.append(input);
  }
  document.body.append(form);
  form.submit();
}"""


def send(page: Page, action: str, fields: Mapping[str, str | list[str]]) -> Response:
    """Send a form to `action` from the page; return the response, once the result is shown."""
    with page.expect_navigation() as shown:
        page.evaluate(SUBMIT, [action, dict(fields)])
    return shown.value


def until(page: Page, expression: str) -> None:
    """Wait until the expression is true in the page.

    Playwright's own `wait_for_function` evaluates text inside the page, which our pages forbid, so
    it fails unless the expression is true at once.
    """
    wait_until(lambda: page.evaluate(expression))
