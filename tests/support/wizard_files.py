"""Documents of the wizard's state, good and bad, on which schema and code must agree."""

from __future__ import annotations

from typing import Any

from tests.support.record_cases import LONG_ID, REMOVED, Case, changed

_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGr2 me@home"
ANSWERS: dict[str, Any] = {
    "hostname": "kitchen-agent",
    "timezone": "Europe/Berlin",
    "profile": "openclaw",
    "provider": "openai",
    "model": "",
    "endpoint": "",
    "channels": ["telegram"],
    "ssh_keys": [_KEY],
    "mesh_vpn_enabled": True,
    "tunnel_choice": "named",
    "tunnel_name": "kitchen",
    "backup_kind": "store_a",
    "backup_meta": {"account_id": "acc0", "bucket": "kitchen-backup"},
}
GOOD: dict[str, Any] = {
    "version": 2,
    "started_at": "2026-11-01T12:00:00Z",
    "completed_at": None,
    "step": "review",
    "answers": ANSWERS,
}
_NOT_TEXT: tuple[Any, ...] = (None, 1, True, ["a"], {})


def _cases(*place: str, good: Any = (), bad: Any = ()) -> list[Case]:
    return [
        Case("wizard-state", place, value, is_good)
        for values, is_good in ((good, True), (bad, False))
        for value in values
    ]


def _answer(name: str, good: Any = (), bad: Any = ()) -> list[Case]:
    return _cases("answers", name, good=good, bad=bad)


_BACKUPS = (
    {"backup_kind": "skip", "backup_meta": {}},
    {"backup_kind": "skip"},
    {
        "backup_kind": "store_b",
        "backup_meta": {
            "account_id": "acc0",
            "bucket": "kitchen",
            "endpoint": "https://acc0.r2.cloudflarestorage.com",
        },
    },
    {
        "backup_kind": "store_c",
        "backup_meta": {"endpoint": "https://s3.example.com", "bucket": "kitchen"},
    },
)
CASES = [
    *_cases(bad=([], None, "x", {}, ANSWERS)),
    *_cases("version", bad=(REMOVED, 1, 3, "2", None, True, 2.5)),
    *_cases("started_at", bad=(REMOVED, "", "now", "2026-11-01", "2026-11-01T12:00:00")),
    *_cases("started_at", good=("1970-01-01T00:00:00Z", "2026-11-01T12:00:00.5+02:00")),
    *_cases("started_at", bad=("2026-11-01 12:00:00Z", "2026-11-01T12:00:00Z\n", *_NOT_TEXT)),
    Case("wizard-state", ("started_at",), "2026-13-01T12:00:00Z", good=False, schema_cannot=True),
    *_cases("completed_at", good=(REMOVED, None, "2026-11-01T12:00:00Z"), bad=("", 1, "later")),
    *_cases("step", good=("system", "mesh-vpn", "done")),
    *_cases("step", bad=(REMOVED, "", "mesh_vpn", "apply", "Review", *_NOT_TEXT)),
    *_cases("of a later version", good=(1, None, {"a": [1]})),
    *_cases("answers", good=(REMOVED, {}, {"of a later version": 1}), bad=(None, [], "x")),
    *_answer("hostname", ("a", "a" * 63, REMOVED), ("", "a" * 64, "A", "a.b", "-a", "a-", "a\n")),
    *_answer("hostname", bad=_NOT_TEXT),
    *_answer("timezone", ("UTC", "Gone/Away", REMOVED), ("", "../x", "a b", "/UTC", *_NOT_TEXT)),
    *_answer("profile", ("not-installed", REMOVED), ("", "a/b", "A", LONG_ID, *_NOT_TEXT)),
    *_answer("provider", ("unheard-of", REMOVED), ("", "a_b", *_NOT_TEXT)),
    *_answer("model", (REMOVED, "a/b:c"), ("a b", "a\n", "a" * 201, *_NOT_TEXT)),
    *_answer("endpoint", (REMOVED, "http://10.0.0.1:8080/v1")),
    *_answer("endpoint", bad=("ftp://x", "https://u:p@x", "https://x?y", "x", *_NOT_TEXT)),
    *_answer("channels", (REMOVED, [], ["a", "b-c"]), (None, "a", {}, [1], ["A"], ["a"] * 65)),
    *_answer("channels", bad=(["a\n"], ["../x"], [""])),
    *_answer("ssh_keys", (REMOVED, [], [_KEY, _KEY]), (None, _KEY, [1], [""], ["ssh-rsa"])),
    *_answer("ssh_keys", bad=([f"{_KEY}\nx y"], ["AAAA me"], [f'command="x" {_KEY}'])),
    Case(
        "wizard-state",
        ("answers", "ssh_keys"),
        ["ssh-rsa -----BEGIN OPENSSH PRIVATE KEY-----"],
        good=False,
        schema_cannot=True,
    ),
    *_answer("mesh_vpn_enabled", (REMOVED, False), (None, 1, "true", [])),
    *_answer("tunnel_choice", (REMOVED,), ("", "skip", "quick", "other", *_NOT_TEXT)),
    *_answer("tunnel_name", ("a", "A.b-c_0"), (REMOVED, "", "-a", "a b", "a\n", *_NOT_TEXT)),
    *_answer("backup_kind", (REMOVED,), ("", "skip", "store_c", "store_d", *_NOT_TEXT)),
    *_answer("backup_meta", bad=(REMOVED, {}, {"bucket": "x"}, None, [], "x")),
    *_answer("backup_meta", bad=[ANSWERS["backup_meta"] | {"application_key": "secret"}]),
    *_cases("answers", "backup_meta", "bucket", bad=(REMOVED, "", "a", "a b", 1, None)),
    *_cases("answers", "backup_meta", "account_id", bad=(REMOVED, "", "a.b", "a\n", 1)),
    *_cases("answers", good=[ANSWERS | backup for backup in _BACKUPS[:1]]),
    *_cases("answers", good=[{"hostname": "a"}, {"model": "x"}, *_BACKUPS[1:]]),
    *_cases("answers", bad=[{"hostname": 1}, {"model": 1}, {"tunnel_name": 1}]),
]


def document(case: Case) -> Any:
    """The changed document of a case."""
    return changed(GOOD, case.place, case.value)
