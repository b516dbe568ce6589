"""`platformctl voice`."""

from __future__ import annotations

import unicodedata

import click

from platform_common.cli.group import Text, print_json
from platform_common.control_answers import VoiceStatus, to_json
from platform_common.errors import PlatformError, WrongUsageError
from platform_common.paths import Paths
from platformctl.printing import as_json, print_facts, styled
from platformctl.prompts import agree, yes_option
from platformctl.root_helper.remote_operation import NOTHING
from platformctl.voice import voice
from platformctl.voice.settings import check_wake_word

_CONSENT = """\
The microphone of this device will be on all the time. Speech near it is turned into
text on this device, by the program and the model that voice.toml names; the sound is
not stored. What follows the wake word goes to the gateway as a message, and from
there to the model provider, like a typed message. `platformctl voice disable`
switches it off.

Does everyone who can be heard here agree?"""
_HINT = "List the microphones with: arecord -L; then set audio_device in voice.toml."


@click.group()
def command() -> None:
    """Show and change the settings of the voice relay."""


@command.command(
    epilog="""\b
Examples:
  platformctl voice status
  platformctl voice status --json
"""
)
@as_json
@click.pass_obj
def status(paths: Paths, *, as_json: bool) -> None:
    """Show the voice settings, and whether the relay runs."""
    found = voice.status(paths)
    if as_json:
        print_json(to_json(found))
    else:
        _print(found)


@command.command(
    epilog="""\b
Examples:
  platformctl voice check
  platformctl voice check --json
"""
)
@as_json
@click.pass_obj
def check(paths: Paths, *, as_json: bool) -> None:
    """Listen for a second, and report whether the microphone works.

    Only the loudness is measured; the sound is not stored.
    """
    found = voice.CHECK(paths, NOTHING)
    if as_json:
        print_json(to_json(found))
    if not found.ok:
        raise PlatformError(found.error, hint=_HINT)
    if not as_json:
        print_facts(
            (
                ("Microphone", styled(found.device)),
                ("Loudest sound", styled(f"{found.peak_dbfs:.1f} dB below full scale")),
            )
        )


@command.command(
    epilog="""\b
Examples:
  platformctl voice enable
  platformctl voice enable --yes
"""
)
@yes_option
@click.pass_obj
def enable(paths: Paths, *, yes: bool) -> None:
    """Let the device listen for its wake word, after asking."""
    voice.check_supported(paths)
    agree(_CONSENT, yes=yes)
    _say("Voice is on", voice.SWITCH(paths, voice.Switch(on=True)))


@command.command(
    epilog="""\b
Example:
  platformctl voice disable
"""
)
@click.pass_obj
def disable(paths: Paths) -> None:
    """Switch the microphone off and stop the relay."""
    _say("Voice is off", voice.SWITCH(paths, voice.Switch(on=False)))


@command.command(
    "set-wake-word",
    epilog="""\b
Example:
  platformctl voice set-wake-word computer
""",
)
@click.argument("word", type=Text())
@click.pass_obj
def set_wake_word(paths: Paths, *, word: str) -> None:
    """Change the word that the device listens for.

    One of 1 to 32 characters: letters, digits, hyphens and apostrophes; case does not count.
    """
    word = unicodedata.normalize("NFC", word)
    try:
        check_wake_word(word)
    except ValueError as error:
        raise WrongUsageError(f"The wake word {error}") from None
    voice.change(paths, {("voice", "wake_word"): word})
    click.echo(f"The wake word is {styled(word, bold=True)}.")
    if voice.status(paths).service_active:
        click.echo(f"The relay uses it after: systemctl restart {voice.UNIT}")


def _say(what: str, switched: voice.Switched) -> None:
    click.echo(f"{what}.")
    if not switched.service:
        click.echo(f"The service {voice.UNIT} was not changed: systemd does not run this device.")


def _print(found: VoiceStatus) -> None:
    print_facts(
        (
            ("Voice", styled("on", "green") if found.voice.enabled else styled("off")),
            ("Relay", styled("active", "green") if found.service_active else styled("not active")),
            ("This device", styled("can" if found.supported else "cannot") + " hear a wake word"),
            ("Wake word", styled(found.voice.wake_word, bold=True)),
            ("Speech to text", styled(f"{found.voice.stt_model}, {found.stt.model_path}")),
            ("", styled(found.stt.binary, dim=True)),
            ("Text to speech", styled(f"{found.voice.tts_voice}, {found.tts.model_path}")),
            ("", styled(found.tts.binary, dim=True)),
            ("Audio device", styled(found.voice.audio_device)),
            ("Sends to", styled(found.relay.socket_path)),
            ("As", styled(f"{found.relay.hook_kind} from {found.relay.source_tag}")),
        )
    )
