"""Which requests are allowed: host names against rebinding, origins against foreign forms."""

from __future__ import annotations

import pytest

from platform_common.errors import WrongUsageError
from platform_common.host_names import allowed_hosts, host_is_ours
from platform_common.web.request_guard import comes_from_another_site

OWN_NAME = "Kitchen"
LISTED = "dash.example.org, agent.tailnet.example."

OURS = [
    *("127.0.0.1", "127.0.0.1:8089", "127.0.0.1.", "192.168.1.20:8089", "203.0.113.9", "[::1]"),
    *("[::1]:8089", "[fd00::1]", "[::ffff:192.168.1.20]:80", "localhost", "LOCALHOST:8089"),
    *("localhost.", "app.localhost:8089", "kitchen.local", "Kitchen.Local:8089"),
    *("kitchen.local.:8089", "xn--kche-0ra.local", "kitchen", "KITCHEN:1", "dash.example.org"),
    *("Dash.Example.Org.:443", "agent.tailnet.example"),
]
FOREIGN = [
    # The second letter of one name is Greek.
    *("", " ", ":8089", ".", "..", "evil.example", "evil.example:8089", "localhost.evil.example"),
    *("127.0.0.1.evil.example", "127.0.0.1.nip.example", "evil.example.local.evil.example"),
    *("evillocalhost", "notlocal", "local", ".local", ".localhost", "evil..local", "-evil.local"),
    *("evil-.local", "kitchen.evil.example", "xdash.example.org", "sub.dash.example.org"),
    *("dash.example.org.evil.example", "localhost:", "localhost:http", "localhost:-1"),
    *("localhost:+80", "localhost:65536", "localhost:123456", "localhost:80:80", "localhost:٨٠"),
    *("user@localhost", "user:word@localhost", "localhost@evil.example", "localhost/evil.example"),
    *("localhost\\evil.example", "localhost?x", "localhost#x", "localhost, evil.example"),
    *("localhost,localhost", "localhost evil.example", "localhost\tx", "localhost\x00"),
    *("loc%61lhost", "lοcalhost", "2130706433", "0x7f.0.0.1", "127.1", "0127.0.0.1", "::1", "[::1"),
    *("::1]", "[::1]8089", "[::1]:", "[::1].evil.example", "[127.0.0.1]", "[localhost]"),
    *("[fe80::1%eth0]", "[]", "a" * 300, f"{'a' * 64}.local", f"{'a.' * 130}local"),
]


@pytest.mark.parametrize("host", [*OURS, *FOREIGN])
def test_http_07_only_host_names_of_this_machine_are_served(host: str) -> None:
    assert host_is_ours(host, allowed_hosts(LISTED), lambda: OWN_NAME) is (host in OURS)


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ("", set()),
        (" , ", set()),
        ("a.example", {"a.example"}),
        ("A.Example.,b.example c.example\tb.example", {"a.example", "b.example", "c.example"}),
        ("a.example:8443", {"a.example"}),
    ],
)
def test_names_are_separated_by_commas_or_blanks(value: str, names: set[str]) -> None:
    assert allowed_hosts(value) == names


@pytest.mark.parametrize("value", ["*", "*.example.org", "https://a.example", "a.example/x", "é"])
def test_an_invalid_name_is_refused_at_the_start(value: str) -> None:
    with pytest.raises(WrongUsageError, match="PLATFORM_ALLOWED_HOSTS"):
        allowed_hosts(f"good.example {value}")


