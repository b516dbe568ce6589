"""The voice page: shows whether the device listens, and switches it with consent."""

from __future__ import annotations

from flask import Blueprint, redirect, render_template, request
from werkzeug import Response

from platform_common.control_answers import VoiceCheck, VoiceStatus
from platform_common.message import Sentence
from platform_common.plain_text import printable
from platform_common.process.run import ProcessError
from platform_common.web.flash import Flash
from pwa_app.context import context, take_flash
from pwa_app.control_client import CliQuery, Slice, error_message, object_view

VOICE_STATUS: CliQuery[VoiceStatus] = object_view(("voice", "status", "--json"), VoiceStatus())
VOICE_CHECK: CliQuery[VoiceCheck] = object_view(("voice", "check", "--json"), VoiceCheck())
# systemd may take long to start or stop the service.
_SWITCH_LIMIT_S = 45.0
_LONGEST_REASON = 300

blueprint = Blueprint("voice", __name__)


@blueprint.get("/app/voice")
def voice() -> str:
    """Show the voice settings and what can be changed."""
    return render_template(
        "pwa/voice.html",
        voice=context().load(VOICE_STATUS),
        flash=take_flash(context().voice_flash),
    )


@blueprint.post("/app/voice/check")
def check() -> Response:
    """Test the microphone for a second; the next page shows the result."""
    if context().settings.dev_stub:
        return _back(Sentence("(dev-stub) would check the microphone"), good=False)
    heard = _heard()
    return _back(_said(heard), good=_works(heard))


@blueprint.post("/app/voice/enable")
def enable() -> Response:
    """Switch voice on, with consent and if the microphone works right now."""
    if request.form.get("consent") != "1":
        return _back(
            Sentence("Voice stays off. Tick the box once everyone who can be heard here agrees."),
            good=False,
        )
    if context().settings.dev_stub:
        return _back(Sentence("(dev-stub) would switch voice on"), good=False)
    heard = _heard()
    if not _works(heard):
        return _back(_said(heard), good=False)
    problem = _switched("enable", "--yes")
    if problem:
        return _back(Sentence("Voice was not switched on: {why}", why=problem), good=False)
    return _back(Sentence("Voice is on."), good=True)


@blueprint.post("/app/voice/disable")
def disable() -> Response:
    """Switch the microphone off."""
    if context().settings.dev_stub:
        return _back(Sentence("(dev-stub) would switch voice off"), good=False)
    problem = _switched("disable")
    if problem:
        return _back(Sentence("Voice was not switched off: {why}", why=problem), good=False)
    return _back(Sentence("Voice is off."), good=True)


def _heard() -> Slice[VoiceCheck]:
    return context().load(VOICE_CHECK)


def _works(heard: Slice[VoiceCheck]) -> bool:
    return heard.value.ok and not heard.stub


def _said(heard: Slice[VoiceCheck]) -> Sentence:
    if heard.reason is not None:
        return Sentence("The microphone could not be checked: {why}", why=heard.reason)
    found = heard.value
    if not found.ok:
        return Sentence("The microphone does not work: {why}", why=found.error or found.device)
    if found.peak_dbfs is None:
        return Sentence("The microphone works.")
    return Sentence(
        "The microphone works. The loudest sound was {decibels} dB below the microphone's maximum.",
        decibels=f"{abs(found.peak_dbfs):.0f}",
    )


def _switched(*words: str) -> str:
    """Run `platformctl voice` with these arguments; return why it failed, or empty."""
    try:
        done = context().cli.run(("voice", *words), limit_s=_SWITCH_LIMIT_S)
    except ProcessError as error:
        return error.message
    finally:
        context().single_flight.forget(VOICE_STATUS.words)
    if not done.status:
        return ""
    # Without the hint behind it.
    return printable(error_message(done) or f"exit code {done.status}")[:_LONGEST_REASON]


def _back(sentence: Sentence, *, good: bool) -> Response:
    context().voice_flash.put(Flash(sentence, good=good))
    return redirect("/app/voice")
