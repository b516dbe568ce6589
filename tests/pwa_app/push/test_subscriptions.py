"""Which subscriptions are valid, and the file that stores them."""

from __future__ import annotations

import contextlib
import json
import os
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from platform_common.errors import AccessError, PlatformError
from platform_common.formats.decode import DecodingError
from platform_common.resources import schema
from platform_common.web.rate_limit import RateLimit
from pwa_app.push.subscriptions import FILE, FullError, Subscriptions, parse
from tests.support.odd_files import LINKS, NOT_REGULAR, make, picture
from tests.support.push_receivers import Receiver, base64url
from tests.wizard_app.conftest import Clock

RECEIVER = Receiver()
GOOD = RECEIVER.subscription()
P256DH, AUTH = GOOD["keys"]["p256dh"], GOOD["keys"]["auth"]
VALIDATOR = Draft202012Validator(schema("push-subscription"))


def with_keys(**keys: Any) -> dict[str, Any]:
    return {**GOOD, "keys": {**GOOD["keys"], **keys}}


def without(name: str, of: dict[str, Any] | None = None) -> dict[str, Any]:
    return {key: value for key, value in (of or GOOD).items() if key != name}


def at(endpoint: Any) -> dict[str, Any]:
    return {**GOOD, "endpoint": endpoint}


GOOD_DOCUMENTS: dict[str, Any] = {
    "as-sent": GOOD,
    "no-expiration": without("expirationTime"),
    "expiration": {**GOOD, "expirationTime": 1800000000000},
    "expiration-with-a-fraction": {**GOOD, "expirationTime": 1800000000000.5},
    "expiration-0": {**GOOD, "expirationTime": 0},
    "expiration-negative": {**GOOD, "expirationTime": -1},
    "expiration-of-30-digits": {**GOOD, "expirationTime": 10**30},
    "padded": with_keys(p256dh=P256DH + "=", auth=AUTH + "=="),
    "more-members": {**GOOD, "more": {"than": ["needed"]}},
    "more-keys": with_keys(more="x"),
    "port": at("https://push.example.com:8443/x"),
    "query-and-fragment": at("https://push.example.com/x?y=z#f"),
    "no-path": at("https://push.example.com"),
    "full-stop": at("https://push.example.com./x"),
    "public-address": at("https://93.184.215.14/x"),
    "public-address-6": at("https://[2606:2800:21f:cb07:6820:80da:af6b:8b2c]/x"),
    "capitals": at("https://Push.Example.COM/x"),
    "longest": at("https://push.example.com/".ljust(2048, "x")),
    "international": at("https://xn--bcher-kva.example/x"),
}

