"""Credentials of a tunnel: any input gives a safe name or an error message, and nothing else."""

from __future__ import annotations

import json
import re

from hypothesis import example
from hypothesis import strategies as st

from platform_common.formats.decode import shaped
from platform_common.message import Sentence
from tests.fuzz.conftest import Fuzz
from tests.support.mutations import mutations
from tests.support.tunnel_credentials import BAD_NAMES, CANARY, GOOD, ODD, credentials
from wizard_app.setup.steps.tunnel import TunnelAnswer, tunnel_of

SAFE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")
_LONGEST = 300
_SEEDS = [text.encode() for text, _ in (*GOOD.values(), *ODD.values()) if len(text) < 1000]
_TOKENS = [b'"TunnelID"', b'"TunnelName"', b"--flag", b"../", b"..", *map(str.encode, BAD_NAMES)]


def name_or_sentence(data: bytes) -> str | None:
    """The name of the tunnel, if there is one; fails for anything harmful."""
    found = tunnel_of(data)
    if isinstance(found, Sentence):
        said = str(found)
        assert said.isprintable()
        assert len(said) < _LONGEST
        assert CANARY not in said
        return None
    assert SAFE.fullmatch(found)
    members = json.loads(data)
    assert found in (members.get("TunnelName"), members.get("TunnelID"))
    assert shaped({"tunnel_choice": "named", "tunnel_name": found}, TunnelAnswer)
    return found


def test_tun_01_damaged_credentials_give_a_safe_name_or_an_error_message(fuzz: Fuzz) -> None:
    @fuzz(1500, mutations(_SEEDS, _TOKENS) | st.binary(max_size=200))
    def check(data: bytes) -> None:
        name_or_sentence(data)


def test_tun_02_a_name_is_accepted_if_and_only_if_it_is_safe(fuzz: Fuzz) -> None:
    @fuzz(500, st.text(max_size=70), st.none() | st.text(alphabet="aZ9._-/ \n", max_size=66))
    @example("a" * 64, "b" * 64)
    @example("kitchen", "kitchen\n")
    def check(tunnel_id: str, name: str | None) -> None:
        members = {"TunnelID": tunnel_id} | ({} if name is None else {"TunnelName": name})
        names = [one for one in (name, tunnel_id) if one is not None]
        expected = names[0] if all(map(SAFE.fullmatch, names)) else None
        assert name_or_sentence(credentials(**members).encode()) == expected
