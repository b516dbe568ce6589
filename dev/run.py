"""`make run`: a signed release of real images, served and verified, and a device to set up.

Each step is a command that anyone can run; it is shown, and its output is let
through. Everything made lies in one folder. Then the services run until Ctrl-C.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import textwrap
import time
import urllib.request
import urllib.response
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NoReturn

import click

from platform_common.storage.stale_files import signals_held

ROOT = Path(__file__).resolve().parents[1]
VERSION, CHANNEL = "2026.11.1", "dev"
LOOPBACK = "127.0.0.1"
_STEP_TIMEOUT_S = 600
_START_TIMEOUT_S = 15
_STOP_TIMEOUT_S = 20


@dataclass(frozen=True)
class Service:
    """A program that runs beside the others.

    `{port}` and `{folder}` are filled in its command and in its variables.
    """

    name: str
    port: int
    command: tuple[str, ...]
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """Its URL."""
        return f"http://{LOOPBACK}:{self.port}"


Running = tuple[Service, "subprocess.Popen[bytes]"]


def _program(name: str) -> str:
    """The path of an installed program of this environment."""
    return str(Path(sys.executable).with_name(name))


RELEASES = Service(
    "releases",
    8087,
    (
        *(sys.executable, "-m", "http.server", "{port}"),
        *("--bind", LOOPBACK, "--directory", "{folder}/dist"),
    ),
)
# The port of the shipped profiles' gateways.
GATEWAY = Service(
    "gateway",
    8080,
    (sys.executable, "-m", "dev.samples.gateway", "--bind", LOOPBACK, "--port", "{port}"),
    {"PYTHONPATH": str(ROOT)},
)
DASHBOARD = Service(
    "dashboard",
    8089,
    (_program("pwa-app"), "serve", "--bind", LOOPBACK + ":{port}"),
    {"PLATFORM_ROOT": "{folder}", "PLATFORM_CTL": _program("platformctl")},
)
WIZARD = Service(
    "wizard",
    8088,
    (
        *(_program("wizard-app"), "serve", "--bind", LOOPBACK + ":{port}"),
        *("--dev-out", "{folder}"),
    ),
)


@click.command()
@click.option(
    "--folder",
    default=ROOT / "dev-out",
    type=click.Path(path_type=Path),
    help="Where everything goes; dev-out in the checkout by default.",
)
@click.option("--once", is_flag=True, help="Stop when everything has answered.")
@click.pass_context
def main(context: click.Context, folder: Path, once: bool) -> None:
    """Build, sign, serve and verify a release of sample images; set up a device, and show it.

    Ctrl-C ends the serving with exit code 0 and a step before it with 130; a
    step that fails ends it with 1.
    """
    _prepare_terminal(context)
    folder = Path(_shown(folder))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        _make_release(folder)
        _title(4, "Served on loopback: the release, and a stand-in for an assistant's gateway")
        with _running((RELEASES, GATEWAY), folder) as first:
            releases, gateway = (service.url for service, _ in first)
            click.echo("The stand-in has no model: it repeats what you tell it.")
            _title(5, "Verified over HTTP, with the public key alone")
            public = folder / "keys/release.pub"
            _step([_program("release-tools"), "verify", releases, "-p", public])
            _title(6, "A word with the stand-in")
            _talk(gateway)
            _title(7, "A sample device, where there is none yet")
            device = [folder, VERSION, f"{releases}/{CHANNEL}/", gateway]
            _step([sys.executable, ROOT / "dev/samples/device.py", *device])
            _title(8, "The device, in its dashboard and in the wizard that sets it up")
            with _running((DASHBOARD, WIZARD), folder) as second:
                dashboard, wizard = (service.url for service, _ in second)
                _open(dashboard)
                _open(f"{wizard}/healthz")
                link = _launch_link(folder)
                _try_next(folder, releases)
                _invite(link, dashboard)
                if not once:
                    _serve([*first, *second])
    except KeyboardInterrupt:
        click.echo("\nInterrupted.")
        context.exit(130)


def _make_release(folder: Path) -> None:
    """The images, the key, and a signed release of them: steps 1 to 3."""
    artefacts, dist = folder / "artefacts", folder / "dist"
    secret, public = folder / "keys/release.key", folder / "keys/release.pub"
    tools = _program("release-tools")
    _title(1, "Sample images, made with real tools")
    _step([sys.executable, ROOT / "dev/samples/artefacts.py", artefacts, VERSION, CHANNEL])
    _title(2, "A development key, made once")
    if secret.exists() and public.exists():
        click.echo(f"kept  {secret} and {public}")
    else:
        keys = ["--secret-key", secret, "--public-key", public]
        _step([tools, "keygen", *keys, "--no-password"])
    _title(3, "A release of the images, signed")
    release = ["--version", VERSION, "--channel", CHANNEL, "--output", dist]
    _step([tools, "build", artefacts, *release], {"SIGNING_SECRET_KEY": secret})


def _open(url: str) -> None:
    """Fetch a page; a failure ends the program."""
    answer, page = _answer_to(urllib.request.Request(url))
    click.echo(f"{answer.geturl()}: {len(page):,} bytes of {answer.headers.get_content_type()}")


def _answer_to(request: urllib.request.Request) -> tuple[urllib.response.addinfourl, bytes]:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=_STEP_TIMEOUT_S) as answer:
            return answer, answer.read()
    except OSError as error:
        _fail(f"{request.full_url} did not answer: {error}")


def _talk(gateway: str) -> None:
    """Send the stand-in a message, as the chat does; a failure ends the program."""
    body = json.dumps({"message": "Hello"})
    click.echo(f"POST {gateway}/chat  {body}")
    request = urllib.request.Request(f"{gateway}/chat", body.encode())
    reply = json.loads(_answer_to(request)[1])["reply"]
    click.echo(textwrap.indent(reply.strip(), "  "))


def _launch_link(folder: Path) -> str:
    """The link that opens the wizard; reading it does not use it up."""
    command = [_program("wizard-app"), "launch-url", "--dev-out", str(folder)]
    _show_command(_line(command, {}))
    try:
        told = subprocess.run(
            [*command, "--json"], timeout=_STEP_TIMEOUT_S, check=True, stdout=subprocess.PIPE
        )
    except (subprocess.SubprocessError, OSError) as error:
        _fail(f"This step failed: {error}")
    return str(json.loads(told.stdout)["url"])


def _prepare_terminal(context: click.Context) -> None:
    if os.environ.get("NO_COLOR"):
        context.color = False
    # A shell starts a background process with Ctrl-C ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _ended)


def _ended(number: int, frame: object) -> NoReturn:
    raise SystemExit(128 + number)


def _title(number: int, text: str) -> None:
    click.secho(f"\n{number}. {text}", bold=True, fg="cyan")


def _step(command: Sequence[object], variables: Mapping[str, Path] | None = None) -> None:
    """Show `command` and run it; a failure ends the program."""
    words = [str(word) for word in command]
    settings = {name: str(value) for name, value in (variables or {}).items()}
    _show_command(_line(words, settings))
    # The services are on this machine, so no proxy is used.
    environment = os.environ | {"NO_PROXY": LOOPBACK, "no_proxy": LOOPBACK} | settings
    try:
        subprocess.run(words, env=environment, timeout=_STEP_TIMEOUT_S, check=True)
    except (subprocess.SubprocessError, OSError) as error:
        _fail(f"This step failed: {error}")


def _show_command(line: str) -> None:
    click.secho(f"$ {line}", dim=True)
    sys.stdout.flush()


def _line(command: Sequence[str], variables: Mapping[str, str]) -> str:
    def typed(word: str) -> str:
        return shlex.quote(_shown(Path(word)) if Path(word).is_absolute() else word)

    assignments = [f"{name}={typed(value)}" for name, value in variables.items()]
    return " ".join([*assignments, *map(typed, command)])


def _shown(path: Path) -> str:
    """`path` as you would type it in the current folder."""
    path = path.absolute()
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def _fail(message: str) -> NoReturn:
    click.secho(message, fg="red", bold=True, err=True)
    raise SystemExit(1)


@contextlib.contextmanager
def _running(services: Sequence[Service], folder: Path) -> Iterator[list[Running]]:
    """Start the services, each on its port or a free one, and end them after the block."""
    with contextlib.ExitStack() as stack:
        started = []
        for service in services:
            port = stack.enter_context(_free_port(service.port))
            placed = replace(service, port=port)
            process = stack.enter_context(_process(placed, folder))
            _await_answer(placed, process, folder)
            click.echo(f"{placed.name}: {placed.url}")
            started.append((placed, process))
        yield started


@contextlib.contextmanager
def _process(service: Service, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    fill = {"port": service.port, "folder": folder}
    command = [word.format_map(fill) for word in service.command]
    variables = {name: value.format_map(fill) for name, value in service.variables.items()}
    _show_command(_line(command, variables))
    log = _log(service, folder)
    log.parent.mkdir(exist_ok=True)
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            env=os.environ | variables,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            # Ctrl-C must only reach us; we end the services ourselves.
            start_new_session=True,
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(_STOP_TIMEOUT_S)


def _log(service: Service, folder: Path) -> Path:
    return folder / "logs" / f"{service.name}.log"


@contextlib.contextmanager
def _free_port(wanted: int) -> Iterator[int]:
    """`wanted` or another free port, which no other run takes until the block ends."""
    for port in (wanted, 0, 0, 0):
        # An abstract socket name, which is not a file and goes away with its process.
        with socket.socket() as probe, socket.socket(socket.AF_UNIX) as claim:
            try:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind((LOOPBACK, port))
                found: int = probe.getsockname()[1]
                claim.bind(f"\0platform-appliance-run-{found}")
            except OSError:
                continue
            probe.close()
            if port != wanted:
                click.echo(f"Port {wanted} is in use; {found} is free.")
            yield found
            return
    _fail(f"No port is free on {LOOPBACK}.")


def _await_answer(service: Service, process: subprocess.Popen[bytes], folder: Path) -> None:
    deadline = time.monotonic() + _START_TIMEOUT_S
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection((LOOPBACK, service.port), 1):
            return
        time.sleep(0.05)
    _fail(f"{service.name} did not start; see {_log(service, folder)}.")


def _invite(link: str, dashboard: str) -> None:
    """Say what to do next."""
    click.secho("\nSet the device up, in two minutes", bold=True, fg="cyan")
    click.echo("Open this link, which works once, and answer nine short pages:")
    click.secho(f"   {link}", bold=True)
    click.echo(
        "Any text will do as the provider's key; continue without testing it. On the last page,\n"
        "set up this device, which here is a folder, and chat with it: a stand-in repeats what\n"
        "you say. "
        "Then see your choices in the dashboard:"
    )
    click.secho(f"   {dashboard}", bold=True)


def _try_next(folder: Path, url: str) -> None:
    out = shlex.quote(str(folder))
    program, control, wizard = (
        shlex.quote(_shown(Path(_program(name))))
        for name in ("release-tools", "platformctl", "wizard-app")
    )
    public, dist = f"{out}/keys/release.pub", f"{out}/dist"
    image = f"{CHANNEL}/{VERSION}/platform-khoj-wsl2-{VERSION}-{CHANNEL}.tar.gz"
    click.secho("\nTry next", bold=True, fg="cyan")
    for purpose, commands in {
        "Verify it again, with two programs that must agree": [
            f"{program} verify {url}/{CHANNEL} -p {public} --verifier both",
        ],
        "Verify the manifest with the minisign program alone": [
            f"minisign -V -p {public} -m {dist}/{CHANNEL}/manifest.json",
        ],
        "Read the manifest without trusting it": [
            f"{program} inspect {url}/{CHANNEL}",
        ],
        "Change one byte of an image in a copy and verify that: exit code 1": [
            f"rm -rf {out}/tampered && cp -r {dist} {out}/tampered",
            f"printf X | dd of={out}/tampered/{image} conv=notrunc status=none",
            f"{program} verify {out}/tampered -p {public}",
        ],
        "Sign a file, and verify it": [
            f"date > {out}/notes.txt",
            f"SIGNING_SECRET_KEY={out}/keys/release.key {program} sign {out}/notes.txt",
            f"{program} verify-file {out}/notes.txt -p {public}",
        ],
        "Lower the daily cap of the sample device, then reload its dashboard": [
            f"PLATFORM_ROOT={out} {control} cost set --daily 2",
        ],
        "Make another link that opens the wizard, when the first was used": [
            f"{wizard} new-token --dev-out {out}",
        ],
        "Ask which of two versions is newer": [
            f"{program} compare 2026.11.1-rc1 2026.11.1",
        ],
    }.items():
        click.echo(f"# {purpose}")
        for command in commands:
            click.secho(f"  {command}", fg="green")


def _serve(running: Sequence[Running]) -> None:
    """Wait for Ctrl-C."""
    where = ", ".join(f"{service.name} on {service.url}" for service, _ in running)
    click.secho(f"\nServing {where} until Ctrl-C.", bold=True)
    sys.stdout.flush()
    try:
        while True:
            # A signal in the midst of asking would leave a process locked, and unstoppable.
            with signals_held():
                if any(process.poll() is not None for _, process in running):
                    break
            time.sleep(0.5)
    except KeyboardInterrupt:
        click.echo("\nStopped.")
        return
    _fail("A service ended by itself; its log is in the folder logs.")


if __name__ == "__main__":
    main()
