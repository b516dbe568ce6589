"""What a provider's response says about a key."""

from __future__ import annotations

from datetime import date

import msgspec
import pytest

from platform_common.net.client import Answer
from platform_common.provider_key import result as key_verdict
from platform_common.provider_key.request import KeyRequest
from platform_common.provider_key.result import KeyCheck, verdict
from platform_common.records.catalogue import Kind
from platform_common.secret import Secret
from tests.support.key_tests import credentials, provider

ASKED = KeyRequest("https://api.example/v1", "https://api.example/v1/models", {})


def judged(answer: Answer, kind: Kind = "chat-compatible", **changed: object) -> KeyCheck:
    judge = msgspec.structs.replace(provider(kind), **changed)
    return verdict(judge, credentials(kind), ASKED, answer).check


@pytest.mark.parametrize(
    ("body", "models", "said"),
    [
        (b'{"object": "list", "data": [{"id": "a"}]}', 1, "1 model available"),
        (b'{"data": [{"id": "a"}, {"id": "b"}], "has_more": false}', 2, "2 models available"),
        (b'{"data": [{}, {}], "has_more": true}', 2, "2 or more models available"),
        (b'{"models": [{"name": "a"}], "nextPageToken": "x"}', 1, "1 or more models available"),
        (b'{"modelSummaries": [{}, {}, {}]}', 3, "3 models available"),
        (b'[{"id": "a"}, {"id": "b"}]', 2, "2 models available"),
        (b'{"data": []}', 0, "0 models available"),
        (b'{"data": [' + b"{}," * 1999 + b"{}]}", 2000, "2,000 models available"),
    ],
    ids=["one", "two", "more", "next-page", "summaries", "bare-list", "none", "thousands"],
)
def test_a_list_of_models_proves_the_key(body: bytes, models: int, said: str) -> None:
    check = judged(Answer(200, body=body))
    assert (check.ok, check.proved, check.models) == (True, True, models)
    assert check.message == f"The key works. {said}"


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"<html>Welcome</html>", b"null", b"1", b'"data"', b"{}", b'{"data": null}'),
        *(b'{"data": 1}', b'{"data": ["a"]}', b'{"error": {"message": "invalid key"}}', b"\xff"),
        *(b"[" * 100_000, b'{"data": [{"a": "\xff"}]', b'{"data": [{}]} x', b'{"data": [{}'),
    ],
    ids=[
        *("empty", "html", "null", "number", "text", "no-list", "null-list", "number-as-list"),
        *("names", "error-inside", "not-utf-8", "deep", "broken-text", "trailing-text", "cut-off"),
    ],
)
def test_key_08_a_response_without_a_list_of_models_passes_with_a_note(body: bytes) -> None:
    check = judged(Answer(200, body=body))
    assert (check.ok, check.proved, check.models) == (True, False, None)
    assert check.message == "api.example accepted the request but did not return a list of models"


def test_a_public_list_does_not_prove_the_key() -> None:
    check = judged(Answer(200, body=b'{"data": [{}]}'), models_public=True)
    assert (check.ok, check.proved, check.models) == (True, False, 1)
    assert check.message == (
        "Reached Test Cloud, but it lists models without a key, so the key could not be proved"
    )


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (101, "api.example answered with HTTP 101"),
        (304, "api.example redirects elsewhere; the key was not sent there (HTTP 304)"),
        (400, "api.example answered with HTTP 400"),
        (401, "Test Cloud rejected this key (HTTP 401)"),
        (402, "api.example answered with HTTP 402"),
        (403, "Test Cloud rejected this key (HTTP 403)"),
        (
            404,
            "There is no OpenAI-style service at this address: api.example answered with HTTP 404",
        ),
        (418, "api.example answered with HTTP 418"),
        (
            429,
            "Test Cloud is limiting requests right now, so the key could not be checked (HTTP 429)",
        ),
        (500, "Test Cloud has a problem (HTTP 500)"),
        (503, "Test Cloud has a problem (HTTP 503)"),
        (999, "api.example answered with HTTP 999"),
    ],
)
def test_every_other_status_fails_with_its_explanation(status: int, message: str) -> None:
    check = judged(Answer(status))
    assert (check.ok, check.proved, check.http_status) == (False, False, status)
    assert check.message == message
    assert check.hint


def test_each_kind_of_provider_has_its_own_status_for_a_rejected_key() -> None:
    check = judged(Answer(400), "query-key")
    assert check.message == "Test Cloud rejected this key (HTTP 400)"
    assert "(sk-...)" in judged(Answer(401), key_format="sk-...").hint


def test_a_model_on_this_machine_passes_without_a_key_and_fails_if_it_requires_one() -> None:
    check = judged(Answer(200, body=b'{"data": [{}]}'), key_env_var="HOME_BASE_URL")
    assert (check.ok, check.proved) == (True, True)
    assert check.message == "The server answers. 1 model available"
    check = judged(Answer(401), key_env_var="HOME_BASE_URL")
    assert check.message == "api.example requires a key, but Test Cloud has none (HTTP 401)"


_ONWARD = {
    "https://www.api.example/v1/models?x=1": "to https://www.api.example",
    "http://10.0.0.1:8080/": "to http://10.0.0.1:8080",
}
_ELSEWHERE = (
    *("/login", "", "ftp://files.example/", "https://user:word@api.example/", "https://[broken/"),
    *(f"https://{'x' * 300}.example/", "https://sk-cAnArY%2f%2B0123456789.example/"),
    "https://longenough.example/",
)


@pytest.mark.parametrize(
    ("location", "onward"), [*_ONWARD.items(), *((place, "elsewhere") for place in _ELSEWHERE)]
)
def test_key_04_a_redirect_names_the_host_and_never_a_key(location: str, onward: str) -> None:
    found = credentials() | {"OTHER": Secret("LongEnough")}
    check = verdict(provider(), found, ASKED, Answer(301, location=location)).check
    assert check.message == (
        f"api.example redirects {onward}; the key was not sent there (HTTP 301)"
    )


def test_clk_01_a_rejected_signature_is_explained_by_a_wrong_clock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(key_verdict, "today", lambda: date(1970, 1, 1))
    check = judged(Answer(403), "signed-cloud")
    assert (check.ok, check.http_status) == (False, 403)
    assert check.message.startswith("The device's clock is wrong (")
