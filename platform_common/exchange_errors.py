"""Why there is no answer: each cause in a sentence of ours.

What the libraries say of it is not used: it may hold a whole address, and with it
a key.
"""

from __future__ import annotations

import errno
import http.client
import socket
import ssl

from platform_common.clock import is_implausible, today
from platform_common.connecting import is_offline
from platform_common.errors import PlatformError

_TRY_AGAIN = "Try again later."
_CHECK_ADDRESS = "Check the address, and that the service is running."
# OpenSSL's X509_V_ERR_CERT_NOT_YET_VALID and its like (x509_vfy.h).
_NOT_YET_VALID = 9
_UNTRUSTED = {
    10: "it has expired",
    18: "it is signed by itself",
    19: "it is signed by an authority that this device does not know",
    20: "it is signed by an authority that this device does not know",
    21: "it is signed by an authority that this device does not know",
    62: "it is for another name",
    64: "it is for another address",
}
_UNREACHABLE = frozenset({errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.EHOSTDOWN})


class ExchangeError(PlatformError):
    """There is no answer that can be used; the message names the server and holds no secret."""


class TooLongAnswerError(ExchangeError):
    """The answer is longer than it may be."""


class TooMuchError(ValueError):
    """More bytes than we take."""


def told(error: Exception, server: str, host: str | None, limit_s: float) -> ExchangeError:
    """What happened, in a sentence of ours: a table, the special before the general."""
    match error:
        case ssl.SSLCertVerificationError():
            return _distrusted(error.verify_code, server)
        case socket.gaierror() | UnicodeError():
            return _unknown(error, host)
        case TimeoutError():
            said = f"{server} did not answer within {round(limit_s, 1):g} s"
            return ExchangeError(said, hint=_TRY_AGAIN)
        case ConnectionRefusedError():
            return ExchangeError(f"{server} refused the connection", hint=_CHECK_ADDRESS)
        case OSError(errno=number) if number in _UNREACHABLE:
            return _unreachable(f"There is no way from this device to {server}", _CHECK_ADDRESS)
        case ConnectionError() | http.client.IncompleteRead() | ssl.SSLEOFError():
            said = f"{server} closed the connection before its answer was complete"
            return ExchangeError(said, hint=_TRY_AGAIN)
        case ssl.SSLError():
            said = f"{server} does not speak TLS as this device does"
            return ExchangeError(said, hint="Is its address one with http:// instead?")
        case TooMuchError():
            return TooLongAnswerError(f"{server} sends more than a list of models can be")
        case http.client.HTTPException() | ValueError():
            said = f"{server} answers with something that is not HTTP"
            return ExchangeError(said, hint=_CHECK_ADDRESS)
        case _:
            return ExchangeError(f"{server} could not be reached", hint=_CHECK_ADDRESS)


def _distrusted(verify_code: int, server: str) -> ExchangeError:
    day = today()
    if is_implausible(day):
        return wrong_clock()
    if verify_code == _NOT_YET_VALID:
        return ExchangeError(
            f"The certificate of {server} is not valid yet, or the device's clock is wrong ({day})",
            hint="Set the clock if that is not the date.",
        )
    why = _UNTRUSTED.get(verify_code, "it does not prove who that is")
    return ExchangeError(
        f"The certificate of {server} is not trusted: {why}",
        hint=f"Check the address, and the device's clock (it says {day}).",
    )


def wrong_clock() -> ExchangeError:
    """The sentence for a device that has not been told what day it is."""
    return ExchangeError(
        f"The device's clock is wrong ({today()})",
        hint="Connect the device to the internet, or set the clock with timedatectl.",
    )


def _unknown(error: Exception, host: str | None) -> ExchangeError:
    if isinstance(error, socket.gaierror) and error.errno == socket.EAI_AGAIN:
        return _unreachable(
            f"The name {host} could not be looked up: no name server answers",
            "Check the device's network.",
        )
    return _unreachable(f"There is no server called {host}", "Check the address for a slip.")


def _unreachable(said: str, hint: str) -> ExchangeError:
    if is_offline():
        return ExchangeError(
            "This device has no internet connection", hint="Connect it to a network."
        )
    return ExchangeError(said, hint=hint)