# Documents that only the code refuses, not the schema, are listed in SCHEMA_CANNOT.
BAD_DOCUMENTS: dict[str, Any] = {
    "null": None,
    "array": [GOOD],
    "string": "x",
    "number": 1,
    "empty": {},
    "no-endpoint": without("endpoint"),
    "endpoint-null": at(None),
    "endpoint-number": at(1),
    "endpoint-array": at(["https://push.example.com/x"]),
    "endpoint-empty": at(""),
    "http": at("http://push.example.com/x"),
    "ftp": at("ftp://push.example.com/x"),
    "javascript": at("javascript:alert(1)"),
    "file": at("file:///etc/passwd"),
    "relative": at("/x"),
    "no-scheme": at("push.example.com/x"),
    "scheme-relative": at("//push.example.com/x"),
    "no-host": at("https:///x"),
    "host-only-port": at("https://:443/x"),
    "user": at("https://user@push.example.com/x"),
    "user-and-password": at("https://user:word@push.example.com/x"),
    "user-hides-host": at("https://push.example.com@10.0.0.1/x"),
    "backslash": at("https://push.example.com\\@10.0.0.1/x"),
    "blank-inside": at("https://push.example.com/x y"),
    "blank-in-front": at(" https://push.example.com/x"),
    "trailing-blank": at("https://push.example.com/x "),
    "line-feed": at("https://push.example.com/x\ny"),
    "carriage-return": at("https://push.example.com/x\r"),
    "tab": at("https://push.example\t.com/x"),
    "nul": at("https://push.example.com/\0"),
    "escape": at("https://push.example.com/\x1b[31m"),
    "delete": at("https://push.example.com/\x7f"),
    "not-ascii": at("https://push.example.com/ä"),
    "not-ascii-host": at("https://püsh.example.com/x"),
    "wide-digits": at("https://push.example.com:４４３/x"),
    "port-0": at("https://push.example.com:0/x"),
    "port-text": at("https://push.example.com:https/x"),
    "port-too-large": at("https://push.example.com:65536/x"),
    "too-long": at("https://push.example.com/".ljust(2049, "x")),
    "not-an-address-6": at("https://[:::]/x"),
    "expiration-text": {**GOOD, "expirationTime": "1800000000000"},
    "expiration-true": {**GOOD, "expirationTime": True},
    "expiration-array": {**GOOD, "expirationTime": []},
    "expiration-of-400-digits": {**GOOD, "expirationTime": 10**400},
    "no-keys": without("keys"),
    "keys-null": {**GOOD, "keys": None},
    "keys-array": {**GOOD, "keys": [P256DH, AUTH]},
    "keys-text": {**GOOD, "keys": P256DH},
    "no-p256dh": {**GOOD, "keys": {"auth": AUTH}},
    "no-auth": {**GOOD, "keys": {"p256dh": P256DH}},
    "p256dh-null": with_keys(p256dh=None),
    "p256dh-number": with_keys(p256dh=65),
    "p256dh-empty": with_keys(p256dh=""),
    "p256dh-64-bytes": with_keys(p256dh=base64url(RECEIVER.point[:-1])),
    "p256dh-66-bytes": with_keys(p256dh=base64url(RECEIVER.point + b"\0")),
    "p256dh-compressed": with_keys(p256dh=base64url(b"\2" + RECEIVER.point[1:33])),
    "p256dh-plain-base64": with_keys(p256dh="B" + "+/" * 43),
    "p256dh-blank": with_keys(p256dh=P256DH[:40] + " " + P256DH[40:]),
    "p256dh-line-feed": with_keys(p256dh=P256DH + "\n"),
    "p256dh-too-much-padding": with_keys(p256dh=P256DH + "=="),
    "p256dh-padding-inside": with_keys(p256dh=P256DH[:40] + "=" + P256DH[40:]),
    "auth-null": with_keys(auth=None),
    "auth-empty": with_keys(auth=""),
    "auth-15-bytes": with_keys(auth=base64url(bytes(15))),
    "auth-17-bytes": with_keys(auth=base64url(bytes(17))),
    "auth-23-characters": with_keys(auth=AUTH + "A"),
    "auth-21-characters": with_keys(auth=AUTH[:-1]),
    "auth-one-padding": with_keys(auth=AUTH + "="),
    "auth-not-base64": with_keys(auth="!" * 22),
    "auth-not-ascii": with_keys(auth="ä" * 22),
}
SCHEMA_CANNOT = frozenset(["port-too-large", "not-an-address-6", "expiration-of-400-digits"])
BAD_BYTES: dict[str, bytes] = {
    "nothing": b"",
    "invalid-json": b"{",
    "cut": json.dumps(GOOD).encode()[:-1],
    "two-documents": json.dumps(GOOD).encode() * 2,
    "byte-order-mark": b"\xef\xbb\xbf" + json.dumps(GOOD).encode(),
    "utf-16": json.dumps(GOOD).encode("utf-16"),
    "latin-1": json.dumps(at("https://push.example.com/ä"), ensure_ascii=False).encode("latin-1"),
    "nan": json.dumps({**GOOD, "expirationTime": float("nan")}).encode(),
    "infinity": json.dumps({**GOOD, "expirationTime": float("inf")}).encode(),
    "1e999": json.dumps({**GOOD, "expirationTime": 0}).replace(": 0", ": 1e999").encode(),
    "endpoint-twice": b'{"endpoint": "x", ' + json.dumps(GOOD).encode()[1:],
    "nested": b"[" * 5000 + b"]" * 5000,
    "digits": b'{"expirationTime": ' + b"1" * 5000 + b"}",
    "half-a-pair": json.dumps(GOOD).replace("abc", "\\ud800").encode(),
    "form": b"endpoint=https%3A%2F%2Fpush.example.com&keys=x",
    "comment": b"// x\n" + json.dumps(GOOD).encode(),
}
BAD_BODIES: dict[str, bytes] = BAD_BYTES | {
    name: json.dumps(document).encode() for name, document in BAD_DOCUMENTS.items()
}
# Hosts in this network or on this machine, in every way of writing them.
INNER_HOSTS = [
    *("localhost", "LOCALHOST", "localhost.", "x.localhost", "device.local", "DEVICE.LOCAL."),
    *("router", "gateway", "printer.lan", "nas.home", "intranet.corp", "vault.internal"),
    *("box.home.arpa", "x.localdomain", "127.0.0.1", "127.8.8.8", "10.0.0.1", "172.16.0.1"),
    *("172.31.255.254", "192.168.1.1", "169.254.169.254", "0.0.0.0", "100.64.0.1"),
    *("100.100.100.200", "192.0.2.1", "198.18.0.1", "224.0.0.1", "255.255.255.255"),
    *("127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.0.0.0x1", "0177.0.0.1", "010.0.0.1"),
    *("127.0.0.1.", "10.0.0.1.", "999.1.1.1", "1.2.3.4.5", "x.1", "[::1]", "[::]", "[fe80::1]"),
    *("[fc00::1]", "[fd00:ec2::254]", "[::ffff:127.0.0.1]", "[::ffff:8.8.8.8]", "[::7f00:1]"),
    *("[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[2001:0:7f00:1::]", "[ff02::1]", "[2001:db8::1]"),
    *("-x.example.com", "x-.example.com", "x..example.com", ".", "..", "example.c"),
]


