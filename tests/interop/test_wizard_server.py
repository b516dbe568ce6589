"""The wizard as installed: gunicorn, its commands, and real clients."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import pwd
import re
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.interop.conftest import call
from tests.support.network import free_port, wait_for_port
from tests.support.releases import clean_environment, program
from tests.support.terminals import at_a_terminal
from tests.support.waiting import wait_until
from tests.support.web_servers import Served, served, unverified

SECONDS = 60
THREADS = 20
TOKEN = re.compile(r"[0-9a-f]{64}")
FINGERPRINT = re.compile(r"SHA-256 fingerprint of its certificate: (\S+)")


@dataclass(frozen=True)
class Place:
    """The folder of a test's wizard, and the environment of its commands."""

    folder: Path
    options: tuple[str, ...] = ()

    @property
    def environment(self) -> dict[str, str]:
        """The environment of the wizard and its commands."""
        folders = {"PLATFORM_ROOT": "device", "WIZARD_DEV_OUT": "out"}
        return {variable: str(self.folder / name) for variable, name in folders.items()}

    @property
    def token_file(self) -> Path:
        """The file with the unused launch token."""
        root = "device" if "--production" in self.options else "out"
        return self.folder / root / "run/platform/wizard.token"

    def serve(
        self, *options: str, env: Mapping[str, str] | None = None, scheme: str = "http", **more: int
    ) -> contextlib.AbstractContextManager[Served]:
        """Run `wizard-app serve`."""
        (self.folder / "device").mkdir(exist_ok=True)
        variables = self.environment | dict(env or {})
        log = self.folder / "log"
        every = (*self.options, *options)
        return served("wizard-app", variables, log, *every, scheme=scheme, port=more.get("port"))

    def command(
        self, *words: str, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run another command of `wizard-app`."""
        return call(program("wizard-app"), *words, env=self.environment | dict(env or {}))

    def link(self, command: str = "launch-url") -> str:
        """The path of the launch URL."""
        done = self.command(command, *self.options, "--json")
        assert done.returncode == 0, done.stderr
        return "/?" + str(json.loads(done.stdout)["url"]).partition("/?")[2]

    @contextlib.contextmanager
    def running(self, *words: str) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
        """Run another program that serves the wizard; yield its process and its log."""
        (self.folder / "device").mkdir()
        environment, log = clean_environment() | self.environment, self.folder / "log"
        with log.open("wb") as output:
            process = subprocess.Popen(words, env=environment, stdout=output, stderr=output)
        try:
            yield process, log
        finally:
            process.terminate()
            process.wait(SECONDS)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def production(tmp_path: Path) -> Place:
    return Place(tmp_path, ("--production",))


def ask(
    app: Served, path: str, headers: Mapping[str, str] | None = None, method: str = "GET"
) -> tuple[int, http.client.HTTPMessage, str]:
    """The status, the headers and the body of a response."""
    host = f"127.0.0.1:{app.port}"
    connection: http.client.HTTPConnection
    if app.url.startswith("https"):
        connection = http.client.HTTPSConnection(host, timeout=SECONDS, context=unverified())
    else:
        connection = http.client.HTTPConnection(host, timeout=SECONDS)
    with contextlib.closing(connection):
        connection.request(method, path, headers=dict(headers or {}))
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode()


def enter(app: Served, path: str) -> dict[str, str]:
    """Open the launch link `path`; return the headers of the new session."""
    status, headers, _ = ask(app, path)
    assert status == 302
    return {"Cookie": headers["Set-Cookie"].partition(";")[0]}


def left(folder: Path) -> list[str]:
    """The visible files in a folder, without locks."""
    return sorted(path.name for path in folder.iterdir() if not path.name.endswith(".lock"))


def test_the_launch_link_is_printed_and_can_be_shown_until_it_is_used(place: Place) -> None:
    with place.serve() as app:
        url = re.search(rf"{app.url}(/\?token=[0-9a-f]{{64}})\n", app.log.read_text())
        assert url is not None
        assert place.token_file.stat().st_mode & 0o7777 == 0o600
        assert place.token_file.read_text() == url[1].partition("=")[2]
        shown = place.command("launch-url")
        assert (shown.returncode, shown.stdout.partition("\n")[0]) == (0, app.url + url[1])
        session = enter(app, url[1])
        assert not place.token_file.exists()
        assert ask(app, "/wizard/system", session)[0] == 200
        assert ask(app, url[1])[0] == 401
        spent = place.command("launch-url")
        assert (spent.returncode, spent.stdout) == (1, "")
        assert "wizard-app new-token" in spent.stderr
    assert left(place.token_file.parent) == []


def test_a_given_token_is_used(place: Place) -> None:
    for options, variables in (
        (("--token", "a" * 64), {"WIZARD_TOKEN": "b" * 64}),
        ((), {"WIZARD_TOKEN": "a" * 64}),
        (("--token", "a" * 64), {"WIZARD_NO_TOKEN": "1"}),
    ):
        with place.serve(*options, env=variables) as app:
            asked = ("/", f"/?token={'b' * 64}", f"/?token={'a' * 64}")
            assert [ask(app, path)[0] for path in asked] == [401, 401, 302]


def test_without_a_token_everyone_has_access_and_without_a_wizard_there_is_no_link(
    place: Place,
) -> None:
    with place.serve("--no-token") as app:
        assert ask(app, "/wizard/system")[0] == 200
        assert f"{app.url}/\n" in app.log.read_text()
        assert place.command("launch-url").returncode == 1
    for command in ("launch-url", "new-token"):
        done = place.command(command)
        assert done.returncode == 1
        assert "No wizard is running here" in done.stderr
    assert not place.token_file.exists()


def test_tok_01_new_token_makes_a_link_for_the_running_wizard(place: Place) -> None:
    with place.serve() as app:
        first = place.link()
        second = place.link("new-token")
        # The unused earlier link is no longer valid.
        assert ask(app, first)[0] == 401
        session = enter(app, second)
        third = enter(app, place.link("new-token"))
        assert ask(app, "/wizard/system", session)[0] == 200
        assert ask(app, "/wizard/system", third)[0] == 200
        # The token file gets the owner of the address file, who serves the wizard.
        nobody = pwd.getpwnam("nobody")
        address = place.token_file.with_name("wizard.token.address")
        os.chown(address, nobody.pw_uid, nobody.pw_gid)
        place.link("new-token")
        owned = place.token_file.stat()
        assert (owned.st_uid, owned.st_gid) == (nobody.pw_uid, nobody.pw_gid)


@pytest.mark.parametrize(
    ("same_port", "said"),
    [(True, "already listens"), (False, "Another wizard is already running for this device")],
)
def test_a_second_wizard_of_the_same_device_fails_and_keeps_the_link_of_the_first(
    place: Place, same_port: bool, said: str
) -> None:
    with place.serve() as app:
        token = place.token_file.read_text()
        port = app.port if same_port else free_port()
        second = place.command("serve", "--bind", f"127.0.0.1:{port}")
        assert second.returncode == 1
        assert said in second.stderr
        assert place.token_file.read_text() == token
        enter(app, place.link())


def test_the_lock_of_a_killed_wizard_is_free_for_the_next(place: Place) -> None:
    with place.serve() as app:
        # Its worker is still running, and ends once it notices that it is alone.
        os.kill(app.process.pid, signal.SIGKILL)
        app.process.wait()
        with place.serve() as next_one:
            enter(next_one, place.link())


@pytest.mark.parametrize("rounds", [8, pytest.param(50, marks=pytest.mark.long)])
def test_tok_02_of_simultaneous_requests_one_opens_a_session(place: Place, rounds: int) -> None:
    barrier = threading.Barrier(THREADS)

    def together(app_and_path: tuple[Served, str]) -> int:
        barrier.wait()
        return ask(*app_and_path)[0]

    with place.serve() as app:
        for round_ in range(rounds):
            token = f"{round_:064x}"
            # What new-token does, without a process for each round.
            fresh = place.token_file.with_name("fresh")
            fresh.write_text(token)
            fresh.replace(place.token_file)
            with ThreadPoolExecutor(THREADS) as pool:
                statuses = list(pool.map(together, [(app, f"/?token={token}")] * THREADS))
            # More than ten requests with wrong tokens a minute would get 429.
            assert sorted(set(statuses)) == [302, 401], statuses
            assert statuses.count(302) == 1


def test_tok_10_after_a_restart_old_links_and_sessions_are_invalid(place: Place) -> None:
    port = free_port()
    with place.serve(port=port) as app:
        unused = place.link()
        session = enter(app, unused)
        unused = place.link("new-token")
    with place.serve(port=port) as app:
        assert ask(app, unused)[0] == 401
        status, _, page = ask(app, "/wizard/system", session)
        assert status == 401
        assert "Your session has ended. Your answers are saved." in page
        enter(app, place.link())


def worker(app: Served) -> int:
    """The id of the worker process."""
    children = Path(f"/proc/{app.process.pid}/task/{app.process.pid}/children")
    wait_until(lambda: children.read_text().split())
    return int(children.read_text().split()[0])


def test_tok_10_a_used_token_stays_used_after_the_worker_is_killed(place: Place) -> None:
    with place.serve() as app:
        used = place.link()
        session = enter(app, used)
        first = worker(app)
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: worker(app) != first)
        assert ask(app, used)[0] == 401
        assert ask(app, "/", session)[0] == 401
        enter(app, place.link("new-token"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_tok_09_an_unused_token_is_removed_when_the_program_ends(
    place: Place, number: signal.Signals
) -> None:
    with place.serve() as app:
        assert place.token_file.exists()
        app.process.send_signal(number)
        app.process.wait(SECONDS)
    assert left(place.token_file.parent) == []


def test_tok_09_a_planted_link_is_not_followed(place: Place) -> None:
    victim = place.folder / "shadow"
    victim.write_text("root:x")
    place.token_file.parent.mkdir(parents=True)
    for name in ("wizard.token", "wizard.token.address"):
        place.token_file.with_name(name).symlink_to(victim)
    with place.serve() as app:
        assert not place.token_file.is_symlink()
        assert place.token_file.stat().st_mode & 0o7777 == 0o600
        enter(app, place.link())
    assert victim.read_text() == "root:x"
    assert victim.stat().st_mode & 0o777 == 0o644


def test_tok_07_no_token_and_no_session_is_in_a_log(place: Place) -> None:
    with place.serve(env={"GUNICORN_CMD_ARGS": "--log-level debug"}) as app:
        printed = place.link()
        session = enter(app, printed)
        wrong = "f" * 64
        ask(app, f"/?token={wrong}")
        ask(app, f"/nothing?token={printed[8:]}", {"Authorization": f"Bearer {wrong}"})
        ask(app, "/wizard/another-device", session, "POST")
        told = app.log.read_text()
    # The link itself is printed once, and the token never again.
    assert told.count(printed[8:]) == 1
    assert wrong not in told
    assert session["Cookie"].partition("=")[2] not in told
    assert set(TOKEN.findall(told)) == {printed[8:]}
    assert "a wrong launch token came from 127.0.0.1" in told


def test_tok_07_a_service_does_not_write_its_link_into_the_journal(place: Place) -> None:
    code = (
        "import os, sys; s = os.fstat(1);"
        "os.environ['JOURNAL_STREAM'] = f'{s.st_dev}:{s.st_ino}';"
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    serve = (program("wizard-app"), "serve", "--bind", f"127.0.0.1:{free_port()}")
    with place.running(program("python"), "-c", code, *serve) as (_, log):
        wait_until(lambda: "wizard-app launch-url" in log.read_text())
        assert place.token_file.read_text() not in log.read_text()


def test_gunicorn_itself_can_serve_the_wizard(place: Place) -> None:
    port = free_port()
    gunicorn = (program("gunicorn"), "-c", "python:platform_common.web.gunicorn_conf")
    words = (*gunicorn, "--bind", f"127.0.0.1:{port}", "wizard_app.wsgi:app")
    with place.running(*words) as (process, log):
        wait_for_port(port, process)
        app = Served(f"http://127.0.0.1:{port}", process, log)
        assert ask(app, "/healthz")[2] == "ok"
        # The server's address is unknown, so the link is only a path.
        shown = place.command("launch-url")
        assert shown.stdout == f"/?token={place.token_file.read_text()}\n"
        enter(app, shown.stdout.strip())
        enter(app, place.link("new-token"))
        assert not TOKEN.search(log.read_text())
    assert left(place.token_file.parent) == []


# https.


def openssl(*words: str) -> str:
    done = subprocess.run(
        ["openssl", *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


@dataclass(frozen=True)
class Secure:
    """A wizard in production, which uses https."""

    place: Place
    app: Served

    def fingerprint(self) -> str:
        """The printed fingerprint of its certificate."""
        (found,) = FINGERPRINT.findall(self.app.log.read_text())
        return str(found)


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secure]:
    place = Place(tmp_path_factory.mktemp("secure"), ("--production",))
    with place.serve(scheme="https") as app:
        yield Secure(place, app)


def test_ses_05_production_uses_https_with_the_certificate_whose_fingerprint_it_prints(
    secure: Secure, tmp_path: Path
) -> None:
    shown = openssl("s_client", "-connect", f"127.0.0.1:{secure.app.port}", "-showcerts")
    (tmp_path / "shown.pem").write_text(shown)
    seen = openssl("x509", "-in", str(tmp_path / "shown.pem"), "-noout", "-fingerprint", "-sha256")
    assert seen.strip().endswith(f"={secure.fingerprint()}")
    document = json.loads(secure.place.command("new-token", "--production", "--json").stdout)
    assert document["fingerprint"] == secure.fingerprint()
    assert document["url"].startswith(f"{secure.app.url}/?token=")


def test_curl_with_the_certificate_can_open_a_session(secure: Secure, tmp_path: Path) -> None:
    pem = secure.place.folder / "device/var/lib/platform/wizard-tls/wizard.pem"
    assert pem.stat().st_mode & 0o7777 == 0o600
    jar, url = str(tmp_path / "jar"), f"https://localhost:{secure.app.port}"

    def curl(*words: str) -> str:
        # Without a proxy, and trusting only this certificate.
        asked = ["curl", "-sS", "--noproxy", "*", "--cacert", str(pem), "-b", jar, "-c", jar]
        return subprocess.run([*asked, *words], capture_output=True, text=True, check=True).stdout

    first = curl("-L", "-D", "-", f"{url}{secure.place.link('new-token')}")
    (line,) = re.findall(r"(?im)^set-cookie: (.*)$", first)
    value, *attributes = line.split("; ")
    assert re.fullmatch("__Host-platform-session=[0-9a-f]{64}", value)
    assert sorted(attributes) == ["HttpOnly", "Max-Age=3600", "Path=/", "SameSite=Strict", "Secure"]
    assert "Name this device" in first
    assert "Name this device" in curl(f"{url}/wizard/system")


def test_ses_06_plain_http_on_its_port_is_explained_and_spends_nothing(secure: Secure) -> None:
    link = secure.place.link("new-token")
    plain = replace(secure.app, url=secure.app.url.replace("https", "http"))
    status, headers, page = ask(plain, link)
    assert status == 400
    assert "https://" in page
    assert "Set-Cookie" not in headers
    assert link[8:] not in page
    enter(secure.app, link)
    assert link[8:] not in secure.app.log.read_text()


def test_only_modern_versions_of_tls_are_accepted(secure: Secure) -> None:
    for version, good in (("-tls1_1", False), ("-tls1_2", True), ("-tls1_3", True)):
        said = openssl(
            *("s_client", "-connect", f"127.0.0.1:{secure.app.port}", version),
            *("-cipher", "DEFAULT:@SECLEVEL=0"),
        )
        assert ("Cipher is (NONE)" not in said) is good


def test_a_silent_client_does_not_block_others(secure: Secure) -> None:
    address = ("127.0.0.1", secure.app.port)
    with contextlib.ExitStack() as stack:
        for _ in range(50):
            stack.enter_context(socket.create_connection(address, SECONDS))
        assert ask(secure.app, "/healthz")[2] == "ok"


def test_d13_behind_a_proxy_the_token_is_only_accepted_over_https(
    production: Place,
) -> None:
    with production.serve("--behind-proxy", env={"PLATFORM_ALLOWED_HOSTS": "a.example"}) as app:
        log = app.log.read_text()
        assert "https://a.example/?token=" in log
        assert "fingerprint" not in log
        link = production.link()
        clear = {"Host": "a.example"}
        assert ask(app, link, clear)[0] == 403
        assert ask(app, link, clear | {"X-Forwarded-Proto": "http"})[0] == 403
        status, headers, _ = ask(app, link, clear | {"X-Forwarded-Proto": "https"})
        assert status == 302
        assert "Secure" in headers["Set-Cookie"]
        enter(app, production.link("new-token"))


def test_http_08_without_a_proxy_its_headers_change_nothing(place: Place) -> None:
    with place.serve() as app:
        session = enter(app, place.link())
        for name, value in (
            *(("X-Forwarded-Proto", "https"), ("X-Forwarded-Protocol", "ssl")),
            *(("X-Forwarded-Ssl", "on"), ("X-Forwarded-Host", "evil.example")),
        ):
            _, _, page = ask(app, "/wizard/another-device", session | {name: value}, "POST")
            assert f">{app.url}/?token=" in page
            # With such a header, a form from https would count as ours if the header were trusted.
            foreign = {"Origin": app.url.replace("http", "https"), name: value}
            assert ask(app, "/preferences", session | foreign, "POST")[0] == 403


def test_a_given_certificate_is_also_used_in_dev_mode(place: Place) -> None:
    cert, key = place.folder / "cert.pem", place.folder / "key.pem"
    openssl(
        *("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"),
        *("-subj", "/CN=kitchen.example", "-keyout", str(key), "-out", str(cert)),
    )
    options = ("--certfile", str(cert), "--keyfile", str(key))
    with place.serve(*options, scheme="https") as app:
        seen = openssl("x509", "-in", str(cert), "-noout", "-fingerprint", "-sha256").strip()
        assert seen.partition("=")[2] in app.log.read_text()
        cookie = enter(app, place.link())
        assert cookie["Cookie"].startswith("platform-session=")
        # A replaced file is only read at the next start.
        cert.unlink()
        assert ask(app, "/wizard/system", cookie)[0] == 200


# Wrong usage.


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        (f"--token {'x' * 64}", 2, "launch token is not valid"),
        (f"--token {'a' * 129}", 2, "launch token is not valid"),
        (f"--production --token {'A' * 64}", 2, "launch token is not valid"),
        ("--production --token abc", 2, "launch token is not valid"),
        ("--token=", 2, "launch token is not valid"),
        (f"--token {'a' * 64} --no-token", 2, "exclude each other"),
        ("--production --no-token", 2, "always requires its launch token"),
        ("WIZARD_PRODUCTION=1 WIZARD_NO_TOKEN=1", 2, "always requires its launch token"),
        ("--keyfile key.pem", 2, "--certfile"),
        ("--certfile /nothing/cert.pem", 1, "/nothing/cert.pem"),
        ("--bind nowhere", 2, "not an address"),
        ("--frobnicate", 2, "No such option"),
    ],
)
def test_tok_11_invalid_settings_are_reported(
    place: Place, words: str, status: int, told: str
) -> None:
    variables = dict(word.split("=") for word in words.split() if word.startswith("WIZARD_"))
    options = [word for word in words.split() if not word.startswith("WIZARD_")]
    done = place.command("serve", f"--bind=127.0.0.1:{free_port()}", *options, env=variables)
    assert done.returncode == status, done.stderr
    assert told in done.stderr
    assert "Traceback" not in done.stderr
    assert "A" * 64 not in done.stderr
    assert not place.token_file.exists()


def test_a_terminal_shows_the_qr_code(place: Place) -> None:
    def shown(**more: str) -> str:
        environment = place.environment | more
        status, text = at_a_terminal(
            place.folder, "launch-url", name="wizard-app", env=environment, columns=80
        )
        assert status == 0
        return text

    with place.serve():
        assert len([line for line in shown().splitlines() if "\x1b[97;40m" in line]) > 20
        assert "█" not in place.command("launch-url").stdout
        plain = shown(NO_COLOR="1")
        assert "█" in plain
        assert "\x1b[97" not in plain
