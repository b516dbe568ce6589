"""Documents of the read-only records, good and bad, on which schema and code must agree."""

from __future__ import annotations

import copy
import json
from typing import Any, NamedTuple

from platform_common.resources import data_path

REMOVED = object()
LONG_ID = "a" * 65
# Names of variables that must never hold a key, and invalid names.
HOSTILE_VARIABLES = (
    *("LD_PRELOAD", "PATH", "HOME", "PYTHONPATH", "BASH_ENV", "IFS", "ENV", "NODE_OPTIONS"),
    *("GCONV_PATH", "LC_ALL", "HTTPS_PROXY", "SSL_CERT_FILE", "PLATFORM_ROOT", "NOTIFY_SOCKET"),
    *("", "a", "1A", "_A", "A\nB", "A=B", "A\n", "A B", "A-B", "\u00c9", "A\0", "A" * 65, "Ａ"),
)
GOOD_VARIABLES = ("A", "OPENAI_API_KEY", "A1_", "A" * 64, "PATHS", "XPATH", "ENVIRONMENT_KEY")
_BAD_BASE_URLS = (
    *("ftp://example.org", "example.org", "//example.org", "http://", "https:///x", "http:x"),
    *(
        "https://user@example.org",
        "https://u:p@example.org/",
        "https://example.org/?a",
        "file:///x",
    ),
    *("https://example.org/#a", "https://exam ple.org", "https://example.org/\n", "https://é.org"),
    *(
        "HTTPS://example.org",
        "javascript:alert(1)",
        f"https://example.org/{'a' * 2048}",
        "http://:80",
    ),
)
_BAD_CHECKS = (
    *("http://192.0.2.1/", "http://127.0.0.1.example.org/", "http://localhost.example.org/"),
    *("http://127.0.0.1@example.org/", "http://0.0.0.0/", "http://[::2]/", "https://example.org"),
    *("http://127.0.0.1:0/", "http://127.0.0.1:65536/", "http://127.0.0.1:x/", "http://127.1/"),
    *("http://127.0.0.1/\n", "http://127.0.0.1/a b", "unix:/run/x", "http://u@127.0.0.1/"),
)
_BAD_FOLDERS = ("x", "../x", "~", "~/", "/", "~/../x", "/a/../b", "/a/..", "~x/y", "/a\nb", "//")
_BAD_UNITS = ("x", "-x.service", ".service", "a b.service", "a/b.service", "x.socket", "é.service")
_BAD_PORTS = ("443", "443/sctp", "0/tcp", "65536/tcp", "0443/tcp", "443/tcp ", "-1/tcp", "４/tcp")


class Case(NamedTuple):
    """A change to the good document of a record: another value at a place, or none."""

    record: str
    place: tuple[str | int, ...]
    value: Any
    good: bool
    schema_cannot: bool = False

    @property
    def id(self) -> str:
        """A name for the case."""
        value = "none" if self.value is REMOVED else ascii(self.value)[:30]
        return f"{self.record}-{'.'.join(map(str, self.place))}={value}"

    def document(self) -> Any:
        """The changed document."""
        return changed(GOOD[self.record], self.place, self.value)


def changed(document: Any, place: tuple[str | int, ...], value: Any) -> Any:
    """A copy of `document` with `value` at `place`."""
    whole = {"": copy.deepcopy(document)}
    at: Any = whole
    *before, last = ("", *place)
    for step in before:
        at = at[step]
    if value is REMOVED:
        at.pop(last, None)
    else:
        at[last] = value
    return whole[""]


def shipped(name: str) -> Any:
    """A shipped JSON file."""
    return json.loads(data_path(name).read_bytes())


GOOD: dict[str, Any] = {
    "providers": {"providers": shipped("providers.json")["providers"][:3]},
    "cost-defaults": shipped("cost-defaults.json"),
    "limits": shipped("limits/vultr.json"),
    "profile": {
        "profile": {"id": "x", "display_name": "X", "min_ram_mb": 1, "pinned_version": "1"},
        "paths": {"data_dir": "~/.x"},
        "service": {"unit": "x.service", "ports": [1]},
        "health": {"http_check": "http://127.0.0.1:1/x"},
        "channels": {"supported": ["a", "b-c"], "ports": {"a": ["1/udp"]}},
        "chat": {"protocol": "chat-completions", "path": "/v1", "model": "m", "token_env": "T"},
    },
}


def _cases(record: str, place: tuple[str | int, ...], good: Any = (), bad: Any = ()) -> list[Case]:
    return [
        Case(record, place, value, is_good)
        for values, is_good in ((good, True), (bad, False))
        for value in values
    ]


