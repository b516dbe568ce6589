"""The first step: the name and the time zone of the device."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from platform_common.formats.decode import check_member
from platform_common.message import Sentence
from platform_common.paths import HOSTNAME, TIME_ZONE
from wizard_app.setup.device_facts import zones
from wizard_app.setup.plan.actions import Planned, RunCommand, write
from wizard_app.setup.plan.phases import Phase
from wizard_app.setup.steps.base import Accepted, Errors, Form, FormErrors, Question, Step

LONGEST_NAME = 63
_NAME = re.compile(r"[a-z0-9-]+")
_ZONE = re.compile(r"[A-Za-z0-9_+-]+(?:/[A-Za-z0-9_+-]+)*")
_LONGEST_ZONE = 64
_LIMIT_S = 30.0
# Letters whose usual transliteration is not just the base letter.
_SPELT = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss"})


class SystemAnswer(Struct, frozen=True):
    """A DNS label (RFC 1035) and a name of the time zone database."""

    hostname: str
    timezone: str

    def __post_init__(self) -> None:
        """Refuse invalid names, wherever they come from."""
        if (problem := _problem_of_name(self.hostname)) is not None:
            raise ValueError(f"hostname: {problem}")
        check_member("timezone", _check_zone, self.timezone)


class SystemStep(Step[SystemAnswer]):
    """The host name and the time zone."""

    slug = "system"
    title = Sentence("Name this device")
    short = Sentence("Device")
    answer_type = SystemAnswer

    def view(self, asked: Question) -> Mapping[str, Any]:
        suggested = asked.answers.of(SystemAnswer) is None
        return {"zones": sorted(zones()), "better_name": "", "suggested": suggested}

    def filled(self, answer: SystemAnswer) -> Mapping[str, list[str]]:
        return {"hostname": [answer.hostname], "timezone": [answer.timezone]}

    def suggested(self, asked: Question) -> Mapping[str, list[str]]:
        name = asked.machine.name.partition(".")[0].lower()
        fits = _problem_of_name(name) is None and name != "localhost"
        return {"hostname": [name if fits else ""], "timezone": [asked.machine.time_zone]}

    def parse(self, form: Form, asked: Question) -> Accepted[SystemAnswer] | FormErrors:
        # The button with a suggested name sends it in place of the typed one.
        name = form.get("better_name") or _line(form, "hostname")
        zone = _line(form, "timezone")
        errors = {}
        if (problem := _problem_of_name(name)) is not None:
            errors["hostname"] = problem
        if zone not in zones():
            errors["timezone"] = Sentence("Enter a time zone, like Europe/Berlin")
        if errors:
            return FormErrors(errors, more={"better_name": _better_name(name)})
        return Accepted(SystemAnswer(name, zone))

    def check(self, answer: SystemAnswer, asked: Question) -> Errors:
        if answer.timezone not in zones():
            return {"timezone": Sentence("This device no longer knows the time zone")}
        return {}

    def summary(self, answer: SystemAnswer, asked: Question) -> Iterable[tuple[Sentence, Any]]:
        yield Sentence("Name"), answer.hostname
        yield Sentence("Time zone"), answer.timezone

    def actions(self, answer: SystemAnswer, asked: Question) -> Iterable[Planned]:
        name, zone = answer.hostname, answer.timezone
        # Before the file: otherwise systemd takes the name for set; the kernel keeps the old one.
        set_name = ("hostnamectl", "set-hostname", "--static", name)
        yield Phase.SYSTEM, RunCommand(set_name, _LIMIT_S)
        yield Phase.SYSTEM, write(HOSTNAME, name)
        yield Phase.SYSTEM, write(TIME_ZONE, zone)
        yield Phase.SYSTEM, RunCommand(("timedatectl", "set-timezone", zone), _LIMIT_S)


def _line(form: Form, field: str) -> str:
    """A field without the blanks that phone keyboards add; line feeds are kept."""
    return form.raw(field).strip(" ")


def _problem_of_name(name: str) -> Sentence | None:
    if not name:
        return Sentence("Enter a device name")
    if len(name) > LONGEST_NAME:
        return Sentence("Device name must be 63 characters or fewer")
    if not _NAME.fullmatch(name):
        return Sentence("Device name can only contain a to z, 0 to 9 and hyphens")
    if name.startswith("-") or name.endswith("-"):
        return Sentence("Device name cannot start or end with a hyphen")
    return None


def _better_name(name: str) -> str:
    """Suggest a valid name close to this one; empty if it is valid or nothing would be left."""
    plain = unicodedata.normalize("NFKD", name.lower().translate(_SPELT))
    plain = "".join(one for one in plain if not unicodedata.combining(one))
    better = re.sub(r"[^a-z0-9]+", "-", plain.lower())[:LONGEST_NAME].strip("-")
    return better if better != name else ""


def _check_zone(zone: str) -> None:
    if len(zone) > _LONGEST_ZONE or not _ZONE.fullmatch(zone):
        raise ValueError("must be a name of the time zone database, such as Europe/Berlin")