HTTP = ("http", "kitchen.local:8089")
HTTPS = ("https", "dash.example.org")
# Method, Sec-Fetch-Site, Origin, (scheme, Host), refused? The first two groups are the
# cases of Go's CrossOriginProtection and of Datasette's middleware.
SITES = [
    # Sec-Fetch-Site decides if it is present.
    ("POST", "same-origin", None, HTTPS, False),
    ("POST", "none", None, HTTPS, False),
    ("POST", "cross-site", None, HTTPS, True),
    ("POST", "same-site", None, HTTPS, True),
    ("PUT", "cross-site", None, HTTPS, True),
    ("DELETE", "cross-site", None, HTTPS, True),
    ("PATCH", "cross-site", None, HTTPS, True),
    ("FOO", "cross-site", None, HTTPS, True),
    ("GET", "cross-site", None, HTTPS, False),
    ("HEAD", "cross-site", None, HTTPS, False),
    ("OPTIONS", "cross-site", None, HTTPS, False),
    ("GET", "same-site", "https://evil.example", HTTPS, False),
    ("POST", "same-origin", "https://evil.example", HTTPS, False),
    ("POST", "same-origin", "null", HTTPS, False),
    ("POST", "cross-site", "https://dash.example.org", HTTPS, True),
    ("POST", "", None, HTTPS, True),
    ("POST", "Same-Origin", None, HTTPS, True),
    ("POST", "same-origin,same-origin", None, HTTPS, True),
    ("POST", "unheard-of", None, HTTPS, True),
    # Without it, as with plain http in a LAN, Origin decides.
    ("POST", None, None, HTTP, False),
    ("PUT", None, None, HTTP, False),
    ("POST", None, "http://kitchen.local:8089", HTTP, False),
    ("POST", None, "HTTP://Kitchen.Local:8089", HTTP, False),
    ("POST", None, "http://kitchen.local.:8089", HTTP, False),
    ("POST", None, "https://dash.example.org", HTTPS, False),
    ("POST", None, "https://dash.example.org:443", HTTPS, False),
    ("POST", None, "https://dash.example.org", ("https", "dash.example.org:443"), False),
    ("POST", None, "http://192.168.1.20", ("http", "192.168.1.20:80"), False),
    ("POST", None, "http://[fd00::1]:8089", ("http", "[fd00::1]:8089"), False),
    ("POST", None, "http://[FD00::1]:8089", ("http", "[fd00::1]:8089"), False),
    ("POST", None, "http://[::1]:8090", ("http", "[::1]:8089"), True),
    ("POST", None, "http://[::2]:8089", ("http", "[::1]:8089"), True),
    ("POST", None, "https://evil.example", HTTPS, True),
    ("POST", None, "http://dash.example.org", HTTPS, True),
    ("POST", None, "https://kitchen.local:8089", HTTP, True),
    ("POST", None, "http://kitchen.local", HTTP, True),
    ("POST", None, "http://kitchen.local:80899", HTTP, True),
    ("POST", None, "http://kitchen.local:8090", HTTP, True),
    ("POST", None, "http://other.kitchen.local:8089", HTTP, True),
    ("POST", None, "http://local:8089", HTTP, True),
    ("POST", None, "http://kitchen.local.evil.example:8089", HTTP, True),
    ("POST", None, "http://evil.example/kitchen.local:8089", HTTP, True),
    ("POST", None, "http://user@kitchen.local:8089", HTTP, True),
    ("POST", None, "http://kitchen.local:8089/", HTTP, True),
    ("POST", None, "http://kitchen.local:8089 http://evil.example", HTTP, True),
    ("POST", None, "http://kitchen.local:8089,http://kitchen.local:8089", HTTP, True),
    ("POST", None, "kitchen.local:8089", HTTP, True),
    ("POST", None, "//kitchen.local:8089", HTTP, True),
    ("POST", None, "file://kitchen.local:8089", HTTP, True),
    ("POST", None, "null", HTTP, True),
    ("POST", None, "", HTTP, True),
    ("GET", None, "http://evil.example", HTTP, False),
    ("HEAD", None, "null", HTTP, False),
]


@pytest.mark.parametrize(("method", "site", "origin", "own", "refused"), SITES)
def test_http_09_and_10_only_our_own_pages_may_change_anything(
    method: str, site: str | None, origin: str | None, own: tuple[str, str], refused: bool
) -> None:
    scheme, host = own
    found = comes_from_another_site(method, site, origin, scheme=scheme, host=host)
    assert found is refused
