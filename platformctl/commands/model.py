"""`platformctl model`: the providers of models, and their keys."""

from __future__ import annotations

import click

from platform_common.cli.group import Text, print_json, warn
from platform_common.control_answers import Model, to_json
from platform_common.errors import PlatformError, WrongUsageError
from platform_common.paths import Paths
from platformctl.answers import ModelSet
from platformctl.keys import models
from platformctl.keys.typed_key import read_key
from platformctl.printing import as_json, print_table, styled
from platformctl.prompts import agree, ask_secret, at_terminal, yes_option
from platformctl.root_helper.remote_operation import NOTHING


class _Group(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*super().list_commands(ctx), "test"]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name != "test":
            return super().get_command(ctx, cmd_name)
        # Loading HTTP takes 50 ms; the bench row "platformctl model list --json" would miss.
        from platformctl.commands.model_check import command as test_command

        return test_command


@click.group(cls=_Group)
def command() -> None:
    """Show, set and test the keys of the model providers."""


@command.command(
    "list", epilog="\b\nExamples:\n  platformctl model list\n  platformctl model list --json"
)
@as_json
@click.pass_obj
def list_command(paths: Paths, as_json: bool) -> None:
    """Show the providers, and which of them have their keys.

    At most the first six characters of a key are shown.
    """
    listing = models.LIST(paths, NOTHING)
    for problem in listing.problems:
        warn(PlatformError(problem))
    if as_json:
        print_json(to_json(listing.models))
        return
    print_table(
        ("", "ID", "PROVIDER", "KEY", "DEFAULT MODEL"),
        [_row(model) for model in listing.models],
    )


def _row(model: Model) -> tuple[str, ...]:
    if model.configured:
        key = styled(model.masked_key_prefix, "green")
    elif model.masked_key_prefix:
        key = styled(f"{model.masked_key_prefix} incomplete", "yellow")
    else:
        key = styled("not set", dim=True)
    return (
        styled("*" if model.active else " ", "green", bold=True),
        styled(model.id, bold=model.active),
        styled(model.display_name),
        key,
        styled(model.default_model),
    )


@command.command(
    "set",
    epilog="\b\nExamples:\n"
    "  platformctl model set --provider openai\n"
    "  platformctl model set --provider openai --key-from-stdin --yes\n"
    "  platformctl model set --provider bedrock --variable AWS_REGION",
)
@click.option("--provider", "provider_id", type=Text(), required=True, help="Id of the provider.")
@click.option(
    "--variable",
    type=Text(),
    default="",
    help="A variable of the provider other than its key.",
)
@click.option("--key-from-stdin", is_flag=True, help="Read the key from standard input, one line.")
@yes_option
@as_json
@click.pass_obj
def set_command(
    paths: Paths, provider_id: str, variable: str, key_from_stdin: bool, yes: bool, as_json: bool
) -> None:
    """Store the key of a provider, and make it the active provider.

    The key comes from standard input, or from a prompt that does not show it. The
    gateway uses it after a restart. If another provider was active, its chosen model
    and endpoint are removed.
    """
    if not at_terminal() and not (key_from_stdin and yes):
        raise WrongUsageError(
            "There is no terminal to ask on",
            hint="Send the key on standard input, with --key-from-stdin --yes.",
        )
    provider, name = models.named(paths, provider_id, variable)
    agree(f"Store {name} and make {provider.id} the active provider?", yes=yes)
    key = ask_secret(name) if at_terminal() else read_key(0)
    done = models.SET_KEY(paths, models.SetKeyRequest(provider.id, key.reveal(), name))
    if as_json:
        print_json(to_json(done))
    else:
        _print(done)


def _print(done: ModelSet) -> None:
    click.echo(
        styled("Stored", "green")
        + styled(f" {done.variable}; {done.provider} is the active provider.")
    )
    for variable in done.missing:
        click.echo(
            styled("Missing", "yellow")
            + styled(
                f" {variable}: platformctl model set --provider {done.provider}"
                f" --variable {variable}"
            )
        )
    if done.unit:
        click.echo(f"The gateway uses it after a restart: systemctl restart {styled(done.unit)}")
