"""The states of the key pages: each prepares the stand-in for the control CLI."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from platform_common.control_answers import Model, to_json
from tests.support.control_cli import FakeCtl

LIST = "model list --json"
# The name of a provider may be any text, whoever wrote the catalogue.
HOSTILE = "\"'><script>alert(1)</script><img src=x onerror=alert(1)>{{7*7}}"


def model(
    id_: str, name: str, variable: str, kind: str = "chat-compatible", **more: Any
) -> dict[str, Any]:
    """A provider as in `model list`."""
    usual = {"endpoint": f"https://api.{id_}.example/v1", "variables": [variable]}
    made = Model(id_, name, kind, key_env_var=variable, **(usual | more))
    answer: dict[str, Any] = to_json(made)
    return answer


def _set(prefix: str, **more: Any) -> dict[str, Any]:
    return {"configured": True, "masked_key_prefix": prefix, **more}


AMAZON = model(
    *("bedrock", "Amazon Bedrock", "AWS_ACCESS_KEY_ID", "signed-cloud"),
    masked_key_prefix="AKI…",
    key_format="AKIA..., with a secret access key and a region",
    default_model="anthropic.claude-sonnet-4-6",
    variables=["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"],
)
OPENAI = model(
    *("openai", "OpenAI", "OPENAI_API_KEY", "chat-reference"),
    **_set("sk-pro…", key_format="sk-...", default_model="gpt-4o"),
)
MODELS = [
    model(
        *("openrouter", "OpenRouter", "OPENROUTER_API_KEY"),
        key_format="sk-or-v1-...",
        default_model="anthropic/claude-sonnet-4.6",
    ),
    model(
        *("anthropic", "Anthropic", "ANTHROPIC_API_KEY", "messages-header"),
        **_set("sk-ant…", active=True, key_format="sk-ant-...", default_model="claude-sonnet-4-6"),
    ),
    OPENAI,
    AMAZON,
    model("google-ai-studio", "Google AI Studio", "GOOGLE_AI_STUDIO_API_KEY", "query-key"),
    model(
        *("local-ollama", "Ollama on this device", "LOCAL_OLLAMA_BASE_URL"),
        key_format="The server's address; no key",
        default_model="llama3.2:3b",
        takes_address=True,
    ),
]
# Only the documented members, because any program may replace the control CLI.
_PLAIN = (
    *("id", "display_name", "kind", "configured", "key_env_var", "default_model"),
    "masked_key_prefix",
)


def several(ctl: FakeCtl) -> None:
    """Providers in every state of their keys."""
    ctl.answer(LIST, MODELS)


def _answers(output: object = "", **how: Any) -> Callable[[FakeCtl], None]:
    return lambda ctl: ctl.answer(LIST, output, **how)


def hostile(ctl: FakeCtl) -> None:
    """Names and ids that would break out of text, attributes and addresses."""
    ids = [HOSTILE, "../../system", "javascript:alert(1)", "--help", "", "a b", "x" * 3000]
    entries = [model(id_, HOSTILE, HOSTILE, HOSTILE) for id_ in ids]
    filled = {
        **_set(HOSTILE, active=True),
        "key_format": HOSTILE,
        "endpoint": HOSTILE,
        "default_model": HOSTILE * 10,
        "variables": [HOSTILE, HOSTILE],
    }
    entries.append(model("fine", HOSTILE, HOSTILE, "signed-cloud") | filled)
    entries.append(model("nameless", "", "X_KEY"))
    ctl.answer(LIST, entries)


STATES: Mapping[str, Callable[[FakeCtl], None]] = {
    "several": several,
    # The answer of a program that has none of our additional members.
    "plain": _answers({"providers": [{name: one[name] for name in _PLAIN} for one in MODELS]}),
    # One provider, which is active but has no key.
    "one": _answers([OPENAI | {"configured": False, "masked_key_prefix": "", "active": True}]),
    "empty": _answers([]),
    "failed": _answers(status=1, errors="error: /etc/platform/providers.json: not valid JSON\n"),
    "nonsense": _answers("<html>not found</html>"),
    "hostile": hostile,
}
