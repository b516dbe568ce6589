"""The Flask application that both apps build on: request checks, headers, errors, languages."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Collection, Iterable
from datetime import datetime
from pathlib import Path

from flask import Flask, Response, current_app, g, request
from jinja2 import ModuleLoader, StrictUndefined
from markupsafe import Markup, escape

from platform_common import web
from platform_common.errors import WrongUsageError
from platform_common.host_names import ALLOWED_HOSTS_VARIABLE, host_is_ours, name_of
from platform_common.message import Sentence
from platform_common.resources import compiled_templates, templates
from platform_common.version import VERSION
from platform_common.web import errors, headers, preferences, request_guard
from platform_common.web.assets import Assets
from platform_common.web.language import LANGUAGES, SOURCE, Language, language, preferred
from platform_common.web.request_body import WholeRequest

FORM_LIMIT_BYTES = 256 << 10
_MOST_FORM_PARTS = 1000
_DEVICE_NAME = "device_name"


def new_application(
    name: str,
    *,
    static: Iterable[Path] = (),
    allowed_hosts: Collection[str] = (),
    after_preferences: str,
    device_name: Callable[[], str] = socket.gethostname,
) -> Flask:
    """Create an application with everything that pages need, and `/healthz`, but without pages.

    `static` are folders beside the shared one; `after_preferences` is where a browser goes after
    choosing its theme or language. Raises `WrongUsageError` in Flask's debug mode, which would
    show values of requests.
    """
    app = Flask(name, template_folder=str(templates()), static_folder=None)
    app.request_class = WholeRequest
    if app.debug:
        raise WrongUsageError(
            "This app does not run in debug mode", hint="Start it without FLASK_DEBUG."
        )
    # The router would build a redirect from the request's Host.
    app.url_map.merge_slashes = False
    app.config.update(
        MAX_CONTENT_LENGTH=FORM_LIMIT_BYTES,
        MAX_FORM_MEMORY_SIZE=FORM_LIMIT_BYTES,
        MAX_FORM_PARTS=_MOST_FORM_PARTS,
        AFTER_PREFERENCES=after_preferences,
    )
    _set_up_templates(app)
    app.jinja_env.globals["device_name"] = app.extensions[_DEVICE_NAME] = device_name
    assets = Assets([Path(web.__path__[0], "static"), *static])
    assets.install(app)
    app.extensions["assets"] = assets
    app.after_request(_in_its_language)
    app.after_request(headers.add)
    errors.install(app)
    # Setup changes the time zone, which a process otherwise reads only once.
    app.before_request(time.tzset)
    app.before_request(_gate(allowed_hosts))
    app.add_url_rule("/healthz", "healthz", _healthz)
    app.register_blueprint(preferences.blueprint)
    return app


def device_name() -> str:
    """The name of the device."""
    name: str = current_app.extensions[_DEVICE_NAME]()
    return name


def request_language() -> Language:
    """The language of this request: the chosen one, else the browser's, else English."""
    found: Language | None = g.get("language")
    if found is None:
        code = preferences.chosen("language")
        if code == "auto":
            code = preferred(request.accept_languages)
        found = g.language = language(code)
    return found


def translate(sentence: Sentence | str) -> str:
    """A sentence in the language of this request."""
    if isinstance(sentence, Sentence):
        return sentence.said(request_language().gettext)
    return request_language().gettext(sentence)


def translate_html(sentence: Sentence) -> Markup:
    """Like `translate`, for a page: the output of programs is marked as English."""
    language_ = request_language()
    if language_.code == SOURCE:
        return escape(translate(sentence))
    values = {
        name: translate_html(value) if isinstance(value, Sentence) else value
        for name, value in sentence.values.items()
    }
    if "why" in values and not isinstance(values["why"], Markup):
        values["why"] = Markup('<span lang="{}">{}</span>').format(SOURCE, values["why"])
    text = escape(language_.gettext(sentence.text))
    return text.format_map(values) if values else text


def translate_record(text: str) -> Markup:
    """A text of a record, translated if we ship it, otherwise marked as English."""
    translated = translate(text) if text else ""
    if translated != text or request_language().code == SOURCE:
        return escape(translated)
    return Markup('<span lang="{}">{}</span>').format(SOURCE, text)


def _gate(allowed: Collection[str]) -> Callable[[], Response | None]:
    def check() -> Response | None:
        host = request.environ.get("HTTP_HOST", "")
        if not host_is_ours(host, allowed):
            return _misdirected(name_of(host))
        site, origin = map(request.headers.get, ("Sec-Fetch-Site", "Origin"))
        if request_guard.comes_from_another_site(
            request.method, site, origin, scheme=request.scheme, host=host
        ):
            return errors.error_page(403)
        if request.is_multiprocess:
            return errors.error_page(
                503,
                what=Sentence(
                    "This app runs in several processes, which do not share what they know."
                ),
                todo=Sentence("Start its server with one worker."),
            )
        return None

    return check


def _misdirected(name: str | None) -> Response:
    """The page for a request whose `Host` is not a name of this device.

    A page of another site might read it, so it does not identify the device, and has no links,
    which would lead to that name.
    """
    if name is None:
        return errors.error_page(421, device_name=lambda: "Platform")
    return errors.error_page(
        421,
        what=Sentence("This device does not answer to the name {name}.", name=name),
        device_name=lambda: "Platform",
        name=name,
        setting=ALLOWED_HOSTS_VARIABLE,
    )


def _in_its_language(response: Response) -> Response:
    """Add the headers for the language of a page and for what it depends on."""
    found: Language | None = g.get("language")
    if found is not None:
        response.content_language.add(found.code)
        response.vary.update(("Accept-Language", "Cookie"))
    return response


def _healthz() -> Response:
    return Response("ok", content_type="text/plain; charset=utf-8")


def _set_up_templates(app: Flask) -> None:
    environment = app.jinja_env
    if compiled_templates().is_dir():
        # Compiling its templates takes longer than rendering a page.
        environment.loader = ModuleLoader(compiled_templates())
    environment.undefined = StrictUndefined
    environment.trim_blocks = environment.lstrip_blocks = True
    environment.add_extension("jinja2.ext.i18n")
    environment.install_gettext_callables(  # type: ignore[attr-defined]  # the extension adds it
        lambda text: request_language().gettext(text),
        lambda one, many, count: request_language().ngettext(one, many, count),
        newstyle=True,
    )
    environment.globals.update(
        request_language=request_language,
        theme=lambda: preferences.chosen("theme"),
        chosen=preferences.chosen,
        themes=preferences.THEMES,
        languages=LANGUAGES,
        now=lambda: datetime.now().astimezone(),
        version=VERSION,
    )
    environment.filters.update(
        translate=translate,
        translate_html=translate_html,
        translate_record=translate_record,
        money=lambda usd: request_language().money(usd),
        number=lambda value: request_language().number(value),
        percent=lambda value: request_language().percent(value),
        duration=lambda seconds: request_language().duration(seconds),
        clock=lambda when: request_language().time(when),
        moment=lambda when: request_language().moment(when),
        day=lambda date: request_language().day(date),
        breakable=_breakable,
    )


def _breakable(text: str) -> Markup:
    """Allow line breaks at the joints of a long name."""
    escaped = str(escape(text))
    for joint in "_/":
        escaped = escaped.replace(joint, f"{joint}<wbr>")
    return Markup(escaped)  # noqa: S704 - escaped above
