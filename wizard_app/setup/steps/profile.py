"""The profile that the device runs: its gateway and everything that belongs to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from platform_common.formats.decode import check_member
from platform_common.message import Sentence
from platform_common.paths import ACTIVE_PROFILE
from platform_common.records.channel_names import channel_name
from platform_common.validation import check_id
from wizard_app.setup.plan.actions import Planned, RunCommand, write
from wizard_app.setup.plan.phases import Phase
from wizard_app.setup.steps.base import Accepted, Errors, Form, FormErrors, Question, Step

# systemd allows a unit 90 s to start and 90 s to stop; a restart is both.
_LIMIT_S = 200.0


class ProfileAnswer(Struct, frozen=True):
    """The id of an installed profile."""

    profile: str

    def __post_init__(self) -> None:
        """Refuse what can be no id."""
        check_member("profile", check_id, self.profile)


class ProfileStep(Step[ProfileAnswer]):
    """A choice among the installed profiles."""

    slug = "profile"
    title = Sentence("Choose your assistant")
    short = Sentence("Profile")
    answer_type = ProfileAnswer

    def view(self, asked: Question) -> Mapping[str, Any]:
        return {
            "profiles": asked.machine.profiles,
            "folder": asked.machine.profiles_folder,
            "limits": asked.machine.limits,
            "channel_name": channel_name,
        }

    def filled(self, answer: ProfileAnswer) -> Mapping[str, list[str]]:
        return {"profile": [answer.profile]}

    def suggested(self, asked: Question) -> Mapping[str, list[str]]:
        found = [one.id for one in asked.machine.profiles]
        return {"profile": found if len(found) == 1 else []}

    def parse(self, form: Form, asked: Question) -> Accepted[ProfileAnswer] | FormErrors:
        if not asked.machine.profiles:
            return FormErrors(
                {"": Sentence("No profile is installed, so there is nothing to select")}
            )
        wanted = form.get("profile")
        chosen = asked.machine.profile(wanted)
        if chosen is None:
            gone = Sentence("Select a profile that is installed")
            return FormErrors({"profile": gone if wanted else Sentence("Select a profile")})
        return Accepted(ProfileAnswer(chosen.id))

    def check(self, answer: ProfileAnswer, asked: Question) -> Errors:
        if asked.machine.profile(answer.profile) is None:
            return {
                "profile": Sentence(
                    "The profile {name} is no longer installed: select another one",
                    name=answer.profile,
                )
            }
        return {}

    def summary(self, answer: ProfileAnswer, asked: Question) -> Iterable[tuple[Sentence, Any]]:
        found = asked.machine.profile(answer.profile)
        yield Sentence("Profile"), found.display_name if found else answer.profile

    def actions(self, answer: ProfileAnswer, asked: Question) -> Iterable[Planned]:
        yield Phase.SELECTION, write(ACTIVE_PROFILE.device, answer.profile)
        chosen = asked.machine.profile(answer.profile)
        if chosen is None:
            return
        others = {one.unit for one in asked.machine.profiles} - {chosen.unit}
        for unit in sorted(filter(asked.machine.is_enabled, others)):
            # The gateway of an earlier choice; two gateways might use the same ports.
            stop = ("systemctl", "disable", "--now", unit)
            yield Phase.GATEWAY, RunCommand(stop, _LIMIT_S)
        for words in (("enable", "--now"), ("restart",)):
            yield Phase.GATEWAY, RunCommand(("systemctl", *words, chosen.unit), _LIMIT_S)
