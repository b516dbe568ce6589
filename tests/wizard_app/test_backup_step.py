"""The step that says where backups go."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from flask.testing import FlaskClient

from platform_common.decoding import DecodingError, shaped
from tests.support import rclone_program
from tests.support.wizard_secrets import files, found, held
from tests.wizard_app.conftest import MakeWizard
from wizard_app.steps.backup import BackupAnswer

URL = "/wizard/backup"
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
    "endpoint": "Enter the address of your store",
}


def answers(state_file: Path) -> dict[str, Any]:
    stored: dict[str, Any] = json.loads(state_file.read_bytes())["answers"]
    return stored


def secrets_of(kind: str) -> dict[str, str]:
    return {field: GOOD[kind][field] for field in SECRETS[kind]}


def taken(client: FlaskClient, kind: str, field: str, value: str) -> bool:
    """Whether a store's form is taken with `value` in one field; else it is refused at that one."""
    answer = client.post(URL, data=GOOD[kind] | {field: value})
    if answer.status_code == 302:
        return True
    assert answer.status_code == 200
    assert f'<a href="#{field.replace("_", "-")}">' in answer.text
    assert answer.text.count('class="mistake"') == 1
    return False


@pytest.mark.parametrize("kind", GOOD)
def test_env_11_of_a_store_only_what_is_no_secret_is_stored(
    client: FlaskClient, state_file: Path, kind: str
) -> None:
    # Fields of other stores, and of none, count for nothing.
    others = {name: "x" for other in GOOD.values() for name in other} | {"endpoint": "x"}
    answer = client.post(URL, data=others | {"secret": "s", "a_region": "r"} | GOOD[kind])
    assert (answer.status_code, answer.location) == (302, "/wizard/review")
    assert answers(state_file) == {"backup_kind": kind, "backup_meta": META[kind]}
    assert held(client, "backup") == secrets_of(kind)


def test_no_backup_is_an_answer(client: FlaskClient, state_file: Path) -> None:
    client.post(URL, data=GOOD["store_a"])
    assert client.post(URL, data=GOOD["store_a"] | {"kind": "skip", "keep": "1"}).status_code == 302
    assert answers(state_file) == {"backup_kind": "skip", "backup_meta": {}}
    assert held(client, "backup") == {}
    assert "Not backed up" in client.get("/wizard/review").text


def test_a_script_may_call_the_kind_as_the_state_file_and_the_tunnel_do(
    client: FlaskClient, state_file: Path
) -> None:
    for name in ("backup_kind", "choice"):
        form = GOOD["store_b"].copy()
        form[name] = form.pop("kind")
        assert client.post(URL, data=form).location == "/wizard/review"
        assert answers(state_file)["backup_kind"] == "store_b"
        assert client.post(URL, data={name: "store_d"}).status_code == 200


def test_no_kind_of_the_four_is_refused(client: FlaskClient, state_file: Path) -> None:
    for kind in ("", "store_d", "STORE_A", "b2", "store_a\n x"):
        answer = client.post(URL, data=GOOD["store_a"] | {"kind": kind})
        assert answer.status_code == 200
        assert answer.text.count("Select where backups go") == 2
        assert '<a href="#kind">' in answer.text
    assert not state_file.exists()


@pytest.mark.parametrize(
    ("kind", "blank"), [("store_a", ""), ("store_b", "  "), ("store_c", " \t\r\n")]
)
def test_everything_that_is_missing_is_told_at_once_and_each_alone(
    client: FlaskClient, state_file: Path, kind: str, blank: str
) -> None:
    fields = GOOD[kind].keys() - {"kind"}
    page = client.post(URL, data={"kind": kind} | dict.fromkeys(fields, blank)).text
    for field in fields:
        link = f'<a href="#{field.replace("_", "-")}">{MISSING[field.partition("_")[2]]}</a>'
        assert link in page
    assert page.count('class="mistake"') == len(fields)
    for field in fields:
        assert not taken(client, kind, field, "")
        # What is no secret is shown again.
        page = client.post(URL, data=GOOD[kind] | {field: ""}).text
        for other in fields - {field, *SECRETS[kind]}:
            assert f'value="{GOOD[kind][other]}"' in page
    assert not state_file.exists()


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
# What no store has, and what would mean something in an rclone.conf or a path.
NO_BUCKETS = [
    *("a/b/c", "../../etc", "a\\b\\c", "abc def", "abc\ndef", "abc\r\n[evil]\ntype = x", "abc\0d"),
    *("abc\x7f", "abc\x85d", "abc\u2028d", "bücket", "\u0430bc", "１２３", "abc\u202e", "[evil]"),
    *("abc%(key)s", "`abc`", "abc:def", "abc=def", "abc;d", "abc#d", "$(abc)", "--flag", '"abc"'),
]


