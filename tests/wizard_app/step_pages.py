"""The page of one step, for tests that send forms to it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from tests.support import wizard_secrets

Form = Mapping[str, Any]


class StepPage(NamedTuple):
    """The page of a step, its stored answers, and the secrets that the wizard holds for it."""

    client: FlaskClient
    slug: str
    state_file: Path

    @property
    def text(self) -> str:
        """The current page."""
        return self.client.get(f"/wizard/{self.slug}").text

    @property
    def review(self) -> str:
        """The review page."""
        return self.client.get("/wizard/review").text

    @property
    def stored(self) -> dict[str, Any]:
        """The answers in the state file; empty if there is no file yet."""
        if not self.state_file.exists():
            return {}
        answers: dict[str, Any] = json.loads(self.state_file.read_bytes())["answers"]
        return answers

    @property
    def held(self) -> dict[str, str]:
        """The secrets in memory."""
        return wizard_secrets.held(self.client, self.slug)

    def send(self, form: Form, **fields: Any) -> TestResponse:
        """Send a form with these fields changed."""
        return self.client.post(f"/wizard/{self.slug}", data={**form, **fields})

    def accept(self, form: Form, **fields: Any) -> str:
        """Send a form that must be accepted; return the address that it redirects to."""
        answer = self.send(form, **fields)
        assert answer.status_code == 302, _in_short(form, fields)
        assert answer.location is not None
        return answer.location

    def refuse(self, form: Form, *said: str, status: int = 200, **fields: Any) -> str:
        """Send a form that must be refused with these messages; return the page."""
        before, sent = (self.stored, self.held), _in_short(form, fields)
        answer = self.send(form, **fields)
        assert answer.status_code == status, sent
        assert answer.text.count('<div class="error"') == 1, sent
        # In the summary and at the field.
        assert [words for words in said if answer.text.count(words) != 2] == [], sent
        assert (self.stored, self.held) == before
        return answer.text


def _in_short(form: Form, fields: Form) -> str:
    return ascii({**form, **fields})[:500]
