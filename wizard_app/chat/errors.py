"""Explains why a gateway gave no answer, and what to do, in our own words."""

from __future__ import annotations

from platform_common.errors import PlatformError
from platform_common.message import Sentence
from platform_common.net.client import Incoming
from platform_common.net.connect import RefusedAddressError
from platform_common.net.errors import TooLongAnswerError
from platform_common.plain_text import without_controls
from platform_common.records.profiles import Profile, correct
from wizard_app.chat.event_stream import ReadingError, error_in, loads, whole

AFTERWARDS_S = 2.0
_NOT_FOUND = (404, 405)


class GatewayError(PlatformError):
    """Why the gateway gave no answer, and what to do."""


def refusal(profile: Profile, incoming: Incoming, path: str) -> GatewayError:
    """Explain an error response."""
    status = incoming.status
    reason = Sentence("it returned HTTP {status}", status=status)
    hint = see(profile)
    if 300 <= status < 400:
        reason = Sentence(
            "it redirects elsewhere (HTTP {status}), and redirects are not followed", status=status
        )
        hint = correct(profile)
    elif status in (401, 403):
        reason = Sentence("it rejects this device's token (HTTP {status})", status=status)
        variable = profile.chat.token_env
        hint = (
            Sentence("Check {variable} in secrets.env.", variable=variable)
            if variable
            else Sentence(
                "In its profile, set token_env in [chat] to the name of the variable that "
                "holds the token."
            )
        )
    elif status in _NOT_FOUND:
        reason = Sentence("it has no chat at {path} (HTTP {status})", path=path, status=status)
        hint = correct(profile)
    elif said := _reason_in(incoming):
        reason = Sentence("it returned HTTP {status}: {why}", status=status, why=said)
    return no_answer(profile, reason, hint)


def _reason_in(incoming: Incoming) -> str:
    incoming.hurry(AFTERWARDS_S)
    try:
        return without_controls(whole(error_in(loads(b"".join(incoming.pieces())))))
    except PlatformError:
        return ""


def gateway_error(profile: Profile, error: PlatformError) -> GatewayError:
    """Explain a missing or unreadable response."""
    match error:
        case ReadingError():
            return no_answer(profile, error.said, see(profile))
        case TooLongAnswerError():
            return no_answer(
                profile,
                Sentence("its answer is longer than 1 MiB"),
                Sentence("Ask for a shorter answer."),
            )
        case RefusedAddressError():
            return no_answer(profile, error.said, correct(profile))
    return no_answer(
        profile,
        error.said,
        Sentence(
            "It may still be starting: try again in a minute. On the device, systemctl "
            "status {unit} shows more.",
            unit=profile.unit,
        ),
    )


def no_answer(profile: Profile, reason: Sentence, hint: Sentence) -> GatewayError:
    """The whole sentence."""
    return GatewayError(
        Sentence(
            "{name} gave no usable answer: {reason}", name=profile.display_name, reason=reason
        ),
        hint=hint,
    )


def see(profile: Profile) -> Sentence:
    """Say where to find the gateway's log."""
    return Sentence("Its log on the device shows more: journalctl -u {unit}", unit=profile.unit)
