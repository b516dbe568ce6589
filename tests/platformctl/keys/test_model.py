"""`platformctl model list` and `model set`."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import signal
import stat
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jsonschema
import pytest

from platform_common.errors import PlatformError
from platform_common.resources import schema
from platform_common.secret import Secret, SecretError
from platformctl.keys.typed_key import read_key
from tests.platformctl.conftest import run_on
from tests.support.devices import Device
from tests.support.odd_files import make
from tests.support.releases import clean_environment, program
from tests.support.waiting import wait_until

CANARY = "sk-canary-0123456789"
SECRETS = "/etc/platform/secrets.env"
ACTIVE = "/etc/platform/active-provider"
STRACE = ("strace", "-f", "-v", "-s", "4096", "-e", "trace=execve")
SET = ("model", "set", "--key-from-stdin", "--yes", "--provider")


def model(device: Device, provider: str) -> dict[str, object]:
    """The entry of one provider in `model list --json`."""
    done = device.call("model", "list", "--json")
    assert done.returncode == 0, done.stderr
    (found,) = [entry for entry in json.loads(done.stdout) if entry["id"] == provider]
    return dict(found)


def test_the_list_shows_the_variables_and_the_format_of_a_key(device: Device) -> None:
    device.put(SECRETS, f"OPENAI_API_KEY={CANARY}\n")
    device.put("/etc/platform/airgap.flag", "")
    assert model(device, "openai") == {
        "id": "openai",
        "display_name": "OpenAI",
        "kind": "chat-reference",
        "configured": True,
        "key_env_var": "OPENAI_API_KEY",
        "default_model": "gpt-4o",
        "masked_key_prefix": "sk-ca…",
        "active": False,
        "key_format": "sk-...",
        "endpoint": "https://api.openai.com/v1",
        "variables": ["OPENAI_API_KEY"],
        "takes_address": False,
    }
    bedrock, local = model(device, "bedrock"), model(device, "local-ollama")
    assert bedrock["variables"] == ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"]
    assert (bedrock["takes_address"], local["takes_address"]) == (False, True)


def test_the_active_provider_is_listed_with_its_chosen_address(
    device: Device,
) -> None:
    device.put(ACTIVE, "openai\n")
    chosen = device.put("/etc/platform/active-endpoint", "https://proxy.example/v1\n")
    listed = json.loads(device.call("model", "list", "--json").stdout)
    assert [entry["id"] for entry in listed if entry["active"]] == ["openai"]
    endpoints = {entry["id"]: entry["endpoint"] for entry in listed}
    assert endpoints["openai"] == "https://proxy.example/v1"
    assert endpoints["anthropic"] == "https://api.anthropic.com"
    assert endpoints["custom"] == ""
    # An endpoint that is not valid is not shown.
    for text in ("https://me:canary@proxy.example/", "canary", "a\nb"):
        chosen.write_text(f"{text}\n")
        done = device.call("model", "list", "--json")
        assert "https://api.openai.com/v1" in done.stdout
        assert f"warning: {chosen}" in done.stderr
        assert "canary" not in done.stdout + done.stderr


def test_a_provider_is_configured_if_every_variable_has_a_value(device: Device) -> None:
    one = "AWS_ACCESS_KEY_ID=AKIA12345678\n"
    for secrets, configured, masked in (
        ("", False, ""),
        (one, False, "AKI…"),
        (f"{one}AWS_SECRET_ACCESS_KEY=\nAWS_REGION=x\n", False, "AKI…"),
        (f"{one}AWS_SECRET_ACCESS_KEY=s\nAWS_REGION=x\n", True, "AKI…"),
    ):
        device.put(SECRETS, secrets)
        bedrock = model(device, "bedrock")
        assert (bedrock["configured"], bedrock["masked_key_prefix"]) == (configured, masked)


def test_only_offline_builds_offer_the_local_model(device: Device) -> None:
    def offered() -> bool:
        return "local-ollama" in device.call("model", "list", "--json").stdout

    assert not offered()
    refused = device.ctl(*SET, "local-ollama", stdin="http://127.0.0.1:11434/v1")
    device.put("/etc/platform/airgap.flag", "")
    assert offered()
    assert refused.returncode == 64
    assert device.ctl(*SET, "local-ollama", stdin="file:///etc/passwd").returncode == 1
    assert device.ctl(*SET, "local-ollama", stdin="http://127.0.0.1:11434/v1").returncode == 0
    assert device.path(SECRETS).read_text() == "LOCAL_OLLAMA_BASE_URL=http://127.0.0.1:11434/v1\n"


def test_leak_02_the_table_for_people_marks_the_active_provider(device: Device) -> None:
    device.put(SECRETS, f"OPENAI_API_KEY={CANARY}\nAWS_REGION=x\nAWS_ACCESS_KEY_ID=AKIA12345\n")
    device.put(ACTIVE, "openai\n")
    done = device.call("model", "list")
    lines = {line[3:].split(" ")[0]: line for line in done.stdout.splitlines()}
    assert lines["openai"].split() == [*("*", "openai", "OpenAI", "sk-ca…", "gpt-4o")]
    assert "AK… incomplete" in lines["bedrock"]
    assert "not set" in lines["anthropic"]
    assert not lines["anthropic"].startswith("*")
    assert lines["openai"].index("gpt-4o") == lines["anthropic"].index("claude")
    # Values that were typed into the file are escaped, too.
    device.put(SECRETS, b"OPENAI_API_KEY=\x1b]0;owned\x07\xff" + b"x" * 40 + b"\n")
    assert "\x1b" not in done.stdout + device.call("model", "list").stdout


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        *(("folder", "is not a regular file"), ("FIFO", "is not a regular file")),
        *(("symbolic link", "is a symbolic link"), ("large", "is larger than")),
    ],
)
def test_secrets_that_cannot_be_read_are_reported_in_a_sentence_and_kept(
    device: Device, kind: str, reason: str
) -> None:
    path = device.path(SECRETS)
    if kind == "large":
        path.write_bytes(b"A=" + b"x" * (1 << 20))
    else:
        make(kind, path)
    before = path.lstat()
    for done in (device.call("model", "list", "--json"), device.ctl(*SET, "openai", stdin=CANARY)):
        assert (done.returncode, done.stdout) == (1, "")
        assert f"error: {path}" in done.stderr
        assert reason in done.stderr
    assert path.lstat().st_ino == before.st_ino
    assert not device.path(ACTIVE).exists()


def test_a_key_can_be_stored_despite_a_broken_active_provider_or_profile(device: Device) -> None:
    device.put(ACTIVE, "a\nb\n")
    done = device.call("model", "list", "--json")
    assert done.returncode == 0
    assert "active-provider" in done.stderr
    for profile in ("nowhere\n", "../x\n", "\n"):
        device.put("/etc/platform/active-profile", profile)
        done = device.ctl(*SET, "openai", "--json", stdin=CANARY)
        assert json.loads(done.stdout)["unit"] == ""
    assert device.path(ACTIVE).read_text() == "openai\n"


def test_an_unusable_entry_of_the_catalogue_is_reported(device: Device) -> None:
    entry = {"id": "x", "display_name": "X", "kind": "chat-compatible", "endpoint_default": ""}
    entry |= {"key_env_var": "LD_PRELOAD", "key_format": ""}
    device.put("/etc/platform/providers.json", json.dumps({"providers": [entry]}))
    done = device.call("model", "list", "--json")
    assert (done.returncode, json.loads(done.stdout)) == (0, [])
    assert "providers[0].key_env_var" in done.stderr
    assert device.ctl(*SET, "x", stdin=CANARY).returncode == 64


def test_a_key_is_stored_and_its_provider_becomes_active(device: Device) -> None:
    device.put(SECRETS, "# mine\nA=1\nOPENAI_API_KEY=old\nB='2'", mode=0o644)
    device.put("/etc/platform/active-profile", "hermes\n")
    done = device.ctl(*SET, "openai", "--json", stdin=f"{CANARY}\n")
    assert done.returncode == 0, done.stderr
    assert device.path(SECRETS).read_text() == f"# mine\nA=1\nOPENAI_API_KEY={CANARY}\nB='2'"
    assert device.path(ACTIVE).read_text() == "openai\n"
    assert stat.S_IMODE(device.path(SECRETS).stat().st_mode) == 0o600
    assert stat.S_IMODE(device.path(ACTIVE).stat().st_mode) == 0o644
    jsonschema.validate(json.loads(done.stdout), schema("control/model-set"))
    assert json.loads(done.stdout) == {
        "provider": "openai",
        "variable": "OPENAI_API_KEY",
        "ok": True,
        "missing": [],
        "unit": "hermes-gateway.service",
    }


def test_the_text_for_people_names_the_unit_to_restart_and_missing_variables(
    device: Device,
) -> None:
    device.put("/etc/platform/active-profile", "hermes\n")
    first = device.ctl(*SET, "bedrock", stdin="AKIA123")
    assert "systemctl restart hermes-gateway.service" in first.stdout
    assert "--provider bedrock --variable AWS_REGION" in first.stdout
    device.ctl(*SET, "bedrock", "--variable", "AWS_SECRET_ACCESS_KEY", stdin="s")
    last = device.ctl(*SET, "bedrock", "--variable", "AWS_REGION", stdin="us-east-1")
    assert "Missing" not in last.stdout
    assert model(device, "bedrock")["configured"] is True


def test_choices_for_the_previous_provider_are_removed(device: Device) -> None:
    chosen = [device.put(f"/etc/platform/active-{name}", "x\n") for name in ("model", "endpoint")]
    device.put(ACTIVE, "custom\n")
    device.ctl(*SET, "custom", stdin=CANARY)
    assert all(path.exists() for path in chosen)
    device.ctl(*SET, "openai", stdin=CANARY)
    assert not any(path.exists() for path in chosen)


# Other invalid keys are in `test_secret.py`.
REFUSED = [
    pytest.param("", "is empty", id="empty"),
    pytest.param("\n", "is empty", id="empty-line"),
    pytest.param(f"{CANARY}\nx", "line feed", id="line-feed"),
    pytest.param(f"\n{CANARY}", "line feed", id="an-empty-line-first"),
    pytest.param(f"{CANARY}\n{CANARY}\n", "line feed", id="two-lines"),
    pytest.param(f"{CANARY}\rx", "no key has", id="carriage-return"),
    pytest.param(CANARY * 300, "is longer than", id="too-long"),
    pytest.param(CANARY * 500_000, "is longer than", id="ten-megabytes"),
]


@pytest.mark.parametrize(("stdin", "reason"), REFUSED)
def test_env_01_an_invalid_key_is_refused_without_being_shown(
    stdin: str, reason: str, tmp_path: Path
) -> None:
    (tmp_path / "key").write_text(stdin)
    with (tmp_path / "key").open() as file, pytest.raises(PlatformError) as error:
        read_key(file.fileno())
    assert reason in error.value.message
    assert "canary" not in error.value.message


def test_env_01_an_invalid_key_does_not_replace_the_stored_one(device: Device) -> None:
    device.put(SECRETS, "OPENAI_API_KEY=old\n")
    device.put(ACTIVE, "anthropic\n")
    for stdin in ("", f"{CANARY} x", CANARY * 500_000):
        done = device.ctl(*SET, "openai", "--json", stdin=stdin)
        assert (done.returncode, done.stdout) == (1, "")
        assert "canary" not in done.stderr
        assert device.path(SECRETS).read_text() == "OPENAI_API_KEY=old\n"
        assert device.path(ACTIVE).read_text() == "anthropic\n"


@pytest.mark.parametrize(
    "provider", ["", "nope", "--help", "../x", "openai\n", "OpenAI", "é", "a b"]
)
def test_key_11_an_unknown_provider_is_wrong_usage(device: Device, provider: str) -> None:
    # A test without a provider tests the active one.
    for call in (SET, ("model", "test", "--json", "--provider")) if provider else (SET,):
        done = device.call(*call, provider)
        assert (done.returncode, done.stdout) == (64, "")
        assert "There is no provider" in done.stderr
    assert not (device.root / "etc").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param("--provider openai --key-from-stdin", id="nobody-to-confirm"),
        pytest.param("--provider openai --yes", id="no-terminal"),
        pytest.param("--key-from-stdin --yes", id="no-provider"),
        pytest.param(f"--provider openai --key {CANARY}", id="key-as-an-argument"),
        pytest.param(
            "--provider openai --variable PATH --key-from-stdin --yes", id="variable-of-another"
        ),
    ],
)
def test_wrong_usage_stores_nothing(device: Device, arguments: str) -> None:
    done = device.ctl("model", "set", *arguments.split(), stdin=CANARY)
    assert (done.returncode, done.stdout) == (64, "")
    assert not (device.root / "etc").exists()


def test_env_02_a_file_that_systemd_reads_differently_is_refused_with_the_line(
    device: Device,
) -> None:
    device.put(SECRETS, "A=1\nB=x\\\nOPENAI_API_KEY=old\n")
    done = device.ctl(*SET, "openai", stdin=CANARY)
    assert done.returncode == 1
    assert f"error: {device.path(SECRETS)}: line 2 " in done.stderr
    assert "hint: Repair or remove that line" in done.stderr
    assert device.path(SECRETS).read_text() == "A=1\nB=x\\\nOPENAI_API_KEY=old\n"


def test_a_key_is_stored_even_if_its_provider_cannot_become_active(device: Device) -> None:
    device.path(ACTIVE).mkdir(parents=True)
    done = device.ctl(*SET, "openai", stdin=CANARY)
    assert done.returncode == 1
    assert "OPENAI_API_KEY is stored, but openai is not the active provider" in done.stderr
    assert device.path(SECRETS).read_text() == f"OPENAI_API_KEY={CANARY}\n"


def test_environment_variables_name_other_files(device: Device, tmp_path: Path) -> None:
    elsewhere = tmp_path / "mine.env"
    env = {"PLATFORM_SECRETS_FILE": str(elsewhere)}
    assert device.ctl(*SET, "openai", stdin=CANARY, env=env).returncode == 0
    assert elsewhere.read_text() == f"OPENAI_API_KEY={CANARY}\n"
    assert not device.path(SECRETS).exists()


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """Both ends of a pipe that stays open."""
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


def test_one_line_is_enough_even_if_the_pipe_stays_open(pipe: tuple[int, int]) -> None:
    os.write(pipe[1], f"{CANARY}\n".encode())
    assert read_key(pipe[0]) == Secret(CANARY)


@pytest.mark.parametrize("sent", [b"", b"half"])
def test_waiting_for_a_line_is_bounded(pipe: tuple[int, int], sent: bytes) -> None:
    os.write(pipe[1], sent)
    with pytest.raises(PlatformError, match="No line came on standard input"):
        read_key(pipe[0], timeout_s=0.05)


def test_a_key_can_arrive_in_pieces(pipe: tuple[int, int]) -> None:
    os.write(pipe[1], b"fi")
    threading.Timer(0.05, os.write, (pipe[1], b"rst\r\n")).start()
    assert read_key(pipe[0]) == Secret("first")


def test_a_second_line_that_arrives_late_is_noticed(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    os.write(pipe[1], b"first\n")
    read = os.read

    def read_and_write_more(descriptor: int, length: int) -> bytes:
        found = read(descriptor, length)
        monkeypatch.undo()
        os.write(pipe[1], b"second\n")
        return found

    monkeypatch.setattr(os, "read", read_and_write_more)
    with pytest.raises(SecretError):
        read_key(pipe[0])


@pytest.mark.parametrize("stdin", ["<&-", "</dev/zero", "</dev/null"])
def test_unusable_standard_input_is_reported_in_a_sentence(device: Device, stdin: str) -> None:
    script = f'"$0" "$@" {stdin}'
    done = run_on(device, "/bin/sh", "-c", script, program("platformctl"), *SET, "openai")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: ")


@pytest.mark.parametrize(
    ("arguments", "typed", "returncode"),
    [
        pytest.param((), ["y\n", f"{CANARY}\n"], 0, id="asked"),
        pytest.param(("--yes",), [f"{CANARY}\n"], 0, id="yes"),
        pytest.param(("--yes", "--key-from-stdin"), [f"{CANARY}\n"], 0, id="key-from-stdin"),
        pytest.param((), ["n\n"], 1, id="no"),
    ],
)
def test_at_a_terminal_the_program_asks_for_the_key_without_showing_it(
    device: Device, arguments: tuple[str, ...], typed: list[str], returncode: int
) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["PLATFORM_ROOT"] = str(device.root)
        words = ["platformctl", "model", "set", "--provider", "openai", *arguments]
        os.execv(program("platformctl"), words)
    shown = b""
    for text in typed:
        while not shown.endswith((b"]: ", b"KEY: ")):
            shown += os.read(terminal, 1024)
        os.write(terminal, text.encode())
        shown += b"|"
    with contextlib.suppress(OSError):  # A terminal whose last program has ended.
        while chunk := os.read(terminal, 1024):
            shown += chunk
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == returncode
    assert b"canary" not in shown
    assert device.path(SECRETS).exists() == (returncode == 0)


def test_key_14_twenty_simultaneous_programs_lose_no_key(device: Device) -> None:
    ids = [entry["id"] for entry in json.loads(device.call("model", "list", "--json").stdout)]
    with ThreadPoolExecutor(len(ids)) as pool:
        done = list(pool.map(lambda name: device.ctl(*SET, name, stdin=f"k-{name}"), ids))
    assert [one.stderr for one in done if one.returncode] == []
    assert len(device.path(SECRETS).read_text().splitlines()) == len(ids)


def test_leak_06_left_overs_of_a_killed_writer_are_removed(device: Device) -> None:
    left = device.put(f"/etc/platform/.secrets.env.99999.{'a' * 8}.tmp", CANARY, mode=0o600)
    other = device.put("/etc/platform/.other.tmp", "x")
    assert device.ctl(*SET, "openai", stdin=CANARY).returncode == 0
    assert not left.exists()
    assert other.exists()


def test_leak_07_no_copy_of_the_old_file_remains(device: Device) -> None:
    device.put(SECRETS, f"OPENAI_API_KEY={CANARY}\n")
    device.ctl(*SET, "openai", stdin="new")
    found = [path for path in device.root.rglob("*") if path.is_file()]
    assert {path.name for path in found} >= {"secrets.env", "active-provider"}
    assert not [path for path in found if CANARY.encode() in path.read_bytes()]


def test_key_12_no_argument_and_no_environment_of_a_process_contains_the_key(
    device: Device,
) -> None:
    """strace shows that the program starts no other, and with what it was started itself."""
    done = run_on(device, *STRACE, program("platformctl"), *SET, "openai", stdin=CANARY)
    assert done.returncode == 0
    assert done.stderr.count("execve(") == 1
    assert CANARY not in done.stderr + done.stdout


def test_leak_01_a_process_with_the_key_writes_no_core_file(device: Device, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [program("platformctl"), *SET, "openai"],
        env=clean_environment() | {"PLATFORM_ROOT": str(device.root)},
        stdin=subprocess.PIPE,
        cwd=tmp_path,
    )
    assert process.stdin is not None
    process.stdin.write(CANARY.encode())
    process.stdin.flush()
    limits = Path(f"/proc/{process.pid}/limits")
    wait_until(lambda: re.search(r"^Max core file size +1 ", limits.read_text(), re.MULTILINE))
    process.send_signal(signal.SIGSEGV)
    _, status = os.waitpid(process.pid, 0)
    process.returncode = -signal.SIGSEGV
    process.stdin.close()
    assert os.WTERMSIG(status) == signal.SIGSEGV
    assert not os.WCOREDUMP(status)


def test_a_long_invalid_name_is_shortened_in_messages(device: Device) -> None:
    device.put(ACTIVE, "x" * 100_000 + "\n")
    for done in (device.ctl("model", "test", "--json"), device.ctl(*SET, "y" * 100_000)):
        assert len(done.stdout + done.stderr) < 600
