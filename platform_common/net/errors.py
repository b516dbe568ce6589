"""Why there is no answer: a sentence of ours for each cause.

The libraries' messages are not used: they may contain a whole address, and so a key.
"""

from __future__ import annotations

import errno
import http.client
import socket
import ssl

from platform_common.clock import is_implausible, today
from platform_common.errors import PlatformError
from platform_common.message import Sentence
from platform_common.net.connect import is_offline

_TRY_AGAIN = Sentence("Try again later.")
_CHECK_ADDRESS = Sentence("Check the address and make sure that the service is running.")
# OpenSSL's X509_V_ERR_CERT_NOT_YET_VALID and its like (x509_vfy.h).
_NOT_YET_VALID = 9
_UNKNOWN_AUTHORITY = Sentence("it is signed by an authority that this device does not know")
_UNTRUSTED = {
    10: Sentence("it has expired"),
    18: Sentence("it is self-signed"),
    19: _UNKNOWN_AUTHORITY,
    20: _UNKNOWN_AUTHORITY,
    21: _UNKNOWN_AUTHORITY,
    62: Sentence("it is for another name"),
    64: Sentence("it is for another address"),
}
_UNREACHABLE = frozenset({errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.EHOSTDOWN})


class ExchangeError(PlatformError):
    """There is no usable answer; the message names the server and contains no secret."""


class TooLongAnswerError(ExchangeError):
    """The answer is too long."""


class ClientGoneError(PlatformError):
    """The client left before the answer came."""


class SizeLimitError(ValueError):
    """More bytes than allowed."""


def exchange_error(
    error: Exception, server: str, host: str | None, limit_s: float
) -> ExchangeError:
    """Describe a failure in a sentence of ours; special cases come before general ones."""
    hint = _CHECK_ADDRESS
    match error:
        case ssl.SSLCertVerificationError():
            return _distrusted(error.verify_code, server)
        case socket.gaierror() | UnicodeError():
            return _unknown(error, host)
        case OSError(errno=number) if number in _UNREACHABLE:
            said = Sentence("This device has no route to {server}", server=server)
            return _unreachable(said, hint)
        case SizeLimitError():
            return TooLongAnswerError(
                Sentence("{server} sent a response that is too large", server=server)
            )
        case TimeoutError():
            seconds, hint = f"{round(limit_s, 1):g}", _TRY_AGAIN
            said = Sentence(
                "{server} did not answer within {seconds} s", server=server, seconds=seconds
            )
        case ConnectionRefusedError():
            said = Sentence("{server} refused the connection", server=server)
        case ConnectionError() | http.client.IncompleteRead() | ssl.SSLEOFError():
            said = Sentence(
                "{server} closed the connection before its answer was complete", server=server
            )
            hint = _TRY_AGAIN
        case ssl.SSLError():
            said = Sentence(
                "This device could not set up a TLS connection to {server}", server=server
            )
            hint = Sentence("Does its address start with http:// instead?")
        case http.client.HTTPException() | ValueError():
            said = Sentence("{server} sent an answer that is not HTTP", server=server)
        case _:
            said = Sentence("{server} could not be reached", server=server)
    return ExchangeError(said, hint=hint)


def _distrusted(verify_code: int, server: str) -> ExchangeError:
    day = today()
    if is_implausible(day):
        return wrong_clock()
    if verify_code == _NOT_YET_VALID:
        return ExchangeError(
            Sentence(
                "The certificate of {server} is not valid yet, or the device's clock is wrong"
                " ({day})",
                server=server,
                day=day,
            ),
            hint=Sentence("Set the clock if that is not today's date."),
        )
    reason = _UNTRUSTED.get(verify_code, Sentence("it does not prove the server's identity"))
    return ExchangeError(
        Sentence(
            "The certificate of {server} is not trusted: {reason}", server=server, reason=reason
        ),
        hint=Sentence("Check the address and the device's clock (it says {day}).", day=day),
    )


def wrong_clock() -> ExchangeError:
    """The error for a device with an unset clock."""
    return ExchangeError(
        Sentence("The device's clock is wrong ({day})", day=today()),
        hint=Sentence("Connect the device to the internet, or set the clock with timedatectl."),
    )


def _unknown(error: Exception, host: str | None) -> ExchangeError:
    if isinstance(error, socket.gaierror) and error.errno == socket.EAI_AGAIN:
        return _unreachable(
            Sentence("This device could not look up {host}: no name server answers", host=host),
            Sentence("Check the device's network connection."),
        )
    said = Sentence("This device cannot find {host}", host=host)
    return _unreachable(said, Sentence("Check its internet connection or DNS filter."))


def _unreachable(said: Sentence, hint: Sentence) -> ExchangeError:
    if is_offline():
        return ExchangeError(
            Sentence("This device has no internet connection"),
            hint=Sentence("Connect it to a network."),
        )
    return ExchangeError(said, hint=hint)
