"""Rules for the access to a backup store: each returns what is wrong, or None.

Every accepted value stands for itself in an rclone.conf, where `%(name)s`, back-ticks, blanks
at the ends and line feeds have other meanings.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from platform_common.message import Sentence
from platform_common.net.networks import LOCAL, Address, address_of, is_in
from platform_common.validation import check_http_url
from wizard_app.setup.steps.typed_secret import typed_secret

Rule = Callable[[str], Sentence | None]

_ACCOUNT = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,62}[A-Za-z0-9])?")
# A host and a path of plain parts; none of them is `.` or `..`.
_PLAIN_URL = re.compile(r"https?://[^/?#]+(?:/(?!\.{1,2}(?:/|\Z))[A-Za-z0-9._~-]+)*/?")
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9])?"
# Resolvers take a name that ends in a number for an IPv4 address, in whichever notation.
_NAME = re.compile(rf"(?:{_LABEL}\.)*(?![0-9]+\Z|0[xX]){_LABEL}")
_LOCAL_NAME = re.compile(r"(?:.+\.)?localhost|.+\.(?:local|lan|internal|home\.arpa)")


def account(text: str) -> Sentence | None:
    """The rule for an account, which becomes a part of a host name."""
    if _ACCOUNT.fullmatch(text):
        return None
    return Sentence("Account ID can only contain letters, digits and hyphens, up to 64 characters")


def bucket(pattern: str, otherwise: Sentence) -> Rule:
    """Return a store's rule for its buckets."""
    fits = re.compile(pattern)
    return lambda text: None if fits.fullmatch(text) else otherwise


def key(name: Sentence) -> Rule:
    """Return the rule for a key that the page calls `name`."""

    def check(text: str) -> Sentence | None:
        found = typed_secret(text, name)
        if isinstance(found, Sentence):
            return found
        if "%(" in text:
            return Sentence(
                "{name} contains %( and the backup program misreads it: create another key",
                name=name,
            )
        return None

    return check


def endpoint(url: str) -> Sentence | None:
    """The rule for a store's address: https, or http within the local network."""
    whole = Sentence(
        "Enter the full address, such as https://s3.example.com, without a user name, ? or #"
    )
    try:
        host = check_http_url(url)
    except ValueError:
        return whole
    address = address_of(host.strip("[]"))
    if not _PLAIN_URL.fullmatch(url) or not (address or _NAME.fullmatch(host)):
        return whole
    if url.startswith("http:") and not _is_local(host, address):
        return Sentence(
            "Address must start with https://, unless the storage is on your own network"
        )
    return None


def _is_local(host: str, address: Address | None) -> bool:
    if address is None:
        return bool(_LOCAL_NAME.fullmatch(host.lower()))
    return is_in(address, LOCAL)
