"""The backup step: where backups go."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pytest

from platform_common.formats.decode import DecodingError, shaped
from tests.support import rclone_program
from tests.wizard_app.step_pages import StepPage
from wizard_app.setup.steps.backup import BackupAnswer

SLUG = "backup"
HOST = "r2.cloudflarestorage.com"
ACCOUNT = "0123456789abcdef0123456789abcdef"
GOOD: dict[str, dict[str, str]] = {
    "store_a": {
        "kind": "store_a",
        "a_account_id": "0012a3b4c5d6e7f0000000001",
        "a_application_key": "K001CaNaRy/application+key0",
        "a_bucket": "kitchen-Backup",
    },
    "store_b": {
        "kind": "store_b",
        "b_account_id": ACCOUNT,
        "b_access_key": "CaNaRy/access+key=1",
        "b_secret_key": "CaNaRy/secret+key=2",
        "b_bucket": "kitchen-backup",
    },
    "store_c": {
        "kind": "store_c",
        "c_endpoint": "https://s3.example.com",
        "c_access_key": "CaNaRy/access+key=3",
        "c_secret_key": "CaNaRy/secret+key=4",
        "c_bucket": "kitchen_backup.old",
    },
}
META = {
    "store_a": {"account_id": GOOD["store_a"]["a_account_id"], "bucket": "kitchen-Backup"},
    "store_b": {
        "account_id": ACCOUNT,
        "bucket": "kitchen-backup",
        "endpoint": f"https://{ACCOUNT}.{HOST}",
    },
    "store_c": {"endpoint": "https://s3.example.com", "bucket": "kitchen_backup.old"},
}
SECRETS = {
    "store_a": ("a_application_key",),
    "store_b": ("b_access_key", "b_secret_key"),
    "store_c": ("c_access_key", "c_secret_key"),
}
KEYS = [(kind, field) for kind, fields in SECRETS.items() for field in fields]
LABELS = {
    "application_key": "Application key",
    "access_key": "Access key",
    "secret_key": "Secret key",
}
MISSING = {
    "account_id": "Enter your account ID",
    "application_key": "Enter your application key",
    "access_key": "Enter your access key",
    "secret_key": "Enter your secret key",
    "bucket": "Enter your bucket name",
    "endpoint": "Enter the address of your storage",
}


def secrets_of(kind: str) -> dict[str, str]:
    return {field: GOOD[kind][field] for field in SECRETS[kind]}


def link(field: str) -> str:
    return f'<a href="#{field.replace("_", "-")}">'


def refused(step: StepPage, kind: str, field: str, value: str, *said: str) -> str:
    """The page after the store's form with `value` in one field was refused for that field."""
    page = step.refuse(GOOD[kind] | {field: value}, *said)
    assert link(field) in page, value
    assert page.count('class="mistake"') == 1, value
    return page


def meta(step: StepPage, kind: str, field: str, value: str) -> dict[str, str]:
    """The stored answer after the store's form with `value` in one field was accepted."""
    assert step.accept(GOOD[kind], **{field: value}) == "/wizard/review"
    stored: dict[str, str] = step.stored["backup_meta"]
    return stored


@pytest.mark.parametrize("kind", GOOD)
def test_env_11_only_the_public_details_of_a_store_are_stored(step: StepPage, kind: str) -> None:
    # Fields of other stores, and unknown fields, are ignored.
    others = {name: "x" for other in GOOD.values() for name in other} | {"endpoint": "x"}
    step.accept(others | {"secret": "s", "a_region": "r"} | GOOD[kind])
    assert step.stored == {"backup_kind": kind, "backup_meta": META[kind]}
    assert step.held == secrets_of(kind)
    # Secrets of another store are not kept.
    for other in GOOD.keys() - {kind}:
        page = step.refuse(GOOD[other] | dict.fromkeys(SECRETS[other], ""), keep="1")
        assert page.count('class="mistake"') == len(SECRETS[other])
        step.accept(GOOD[other], keep="1")
        assert step.held == secrets_of(other)
        step.accept(GOOD[kind])


def test_no_backup_is_a_valid_answer(step: StepPage) -> None:
    step.accept(GOOD["store_a"])
    step.accept(GOOD["store_a"], kind="skip", keep="1")
    assert (step.stored, step.held) == ({"backup_kind": "skip", "backup_meta": {}}, {})
    assert "Not backed up" in step.review


