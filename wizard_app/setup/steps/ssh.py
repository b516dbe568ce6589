"""Who may log in over SSH."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from msgspec import Struct

from platform_common.formats.decode import check_member
from platform_common.message import Sentence
from platform_common.paths import AGENT_HOME
from wizard_app.setup import ssh_keys
from wizard_app.setup.device_facts import DeviceFacts
from wizard_app.setup.plan.actions import AddKeys, Planned
from wizard_app.setup.plan.phases import Phase
from wizard_app.setup.ssh_keys import MOST_KEYS, Key
from wizard_app.setup.steps.base import Accepted, CheckResult, Form, FormErrors, Question, Step

_MOST_SHOWN = 10


class SshAnswer(Struct, frozen=True):
    """Public keys, one line each as in `authorized_keys`."""

    ssh_keys: tuple[str, ...]

    def __post_init__(self) -> None:
        """Refuse invalid public keys, wherever they come from."""
        if len(self.ssh_keys) > MOST_KEYS:
            raise ValueError(f"ssh_keys: must be at most {MOST_KEYS}")
        for number, line in enumerate(self.ssh_keys):
            check_member(f"ssh_keys[{number}]", ssh_keys.check_line, line)


class SshStep(Step[SshAnswer]):
    """The SSH keys that may log in.

    They are typed, or fetched from a code host and then ticked: `fetched` has their lines.
    `looked_up` is the last user name that was fetched.
    """

    slug = "ssh"
    title = Sentence("Add SSH keys (optional)")
    short = Sentence("SSH keys")
    answer_type = SshAnswer

    def view(self, asked: Question) -> Mapping[str, Any]:
        answer = asked.answers.of(SshAnswer)
        return {
            "host": asked.machine.code_host,
            "examined": asked.machine.examine,
            "stored": asked.machine.examine(answer.ssh_keys) if answer else (),
            "offered": (),
            "left_out": 0,
            "looked_up": "",
        }

    def filled(self, answer: SshAnswer) -> Mapping[str, list[str]]:
        return {"ssh_keys": ["\n".join(answer.ssh_keys)]}

    def typed(self, form: Form) -> Mapping[str, list[str]]:
        shown = {
            name: [ssh_keys.without_private(form.raw(name))]
            for name in ("ssh_keys", "code_host_user", "looked_up")
        }
        return shown | {"fetched": _fit(form)}

    def parse(self, form: Form, asked: Question) -> Accepted[SshAnswer] | FormErrors:
        found = list(ssh_keys.lines(form.raw("ssh_keys")))
        if (private := ssh_keys.private_among(found)) is not None:
            return FormErrors({"ssh_keys": private})
        user = form.get("code_host_user")
        # A user who types a name and continues without fetching wants its keys too.
        if form.has("fetch") or user not in ("", form.get("looked_up")):
            return _fetched(user, form, asked.machine)
        if (wrong := ssh_keys.wrong_among(found)) is not None:
            return FormErrors({"ssh_keys": wrong})
        keys = ssh_keys.stored([*(line.text for line in found), *_fit(form)])
        if len(keys) > MOST_KEYS:
            many = Sentence(
                "These are {count} keys, but you can add only {most}",
                count=len(keys),
                most=MOST_KEYS,
            )
            return FormErrors({"ssh_keys": many})
        return Accepted(SshAnswer(keys), test=partial(_examined, keys, asked.machine))

    def summary(self, answer: SshAnswer, asked: Question) -> Iterable[tuple[Sentence, Any]]:
        if not answer.ssh_keys:
            yield self.short, Sentence("None: you won't be able to log in over SSH")
        for key in asked.machine.examine(answer.ssh_keys[:_MOST_SHOWN]):
            yield Sentence("SSH key"), _described(key)
        if (more := len(answer.ssh_keys) - _MOST_SHOWN) > 0:
            yield Sentence("More keys"), more

    def actions(self, answer: SshAnswer, asked: Question) -> Iterable[Planned]:
        if answer.ssh_keys:
            yield Phase.SSH, AddKeys(f"{AGENT_HOME}/.ssh/authorized_keys", answer.ssh_keys)


def _fit(form: Form) -> list[str]:
    """The ticked lines, without invalid ones, which our page cannot have offered."""
    return [line for line in form.all("fetched") if ssh_keys.wrong_with(line) is None]


def _fetched(user: str, form: Form, machine: DeviceFacts) -> FormErrors:
    """The page with the keys of `user` to tick, beside those already ticked."""
    found = machine.keys_of(user)
    looked_up = ssh_keys.without_private(user)
    if isinstance(found, Sentence):
        return FormErrors({"code_host_user": found}, more={"looked_up": looked_up})
    offered = ssh_keys.stored([*_fit(form), *found.keys])
    return FormErrors(more={"offered": offered, "left_out": found.left_out, "looked_up": looked_up})


def _examined(keys: tuple[str, ...], machine: DeviceFacts) -> CheckResult:
    """Accept every line; the note names those that this device's `ssh-keygen` refuses."""
    doubtful = sum(key.doubtful for key in machine.examine(keys))
    if not doubtful:
        return CheckResult()
    note = Sentence(
        "The keys are kept, but this device's ssh-keygen does not recognise {count} of them. "
        "Check them, or logging in may not work.",
        count=doubtful,
    )
    return CheckResult(note=note, doubtful=True)


def _described(key: Key) -> Sentence | str:
    parts = [key.comment, key.kind or key.algorithm, key.fingerprint]
    words = " ".join(filter(None, parts))
    return Sentence("{key} (not recognised by ssh-keygen)", key=words) if key.doubtful else words
