"""Masks secrets in text: known values in every usual form, and anything shaped like a key.

Other programs print keys, so their output goes through here before it is shown, sent or stored.
Every pattern takes linear time for any input: it looks at each run of characters once, or is
bounded.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote

from platform_common.secret import Secret

MASK = "•••"
# Shorter values also occur as ordinary words.
SHORTEST_KNOWN = 8
# Values in the file of keys that are not secret: server addresses, region names.
_NO_SECRET = re.compile(r"https?://[\w.:\[\]-]+(?:/v\d+)?/*|[a-z]{2}(?:-[a-z]+){1,3}-\d{1,2}")

# A character of a key, and the condition that none comes before.
_IN_KEY = r"[A-Za-z0-9_-]"
_START = rf"(?<!{_IN_KEY})"
_WITH_DIGIT = rf"(?=[A-Za-z_-]*+[0-9]){_IN_KEY}"
_KEYS = re.compile(
    rf"{_START}(?:"
    rf"(?:sk|rk|pk|nvapi|xai|tskey|pplx|ollama|glpat|key|xox[abeprs])[_-]{_WITH_DIGIT}{{16,}}+"
    rf"|(?:hf|gsk|gh[oprsu]|github_pat|r8|fw)_{_WITH_DIGIT}{{16,}}+"
    rf"|AIza{_IN_KEY}{{30,}}+"
    r"|(?:AKIA|ASIA)[0-9A-Z]{16,}+"
    # A token of three parts, such as a JSON Web Token.
    rf"|eyJ{_IN_KEY}{{10,}}+\.{_IN_KEY}{{10,}}+(?:\.{_IN_KEY}*+)?"
    r")"
    # A bot token, which also occurs in URLs: `/bot1234567890:AA…`.
    rf"|(?<![0-9])[0-9]{{8,10}}:AA{_IN_KEY}{{30,}}+"
)
_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,40}-----|\Z)", re.DOTALL
)
_VALUE = r"[^\s\"'`,;&<>(){}\[\]\\•]"
# Not prose: it contains a digit, or is longer than words are.
_NO_WORD = rf"(?:(?=[^\s0-9\"'`,;&<>]{{0,200}}+[0-9]){_VALUE}{{8,}}+|{_VALUE}{{20,}}+)"
_SCHEMES = re.compile(rf"(?i)(\b(?:bearer|basic)[ \t]{{1,8}}){_NO_WORD}")
_NAMES = (
    r"(?:api[_-]?key|access[_-]?key(?:[_-]?id)?|auth[_-]?key|secret[_-]?key|private[_-]?key"
    r"|authorization|token|secret|passwd|password|passphrase|credentials?)"
)
_NAME_WORDS = ("key", "auth", "token", "secret", "pass", "credential")
# `name=value` and `"name": "value"`; in `name: value` the value must not be a word.
_ASSIGNED = re.compile(
    rf"(?i)({_NAMES}(?:=[\"']?|[\"'][ \t]{{0,8}}[:=][ \t]{{0,8}}[\"']?))"
    rf"(?!(?:null|none|true|false)\b){_VALUE}++"
)
_SAID = re.compile(rf"(?i)({_NAMES}[ \t]{{0,8}}[:=][ \t]{{0,8}}[\"']?)(?![/~]){_NO_WORD}")
_PASSWORD = re.compile(rf"(?i)(pass(?:word|wd|phrase)[ \t]{{0,8}}[:=][ \t]{{0,8}}[\"']?){_VALUE}++")
_QUERY = re.compile(r"(?i)([?&](?:key|auth|sig|signature|code|pw)=)[^&\s\"'<>•]++")
_IN_ADDRESS = re.compile(r"(://[^\s/:@\"']{0,256}+:)[^\s/@\"'•]{1,256}+(?=@)")
# Each pattern, its replacement, and words of which one must occur for it to match: most lines
# have none of them, and searching for a word is very cheap.
_SHAPES: tuple[tuple[re.Pattern[str], str, tuple[str, ...]], ...] = (
    (_PRIVATE_KEY, MASK, ("-----begin ",)),
    (_KEYS, MASK, ("-", "_", "aiza", "akia", "asia", "eyj", ":aa")),
    (_SCHEMES, rf"\1{MASK}", ("bearer", "basic")),
    *((named, rf"\1{MASK}", _NAME_WORDS) for named in (_ASSIGNED, _SAID, _PASSWORD)),
    (_QUERY, rf"\1{MASK}", ("?", "&")),
    (_IN_ADDRESS, rf"\1{MASK}", ("://",)),
)


class Redactor:
    """Masks `secrets`, and anything shaped like one; its `repr` shows none."""

    __slots__ = ("_forms",)

    def __init__(self, secrets: Iterable[Secret] = ()) -> None:
        forms = {form for secret in secrets for form in _forms(secret.reveal())}
        # The longest first, because one may contain another.
        self._forms = tuple(sorted(forms, key=lambda form: (-len(form), form)))

    def redact(self, text: str) -> str:
        """Replace every secret in `text` by a mask."""
        for form in self._forms:
            text = text.replace(form, MASK)
        lower = text.lower()
        for shape, mask, words in _SHAPES:
            if any(word in lower for word in words):
                text = shape.sub(mask, text)
        return text

    def __repr__(self) -> str:
        return f"Redactor({len(self._forms)} forms)"


def _forms(value: str) -> Iterator[str]:
    """The forms of a secret in a text: plain, URL-encoded, base64."""
    if len(value) < SHORTEST_KNOWN or _NO_SECRET.fullmatch(value):
        return
    yield value
    in_address = quote(value, safe="")
    yield in_address
    yield re.sub("%..", lambda found: found[0].lower(), in_address)
    for encoded in _encoded(value.encode("utf-8", "replace")):
        yield encoded
        yield encoded.replace("+", "-").replace("/", "_")


def _encoded(data: bytes) -> Iterator[str]:
    """The base64 characters of `data` inside longer text, such as `user:password`.

    They depend on its position modulo three bytes; characters at the ends depend on the
    neighbours and are left out.
    """
    yield base64.b64encode(data).decode().rstrip("=")
    for before, dropped in ((0, 0), (1, 2), (2, 3)):
        whole = base64.b64encode(bytes(before) + data).decode()
        yield whole[dropped : (before + len(data)) * 8 // 6]
