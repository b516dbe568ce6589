"""Credentials of a tunnel: good ones, and bad ones with their error messages."""

from __future__ import annotations

import json
from typing import Any

ID = "6ff42ae2-765d-4adf-8112-31c55c1551ef"
CANARY = "CaNaRy+tunnel/0123456789=="


def credentials(**members: Any) -> str:
    """The text of a credentials file; `members` replace the usual ones or are added."""
    usual = {"AccountTag": "a1b2c3", "TunnelSecret": CANARY, "TunnelID": ID}
    return json.dumps(usual | members)


# Accepted credentials: the text, and the name of the tunnel.
GOOD: dict[str, tuple[str, str]] = {
    "usual": (credentials(), ID),
    "name-first": (credentials(TunnelName="kitchen"), "kitchen"),
    "name-alone": ('{"TunnelName": "kitchen"}', "kitchen"),
    "id-alone": (f'{{"TunnelID": "{ID}"}}', ID),
    "one-letter": ('{"TunnelID": "a"}', "a"),
    "64-letters": (json.dumps({"TunnelID": "x" * 64}), "x" * 64),
    "every-sign": ('{"TunnelName": "_A.b-9"}', "_A.b-9"),
    "blanks-around": (f"\r\n\t {credentials()} \r\n", ID),
    "escaped-name": ('{"TunnelName": "k\\u0069tchen"}', "kitchen"),
    "other-members": (credentials(x=[1, {"y": None}], Endpoint="ü…\U0001f511"), ID),
    "deep-but-not-too-deep": (credentials(x=json.loads("[" * 90 + "]" * 90)), ID),
    "64-kib": (credentials(x="y" * (65536 - len(credentials(x="")))), ID),
}

_JSON = "Credentials must be JSON with TunnelID or TunnelName"
_NAMES = "TunnelID and TunnelName can only contain a to z"
# Refused credentials: the text, and the error message.
ODD: dict[str, tuple[str, str]] = {
    "nothing-in-it": ("{}", _JSON),
    "no-name": ('{"AccountTag": "a", "TunnelSecret": "b"}', _JSON),
    "other-case": ('{"tunnelid": "a", "TUNNELNAME": "b"}', _JSON),
    "words": (f"my secret is {CANARY}", f"{_JSON}: not valid JSON (line 1, col"),
    "third-line": ('{\n"a": 1,\n}', "(line 3, column 1)"),
    "cut": (credentials()[:-1], "line 1, column"),
    "trailing-comma": ('{"TunnelID": "a",}', "(line 1, column 18)"),
    "single-quotes": ("{'TunnelID': 'a'}", "(line 1, column 2)"),
    "two-documents": ('{"TunnelID": "a"}{}', "(line 1, column 18)"),
    "line-feed-in-a-string": ('{"TunnelID": "a\nb"}', "(line 1, column 16)"),
    "nul-in-a-string": ('{"TunnelID": "a\0b"}', "(line 1, column 16)"),
    "comment": ('{"TunnelID": "a"} // mine', "(line 1, column 19)"),
    "certificate": ("-----BEGIN ARGO TUNNEL TOKEN-----\nx\n", "(line 1, column 1)"),
    "array": ('[{"TunnelID": "a"}]', "expected object, got array"),
    "string": ('"TunnelID"', "expected object, got str"),
    "number": ("1", "expected object, got int"),
    "null": ("null", "expected object, got null"),
    "true": ("true", "expected object, got bool"),
    "nested-100,000-deep": ("[" * 30000 + "]" * 30000, "nested too deeply"),
    "nested-deeply-within": (
        credentials()[:-1] + ', "x": ' + "[" * 200 + "]" * 200 + "}",
        "nested",
    ),
    "objects-deeply": ('{"x":' * 9000 + "1" + "}" * 9000, "nested too deeply"),
    "too-large": (credentials(x="y" * 65536), "Credentials must be 64 KiB or smaller"),
    "64-kib-and-one": (GOOD["64-kib"][0] + " ", "Credentials must be 64 KiB or smaller"),
    "nan": ('{"TunnelID": "a", "x": NaN}', "the JSON contains NaN"),
    "infinity": ('{"TunnelID": "a", "x": -Infinity}', "the JSON contains -Infinity"),
    "huge-float": ('{"TunnelID": "a", "x": 1e999}', "a number that is too large"),
    "many-digits": ('{"TunnelID": "a", "x": ' + "9" * 5000 + "}", "too many digits"),
    "duplicate-id": ('{"TunnelID": "a", "TunnelID": "b"}', "without duplicate names"),
    "duplicate-canary": (
        f'{{"{CANARY}": 1, "{CANARY}": 2, "TunnelID": "a"}}',
        "without duplicate names",
    ),
    "duplicate-within": ('{"TunnelID": "a", "x": {"y": 1, "y": 2}}', "without duplicate names"),
    "lone-surrogate": ('{"TunnelID": "\\ud800"}', "half of a surrogate pair"),
    "lone-surrogate-elsewhere": ('{"TunnelID": "a", "x": "\\udc00"}', "half of a surrogate"),
    "byte-order-mark": ("\ufeff" + credentials(), "byte-order mark"),
    "id-is-number": ('{"TunnelID": 7}', "TunnelID: expected str, got int"),
    "id-is-null": ('{"TunnelID": null}', "TunnelID: expected str, got null"),
    "id-is-array": ('{"TunnelID": ["a"]}', "TunnelID: expected str, got array"),
    "name-is-object": ('{"TunnelName": {"a": 1}}', "TunnelName: expected str, got object"),
    "name-is-true": ('{"TunnelName": true}', "TunnelName: expected str, got bool"),
    "null-name-with-id": (credentials(TunnelName=None), "TunnelName: expected str, got null"),
    "number-id-with-name": ('{"TunnelName": "a", "TunnelID": 1}', "TunnelID: expected str"),
}
# Names that are not a valid file name, look like an option, or have a meaning in YAML.
BAD_NAMES = (
    *("", " ", "a b", " a", "a ", "a\n", "a\nb: c", "a\r\nb", "a\0", "a\tb", "x" * 65),
    *("..", ".", ".hidden", "../x", "../../etc/passwd", "/etc/passwd", "a/b", "a\\b", "~"),
    *("-", "-v", "--flag", "--config=/x", "$(id)", "`id`", "a;b", "a&b", "{{x}}", "*", "a:b"),
    *("ü", "\u0430bc", "kitchen\u202e", "１２", "\U0001f511", '"', "'", "<script>"),
)
ODD |= {
    f"name-{number}": (credentials(TunnelName=name), _NAMES)
    for number, name in enumerate(BAD_NAMES)
}
ODD |= {
    f"id-{number}": (credentials(TunnelID=name, TunnelName="kitchen"), _NAMES)
    for number, name in enumerate(BAD_NAMES)
}