@pytest.mark.parametrize("kind", BUCKETS)
def test_env_06_a_bucket_is_one_that_the_store_may_have(
    client: FlaskClient, state_file: Path, kind: str
) -> None:
    good, bad = BUCKETS[kind]
    field = f"{kind[-1]}_bucket"
    assert [bucket for bucket in (*bad, *NO_BUCKETS) if taken(client, kind, field, bucket)] == []
    assert not state_file.exists()
    for bucket in good:
        assert taken(client, kind, field, f" {bucket} ")
        assert answers(state_file)["backup_meta"]["bucket"] == bucket


ACCOUNTS = ["a", "7", ACCOUNT, ACCOUNT.upper(), "my-account", "a--b", "x" * 63, "x" * 64]
NO_ACCOUNTS = [
    *("a.evil.com/", "a@b", "a#", "a?b", "a/b", "a:b", "a.b", "evil.com:443", "a\\b", "%2e", "a b"),
    *("x" * 65, "-a", "a-", "a\nb", "a\0", "a\r\n[evil]", "a_b", "ä", "\u0430", "１２", "[::1]"),
    *("a%(key)s", "`a`", "..", "a;b", "user:password@host"),
]


def test_env_10_the_address_of_store_b_is_below_its_host_and_what_is_no_account_is_refused(
    client: FlaskClient, state_file: Path
) -> None:
    for kind in ("store_a", "store_b"):
        field = f"{kind[-1]}_account_id"
        assert [account for account in NO_ACCOUNTS if taken(client, kind, field, account)] == []
    assert not state_file.exists()
    for account in ACCOUNTS:
        assert taken(client, "store_b", "b_account_id", account)
        url = urlsplit(answers(state_file)["backup_meta"]["endpoint"])
        assert (url.scheme, url.netloc) == ("https", f"{account}.{HOST}")
        assert (url.path, url.query, url.fragment) == ("", "", "")


def test_the_address_of_store_b_is_shown_before_and_after_it_is_stored(client: FlaskClient) -> None:
    shown = f"Backups go to <strong>https://{ACCOUNT}.{HOST}</strong>"
    assert shown not in client.get(URL).text
    returned = client.post(URL, data={"kind": "store_b", "b_account_id": ACCOUNT}).text
    assert shown in returned
    unfit = client.post(URL, data={"kind": "store_b", "b_account_id": "a.evil.com/"}).text
    assert 'id="goes-to"' in unfit
    assert "https://a.evil.com" not in unfit
    client.post(URL, data=GOOD["store_b"])
    assert shown in client.get(URL).text
    review = client.get("/wizard/review").text
    assert "Backups go to" in review
    assert f"https://{ACCOUNT}.{HOST}" in review


