"""Sends a message: stores it in the history, asks the gateway, stores the answer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from platform_common.errors import PlatformError
from platform_common.message import Sentence
from platform_common.net.errors import ClientGoneError
from platform_common.paths import PROFILES, SECRETS
from platform_common.records import installed_profiles
from platform_common.records.key_store import read_keys
from platform_common.records.profiles import Profile
from platform_common.redaction import Redactor
from platform_common.secret import Secret
from wizard_app.chat.errors import GatewayError
from wizard_app.chat.gateway import CONTEXT_TURNS, ask
from wizard_app.chat.history import SHOWN_TURNS, ChatHistory, Turn, history_of, turn
from wizard_app.setup.settings import WizardSettings
from wizard_app.setup.steps.profile import ProfileAnswer

MOST_AT_ONCE = 8


class Chat:
    """The chat of one device; thread-safe."""

    def __init__(self, settings: WizardSettings) -> None:
        self._settings = settings
        self._slots = threading.BoundedSemaphore(MOST_AT_ONCE)

    def with_profile(self, answer: ProfileAnswer | None) -> Conversation:
        """The conversation with the gateway of the chosen profile, if any."""
        profile, why = None, None
        if answer is None:
            why = Sentence("No profile has been chosen yet, so there is no assistant to talk to")
        else:
            paths = self._settings.reading(PROFILES)
            try:
                profile = installed_profiles.profile(paths, answer.profile)
            except PlatformError as error:
                why = Sentence("The chosen profile cannot be used: {reason}", reason=error.said)
        return Conversation(self, history_of(self._settings.paths, profile), profile, why)

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Reserve one of the messages that may be sent at a time; raises `GatewayError`."""
        if not self._slots.acquire(blocking=False):
            raise GatewayError(
                Sentence("{count} messages are already being answered", count=MOST_AT_ONCE),
                hint=Sentence("Send yours again in a moment."),
            )
        try:
            yield
        finally:
            self._slots.release()

    def token(self, variable: str) -> Secret | None:
        """The token of a gateway, if it can be read."""
        if not variable:
            return None
        try:
            return read_keys(self._settings.reading(SECRETS)).get(variable)
        except PlatformError:
            return None


class ShownTurns(NamedTuple):
    """Turns to show, oldest first, and any problem with reading them."""

    turns: list[Turn]
    problem: Sentence | None = None


class Conversation(NamedTuple):
    """A history and its partner: a profile, or the reason why there is none."""

    chat: Chat
    history: ChatHistory
    profile: Profile | None
    why_nobody: Sentence | None = None

    def said(self) -> ShownTurns:
        """The turns so far."""
        try:
            return ShownTurns(self.history.last())
        except PlatformError as error:
            return ShownTurns(
                [], Sentence("The history cannot be read: {reason}", reason=error.said)
            )

    def message(
        self, text: str, *, streaming: bool = False, is_wanted: Callable[[], bool] | None = None
    ) -> Message:
        """A message to send; the options are those of `gateway.ask`."""
        return Message(self, text, streaming, is_wanted)


class Message:
    """A message being sent: `pieces` sends it, and then `said` has the turns to show."""

    def __init__(
        self,
        conversation: Conversation,
        text: str,
        streaming: bool,
        is_wanted: Callable[[], bool] | None,
    ) -> None:
        self._conversation, self._text = conversation, text
        self._streaming, self._is_wanted = streaming, is_wanted
        self._unsaved: list[Turn] = []
        self._why_unsaved: Sentence | None = None
        self._secrets: list[Secret] = []

    def pieces(self) -> Iterator[str]:
        """Yield the answer as it arrives; afterwards the history has it, or the failure.

        The question is stored first. If the reader leaves, the part received so far is kept.
        """
        before = self._conversation.said().turns
        question = turn("user", self._text)
        self._keep(question)
        came: list[str] = []
        complete, failure = False, None
        try:
            for piece in self._asked([*before, question]):
                came.append(piece)
                yield piece
            complete = True
        except ClientGoneError:
            pass
        except PlatformError as error:
            failure = error
        finally:
            # Even without a word, if the reader left: the page marks the question as stopped.
            if "".join(came).strip() or failure is None:
                self._keep(turn("assistant", "".join(came), stopped=not complete))
            if failure is not None:
                self._keep(turn("assistant", self._in_words(failure), error=True))

    def said(self) -> ShownTurns:
        """All turns, including those that could not be saved."""
        turns, problem = self._conversation.said()
        return ShownTurns([*turns, *self._unsaved][-SHOWN_TURNS:], self._why_unsaved or problem)

    def _asked(self, turns: list[Turn]) -> Iterator[str]:
        chat, _, profile, why_nobody = self._conversation
        if profile is None:
            raise GatewayError(why_nobody or "", hint=Sentence("Choose a profile first."))
        context = [one for one in turns if one.content.strip() and not one.error]
        token = chat.token(profile.chat.token_env)
        if token is not None:
            self._secrets.append(token)
        with chat.slot():
            yield from ask(
                profile,
                context[-CONTEXT_TURNS:],
                token,
                streaming=self._streaming,
                is_wanted=self._is_wanted,
            )

    def _keep(self, said: Turn) -> None:
        # An answer without its question would make no sense.
        if not self._unsaved:
            try:
                self._conversation.history.append(said)
            except PlatformError as error:
                self._why_unsaved = Sentence(
                    "This could not be saved, so you lose it when you leave this page: {reason}",
                    reason=error.said,
                )
            else:
                return
        self._unsaved.append(said)

    def _in_words(self, failure: PlatformError) -> str:
        """The text of a failed turn, masked, because a gateway's message may contain a key."""
        return Redactor(self._secrets).redact(f"{failure.message}. {failure.hint}".rstrip(" "))
