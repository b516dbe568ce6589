"""Profile definitions: what ships, and the defaults of missing members."""

from __future__ import annotations

import pytest

from platform_common.formats.decode import DecodingError
from platform_common.records.profiles import Chat, Profile, parse
from platform_common.resources import data_path


def _shipped(profile_id: str) -> Profile:
    return parse(data_path(f"profiles/{profile_id}.toml").read_bytes(), profile_id)


@pytest.mark.parametrize(
    ("profile_id", "facts"),
    [
        ("openclaw", ("OpenClaw", "2026.4.25", (8080, 8443), "http://127.0.0.1:8080/healthz", 23)),
        ("hermes", ("Hermes Agent", "moving", (8080,), "http://127.0.0.1:8080/healthz", 15)),
        ("khoj", ("Khoj", "1.32.0", (42110,), "http://127.0.0.1:42110/api/health", 6)),
    ],
)
def test_shipped_profiles_have_the_expected_values(
    profile_id: str, facts: tuple[object, ...]
) -> None:
    profile = _shipped(profile_id)
    assert facts == (
        *(profile.display_name, profile.pinned_version, profile.ports, profile.http_check),
        len(profile.channels),
    )
    assert profile.id == profile_id
    assert profile.min_ram_mb == 4096
    assert profile.unit == f"{profile_id}-gateway.service"
    assert profile.data_dir == f"~/.{profile_id}"
    assert profile.chat == Chat()
    assert len(set(profile.channels)) == len(profile.channels)


def test_only_channels_with_incoming_calls_open_a_port() -> None:
    for profile_id, channel in (("hermes", "twilio-sms"), ("khoj", "whatsapp-twilio")):
        profile = _shipped(profile_id)
        assert profile.channel_ports == {channel: ("443/tcp",)}
        assert channel in profile.channels
    assert _shipped("openclaw").channel_ports == {}


def test_an_empty_definition_gets_the_defaults_for_its_id() -> None:
    found = parse(b"# nothing\n", "my-bot")
    assert (found.id, found.display_name, found.unit) == (
        *("my-bot", "my-bot", "my-bot-gateway.service"),
    )
    assert (found.data_dir, found.chat) == ("~/.my-bot", Chat())
    assert (found.min_ram_mb, found.pinned_version, found.http_check) == (0, "", "")
    assert (found.ports, found.channels, found.channel_ports) == ((), (), {})


@pytest.mark.parametrize("name", ["", "A", "../x", "x/y", "-x", "x.y", "a" * 65, "é"])
def test_a_file_whose_name_is_not_an_id_is_refused(name: str) -> None:
    with pytest.raises(DecodingError, match="the name of the file must be lower-case"):
        parse(b"# nothing\n", name)


_ELSEWHERE = b'[health]\nhttp_check = "http://192.0.2.1:8080/"\n'


@pytest.mark.parametrize(
    ("data", "said"),
    [
        *((data, "the file is empty") for data in (b"", b"\n", b" \n\n")),
        (b'[profile]\nid = "y"\n', r"profile\.id: must be x, like the name of the file"),
        (_ELSEWHERE, r"health\.http_check: must be an address of this dev"),
    ],
)
def test_chat_01_a_truncated_or_mismatched_profile_is_refused(data: bytes, said: str) -> None:
    with pytest.raises(DecodingError, match=said):
        parse(data, "x")
