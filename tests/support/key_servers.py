"""Real servers that check keys: a proxy with the protocol of OpenAI, and moto's Amazon."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import requests

from tests.support.environments import environment_of
from tests.support.network import free_port, listening
from tests.support.running import printed

_ENVIRONMENT = "key-test-servers"
_PROXY = """
host = "127.0.0.1"
port = {port}
[connections.upstream]
api_type = "openai"
api_base = "{upstream}"
api_key = "none"
[routing]
"small" = "upstream.small"
"large" = "upstream.large"
[groups.default]
api_keys = ["{key}"]
"""
# moto finds the service in the scope, and does not check the first calls.
_FIRST_CALLS = {
    "Authorization": "AWS4-HMAC-SHA256 Credential=x/20260101/us-east-1/iam/aws4_request,"
    " SignedHeaders=host, Signature=0"
}
_POLICY = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": "bedrock:*", "Resource": "*"}],
}
# Sign as botocore does, with the time and the headers of another signature.
_SIGN = """
import datetime, json, sys
import botocore.auth, botocore.awsrequest, botocore.credentials
def signed(given):
    at = datetime.datetime.strptime(given["at"], "%Y%m%dT%H%M%SZ")
    botocore.auth.get_current_datetime = lambda **_: at
    request = botocore.awsrequest.AWSRequest("GET", given["url"], headers=given["headers"])
    credentials = botocore.credentials.Credentials(given["access_key"], given["secret_key"])
    botocore.auth.SigV4Auth(credentials, "bedrock", given["region"]).add_auth(request)
    return request.headers["Authorization"]
print(json.dumps({name: signed(one) for name, one in json.load(sys.stdin).items()}))
"""


@dataclass(frozen=True)
class OpenAiProxy:
    """A running lm-proxy that lists two models for clients with the key."""

    endpoint: str
    key: str


@dataclass(frozen=True)
class Amazon:
    """A running moto with one user, who may use Bedrock."""

    endpoint: str
    access_key: str
    secret_key: str


@contextlib.contextmanager
def openai_proxy(folder: Path, upstream: str = "http://127.0.0.1:9/") -> Iterator[OpenAiProxy]:
    """Run lm-proxy until the block ends; `folder` takes its files, `upstream` answers."""
    key, port = "sk-right-0123456789abcdef", free_port()
    configuration = folder / "proxy.toml"
    configuration.write_text(_PROXY.format(port=port, key=key, upstream=upstream))
    with _running(folder, port, "lm-proxy", "--config", configuration, "--env", folder / "none"):
        yield OpenAiProxy(f"http://127.0.0.1:{port}/v1", key)


@contextlib.contextmanager
def amazon(folder: Path) -> Iterator[Amazon]:
    """Run moto until the block ends; `folder` takes its output."""
    port = free_port()
    endpoint = f"http://127.0.0.1:{port}"
    with _running(folder, port, "moto_server", "-p", port, INITIAL_NO_AUTH_ACTION_COUNT="3"):
        _iam(endpoint, Action="CreateUser")
        made = _iam(endpoint, Action="CreateAccessKey")
        policy = json.dumps(_POLICY)
        _iam(endpoint, Action="PutUserPolicy", PolicyName="bedrock", PolicyDocument=policy)
        pair = re.findall(r"<(?:AccessKeyId|SecretAccessKey)>(.*?)<", made)
        yield Amazon(endpoint, *pair)


def botocore_signatures(asked: Mapping[str, Mapping[str, object]]) -> dict[str, str]:
    """The `Authorization` headers that botocore creates for GET requests, each at the time `at`."""
    python = environment_of(_ENVIRONMENT) / "bin/python"
    found: dict[str, str] = json.loads(printed(python, "-c", _SIGN, stdin=json.dumps(asked)))
    return found


@contextlib.contextmanager
def _running(folder: Path, port: int, name: str, *args: object, **env: str) -> Iterator[None]:
    program = environment_of(_ENVIRONMENT) / "bin" / name
    log = folder / f"{name}.log"
    with listening(port, log, program, *map(str, args), cwd=folder, env=os.environ | env):
        yield


def _iam(endpoint: str, **fields: str) -> str:
    form = {"Version": "2010-05-08", "UserName": "agent", **fields}
    answer = requests.post(endpoint, data=form, headers=_FIRST_CALLS, timeout=10)
    answer.raise_for_status()
    return answer.text
