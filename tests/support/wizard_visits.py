"""Setting up a device from outside: forms over HTTP, as the specification describes them."""

from __future__ import annotations

import contextlib
import http.client
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple
from urllib.parse import urlencode

from tests.support.web_servers import Served

Fields = Iterable[tuple[str, str]]
# The fields for each step, by the name of the step.
Forms = Mapping[str, Fields]
Connect = Callable[[], http.client.HTTPConnection]
# The minimum that sets up a device.
SIMPLE: Forms = {
    "system": [("hostname", "kitchen"), ("timezone", "Europe/Berlin")],
    "profile": [("profile", "openclaw")],
    "provider": [("provider", "openai"), ("api_key", "sk-1"), ("skip_validation", "1")],
    "channels": [],
    "ssh": [],
    "mesh-vpn": [("skip", "1")],
    "tunnel": [("choice", "skip")],
    "backup": [("kind", "skip")],
}
_TIMEOUT_S = 90


class Answer(NamedTuple):
    """The response to a request; `location` is the target of a redirect."""

    status: int
    location: str
    body: str


class Visitor:
    """A person with a browser; keeps the cookie, and every page that was shown."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._cookie = ""
        self.pages: list[str] = []

    def ask(
        self,
        path: str,
        form: Fields | Mapping[str, str | list[str]] | None = None,
        *,
        accept: str = "",
    ) -> Answer:
        """Open a page, or send a form; `accept` is the kind of response that is requested."""
        headers = {"Cookie": self._cookie} if self._cookie else {}
        if accept:
            headers["Accept"] = accept
        body = None
        if form is not None:
            body = urlencode(form if isinstance(form, Mapping) else [*form], doseq=True)
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        with contextlib.closing(self._connect()) as connection:
            connection.request("GET" if form is None else "POST", path, body, headers)
            answer = connection.getresponse()
            found = Answer(
                answer.status, answer.headers.get("Location", ""), answer.read().decode()
            )
            if (cookie := answer.headers.get("Set-Cookie")) is not None:
                self._cookie = cookie.partition(";")[0]
        self.pages.append(f"{found.location}\n{answer.headers}\n{found.body}")
        return found

    def answer(self, forms: Mapping[str, Fields | Mapping[str, str | list[str]]]) -> None:
        """Send the form of every step, each of which must be accepted."""
        for slug, fields in forms.items():
            taken = self.ask(f"/wizard/{slug}", fields)
            assert (slug, taken.status) == (slug, 302), taken.body

    def apply(self) -> Answer:
        """Press the button of the review page."""
        return self.ask("/wizard/review/apply", ())

    def set_up(self, forms: Forms) -> None:
        """Answer everything, and apply."""
        self.answer(forms)
        done = self.apply()
        assert (done.status, done.location) == (302, "/wizard/done"), done.body


def visitor_of(app: Served) -> Visitor:
    """A visitor of a wizard that is served without https."""
    return Visitor(lambda: http.client.HTTPConnection("127.0.0.1", app.port, timeout=_TIMEOUT_S))