@pytest.mark.parametrize("document", GOOD_DOCUMENTS.values(), ids=GOOD_DOCUMENTS)
def test_a_valid_subscription_is_accepted_by_the_code_and_the_schema(document: Any) -> None:
    assert parse(json.dumps(document).encode()).endpoint == document["endpoint"]
    assert VALIDATOR.is_valid(document)


@pytest.mark.parametrize("name", BAD_BODIES)
def test_push_01_anything_else_is_refused_by_both_with_a_reason_in_one_line(name: str) -> None:
    with pytest.raises(DecodingError) as error:
        parse(BAD_BODIES[name])
    assert error.value.message.strip() == error.value.message != ""
    assert error.value.message.isprintable()
    if name in BAD_DOCUMENTS:
        assert VALIDATOR.is_valid(BAD_DOCUMENTS[name]) == (name in SCHEMA_CANNOT)


def test_the_schema_and_its_example_are_valid() -> None:
    Draft202012Validator.check_schema(schema("push-subscription"))
    (example,) = schema("push-subscription")["examples"]
    VALIDATOR.validate(example)
    parse(json.dumps(example).encode())


@pytest.mark.parametrize("port", ["", ":443"])
@pytest.mark.parametrize("host", INNER_HOSTS)
def test_push_03_an_endpoint_inside_the_network_is_refused(host: str, port: str) -> None:
    with pytest.raises(DecodingError, match=r"^endpoint: must be "):
        parse(json.dumps(at(f"https://{host}{port}/x")).encode())


# The file.


@pytest.fixture
def kept(tmp_path: Path) -> Subscriptions:
    return Subscriptions(tmp_path)


def subscription(number: int, **members: Any) -> Any:
    document = at(f"https://push.example.com/{number}") | members
    return parse(json.dumps(document).encode())


@pytest.fixture
def umask() -> Iterator[Any]:
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