def test_one_of_the_four_kinds_is_required_under_any_of_three_names(step: StepPage) -> None:
    # A script may use the name from the state file, or the one of the tunnel step.
    for name in ("kind", "backup_kind", "choice"):
        form = GOOD["store_b"].copy()
        form[name] = form.pop("kind")
        step.accept(form)
        assert step.stored["backup_kind"] == "store_b"
        for kind in ("", "store_d", "STORE_A", "b2", "store_a\n x"):
            page = step.refuse(form | {name: kind}, "Select where backups go")
            assert link("kind") in page


@pytest.mark.parametrize(
    ("kind", "blank"), [("store_a", ""), ("store_b", "  "), ("store_c", " \t\r\n")]
)
def test_everything_that_is_missing_is_reported_at_once(
    step: StepPage, kind: str, blank: str
) -> None:
    fields = GOOD[kind].keys() - {"kind"}
    page = step.refuse({"kind": kind} | dict.fromkeys(fields, blank))
    assert page.count('class="mistake"') == len(fields)
    for field in fields:
        assert f"{link(field)}{MISSING[field.partition('_')[2]]}</a>" in page
        # Values that are not secret are shown again.
        alone = refused(step, kind, field, "")
        for other in fields - {field, *SECRETS[kind]}:
            assert f'value="{GOOD[kind][other]}"' in alone


BUCKETS = {
    "store_a": (
        ["abc", "myBucket", "bucket-74358734", "x" * 63],
        ["ab", "x" * 64, "a_b_c_d", "a.b.c.d", "-backup", "backup-"],
    ),
    "store_b": (
        ["abc", "kitchen-backup", "0-9", "x" * 63],
        ["ab", "x" * 64, "Kitchen", "a_b_c", "a.b.c", "-backup", "backup-"],
    ),
    "store_c": (
        ["abc", "Kitchen_Backup", "a.b-c_d", "x" * 255],
        ["ab", "x" * 256, "a..b", ".abc", "abc.", "-abc", "_abc", "...", "a../..b"],
    ),
}
# Names that no store has, and text with a meaning in rclone.conf or in a path.
BAD_BUCKETS = [
    *("a/b/c", "../../etc", "a\\b\\c", "abc def", "abc\ndef", "abc\r\n[evil]\ntype = x", "abc\0d"),
    *("abc\x7f", "abc\x85d", "abc\u2028d", "bücket", "\u0430bc", "１２３", "abc\u202e", "[evil]"),
    *("abc%(key)s", "`abc`", "abc:def", "abc=def", "abc;d", "abc#d", "$(abc)", "--flag", '"abc"'),
]


@pytest.mark.parametrize("kind", BUCKETS)
def test_env_06_only_valid_bucket_names_of_the_store_are_accepted(
    step: StepPage, kind: str
) -> None:
    good, bad = BUCKETS[kind]
    field = f"{kind[-1]}_bucket"
    for bucket in (*bad, *BAD_BUCKETS):
        refused(step, kind, field, bucket)
    for bucket in good:
        assert meta(step, kind, field, f" {bucket} ")["bucket"] == bucket


ACCOUNTS = ["a", "7", ACCOUNT, ACCOUNT.upper(), "my-account", "a--b", "x" * 63, "x" * 64]
BAD_ACCOUNTS = [
    *("a.evil.com/", "a@b", "a#", "a?b", "a/b", "a:b", "a.b", "evil.com:443", "a\\b", "%2e", "a b"),
    *("x" * 65, "-a", "a-", "a\nb", "a\0", "a\r\n[evil]", "a_b", "ä", "\u0430", "１２", "[::1]"),
    *("a%(key)s", "`a`", "..", "a;b", "user:password@host"),
]


def test_env_10_the_address_of_store_b_is_below_its_host_and_bad_accounts_are_refused(
    step: StepPage,
) -> None:
    for account in BAD_ACCOUNTS:
        refused(step, "store_a", "a_account_id", account)
        refused(step, "store_b", "b_account_id", account)
    for account in ACCOUNTS:
        endpoint = meta(step, "store_b", "b_account_id", account)["endpoint"]
        assert urlsplit(endpoint) == ("https", f"{account}.{HOST}", "", "", "")


def test_the_address_of_store_b_is_shown_before_and_after_it_is_stored(step: StepPage) -> None:
    shown = f"Backups go to <strong>https://{ACCOUNT}.{HOST}</strong>"
    assert shown not in step.text
    assert shown in step.refuse({"kind": "store_b", "b_account_id": ACCOUNT})
    unfit = step.refuse({"kind": "store_b", "b_account_id": "a.evil.com/"})
    assert 'id="goes-to"' in unfit
    assert "https://a.evil.com" not in unfit
    step.accept(GOOD["store_b"])
    assert shown in step.text
    assert "Backups go to" in step.review
    assert f"https://{ACCOUNT}.{HOST}" in step.review