ENDPOINTS = [
    *("https://s3.example.com", "https://s3.example.com/", "https://s3.eu-central-1.example.com"),
    *("https://example.com:9000", "https://x.example/storage/v1/s3", "https://x.example/a.b/~c_d/"),
    *("https://8.8.8.8", "https://8.8.8.8:65535", "https://[2001:db8::1]:9000", "https://nas"),
    *("http://192.168.1.20:9000", "http://10.0.0.1", "http://172.16.0.1/s3", "http://127.0.0.1:1"),
    *("http://100.64.0.1:9000", "http://[fd00::1]:9000", "http://[::1]", "http://localhost:9000"),
    *("http://nas.local:9000", "http://nas.lan", "http://store.home.arpa", "http://a.internal"),
    *("https://my_store.example", "https://xn--bcher-kva.example", "http://[::ffff:10.0.0.1]"),
]
NO_ENDPOINTS = [
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


def test_env_09_a_safe_address_of_a_store_is_taken_as_it_is_and_no_other(
    client: FlaskClient, state_file: Path
) -> None:
    assert [url for url in NO_ENDPOINTS if taken(client, "store_c", "c_endpoint", url)] == []
    assert not state_file.exists()
    for endpoint in ENDPOINTS:
        assert taken(client, "store_c", "c_endpoint", endpoint)
        assert answers(state_file)["backup_meta"]["endpoint"] == endpoint
    assert ENDPOINTS[-1] in client.get("/wizard/review").text


# Every sign that a key may have, and what looks like something else in an rclone.conf.
GOOD_KEYS = [
    *("k", "K001/abc+def=", "x" * 4096, "%s%d", "100%", "a%b(c)s", "$(id)", "${HOME}"),
    *("a=b", "=a", "a#b", "#a", ";a", "a;b", "[evil]", "[a", "a]", "a,b", "{a}", "<a>", "a&b|c"),
    *("!#$%&()*+,-./09:;<=>?@AZ[]^_az{|}~", "--flag", "-", "~", "a:b", "*", "type=local", "(a)s"),
]
BAD_KEYS = [
    *(
        "a b",
        "a\tb",
        "a\nb",
        "a\n[evil]\ntype = local",
        "a\r\nb",
        "a\rb",
        "a\0b",
        "a\x1bb",
        "a\x7f",
    ),
    *(
        "`a`",
        "a`b",
        '"a"',
        "'a'",
        "a'b",
        "a\\",
        "a\\nb",
        "ä",
        "a\u0430",
        "a…",
        "a\u00a0b",
        "a\u2028b",
    ),
    *("a%(access_key_id)sc", "%(a)s", "%(", "a%(b", "x" * 4097, "\ufeffa"),
]


@pytest.mark.parametrize(("kind", "field"), KEYS)
def test_env_07_a_key_is_taken_as_it_is_or_refused_with_a_reason(
    client: FlaskClient, state_file: Path, kind: str, field: str
) -> None:
    label = LABELS[field.partition("_")[2]]
    for key in BAD_KEYS:
        page = client.post(URL, data=GOOD[kind] | {field: key}).text
        reason = "holds %( which" if "%(" in key else "must be 4,096 letters, digits and signs"
        assert page.count(f"{label} {reason}") == 2, key
        assert page.count('class="mistake"') == 1, key
    assert not state_file.exists()
    assert held(client, "backup") == {}
    for key in GOOD_KEYS:
        # Blanks at its ends come with copying, and go.
        assert taken(client, kind, field, f" {key}\r\n")
        assert held(client, "backup") == secrets_of(kind) | {field: key}


def stored_conf(client: FlaskClient, state_file: Path, kind: str) -> dict[str, str]:
    meta = answers(state_file)["backup_meta"]
    return rclone_program.settings(kind, meta, held(client, "backup"))


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
def test_env_06_rclone_reads_every_value_that_is_taken_as_it_is(
    client: FlaskClient, state_file: Path, tmp_path: Path, kind: str
) -> None:
    assert taken(client, kind, "kind", kind)
    sections = {"backup": stored_conf(client, state_file, kind)}
    assert read_by_rclone(tmp_path, sections) == sections
    # One run of the program for all other values, each in a section of its own.
    for field, value in [(field, value) for one, field, value in VALUES if one == kind]:
        assert taken(client, kind, field, value)
        sections[f"backup{len(sections)}"] = stored_conf(client, state_file, kind)
    assert len(sections) > 10
    assert read_by_rclone(tmp_path, sections) == sections


def test_env_07_rclone_would_read_something_else(tmp_path: Path) -> None:
    for key in ("a%(type)sc", "`a`", " a", "a\n[evil]\ntype = local"):
        section = rclone_program.settings("store_a", META["store_a"], {"a_application_key": key})
        assert read_by_rclone(tmp_path, {"backup": section}) != {"backup": section}


@pytest.mark.parametrize("kind", GOOD)
def test_keys_that_are_held_can_be_kept(client: FlaskClient, state_file: Path, kind: str) -> None:
    assert 'name="keep"' not in client.get(URL).text
    client.post(URL, data=GOOD[kind])
    assert client.get(URL).text.count('name="keep" type="checkbox" value="1" checked') == 1
    bucket = f"{kind[-1]}_bucket"
    without = GOOD[kind] | dict.fromkeys(SECRETS[kind], "") | {bucket: "another-bucket"}
    assert client.post(URL, data=without).status_code == 200
    assert client.post(URL, data=without | {"keep": "1"}).status_code == 302
    assert answers(state_file)["backup_meta"]["bucket"] == "another-bucket"
    assert held(client, "backup") == secrets_of(kind)
    # One that is typed takes the place of the one that is held.
    last = SECRETS[kind][-1]
    client.post(URL, data=without | {"keep": "1", last: "another-key"})
    assert held(client, "backup") == secrets_of(kind) | {last: "another-key"}
    # Those of another store are not kept.
    for other in GOOD.keys() - {kind}:
        without = GOOD[other] | dict.fromkeys(SECRETS[other], "")
        page = client.post(URL, data=without | {"keep": "1"}).text
        assert page.count('class="mistake"') == len(SECRETS[other])
        client.post(URL, data=GOOD[kind])
        client.post(URL, data=GOOD[other] | {"keep": "1"})
        assert held(client, "backup") == secrets_of(other)
        client.post(URL, data=GOOD[kind])


@pytest.mark.parametrize("kind", GOOD)
def test_keys_are_asked_for_after_a_restart(wizard: MakeWizard, kind: str) -> None:
    wizard().post(URL, data=GOOD[kind])
    again = wizard()
    lost = [f"{LABELS[field.partition('_')[2]]} – enter again" for field in SECRETS[kind]]
    for page in (URL, "/wizard/review"):
        assert all(words in again.get(page).text for words in lost)
    assert 'name="keep"' not in again.get(URL).text
    again.post(URL, data=GOOD[kind])
    assert not any(words in again.get("/wizard/review").text for words in lost)


def test_a_stored_answer_that_cannot_be_is_refused() -> None:
    for stored, place in (
        ({"backup_kind": "store_d"}, "backup_kind"),
        ({"backup_kind": ""}, "backup_kind"),
        ({"backup_kind": 1}, "backup_kind"),
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
def test_env_10_and_11_foreign_members_and_values_are_refused_without_their_value(
    kind: str,
) -> None:
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
    with pytest.raises(DecodingError, match="endpoint: must be the one of the account"):
        shaped({"backup_kind": "store_b", "backup_meta": meta}, BackupAnswer)


@pytest.mark.parametrize("kind", GOOD)
def test_leak_01_keys_are_in_memory_alone(
    client: FlaskClient, out: Path, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    caplog.set_level(logging.DEBUG)
    broken = {field: f"{GOOD[kind][field]}\n%(x" for field in SECRETS[kind]}
    pages = [
        client.post(URL, data=GOOD[kind] | {f"{kind[-1]}_bucket": "a/b"}).text,
        client.post(URL, data=GOOD[kind] | {"kind": "other"}).text,
        client.post(URL, data=GOOD[kind] | broken).text,
        client.post(URL, data=GOOD[kind]).text,
        client.post(URL, data=GOOD[kind] | {"revision": "x", f"{kind[-1]}_bucket": "other"}).text,
        client.get(URL).text,
        client.get("/wizard/review").text,
    ]
    assert pages[-1].count("Entered, kept in memory only") == len(SECRETS[kind])
    for field in SECRETS[kind]:
        assert found(GOOD[kind][field], caplog.text, *pages, *files(out)) == []