_ENTRY = ("providers", 1)
_RATE = ("providers", "openai")
_NOT_TEXT: tuple[Any, ...] = (None, 1, True, ["a"], {})
_NOT_FLAG: tuple[Any, ...] = (None, 1, "true", [])
_NOT_COUNT: tuple[Any, ...] = (None, -1, True, "1", 1.5)
CASES = [
    *_cases("providers", (), bad=([], "x", None, 1)),
    *_cases("providers", ("providers",), ([],), (REMOVED, {}, None, "x")),
    *_cases("providers", ("other",), (1, None, {})),
    *_cases("providers", (*_ENTRY, "other"), (1, None, {})),
    *_cases("providers", _ENTRY, bad=(None, "x", [], {})),
    *_cases("providers", (*_ENTRY, "id"), ("a", "a-1", "1", "a" * 64)),
    *_cases("providers", (*_ENTRY, "id"), bad=(*_NOT_TEXT, REMOVED, "", "A", "a_b", "-a", "a-")),
    *_cases("providers", (*_ENTRY, "id"), bad=("a--b", "a\n", "../a", "é", LONG_ID)),
    Case("providers", (*_ENTRY, "id"), "openai", good=False, schema_cannot=True),
    *_cases("providers", (*_ENTRY, "display_name"), ("é <b>",), (REMOVED, "", *_NOT_TEXT)),
    *_cases("providers", (*_ENTRY, "kind"), ("query-key",), (REMOVED, "x", "", *_NOT_TEXT)),
    *_cases("providers", (*_ENTRY, "key_format"), ("",), (REMOVED, *_NOT_TEXT)),
    *_cases("providers", (*_ENTRY, "default_model"), (REMOVED, "", "x"), _NOT_TEXT),
    *_cases("providers", (*_ENTRY, "supported_models_hint"), (REMOVED, "", "x"), _NOT_TEXT),
    *_cases("providers", (*_ENTRY, "endpoint_default"), bad=(REMOVED, *_NOT_TEXT, *_BAD_BASE_URLS)),
    *_cases("providers", (*_ENTRY, "endpoint_default"), ("", "http://127.0.0.1:1/v1", "https://a")),
    *_cases("providers", (*_ENTRY, "endpoint_default"), ("http://[::1]:8/", "https://a/b-c_d/")),
    Case("providers", (*_ENTRY, "endpoint_default"), "http://[:]", good=False, schema_cannot=True),
    *_cases("providers", (*_ENTRY, "endpoint_default"), bad=("http://a:0", "http://a:65536/")),
    *_cases("providers", (*_ENTRY, "endpoint_default"), bad=("http://a\\b", "http://a:1:2/")),
    *_cases("providers", (*_ENTRY, "key_env_var"), GOOD_VARIABLES, HOSTILE_VARIABLES),
    *_cases("providers", (*_ENTRY, "key_env_var"), bad=(REMOVED, *_NOT_TEXT)),
    *_cases("providers", (*_ENTRY, "extra_env"), (REMOVED, [], ["A", "B"]), (None, "A", [1], {})),
    *_cases("providers", (*_ENTRY, "extra_env"), bad=[["A", name] for name in HOSTILE_VARIABLES]),
    *_cases("providers", (*_ENTRY, "models_public"), (REMOVED, True), _NOT_FLAG),
    *_cases("providers", (*_ENTRY, "requires_model"), (REMOVED, True), _NOT_FLAG),
    *_cases("providers", (*_ENTRY, "offline_only"), (REMOVED, True), _NOT_FLAG),
    *_cases("cost-defaults", (), bad=([], None, {})),
    *_cases("cost-defaults", ("_comment",), (REMOVED, "x")),
    *_cases("cost-defaults", ("providers",), ({},), (REMOVED, [], None)),
    *_cases("cost-defaults", _RATE, bad=({}, None, 1, [])),
    *_cases("cost-defaults", (*_RATE, "default_model"), (REMOVED, ""), _NOT_TEXT),
    *_cases("cost-defaults", (*_RATE, "other"), (1, None)),
    *(
        case
        for name in ("input_per_1m_usd", "output_per_1m_usd")
        for case in _cases(
            "cost-defaults",
            (*_RATE, name),
            (0, 0.0, 1, 2.5, 1_000_000),
            (REMOVED, -1, -0.001, 1_000_001, 1e300, "1", None, True, [], 10**400),
        )
    ),
    *_cases("limits", (), bad=([], None, "x", {})),
    *_cases("limits", ("other",), (1, None, {"a": [1]})),
    *_cases("limits", ("target",), ("x",), (REMOVED, "", *_NOT_TEXT)),
    *_cases("limits", ("tier",), ("low", "high"), (REMOVED, "", "x", *_NOT_TEXT)),
    *_cases("limits", ("ram_class",), ("low", "high"), (REMOVED, "", "x", *_NOT_TEXT)),
    *_cases("limits", ("ram_mb",), (0, 1, 10**30), (REMOVED, *_NOT_COUNT)),
    *_cases("limits", ("storage_class",), ("sd", "ntfs"), (REMOVED, "", "x", *_NOT_TEXT)),
    *_cases("limits", ("cloud",), (REMOVED, "", "x"), _NOT_TEXT),
    *_cases("limits", ("capabilities",), ({}, {"x": 1}), (REMOVED, None, [], "x")),
    *(
        case
        for name in ("local_llm", "voice_wake_word", "voice_tts", "clamav_daemon")
        for case in _cases("limits", ("capabilities", name), (REMOVED, True), _NOT_FLAG)
    ),
    *(
        case
        for name in ("channels_heavy", "channels_disabled_by_ram")
        for case in _cases(
            "limits", ("capabilities", name), (REMOVED, [], ["x"]), (None, "x", {}, [1], [None])
        )
    ),
    *_cases("limits", ("limitations",), ([],), (REMOVED, None, {}, [1], [{}], ["x"])),
    *_cases("limits", ("limitations", 0, "unblock"), (REMOVED, ""), _NOT_TEXT),
    *_cases("limits", ("limitations", 0, "id"), ("x",), (REMOVED, *_NOT_TEXT)),
    *_cases("limits", ("limitations", 0, "reason"), ("x",), (REMOVED, *_NOT_TEXT)),
    *_cases("limits", ("airgap_supported",), (REMOVED, True), _NOT_FLAG),
    *_cases("limits", ("airgap_max_tier",), (REMOVED, None, "lean"), ("low", 1, "")),
    *_cases("profile", (), ({"other": {"a": 1}},)),
    Case("profile", (), {}, good=False, schema_cannot=True),
    *(
        case
        for name in GOOD["profile"]
        for case in _cases("profile", (name,), (REMOVED, {}, {"x": 1}), ("x", 1, [], True))
    ),
    *_cases("profile", ("profile", "id"), (REMOVED, "", "x"), (1, [])),
    Case("profile", ("profile", "id"), "y", good=False, schema_cannot=True),
    *_cases("profile", ("profile", "min_ram_mb"), (REMOVED, 0), (-1, True, "1", 1.5)),
    *_cases("profile", ("profile", "display_name"), (REMOVED, ""), (1, [], True)),
    *_cases("profile", ("profile", "pinned_version"), (REMOVED, ""), (1, [], 1.5)),
    *_cases("profile", ("paths", "data_dir"), (REMOVED, "", "~/a", "/a", "/a/..b", "/a b/"), (1,)),
    *_cases("profile", ("paths", "data_dir"), bad=(*_BAD_FOLDERS, "/" + "a" * 1024)),
    *_cases("profile", ("service", "unit"), (REMOVED, "", "a@b:c_d.e-f.service"), (1, *_BAD_UNITS)),
    *_cases("profile", ("service", "unit"), (f"{'a' * 247}.service",), (f"{'a' * 248}.service",)),
    *_cases("profile", ("service", "ports"), (REMOVED, [], [1, 65535]), ([0], [65536], ["1"], 1)),
    *_cases(
        "profile", ("health", "http_check"), (REMOVED, "", "http://localhost/", "https://127.0.0.1")
    ),
    *_cases("profile", ("health", "http_check"), ("http://[::1]:65535/a?b#c", "http://127.0.0.2/")),
    *_cases("profile", ("health", "http_check"), bad=(1, *_BAD_CHECKS)),
    *_cases("profile", ("channels", "supported"), (REMOVED, [], ["x-1"]), (["A"], [""], [1], "x")),
    *_cases(
        "profile", ("channels", "ports"), (REMOVED, {}, {"z": []}), ({"A": []}, [], {"a": "1"})
    ),
    *_cases("profile", ("channels", "ports", "a"), (["443/tcp", "65535/udp"],), ([443], "443/tcp")),
    *_cases("profile", ("channels", "ports", "a"), bad=[[port] for port in _BAD_PORTS]),
    *_cases("profile", ("chat", "protocol"), (REMOVED, "simple"), ("", "x", 1)),
    *_cases(
        "profile", ("chat", "path"), (REMOVED, "", "/", "/a?b=c"), ("a", "/a b", "/é", "/\n", 1)
    ),
    *_cases("profile", ("chat", "model"), (REMOVED, "", "x"), (1, [])),
    *_cases("profile", ("chat", "token_env"), (REMOVED, "", *GOOD_VARIABLES)),
    *_cases("profile", ("chat", "token_env"), bad=[name for name in HOSTILE_VARIABLES if name]),
]


def toml(document: Any) -> str:
    """`document` as TOML: tables at the top, and everything in them as inline values."""
    return "".join(f"{_key(name)} = {_toml_value(value)}\n" for name, value in document.items())


def _toml_value(value: Any) -> str:
    if isinstance(value, dict):
        return (
            "{" + ", ".join(f"{_key(name)} = {_toml_value(v)}" for name, v in value.items()) + "}"
        )
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml_value, value)) + "]"
    if isinstance(value, str):
        # A JSON string is a valid TOML string, except for two escapes that TOML writes differently.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return json.dumps(value)


def _key(name: str) -> str:
    return json.dumps(name)