ENDPOINTS = [
    *("https://s3.example.com", "https://s3.example.com/", "https://s3.eu-central-1.example.com"),
    *("https://example.com:9000", "https://x.example/storage/v1/s3", "https://x.example/a.b/~c_d/"),
    *("https://8.8.8.8", "https://8.8.8.8:65535", "https://[2001:db8::1]:9000", "https://nas"),
    *("http://192.168.1.20:9000", "http://10.0.0.1", "http://172.16.0.1/s3", "http://127.0.0.1:1"),
    *("http://100.64.0.1:9000", "http://[fd00::1]:9000", "http://[::1]", "http://localhost:9000"),
    *("http://nas.local:9000", "http://nas.lan", "http://store.home.arpa", "http://a.internal"),
    *("https://my_store.example", "https://xn--bcher-kva.example", "http://[::ffff:10.0.0.1]"),
]
BAD_ENDPOINTS = [
    *("s3.example.com", "//s3.example.com", "https://", "https:///s3", "https:s3.example.com", "x"),
    *("http://s3.example.com", "http://8.8.8.8", "http://172.32.0.1", "http://[2001:4860::1]"),
    *("http://local", "http://evil-local", "http://local.example.com"),
    *("http://192.168.1.20.example", "http://169.254.169.254", "http://0.0.0.0"),
    *("http://134744072", "http://0x08080808", "http://[::ffff:8.8.8.8]", "https://010.0.0.1"),
    *("https://1.2.3", "https://1.2.3.256", "file:///etc/passwd", "ftp://s3.example.com"),
    *("s3://bucket", "javascript:alert(1)", "https://user@s3.example.com"),
    *("https://user:password@s3.example.com", "https://@x.example", "https://s3.example.com?x=1"),
    *("https://s3.example.com/?x", "https://s3.example.com#x", "https://x.example/../"),
    *("https://x.example/a/../b", "https://x.example/..", "https://x/.", "https://x.example/./a"),
    *("https://x.example/%2e%2e/", "https://x.example//a", "https://x.example/a b"),
    *("https://x example", "https://x.example\nevil", "https://x.example\0"),
    *("https://x.example/%(key)s", "https://x.example/`id`", "https://x.example/\\.."),
    *('"https://x"', "https://x.example:0", "https://x.example:65536", "https://x.example:"),
    *("https://x.example:a", "https://[::1", "https://[nonsense]", "https://[fe80::1%25eth0]"),
    *("https://-x.example", "https://x..example", "https://.example", "https://x.example."),
    *("https://bücher.example", "https://x\u3002example", "https://ｘ.example"),
    *("https://" + "x" * 64 + ".example", "https://x.example/" + "a" * 2048),
    "https://x.example\r\n[evil]\ntype = local",
]


def test_env_09_only_safe_addresses_of_a_store_are_accepted_and_stored_unchanged(
    step: StepPage,
) -> None:
    for url in BAD_ENDPOINTS:
        refused(step, "store_c", "c_endpoint", url)
    for url in ENDPOINTS:
        assert meta(step, "store_c", "c_endpoint", url)["endpoint"] == url
    assert ENDPOINTS[-1] in step.review


# Every symbol that a key can have, and text that looks special in rclone.conf.
GOOD_KEYS = [
    *("k", "K001/abc+def=", "x" * 4096, "%s%d", "100%", "a%b(c)s", "$(id)", "${HOME}"),
    *("a=b", "=a", "a#b", "#a", ";a", "a;b", "[evil]", "[a", "a]", "a,b", "{a}", "<a>", "a&b|c"),
    *("!#$%&()*+,-./09:;<=>?@AZ[]^_az{|}~", "--flag", "-", "~", "a:b", "*", "type=local", "(a)s"),
]
BAD_KEYS = [
    *("a b", "a\tb", "a\nb", "a\n[evil]\ntype = local", "a\r\nb", "a\rb", "a\0b", "a\x1bb"),
    *("a\x7f", "`a`", "a`b", '"a"', "'a'", "a'b", "a\\", "a\\nb", "ä", "a\u0430", "a…"),
    *("a\u00a0b", "a\u2028b", "x" * 4097, "\ufeffa"),
]
BAD_IN_A_CONF = ["a%(access_key_id)sc", "%(a)s", "%(", "a%(b"]


