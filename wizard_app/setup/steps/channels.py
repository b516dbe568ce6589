"""The channels over which people talk to the gateway."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct

from platform_common.message import Sentence
from platform_common.records.channel_names import MOST_CHANNELS, channel_name, check_channels
from platform_common.records.limits import Limitation, Limits
from platform_common.records.profiles import Profile
from platform_common.validation import check_id, passes
from wizard_app.setup.plan import firewall
from wizard_app.setup.plan.actions import Planned, RunCommand, WriteFile
from wizard_app.setup.plan.firewall import RULES
from wizard_app.setup.plan.phases import Phase
from wizard_app.setup.sentence_list import listed
from wizard_app.setup.steps.base import Accepted, Errors, Form, FormErrors, Question, Step
from wizard_app.setup.steps.profile import ProfileAnswer

_MOST_NAMED = 5
_LIMIT_S = 30.0


class ChannelsAnswer(Struct, frozen=True):
    """Ids of channels, in the order in which the profile lists them."""

    channels: tuple[str, ...]

    def __post_init__(self) -> None:
        """Refuse invalid ids."""
        check_channels(self.channels)


class Channel(NamedTuple):
    """A channel; if the device is too small for it, `because` may say why."""

    id: str
    name: Sentence
    heavy: bool = False
    because: Limitation | None = None


class ChannelsStep(Step[ChannelsAnswer]):
    """The channels over which its owner talks to the assistant."""

    slug = "channels"
    title = Sentence("Choose how to talk to your assistant")
    short = Sentence("Channels")
    answer_type = ChannelsAnswer

    def view(self, asked: Question) -> Mapping[str, Any]:
        profile, limits = _profile(asked), asked.machine.limits
        disabled = limits.capabilities.channels_disabled_by_ram
        supported = dict.fromkeys(profile.channels if profile else ())
        heavy = limits.capabilities.channels_heavy
        return {
            "profile": profile,
            "channels": [
                Channel(one, channel_name(one), heavy=one in heavy)
                for one in supported
                if one not in disabled
            ],
            "disabled": [
                Channel(one, channel_name(one), because=_because(one, limits))
                for one in supported
                if one in disabled
            ],
        }

    def filled(self, answer: ChannelsAnswer) -> Mapping[str, list[str]]:
        return {"channels": list(answer.channels)}

    def parse(self, form: Form, asked: Question) -> Accepted[ChannelsAnswer] | FormErrors:
        profile = _profile(asked)
        if profile is None:
            return FormErrors(
                {"": Sentence("Choose a profile first: it determines which channels are available")}
            )
        chosen = [channel.strip() for channel in form.all("channels") if channel.strip()]
        if (disabled := _disabled(chosen, asked)) is not None:
            return FormErrors({"channels": disabled}, status=422)
        if (unsupported := _unsupported(chosen, profile)) is not None:
            return FormErrors({"channels": unsupported})
        in_order = dict.fromkeys(one for one in profile.channels if one in chosen)
        if len(in_order) > MOST_CHANNELS:
            said = Sentence("Choose at most {most} channels", most=MOST_CHANNELS)
            return FormErrors({"channels": said})
        return Accepted(ChannelsAnswer(tuple(in_order)))

    def check(self, answer: ChannelsAnswer, asked: Question) -> Errors:
        profile = _profile(asked)
        wrong = _disabled(answer.channels, asked)
        if wrong is None and profile is not None:
            wrong = _unsupported(answer.channels, profile)
        return {} if wrong is None else {"channels": wrong}

    def summary(self, answer: ChannelsAnswer, asked: Question) -> Iterable[tuple[Sentence, Any]]:
        names = [channel_name(channel) for channel in answer.channels]
        yield Sentence("Channels"), listed(names) if names else Sentence("Only the private chat")

    def actions(self, answer: ChannelsAnswer, asked: Question) -> Iterable[Planned]:
        profile = _profile(asked)
        inbound = profile.channel_ports if profile else {}
        ports: dict[str, Sentence | None] = dict.fromkeys(sorted(asked.machine.open_ports))
        for channel in answer.channels:
            ports |= dict.fromkeys(inbound.get(channel, ()), channel_name(channel))
        # Last, so that no profile can rename them.
        ports |= firewall.ALWAYS
        rules = WriteFile(RULES, (firewall.ruleset(ports),), note=firewall.ports_note(ports))
        yield Phase.FIREWALL, rules
        yield (Phase.FIREWALL, RunCommand(("nft", "-f", RULES), _LIMIT_S, files=(RULES,)))


def _profile(asked: Question) -> Profile | None:
    """The chosen profile, if it is installed."""
    answer = asked.answers.of(ProfileAnswer)
    return None if answer is None else asked.machine.profile(answer.profile)


def _disabled(chosen: Sequence[str], asked: Question) -> Sentence | None:
    disabled = asked.machine.limits.capabilities.channels_disabled_by_ram
    names = _names([channel for channel in chosen if channel in disabled])
    match names:
        case []:
            return None
        case [name]:
            return Sentence(
                "{name} is not available on this device: it needs more memory", name=name
            )
    return Sentence(
        "{names} are not available on this device: they need more memory", names=listed(names)
    )


def _unsupported(chosen: Sequence[str], profile: Profile) -> Sentence | None:
    """The channels that the profile does not have; invalid ids are not repeated."""
    unknown = [channel for channel in chosen if channel not in profile.channels]
    if not unknown:
        return None
    names = _names([channel for channel in unknown if passes(check_id, channel)])
    if not names:
        return Sentence("Choose from the channels of {profile}", profile=profile.display_name)
    return Sentence(
        "{profile} does not support {names}: choose from its channels",
        profile=profile.display_name,
        names=listed(names),
    )


def _names(channels: Iterable[str]) -> list[Sentence]:
    """The first few names, each once."""
    return [channel_name(channel) for channel in dict.fromkeys(channels)][:_MOST_NAMED]


def _because(channel: str, limits: Limits) -> Limitation | None:
    """The reason in the limits record why the device does not have that channel."""
    return next((one for one in limits.limitations if one.id == f"no-{channel}"), None)