def test_a_line_has_the_members_of_the_record_as_they_were_sent(kept: Subscriptions) -> None:
    kept.add(parse(json.dumps(GOOD_DOCUMENTS["more-members"] | {"expirationTime": 5}).encode()))
    line = kept.path.read_bytes()
    assert list(json.loads(line).items()) == [*{**GOOD, "expirationTime": 5}.items()]
    assert b" " not in line
    assert line.endswith(b'"auth":"' + AUTH.encode() + b'"}}\n')
    for name in ("expiration", "expiration-with-a-fraction", "padded", "port"):
        kept.add(parse(json.dumps(GOOD_DOCUMENTS[name]).encode()))
        assert json.loads(kept.path.read_bytes().splitlines()[-1]) == GOOD_DOCUMENTS[name]


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077, 0o777])
def test_push_05_no_umask_changes_the_mode(kept: Subscriptions, umask: Any, mask: int) -> None:
    umask(mask)
    kept.add(subscription(1))
    assert stat.S_IMODE(kept.path.stat().st_mode) == 0o640
    kept.add(subscription(2))
    kept.remove(subscription(1).endpoint)
    assert stat.S_IMODE(kept.path.stat().st_mode) == 0o640


def test_each_subscription_is_a_line_and_the_last_one_of_an_endpoint_counts(
    kept: Subscriptions,
) -> None:
    first, other = subscription(1), Receiver().subscription()["keys"]
    kept.add(first)
    line = kept.path.read_bytes()
    kept.add(first)
    assert (kept.path.read_bytes(), kept.all()) == (2 * line, [first])
    kept.add(subscription(2))
    kept.add(subscription(1, keys=other))
    assert len(kept.path.read_bytes().splitlines()) == 4
    assert kept.all() == [subscription(1, keys=other), subscription(2)]
    kept.add(first)
    assert kept.all() == [first, subscription(2)]


def test_push_02_the_file_is_full_after_a_thousand_lines(kept: Subscriptions) -> None:
    lines = [json.dumps(at(f"https://push.example.com/{number}")) for number in range(999)]
    kept.path.write_text("\n".join(lines) + "\n")
    kept.add(subscription(1000))
    before = kept.path.read_bytes()
    for number in (1001, 1002):
        with pytest.raises(FullError):
            kept.add(subscription(number))
    kept.add(subscription(1000))
    assert kept.path.read_bytes() == before
    kept.remove("https://push.example.com/5")
    kept.add(subscription(1001))
    assert kept.path.read_bytes().count(b"\n") == 1000


def test_push_02_the_file_is_full_at_a_mebibyte(kept: Subscriptions) -> None:
    kept.add(subscription(1))
    room = kept.path.stat().st_size + 1
    for beyond in (1, 0):
        kept.path.write_bytes(b"x" * ((1 << 20) - room - 1 + beyond) + b"\n")
        with pytest.raises(FullError) if beyond else contextlib.nullcontext():
            kept.add(subscription(1))
    assert kept.path.stat().st_size == (1 << 20) - 1


def test_push_02_many_simultaneous_requests_do_not_exceed_the_limit(kept: Subscriptions) -> None:
    lines = [json.dumps(at(f"https://push.example.com/{number}")) for number in range(980)]
    kept.path.write_text("\n".join(lines) + "\n")

    def refused(number: int) -> bool:
        try:
            kept.add(subscription(number))
        except FullError:
            return True
        return False

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(refused, range(2000, 2040))) == 20
    assert kept.path.read_bytes().count(b"\n") == 1000


def test_push_04_a_line_after_a_torn_one_is_separate(kept: Subscriptions) -> None:
    kept.add(subscription(1))
    kept.add(subscription(2))
    whole = kept.path.read_bytes()
    first = whole.index(b"\n") + 1
    for cut in range(first, len(whole)):
        kept.path.write_bytes(whole[:cut])
        kept.add(subscription(3))
        assert kept.path.read_bytes().endswith(b"\n")
        # If only its line feed was cut off, the second line is complete.
        expected = [1, 2, 3] if cut == len(whole) - 1 else [1, 3]
        assert kept.all() == [subscription(number) for number in expected]


