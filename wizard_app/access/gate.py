"""The wizard's gate: a launch token starts a session, and pages require a session."""

from __future__ import annotations

import logging
from collections.abc import Callable
from math import ceil

from flask import Flask, Response, current_app, g, render_template, request
from werkzeug.http import dump_cookie

from platform_common.web.errors import error_page
from platform_common.web.rate_limit import RateLimit
from wizard_app.access import refusals
from wizard_app.access.refusals import Refusal
from wizard_app.access.request_info import (
    RETRY,
    asks_for_loopback,
    clean_address,
    is_forwarded,
    is_from_loopback,
    is_only_looking,
    presented,
)
from wizard_app.access.secret_expiry import SecretExpiry
from wizard_app.access.sessions import LIFETIME_S, SessionStore, boot_time
from wizard_app.access.token_file import TokenFile
from wizard_app.setup.settings import WizardSettings

_NAME = "wizard_gate"
_COOKIE = "platform-session"
_MOST_WRONG, _MOST_WRONG_OVERALL, _MINUTE_S = 10, 100, 60
_LOG = logging.getLogger(__name__)


def install(
    app: Flask,
    settings: WizardSettings,
    *,
    forget: Callable[[], None],
    clock: Callable[[], float] = boot_time,
) -> None:
    """Require a session for everything but the health check and static files.

    `forget` is called when there has been no session for an hour. Without a token, everyone
    is let in.
    """
    gate = Gate(settings, forget, clock)
    app.extensions[_NAME] = gate
    app.jinja_env.globals["session_left_s"] = gate.left_s
    if settings.require_token:
        app.before_request(gate.check)
        app.after_request(gate.with_cookie)


def current_gate() -> Gate:
    """The gate of the app that answers this request."""
    found: Gate = current_app.extensions[_NAME]
    return found


class Gate:
    """Checks every request before it reaches a page."""

    def __init__(
        self,
        settings: WizardSettings,
        forget: Callable[[], None],
        clock: Callable[[], float],
    ) -> None:
        self.tokens = TokenFile(settings.token_file)
        self.access = SessionStore(self.tokens, clock=clock)
        self.is_locked = settings.require_token
        self.is_production = settings.production
        self._settings = settings
        self._cookie = f"__Host-{_COOKIE}" if settings.production else _COOKIE
        # Behind a proxy on this machine, all clients have its address.
        self._wrong = RateLimit(_MOST_WRONG, _MINUTE_S)
        self._wrong_overall = RateLimit(_MOST_WRONG_OVERALL, _MINUTE_S, everybody=True)
        self._wiping = SecretExpiry(self.access.alone_s, forget)

    def check(self) -> Response | None:
        """Return the refusal, or None if the request may pass."""
        if request.path == "/healthz" or request.path.startswith("/static/"):
            return None
        self._wiping.check()
        tokens = [] if is_only_looking() else presented()
        exposed = self._settings.production and not self._is_safe()
        if len(tokens) == 1 and not exposed:
            session = self.access.enter(tokens[0])
            if session is not None:
                return self._let_in(session)
        if self.access.is_live(self._sessions()):
            return None
        if exposed and tokens:
            return self._page(refusals.EXPOSED)
        return self._refused(tokens)

    def with_cookie(self, response: Response) -> Response:
        """Set the cookie of a session that this request opened, or clear it if it ended one."""
        session = "" if g.get("signed_out") else g.get("opened_session")
        if session is not None:
            cookie = dump_cookie(
                self._cookie,
                session,
                max_age=LIFETIME_S if session else 0,
                secure=self._settings.production,
                httponly=True,
                samesite="Strict",
                # A date would depend on a clock that may be wrong.
                sync_expires=False,
            )
            response.headers.add("Set-Cookie", cookie)
        return response

    def sign_out(self) -> Response:
        """End the session of this request and return the page that says so."""
        if not self.is_locked:
            return self._page(refusals.OPEN)
        opened = g.get("opened_session")
        self.access.end([*self._sessions(), *([] if opened is None else [opened])])
        g.signed_out = True
        return self._page(refusals.SIGNED_OUT)

    def left_s(self) -> int:
        """How many seconds the session of this request still lasts; 0 without one."""
        opened = g.get("opened_session")
        return int(self.access.left_s(self._sessions() if opened is None else [opened]))

    def _sessions(self) -> list[str]:
        return request.cookies.getlist(self._cookie)

    def _let_in(self, session: str) -> Response | None:
        self.access.end(self._sessions())
        g.opened_session = session
        self._wiping.watch()
        if request.headers.get("Sec-Fetch-Site") != "cross-site":
            return None
        # On a redirect from another site, the browser would not send the new cookie.
        page = Response(render_template("wizard/continue.html", onward=clean_address()))
        page.headers["Referrer-Policy"] = "no-referrer"
        return page

    def _refused(self, tokens: list[str]) -> Response:
        if len(tokens) == 1 and self.access.was_used(tokens[0]):
            return self._page(refusals.USED, retry="used")
        if tokens:
            return self._wrong_token()
        if self._sessions():
            return self._page(refusals.ENDED)
        was_used = request.args.get(RETRY) == "used"
        return self._page(refusals.USED if was_used else refusals.NOTHING, retry="1")

    def _wrong_token(self) -> Response:
        address = request.remote_addr or ""
        wait_s = self._wrong.wait_s(address) or self._wrong_overall.wait_s("")
        if wait_s:
            page = error_page(429)
            page.retry_after = ceil(wait_s)
            return page
        _LOG.warning("a wrong launch token came from %s", address or "a local socket")
        return self._page(refusals.WRONG)

    def _page(self, refusal: Refusal, *, retry: str = "") -> Response:
        again = clean_address(retry) if retry and self._may_have_cookie() else ""
        body = render_template(
            "wizard/refused.html",
            refusal=refusal,
            options=" --production" if self._settings.production else "",
            is_used=self.access.is_used,
            again=again,
        )
        page = Response(body, refusal.status)
        if refusal.status == 401:
            page.headers["WWW-Authenticate"] = 'Bearer realm="setup"'
        return page

    def _may_have_cookie(self) -> bool:
        """Whether the browser may have a session but not have sent it, coming from another site.

        Over plain http browsers do not say where a request comes from.
        """
        return (
            request.method == "GET"
            and RETRY not in request.args
            and request.headers.get("Sec-Fetch-Site") in (None, "cross-site")
            and not self._sessions()
            and self.access.is_used
        )

    def _is_safe(self) -> bool:
        """Whether nobody on the network could read this request."""
        if is_forwarded():
            return self._settings.behind_proxy and request.is_secure
        return request.is_secure or (is_from_loopback() and asks_for_loopback())
