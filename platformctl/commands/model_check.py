"""`platformctl model test`."""

from __future__ import annotations

import click

from platform_common.cli.group import Text, print_json, warn
from platform_common.control_answers import ModelTest, to_json
from platform_common.errors import PlatformError
from platform_common.paths import Paths
from platformctl.keys import check as key_check
from platformctl.keys.typed_key import GivenKey, read_given
from platformctl.printing import as_json, print_facts, styled
from platformctl.prompts import ask_secret, at_terminal


@click.command(
    "test",
    epilog="\b\nExamples:\n"
    "  platformctl model test\n"
    "  platformctl model test --provider openrouter --json\n"
    "  platformctl model test --provider openai --key-from-stdin",
)
@click.option(
    "--provider",
    "provider_id",
    type=Text(),
    default="",
    help="Id of the provider, the active one by default.",
)
@click.option(
    "--model", type=Text(), default="", help="Model to test with, if the provider needs one."
)
@click.option(
    "--key-from-stdin",
    is_flag=True,
    help="Test the key on standard input instead; further lines may be NAME=value.",
)
@as_json
@click.pass_obj
def command(
    paths: Paths, provider_id: str, model: str, key_from_stdin: bool, as_json: bool
) -> None:
    """Ask a provider whether it accepts the stored key, or another one.

    Sends one request, which lists its models and costs nothing; ends within ten seconds.
    """
    given = _given() if key_from_stdin else None
    provider_id, check = key_check.run(paths, provider_id, model, given)
    if as_json:
        print_json(
            to_json(
                ModelTest(
                    provider=provider_id,
                    endpoint=check.endpoint,
                    http_status=check.http_status,
                    elapsed_ms=check.elapsed_ms,
                    ok=check.ok,
                    error="" if check.ok else check.message,
                    warning=check.message if check.ok and not check.proved else "",
                )
            )
        )
    elif check.endpoint:
        answer = "none" if check.http_status is None else f"HTTP {check.http_status}"
        print_facts(
            [
                ("Provider", styled(provider_id, bold=True)),
                ("Address", styled(check.endpoint)),
                ("Answer", styled(f"{answer}, after {check.elapsed_ms:,} ms")),
            ]
        )
    if not check.ok:
        raise PlatformError(check.message, hint=check.hint)
    if not check.proved:
        warn(PlatformError(check.message, hint=check.hint))
    elif not as_json:
        click.echo(styled(f"{check.message}.", "green"))


def _given() -> GivenKey:
    return GivenKey(ask_secret("Key"), {}) if at_terminal() else read_given(0)
