"""Text without the secrets in it: known values in every usual form, and what is shaped like a key.

Other people's programs print keys. What they wrote goes through here before it is
shown, sent or kept. Every pattern takes time in proportion to the text, whatever
that text is: each looks at a run of characters once, or is bounded.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote

from platform_common.secret import Secret

MASK = "•••"
# Shorter values are words that stand in any text.
_SHORTEST_KNOWN = 8
# Values that lie among the keys and are none: the address of a server, the name of a region.
_NO_SECRET = re.compile(r"https?://[\w.:\[\]-]+(?:/v\d+)?/*|[a-z]{2}(?:-[a-z]+){1,3}-\d{1,2}")

# A letter or a digit of a key, and that no such thing stands in front.
_IN_KEY = r"[A-Za-z0-9_-]"
_START = rf"(?<!{_IN_KEY})"
_WITH_DIGIT = rf"(?=[A-Za-z_-]*+[0-9]){_IN_KEY}"
_KEYS = re.compile(
    rf"{_START}(?:"
    rf"(?:sk|rk|pk|nvapi|xai|tskey|pplx|ollama|glpat|key|xox[abeprs])[_-]{_WITH_DIGIT}{{16,}}+"
    rf"|(?:hf|gsk|gh[oprsu]|github_pat|r8|fw)_{_WITH_DIGIT}{{16,}}+"
    rf"|AIza{_IN_KEY}{{30,}}+"
    r"|(?:AKIA|ASIA)[0-9A-Z]{16,}+"
    # A token of three parts, such as those that JSON Web Tokens are.
    rf"|eyJ{_IN_KEY}{{10,}}+\.{_IN_KEY}{{10,}}+(?:\.{_IN_KEY}*+)?"
    r")"
    # The token of a bot, as it also stands in addresses: `/bot1234567890:AA…`.
    rf"|(?<![0-9])[0-9]{{8,10}}:AA{_IN_KEY}{{30,}}+"
)
_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,40}-----|\Z)", re.DOTALL
)
_VALUE = r"[^\s\"'`,;&<>(){}\[\]\\•]"
# What is no sentence: it holds a digit, or is longer than words are.
_NO_WORD = rf"(?:(?=[^\s0-9\"'`,;&<>]{{0,200}}+[0-9]){_VALUE}{{8,}}+|{_VALUE}{{20,}}+)"
_SCHEMES = re.compile(rf"(?i)(\b(?:bearer|basic)[ \t]{{1,8}}){_NO_WORD}")
_NAMES = (
    r"(?:api[_-]?key|access[_-]?key(?:[_-]?id)?|auth[_-]?key|secret[_-]?key|private[_-]?key"
    r"|authorization|token|secret|passwd|password|passphrase|credentials?)"
)
_NAME_WORDS = ("key", "auth", "token", "secret", "pass", "credential")
# `name=value`, and `"name": "value"`; in `name: value` the value must be no word.
_ASSIGNED = re.compile(
    rf"(?i)({_NAMES}(?:=[\"']?|[\"'][ \t]{{0,8}}[:=][ \t]{{0,8}}[\"']?))"
    rf"(?!(?:null|none|true|false)\b){_VALUE}++"
)
_SAID = re.compile(rf"(?i)({_NAMES}[ \t]{{0,8}}[:=][ \t]{{0,8}}[\"']?)(?![/~]){_NO_WORD}")
_PASSWORD = re.compile(rf"(?i)(pass(?:word|wd|phrase)[ \t]{{0,8}}[:=][ \t]{{0,8}}[\"']?){_VALUE}++")
_QUERY = re.compile(r"(?i)([?&](?:key|auth|sig|signature|code|pw)=)[^&\s\"'<>•]++")
_IN_ADDRESS = re.compile(r"(://[^\s/:@\"']{0,256}+:)[^\s/@\"'•]{1,256}+(?=@)")
# Each pattern, what takes the place of its finding, and the words without one of which it
# finds nothing: most lines hold none of them, and looking for a word costs next to nothing.
_SHAPES: tuple[tuple[re.Pattern[str], str, tuple[str, ...]], ...] = (
    (_PRIVATE_KEY, MASK, ("-----begin ",)),
    (_KEYS, MASK, ("-", "_", "aiza", "akia", "asia", "eyj", ":aa")),
    (_SCHEMES, rf"\1{MASK}", ("bearer", "basic")),
    *((named, rf"\1{MASK}", _NAME_WORDS) for named in (_ASSIGNED, _SAID, _PASSWORD)),
    (_QUERY, rf"\1{MASK}", ("?", "&")),
    (_IN_ADDRESS, rf"\1{MASK}", ("://",)),
)


class Redactor:
    """Masks `secrets`, and what is shaped like one; its `repr` shows none."""

    __slots__ = ("_forms",)

    def __init__(self, secrets: Iterable[Secret] = ()) -> None:
        forms = {form for secret in secrets for form in _forms(secret.reveal())}
        # The longest first: one may hold another.
        self._forms = tuple(sorted(forms, key=lambda form: (-len(form), form)))

    def redact(self, text: str) -> str:
        """`text` with a mask in the place of every secret."""
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
    """How a secret may stand in a text: as it is, in an address, in base64."""
    if len(value) < _SHORTEST_KNOWN or _NO_SECRET.fullmatch(value):
        return
    yield value
    in_address = quote(value, safe="")
    yield in_address
    yield re.sub("%..", lambda found: found[0].lower(), in_address)
    for encoded in _encoded(value.encode("utf-8", "replace")):
        yield encoded
        yield encoded.replace("+", "-").replace("/", "_")


def _encoded(data: bytes) -> Iterator[str]:
    """What base64 has of `data` in all its texts, such as that of `user:password`.

    Where it begins among three bytes decides, and the characters at its ends
    depend on its neighbours.
    """
    yield base64.b64encode(data).decode().rstrip("=")
    for before, dropped in ((0, 0), (1, 2), (2, 3)):
        whole = base64.b64encode(bytes(before) + data).decode()
        yield whole[dropped : (before + len(data)) * 8 // 6]
