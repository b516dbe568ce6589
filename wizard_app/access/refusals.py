"""The pages for visitors who are not let in: the reason, and how to get in."""

from __future__ import annotations

from typing import NamedTuple

from platform_common.message import Sentence


class Refusal(NamedTuple):
    """A refusal page; `commands` of `wizard-app` help, each with its effect."""

    status: int
    title: Sentence
    what: Sentence
    commands: tuple[str, ...] = ("new-token",)


LAUNCH_URL, NEW_TOKEN = "launch-url", "new-token"
NOTHING = Refusal(
    401,
    Sentence("You need a link to open setup"),
    Sentence("When setup started, the device showed a link that lets one browser in."),
    (LAUNCH_URL, NEW_TOKEN),
)
USED = Refusal(
    401,
    Sentence("This link has already been used"),
    Sentence("Each link works once, for one browser. Creating a new one takes a moment."),
)
WRONG = Refusal(
    401,
    Sentence("This link is not valid"),
    Sentence("Part of it may be missing, or a newer link may have replaced it."),
    (LAUNCH_URL, NEW_TOKEN),
)
ENDED = Refusal(
    401,
    Sentence("Your session has ended. Your answers are saved."),
    Sentence(
        "A session lasts one hour, and ends when setup restarts. A new link takes you back "
        "to where you were."
    ),
)
EXPOSED = Refusal(
    403,
    Sentence("Open this page over https"),
    Sentence(
        "This connection is not encrypted, so the link was not used and still works. Change "
        "http:// at the start of the address to https://, and open it again."
    ),
    (),
)
SIGNED_OUT = Refusal(
    200,
    Sentence("You are signed out"),
    Sentence(
        "This browser can no longer open setup. What you set up keeps running, and a new "
        "link takes you back to the last page."
    ),
)
OPEN = Refusal(
    200,
    Sentence("Nobody is signed in here"),
    Sentence("This setup was started without a link, so there is no session to end."),
    (),
)
