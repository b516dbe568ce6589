"""`platformctl model test`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from platform_common.control_answers import ModelTest, to_json
from platform_common.formats.decode import from_json
from platform_common.resources import schema
from tests.support.devices import Device
from tests.support.key_tests import CANARY, KINDS, SECRET_CANARY
from tests.support.network import free_port
from tests.support.raw_server import RawServer, Request, response, serving

SECRETS = "/etc/platform/secrets.env"
LISTING = b'{"data": [{"id": "a"}]}'


@pytest.fixture
def server() -> Iterator[RawServer]:
    with serving({"/v1/models": LISTING, "/models": LISTING}) as running:
        yield running


def choose(device: Device, provider: str, endpoint: str = "", key: str = "") -> None:
    """Make the provider active, at `endpoint`; `key` is a line of secrets.env."""
    device.put("/etc/platform/active-provider", f"{provider}\n")
    if endpoint:
        device.put("/etc/platform/active-endpoint", f"{endpoint}\n")
    device.put(SECRETS, f"{key}\n", mode=0o600)


def answer(device: Device, *args: str, status: int = 0, stdin: str = "") -> dict[str, Any]:
    """The output of `model test --json`."""
    done = device.ctl("model", "test", "--json", *args, stdin=stdin)
    assert done.returncode == status, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    jsonschema.validate(found, schema("control/model-test"))
    assert to_json(from_json(done.stdout.encode(), ModelTest)) == found
    return found


def test_the_active_provider_is_tested_at_its_chosen_address(
    device: Device, server: RawServer
) -> None:
    choose(device, "openai", f"{server.url}/v1", f"OPENAI_API_KEY={CANARY}")
    found = answer(device)
    assert 0 < found.pop("elapsed_ms") < 5_000
    assert found == {
        "provider": "openai",
        "endpoint": f"{server.url}/v1",
        "http_status": 200,
        "ok": True,
        "error": "",
        "warning": "",
    }
    assert server.requests[0].headers["authorization"] == f"Bearer {CANARY}"


def test_another_provider_is_not_tested_at_the_address_of_the_active_one(
    device: Device, server: RawServer
) -> None:
    choose(device, "openai", f"{server.url}/v1", f"OPENAI_API_KEY=a\nOTHER_API_KEY={CANARY}")
    listed = f"http://127.0.0.1:{free_port()}/v1"
    catalogue(device, "chat-compatible", listed, more=[entry("openai", "chat-reference")])
    found = answer(device, "--provider", "other", status=1)
    assert (found["provider"], found["endpoint"]) == ("other", listed)
    assert server.requests == []


def test_the_text_for_people_has_three_lines_and_the_result(
    device: Device, server: RawServer
) -> None:
    choose(device, "openai", f"{server.url}/v1", f"OPENAI_API_KEY={CANARY}")
    done = device.ctl("model", "test")
    *facts, status, verdict = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    assert facts == ["Provider  openai", f"Address   {server.url}/v1"]
    assert status.startswith("Answer    HTTP 200, after ")
    assert verdict == "The key works. 1 model available."
    # After a failure it also says why and what to do.
    choose(device, "openai", f"{server.url}/v2", f"OPENAI_API_KEY={CANARY}")
    done = device.ctl("model", "test")
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1].startswith("Answer    HTTP 404, after ")
    host = server.url.removeprefix("http://")
    assert done.stderr == (
        "error: There is no OpenAI-style service at this address: "
        f"{host} answered with HTTP 404\n"
        "hint: Check the base URL. Most end in a version such as /v1.\n"
    )


@pytest.mark.parametrize("as_json", [True, False], ids=["json", "people"])
def test_a_pass_that_proves_nothing_gives_a_warning(
    device: Device, server: RawServer, as_json: bool
) -> None:
    choose(device, "openrouter", f"{server.url}/v1", f"OPENROUTER_API_KEY={CANARY}")
    done = device.ctl("model", "test", *(["--json"] if as_json else []))
    assert done.returncode == 0
    said = "Reached OpenRouter, but it lists models without a key, so the key could not be proved"
    assert done.stderr == f"warning: {said}\n"
    if as_json:
        assert json.loads(done.stdout)["warning"] == said


GIVEN = ("--key-from-stdin", "--provider")


def test_a_given_key_is_tested_instead_of_the_stored_one_even_if_there_is_none(
    device: Device, server: RawServer
) -> None:
    choose(device, "openai", f"{server.url}/v1", "OPENAI_API_KEY=stored")
    assert answer(device, *GIVEN, "openai", stdin=f"  {CANARY} \r\n")["ok"]
    assert device.path(SECRETS).read_text() == "OPENAI_API_KEY=stored\n"
    device.path(SECRETS).unlink()
    device.path(SECRETS).mkdir()
    assert answer(device, "--key-from-stdin", stdin=CANARY)["provider"] == "openai"
    sent = [request.headers["authorization"] for request in server.requests]
    assert sent == [f"Bearer {CANARY}"] * 2


def test_stored_values_complete_a_given_key(device: Device, server: RawServer) -> None:
    for stored, lines, region in (
        ("AWS_REGION=eu-west-1", [], "eu-west-1"),
        ("AWS_REGION=eu-west-1", ["AWS_REGION=us-east-2"], "us-east-2"),
        ("", ["", " AWS_REGION=us-east-2\r", ""], "us-east-2"),
    ):
        choose(device, "bedrock", server.url, f"AWS_ACCESS_KEY_ID=old\n{stored}")
        sent = "\n".join([CANARY, f"AWS_SECRET_ACCESS_KEY={SECRET_CANARY}", *lines])
        assert answer(device, *GIVEN, "bedrock", stdin=sent, status=1)["http_status"] == 404
        scope = server.requests[-1].headers["authorization"]
        assert f"Credential={CANARY}/" in scope
        assert f"/{region}/bedrock/" in scope


@pytest.mark.parametrize(
    ("sent", "error"),
    [
        pytest.param("", "The key is empty", id="nothing"),
        pytest.param("\nAWS_REGION=a-b", "The key is empty", id="empty-key"),
        pytest.param(f"{CANARY}\n{CANARY}", "is not NAME=value", id="no-name"),
        pytest.param(f"{CANARY}\n={CANARY}", "is not NAME=value", id="empty-name"),
        pytest.param(f"{CANARY}\n{CANARY}=x", "names a variable that", id="unknown-name"),
        pytest.param(f"{CANARY}\nAWS_ACCESS_KEY_ID=x", "names a variable that", id="the-key"),
        pytest.param(f"{CANARY}\nPATH=x", "names a variable that", id="foreign-name"),
        pytest.param(f"{CANARY}\nAWS_REGION=", "AWS_REGION is empty", id="empty-value"),
        pytest.param(f"{CANARY}\nAWS_REGION='{CANARY}'", "no key has", id="quotes"),
        pytest.param(f"{CANARY} x", "no key has", id="blank"),
        pytest.param(CANARY * 3_000, "is longer than", id="too-long"),
    ],
)
def test_an_invalid_key_is_not_sent_and_not_shown(
    device: Device, server: RawServer, sent: str, error: str
) -> None:
    stored = "AWS_SECRET_ACCESS_KEY=s\nAWS_REGION=eu-west-1"
    choose(device, "bedrock", server.url, f"AWS_ACCESS_KEY_ID=old\n{stored}")
    done = device.ctl("model", "test", "--json", *GIVEN, "bedrock", stdin=sent)
    assert done.returncode == 1
    assert error in done.stderr
    assert CANARY[:8] not in done.stdout + done.stderr
    assert server.requests == []


def test_a_model_on_this_machine_is_tested_at_its_stored_address(
    device: Device, server: RawServer
) -> None:
    device.put("/etc/platform/airgap.flag", "")
    choose(device, "local-ollama", key=f"LOCAL_OLLAMA_BASE_URL={server.url}/v1")
    assert answer(device)["endpoint"] == f"{server.url}/v1"
    assert "authorization" not in server.requests[0].headers


def test_key_10_hosted_inference_uses_the_given_or_the_active_model(
    device: Device, server: RawServer
) -> None:
    choose(device, "huggingface", server.url, f"HUGGINGFACE_API_KEY={CANARY}")
    assert "needs the id of a model" in answer(device, status=1)["error"]
    assert answer(device, "--model", "m")["error"] == ""
    device.put("/etc/platform/active-model", "m\n")
    assert answer(device)["error"] == ""


@pytest.mark.parametrize(
    ("active", "secrets", "error"),
    [
        ("", "", "No provider is active on this device"),
        ("nobody", "", "There is no provider with that id on this device"),
        ("openai", "", "OPENAI_API_KEY of OpenAI is not set"),
        ("openai", "OPENAI_API_KEY=", "OPENAI_API_KEY of OpenAI is not set"),
        ("bedrock", "AWS_REGION=a-b", r"AWS_ACCESS_KEY_ID of .* is not set"),
        (
            "bedrock",
            f"AWS_ACCESS_KEY_ID={CANARY}\nAWS_SECRET_ACCESS_KEY={SECRET_CANARY}",
            r"AWS_REGION of .* is not set",
        ),
        ("custom", f"CUSTOM_OPENAI_API_KEY={CANARY}", r"The address of .* is missing"),
    ],
    ids=[
        *("none-active", "unknown-active", "no-key", "empty-key", "no-access-key", "no-region"),
        "no-address",
    ],
)
def test_an_impossible_test_fails_with_a_reason_and_a_hint(
    device: Device, active: str, secrets: str, error: str
) -> None:
    if active:
        choose(device, active, key=secrets)
    done = device.call("model", "test", "--json")
    found = json.loads(done.stdout)
    assert re.fullmatch(error, found["error"])
    assert (found["ok"], found["http_status"], found["endpoint"]) == (False, None, "")
    assert "REGION of" not in error or "--provider bedrock --variable AWS_REGION" in done.stderr


@pytest.mark.parametrize(
    ("record", "content"),
    [
        ("secrets.env", b"OPENAI_API_KEY=a" + b"\0" * (2 << 20)),
        ("active-provider", b"two\nlines\n"),
        *(("active-endpoint", b"\xff\n"), ("active-endpoint", b"ftp://127.0.0.1/\n")),
        ("active-model", b""),
    ],
    ids=["huge-secrets", "two-providers", "binary-endpoint", "ftp-endpoint", "empty-model"],
)
def test_a_broken_record_is_a_failed_test(device: Device, record: str, content: bytes) -> None:
    choose(device, "openai", "http://127.0.0.1:9/v1", f"OPENAI_API_KEY={CANARY}")
    device.put(f"/etc/platform/{record}", content)
    done = device.call("model", "test", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["error"]


def test_key_05_proxies_and_netrc_of_the_environment_are_ignored(
    device: Device, server: RawServer, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    netrc = home / ".netrc"
    netrc.write_text("default login someone password else\n")
    netrc.chmod(0o600)
    proxy = f"http://127.0.0.1:{free_port()}"
    names = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
    device.environment |= dict.fromkeys(names, proxy) | {"HOME": str(home), "NETRC": str(netrc)}
    choose(device, "openai", f"{server.url}/v1", f"OPENAI_API_KEY={CANARY}")
    assert answer(device)["ok"]
    assert server.requests[0].headers["authorization"] == f"Bearer {CANARY}"


def entry(name: str, kind: str, endpoint: str = "") -> dict[str, Any]:
    named = {"id": name, "display_name": name.title(), "key_env_var": f"{name.upper()}_API_KEY"}
    more = {"kind": kind, "endpoint_default": endpoint, "key_format": "", "default_model": "m"}
    return named | more


def catalogue(
    device: Device, kind: str, endpoint: str, more: list[dict[str, Any]] | None = None
) -> None:
    """A catalogue that contains the provider `other`."""
    providers = [entry("other", kind, endpoint), *(more or [])]
    device.put("/etc/platform/providers.json", json.dumps({"providers": providers}))


@pytest.mark.parametrize("given", [False, True], ids=["stored", "given"])
@pytest.mark.parametrize("as_json", [True, False], ids=["json", "people"])
@pytest.mark.parametrize("kind", KINDS)
def test_key_01_the_program_shows_no_secret(
    device: Device, kind: str, as_json: bool, given: bool
) -> None:
    said = f"{CANARY} {SECRET_CANARY}"

    def echo(request: Request, connection: Any) -> None:
        connection.sendall(response(f"{request} {said}".encode(), f"401 {said}", {"X-A": said}))

    keys = f"OTHER_API_KEY={CANARY}\nAWS_SECRET_ACCESS_KEY={SECRET_CANARY}\nAWS_REGION=eu-west-1"
    choose(device, "other", key=keys)
    with RawServer(echo) as server:
        catalogue(device, kind, server.url)
        options = [*(["--json"] if as_json else []), *(["--key-from-stdin"] if given else [])]
        done = device.ctl("model", "test", *options, stdin=CANARY)
        assert len(server.requests) == 1
    assert (done.returncode, "HTTP 401" in done.stderr) == (1, True)
    shown = (done.stdout + done.stderr).lower()
    assert CANARY[:8].lower() not in shown
    assert SECRET_CANARY[:8].lower() not in shown