@pytest.mark.parametrize(
    "line",
    [b"", b" ", b"{}", b"null", b"\xff", b"x" * 20000, json.dumps(at("http://x.y/")).encode()],
    ids=["empty", "blank", "object", "null", "not-utf-8", "long", "not-a-subscription"],
)
def test_an_invalid_line_is_ignored_and_kept(kept: Subscriptions, line: bytes) -> None:
    kept.path.write_bytes(line + b"\n")
    kept.add(subscription(1))
    assert kept.all() == [subscription(1)]
    kept.remove(subscription(1).endpoint)
    assert kept.path.read_bytes() == line + b"\n"


def test_exactly_the_lines_of_the_endpoint_are_removed(kept: Subscriptions) -> None:
    for number in (1, 2):
        kept.add(subscription(number))
    kept.add(subscription(1, keys=Receiver().subscription()["keys"]))
    kept.remove(subscription(1).endpoint)
    assert kept.all() == [subscription(2)]
    kept.remove("https://push.example.com/none")
    assert kept.all() == [subscription(2)]


def test_reading_without_a_file_finds_nothing_and_creates_nothing(tmp_path: Path) -> None:
    kept = Subscriptions(tmp_path / "none")
    kept.remove("https://push.example.com/1")
    assert (kept.all(), list(tmp_path.iterdir())) == ([], [])
    kept.add(subscription(1))
    assert kept.all() == [subscription(1)]


@pytest.mark.parametrize("kind", [*NOT_REGULAR, *LINKS])
def test_fs_07_a_linked_or_special_file_is_refused_and_named(tmp_path: Path, kind: str) -> None:
    kept = Subscriptions(tmp_path)
    make(kind, kept.path)
    before = picture(tmp_path)
    for call in (
        lambda: kept.add(subscription(1)),
        lambda: kept.remove(subscription(1).endpoint),
        kept.all,
    ):
        with pytest.raises(AccessError, match=FILE):
            call()
    after = picture(tmp_path)
    after.pop(f".{FILE}.lock", None)
    assert after == before


def test_fs_02_a_file_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(PlatformError):
        Subscriptions(tmp_path / "file").add(subscription(1))


# How often.


@pytest.mark.parametrize("address", ["192.0.2.7", "2001:db8::7", "::ffff:192.0.2.7", "fe80::1%e"])
def test_push_02_an_address_can_make_ten_requests_a_minute(address: str) -> None:
    clock = Clock()
    rate = RateLimit(10, 60, clock=clock)
    for second in range(10):
        clock.now = 1000.0 + second
        assert rate.wait_s(address) == 0
    assert rate.wait_s(address) == 51
    assert rate.wait_s("192.0.2.8") == 0
    clock.now = 1059.9
    assert rate.wait_s(address) > 0
    clock.now = 1060
    assert rate.wait_s(address) == 0
    assert rate.wait_s(address) > 0


@pytest.mark.parametrize("address", ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", ""])
def test_requests_from_this_machine_are_not_limited(address: str) -> None:
    rate = RateLimit(1, 60, clock=Clock())
    assert [rate.wait_s(address) for _ in range(50)] == [0] * 50


def test_ipv6_addresses_of_one_household_count_as_one() -> None:
    rate = RateLimit(1, 60, clock=Clock())
    assert rate.wait_s("2001:db8::1") == 0
    assert rate.wait_s("2001:db8::2") > 0
    assert rate.wait_s("2001:db8:0:1::1") == 0
    assert rate.wait_s("192.0.2.1") == 0
    assert rate.wait_s("::ffff:192.0.2.1") > 0


def test_the_table_of_addresses_does_not_grow() -> None:
    rate = RateLimit(1, 60, clock=Clock())
    for number in range(5000):
        assert rate.wait_s(f"10.0.{number // 256}.{number % 256}") == 0
    assert len(rate._seen) <= 1024
    assert rate.wait_s("10.0.19.135") > 0
