"""The SSH step: who can log in."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from platform_common.message import Sentence
from tests.support.properties import examples
from tests.support.raw_server import RawServer, Request, response, serving
from tests.wizard_app.conftest import MakeWizard
from tests.wizard_app.step_pages import StepPage
from wizard_app.setup import code_host, ssh_keys
from wizard_app.setup.code_host import Fetched, fetch_keys
from wizard_app.setup.ssh_keys import LONGEST_LINE, MOST_KEYS, PREFIXES
from wizard_app.setup.steps.ssh import SshAnswer

SLUG = "ssh"
# Not a real key, because the rules only check the beginning.
BLOB = "AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"
KEY = f"ssh-ed25519 {BLOB} someone@home"
CANARY = "CaNaRyCaNaRy0123456789CaNaRyCaNaRy0123456789CaNaRyCaNaRy0123456789"
OPENSSH = f"-----BEGIN OPENSSH PRIVATE KEY-----\n{CANARY}\nxyz=\n-----END OPENSSH PRIVATE KEY-----"


def text_area(page: str) -> str:
    """The content of the text area, as in the page."""
    found = re.search(r"<textarea[^>]*>\n(.*?)</textarea>", page, re.DOTALL)
    assert found is not None
    return found[1]


def ticked(page: str) -> list[str]:
    """The fetched keys that are ticked on the page."""
    return re.findall(r'name="fetched" type="checkbox" value="([^"]*)" checked', page)


def test_each_key_is_stored_once_and_stripped(step: StepPage) -> None:
    every = [f"{prefix.strip()} {BLOB} someone@home" for prefix in PREFIXES]
    for sent, kept in {
        **{line: [line] for line in every},
        "": [],
        "\r\n  \r\n\t\n": [],
        f"{KEY}\r\n": [KEY],
        f"  {KEY}\t": [KEY],
        f"\n\n{KEY}\n\n": [KEY],
        f"{KEY}\r\nssh-rsa {BLOB}": [KEY, f"ssh-rsa {BLOB}"],
        f"ssh-ed25519 {BLOB}": [f"ssh-ed25519 {BLOB}"],
        f"ssh-ed25519  {BLOB}  küche  oben": [f"ssh-ed25519  {BLOB}  küche  oben"],
        f"ssh-ecdsa-of-old\t{BLOB}\ta b": [f"ssh-ecdsa-of-old {BLOB} a b"],
        f"{KEY}\nssh-ed25519 {BLOB}\nssh-ed25519  {BLOB} other": [KEY],
        f"ssh-rsa {BLOB}\n{KEY}": [f"ssh-rsa {BLOB}", KEY],
    }.items():
        assert step.accept({"ssh_keys": sent}) == "/wizard/mesh-vpn"
        assert step.stored["ssh_keys"] == kept


def test_an_invalid_public_key_is_refused_with_its_line_number(step: StepPage) -> None:
    for line in (
        *("hello", "ssh-ed25519", "ssh-ed25519 ", "ecdsa-sha2-nistp256", f"# {KEY}", BLOB),
        *(f"ssh-ed25519\t{BLOB}", f"ssh-ed25519-cert-v01@openssh.com {BLOB}", f"ssh-dss {BLOB}"),
        *(f"SSH-RSA {BLOB}", f"ecdsa-sha2-nistp192 {BLOB}", f"sk-ssh-ed25519 {BLOB}"),
        f"s\u0455h-rsa {BLOB}",
    ):
        page = step.refuse({"ssh_keys": f"{KEY}\r\n{line}\r\n"})
        assert "Line 2 is not an SSH public key" in page
        assert line.split("\t")[0].strip() in text_area(page)
    longest = f"ssh-rsa {'A' * (LONGEST_LINE - 8)}"
    for text, said in {
        f"a\n{KEY}\n\nb": "Lines 1, 4 are not SSH public keys",
        "a\n" * 9: "Lines 1, 2, 3, 4, 5 and 4 more are not SSH public keys",
        f"{longest}A": "Line 1 is not an SSH public key: it is too long",
    }.items():
        assert said in step.refuse({"ssh_keys": text})
    step.accept({"ssh_keys": longest})


def test_ssh_01_options_before_a_key_are_refused(step: StepPage) -> None:
    for options in (
        *('command="/bin/sh" ', "no-pty ", 'from="*.example" ', "cert-authority ", "restrict,pty "),
        *('environment="LD_PRELOAD=/tmp/x.so" ', 'command="a b",no-pty\t'),
    ):
        page = step.refuse({"ssh_keys": f"{options}{KEY}"})
        assert "Line 1 is not an SSH public key: it must start with the type of the key" in page


def test_ssh_02_only_a_line_feed_ends_a_line(step: StepPage) -> None:
    for between in "\v\f\x1c\x1d\x1e\x1f\x85\u2028\u2029\0\x7f\r\x1b\b\u200b\u202e\ufeff\u00a0":
        page = step.refuse({"ssh_keys": f'{KEY}{between}command="/bin/sh" {KEY}'})
        said = "Line 1 is not an SSH public key: it contains a character that no key has"
        assert said in page, ascii(between)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (OPENSSH, 1),
        (f"{KEY}\r\n\r\n" + OPENSSH.replace("\n", "\r\n"), 3),
        (OPENSSH.replace("OPENSSH", "RSA"), 1),
        (OPENSSH.replace("OPENSSH ", ""), 1),
        (OPENSSH.replace("OPENSSH", "ENCRYPTED"), 1),
        (f"---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\n{CANARY}", 1),
        (f"PuTTY-User-Key-File-3: ssh-ed25519\nPrivate-Lines: 1\n{CANARY}", 1),
        (f"Private-Lines: 1\n{CANARY}", 1),
        (f"AGE-SECRET-KEY-1{CANARY.upper()}", 1),
        (f"b3BlbnNzaC1rZXktdjEAAAAABG5vbmU{CANARY}", 1),
        (f"MIIEpAIBAAKCAQEA{CANARY}", 1),
        (f"{KEY} -----BEGIN OPENSSH PRIVATE KEY----- {CANARY}", 1),
        (OPENSSH.replace("\n", "\r"), 1),
    ],
)
def test_ssh_03_a_private_key_is_neither_stored_nor_shown_nor_logged(
    step: StepPage, caplog: pytest.LogCaptureFixture, text: str, line: int
) -> None:
    with caplog.at_level(logging.DEBUG):
        page = step.refuse({"ssh_keys": text})
    assert f"Line {line} looks like a private key. Do not paste private keys." in page
    assert "anary" not in (page + caplog.text + step.text).lower()
    assert (KEY in text_area(page)) == (line == 3)


def test_ssh_03_no_part_of_a_private_key_is_shown_with_any_other_input(step: StepPage) -> None:
    page = step.refuse({"ssh_keys": f"{CANARY}\n{KEY}"})
    assert "Line 1 is not an SSH public key: it may be part of a private key" in page
    assert "anary" not in page.lower()
    assert KEY in text_area(page)
    step.accept({"ssh_keys": KEY})
    form = {"ssh_keys": OPENSSH, "fetched": OPENSSH, "revision": "another"}
    for more in ({"fetch": "1"}, {"code_host_user": "someone"}, {}):
        page = step.send(form | more).text
        assert "looks like a private key" in page
        assert "anary" not in page.lower()
    form = {"code_host_user": OPENSSH.replace("\n", " "), "looked_up": OPENSSH, "fetch": "1"}
    assert "anary" not in step.send(form).text.lower()
    assert step.stored["ssh_keys"] == [KEY]


def test_no_more_than_the_stated_number_of_keys_can_be_added(step: StepPage) -> None:
    lines = [f"ssh-rsa {BLOB}{number}" for number in range(MOST_KEYS + 1)]
    page = step.refuse({"ssh_keys": "\n".join(lines)})
    assert f"These are {MOST_KEYS + 1} keys, but you can add only {MOST_KEYS}" in page
    step.accept({"ssh_keys": "\n".join(lines[:-1])})
    assert len(step.stored["ssh_keys"]) == MOST_KEYS
    assert "More keys" in step.review


def test_without_a_key_the_pages_say_that_nobody_can_log_in(step: StepPage) -> None:
    said = "be able to log in over SSH"
    assert said in step.text
    for text in ("", KEY):
        step.accept({"ssh_keys": text})
        for page in (step.text, step.review):
            assert (said in page) == (text == "")


def test_a_stored_answer_with_anything_but_public_keys_is_refused() -> None:
    for keys in (
        *(("hello",), (f"no-pty {KEY}",), (f"{KEY}\n",), (f"{KEY}\n{KEY}",), ("",), (OPENSSH,)),
        *((f"{KEY}\u2028",), (KEY,) * (MOST_KEYS + 1)),
    ):
        with pytest.raises(ValueError, match=r"^ssh_keys(\[0\])?: ") as caught:
            SshAnswer(keys)
        assert "anary" not in str(caught.value).lower()


_PIECES = st.sampled_from(
    [
        *(*PREFIXES, BLOB, KEY, 'command="x"', "-----BEGIN RSA PRIVATE KEY-----", CANARY),
        *(" ", "\t", "\n", "\r\n", "\r", "\v", "\0", "\u2028", "\x85", "\ufeff", "AAAA"),
    ]
)


@examples(150)
@given(st.lists(st.one_of(_PIECES, st.text(max_size=3)), max_size=12).map("".join))
def test_every_accepted_key_is_one_whole_line_that_starts_like_a_key(text: str) -> None:
    found = list(ssh_keys.lines(text))
    if ssh_keys.private_among(found) is not None or ssh_keys.wrong_among(found) is not None:
        return
    kept = ssh_keys.stored(line.text for line in found)
    SshAnswer(kept)
    for line in kept:
        assert line.startswith(PREFIXES)
        assert line.isprintable()
        assert len(line.split()) >= 2
        assert "PRIVATE KEY" not in line


# A code host.


@pytest.fixture
def host() -> Iterator[RawServer]:
    """A code host with one user."""
    files = {
        "/someone.keys": f"{KEY}\nssh-rsa {BLOB}\n".encode(),
        "/other.keys": f"ssh-ecdsa {BLOB} other\n".encode(),
    }
    with serving(files) as running:
        yield running


Fetching = Callable[[str], StepPage]


@pytest.fixture
def fetching(wizard: MakeWizard, step: StepPage) -> Fetching:
    """Make the page of a wizard that fetches keys from an address."""
    return lambda url: step._replace(client=wizard(WIZARD_CODE_HOST=url))


@pytest.fixture
def there(fetching: Fetching, host: RawServer) -> StepPage:
    """The page of a wizard that fetches keys from the code host."""
    return fetching(host.url)


def fetch(step: StepPage, user: str, **more: str | list[str]) -> str:
    """The page after a fetch."""
    answer = step.send({"code_host_user": user, "fetch": "1"}, **more)
    assert answer.status_code == 200
    return answer.text


def test_fetched_keys_are_shown_and_only_stored_after_continuing(there: StepPage) -> None:
    typed = f"ssh-ed25519 {BLOB}zz typed"
    page = fetch(there, "someone", ssh_keys=typed)
    assert ticked(page) == [KEY, f"ssh-rsa {BLOB}"]
    assert text_area(page) == typed
    assert '<div class="error"' not in page
    assert there.stored == {}
    # The keys of another user are added.
    page = fetch(there, "other", fetched=[KEY], looked_up="someone")
    assert ticked(page) == [KEY, f"ssh-ecdsa {BLOB} other"]
    form = {"ssh_keys": typed, "fetched": [KEY], "code_host_user": "someone"}
    there.accept(form, looked_up="someone")
    assert there.stored["ssh_keys"] == [typed, KEY]


def test_typing_a_name_and_continuing_shows_its_keys(there: StepPage, host: RawServer) -> None:
    form = {"ssh_keys": "", "code_host_user": "someone"}
    page = there.send(form).text
    assert len(ticked(page)) == 2
    assert 'name="looked_up" value="someone"' in page
    there.accept(form, looked_up="someone")
    assert there.stored["ssh_keys"] == []
    assert host.paths == ["/someone.keys"]
    # An unknown user name is only reported once.
    form = {"ssh_keys": KEY, "code_host_user": "nobody"}
    page = there.refuse(form)
    assert "user called nobody" in page
    assert 'name="looked_up" value="nobody"' in page
    there.accept(form, looked_up="nobody")


def test_fetched_keys_stay_ticked_after_an_error(there: StepPage) -> None:
    form = {"ssh_keys": "hello", "fetched": [KEY], "looked_up": "x", "code_host_user": "x"}
    page = there.refuse(form)
    assert "Line 1 is not an SSH public key" in page
    assert ticked(page) == [KEY]


def test_ssh_01_a_line_that_was_never_offered_is_not_added(there: StepPage) -> None:
    for line in ("hello", f"no-pty {KEY}", f"{KEY}\nno-pty {KEY}", OPENSSH, ""):
        there.accept({"fetched": [line, KEY]})
        assert there.stored["ssh_keys"] == [KEY]


def test_only_valid_user_names_are_requested(there: StepPage, host: RawServer) -> None:
    name = host.url.removeprefix("http://")
    for user in (
        *("", ".", "..", "../x", "a/b", "a b", "a?b", "a#b", "a%2fb", "-x", "a\nb", "a\0b"),
        *("x" * 40, "küche", "@x", "a\\b", "http://x"),
    ):
        assert f"Enter a {name} user name with only letters" in fetch(there, user), user
    assert host.paths == []
    users = ["a", "A-b", "a.b_c", "_x", "x" * 39, "legacy-"]
    for user in users:
        assert f"user called {user}" in fetch(there, user)
    assert host.paths == [f"/{user}.keys" for user in users]


def test_every_other_response_is_reported_in_a_sentence_and_typed_text_is_kept(
    fetching: Fetching,
) -> None:
    compressed = response(KEY.encode(), headers={"Content-Encoding": "gzip"})
    for data, said in (
        (response(status="404 Not Found"), "{host} has no user called x"),
        (
            response(status="302 Found", headers={"Location": "/x"}),
            "{host} redirects elsewhere for x",
        ),
        (response(status="500 Oh"), "{host} answered with HTTP 500: try again later"),
        (response(status="429 Slow"), "{host} answered with HTTP 429: try again later"),
        (response(status="204 None"), "{host} answered with HTTP 204: try again later"),
        (response(b""), "x has no public keys on {host}"),
        (response(b"\n \r\n"), "x has no public keys on {host}"),
        (response(b"<!DOCTYPE html>\n<p>Log in"), "{host} sent something other than"),
        (response(b"\xff\xfe\0"), "{host} sent something other than public keys"),
        (response(OPENSSH.encode()), "{host} sent something other than public keys"),
        (response(KEY.encode() * 2000), "{host} sent a response that is too large"),
        (response(b"", length=10), "The keys could not be fetched: {host} closed the connection"),
        (
            b"SSH-2.0-OpenSSH_9.2\r\n",
            "The keys could not be fetched: {host} sent an answer that is not HTTP",
        ),
        (compressed, "The keys could not be fetched: {host} sent a compressed answer"),
    ):
        with RawServer(lambda _, to, data=data: to.sendall(data)) as host:  # type: ignore[misc]
            page = fetch(fetching(host.url), "x", ssh_keys=KEY)
            assert said.format(host=host.url.removeprefix("http://")) in page
        assert text_area(page) == KEY
        assert ticked(page) == []
        assert "anary" not in page.lower()


def test_lines_that_break_the_rules_are_left_out_and_counted(fetching: Fetching) -> None:
    lines = ["hello", KEY, f"no-pty {KEY}", f"ssh-rsa {BLOB}\x0b", KEY, f"ssh-rsa {BLOB}"]
    with serving({"/x.keys": "\n".join(lines).encode()}) as host:
        page = fetch(fetching(f"{host.url}/"), "x")
    assert ticked(page) == [KEY, f"ssh-rsa {BLOB}"]
    assert "3 lines are left out" in page
    # If there are too many keys, the first ones are shown.
    lines = [f"ssh-rsa AAAA{number}" for number in range(MOST_KEYS + 5)]
    with serving({"/x.keys": "\n".join(lines).encode()}) as host:
        assert fetch_keys(host.url, "x") == Fetched(tuple(lines[:MOST_KEYS]), 5)


def test_a_very_slow_host_is_abandoned_in_time() -> None:
    def drip(_: Request, connection: Any) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while not dripping.stopping.wait(0.05):
            connection.sendall(b"s")

    with RawServer(drip) as dripping:
        url = dripping.url
        found = fetch_keys(url, "x", limit_s=0.5)
    assert isinstance(found, Sentence)
    assert "did not answer within 0.5 s" in str(found)
    # The server has stopped by now.
    found = fetch_keys(url, "x")
    assert "The keys could not be fetched: 127.0.0.1" in str(found)


def test_the_number_of_simultaneous_fetches_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_host, "_slots", threading.BoundedSemaphore(1))
    inner: list[Fetched | Sentence] = []

    def ask_again(_: Request, connection: Any) -> None:
        inner.append(fetch_keys(asked.url, "x"))
        connection.sendall(response(KEY.encode()))

    with RawServer(ask_again) as asked:
        assert fetch_keys(asked.url, "x") == Fetched((KEY,), 0)
        assert "Other keys are being fetched" in str(inner[0])
        assert len(asked.requests) == 1


def test_an_invalid_address_of_a_code_host_is_reported(fetching: Fetching) -> None:
    for address in ("github.com", "ftp://x", "http://a:b@x", "https://x/?y", "http://[x", "x\0"):
        page = fetch(fetching(address), "x")
        assert "The address in WIZARD_CODE_HOST cannot be used: it must" in page
        assert "a:b@" not in page


def test_well_known_code_hosts_are_shown_by_name(step: StepPage) -> None:
    assert "the keys of a GitHub user" in step.text
    assert code_host.name_of("https://git.example:3000/") == "git.example:3000"