@pytest.mark.parametrize(("kind", "field"), KEYS)
def test_env_07_a_key_is_accepted_whole_or_refused_with_a_reason(
    step: StepPage, kind: str, field: str
) -> None:
    label = LABELS[field.partition("_")[2]]
    for key in BAD_KEYS:
        said = f"{label} can have at most 4,096 letters, digits and symbols"
        refused(step, kind, field, key, said)
    for key in BAD_IN_A_CONF:
        refused(step, kind, field, key, f"{label} contains %( and")
    assert step.held == {}
    for key in GOOD_KEYS:
        # Blanks at the ends come from copying, and are removed.
        step.accept(GOOD[kind], **{field: f" {key}\r\n"})
        assert step.held == secrets_of(kind) | {field: key}


def read_by_rclone(folder: Path, sections: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    config = folder / "rclone.conf"
    config.write_text(rclone_program.written(sections))
    return rclone_program.dump(config)


VALUES = [
    *((kind, field, key) for kind, field in (KEYS[0], KEYS[2]) for key in GOOD_KEYS),
    *(("store_c", "c_endpoint", endpoint) for endpoint in ENDPOINTS),
    *(("store_b", "b_account_id", account) for account in ACCOUNTS),
    *((kind, f"{kind[-1]}_bucket", bucket) for kind in BUCKETS for bucket in BUCKETS[kind][0]),
]


@pytest.mark.parametrize("kind", GOOD)
def test_env_06_rclone_reads_each_value_unchanged(
    step: StepPage, tmp_path: Path, kind: str
) -> None:
    sections: dict[str, dict[str, str]] = {}
    # rclone runs once for all values, each in its own section.
    for field, value in [("kind", kind), *(value for one, *value in VALUES if one == kind)]:
        stored = meta(step, kind, field, value)
        sections[f"backup{len(sections)}"] = rclone_program.settings(kind, stored, step.held)
    assert len(sections) > 10
    assert read_by_rclone(tmp_path, sections) == sections


def test_env_07_rclone_would_misread_the_refused_keys(tmp_path: Path) -> None:
    for key in ("a%(type)sc", "`a`", " a", "a\n[evil]\ntype = local"):
        section = rclone_program.settings("store_a", META["store_a"], {"a_application_key": key})
        assert read_by_rclone(tmp_path, {"backup": section}) != {"backup": section}


def test_an_inconsistent_stored_answer_is_refused() -> None:
    for stored, place in (
        *(({"backup_kind": kind}, "backup_kind") for kind in ("store_d", "", 1)),
        ({"backup_meta": {}}, "backup_kind"),
        ({"backup_kind": "skip", "backup_meta": {"bucket": "abc"}}, "backup_meta"),
        ({"backup_kind": "store_a"}, "backup_meta"),
        ({"backup_kind": "store_a", "backup_meta": []}, "backup_meta"),
        ({"backup_kind": "store_a", "backup_meta": META["store_b"]}, "backup_meta"),
        ({"backup_kind": "store_a", "backup_meta": {"bucket": "abc"}}, "backup_meta"),
    ):
        with pytest.raises(DecodingError, match=place):
            shaped(stored, BackupAnswer)


@pytest.mark.parametrize("kind", META)
def test_env_10_and_11_foreign_members_are_refused_without_showing_their_value(kind: str) -> None:
    assert shaped({"backup_kind": kind, "backup_meta": META[kind]}, BackupAnswer)
    for name, value in (
        *(("application_key", "CaNaRy"), ("secret_key", "CaNaRy"), ("access_key", "CaNaRy")),
        *(("bucket", "CaNaRy\n[evil]"), ("bucket", ""), ("bucket", 7)),
        *(("account_id", "a.evil.com/"), ("endpoint", "https://evil.example/../")),
        ("endpoint", "http://evil.example"),
    ):
        with pytest.raises(DecodingError, match="backup_meta") as caught:
            shaped({"backup_kind": kind, "backup_meta": META[kind] | {name: value}}, BackupAnswer)
        assert "CaNaRy" not in caught.value.message
    meta = META["store_b"] | {"endpoint": "https://evil.example"}
    with pytest.raises(DecodingError, match="endpoint: must be that of the account"):
        shaped({"backup_kind": "store_b", "backup_meta": meta}, BackupAnswer)
