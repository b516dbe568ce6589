"""Profile definitions: `/etc/platform/profiles/<id>.toml`, one gateway each."""

from __future__ import annotations

import re
from typing import Literal
from urllib.parse import urlsplit

from msgspec import Struct

from platform_common.errors import PlatformError
from platform_common.formats.decode import DecodingError, check_member, from_toml
from platform_common.message import Sentence
from platform_common.validation import check_id, check_loopback_url, check_unit, check_variable

_PORT = re.compile(r"(?P<number>[1-9][0-9]{0,4})/(?:tcp|udp)")
_HIGHEST_PORT = 65535
_LONGEST_PATH = 1024
_LONGEST_URL_PATH = 2048


class Chat(Struct, frozen=True):
    """`[chat]`: how to send messages to the gateway; an empty member means its default."""

    protocol: Literal["simple", "chat-completions"] = "simple"
    path: str = ""
    model: str = ""
    token_env: str = ""

    def __post_init__(self) -> None:
        """Refuse invalid paths and variables."""
        if self.path:
            check_member("path", _check_url_path, self.path)
        if self.token_env:
            check_member("token_env", check_variable, self.token_env)


class Profile(Struct, frozen=True):
    """One gateway: its unit, its data, and how to talk to it.

    `data_dir` is a path on the device, with `~/` for the home of agent. `ports` are those that it
    listens on, `channel_ports` those that a channel needs open to the outside, such as
    `443/tcp`. `http_check` is empty if there is no health URL.
    """

    id: str
    display_name: str
    min_ram_mb: int
    pinned_version: str
    data_dir: str
    unit: str
    ports: tuple[int, ...]
    http_check: str
    channels: tuple[str, ...]
    channel_ports: dict[str, tuple[str, ...]]
    chat: Chat


class _Header(Struct, frozen=True):
    id: str = ""
    display_name: str = ""
    min_ram_mb: int = 0
    pinned_version: str = ""

    def __post_init__(self) -> None:
        if self.min_ram_mb < 0:
            raise ValueError("min_ram_mb: must not be negative")


class _Paths(Struct, frozen=True):
    data_dir: str = ""

    def __post_init__(self) -> None:
        if self.data_dir:
            check_member("data_dir", _check_folder, self.data_dir)


class _Service(Struct, frozen=True):
    unit: str = ""
    ports: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.unit:
            check_member("unit", check_unit, self.unit)
        for number, port in enumerate(self.ports):
            if not 1 <= port <= _HIGHEST_PORT:
                raise ValueError(f"ports[{number}]: must be 1 to {_HIGHEST_PORT}")


class _Health(Struct, frozen=True):
    http_check: str = ""

    def __post_init__(self) -> None:
        if self.http_check:
            check_member("http_check", check_loopback_url, self.http_check)


class _Channels(Struct, frozen=True):
    supported: tuple[str, ...] = ()
    ports: dict[str, tuple[str, ...]] = {}

    def __post_init__(self) -> None:
        for number, channel in enumerate(self.supported):
            check_member(f"supported[{number}]", check_id, channel)
        for channel, ports in self.ports.items():
            check_member("ports", check_id, channel)
            for port in ports:
                check_member("ports", _check_port, port)


class _File(Struct, frozen=True):
    profile: _Header = _Header()
    paths: _Paths = _Paths()
    service: _Service = _Service()
    health: _Health = _Health()
    channels: _Channels = _Channels()
    chat: Chat = Chat()


def parse(data: bytes, profile_id: str) -> Profile:
    """Parse the profile `profile_id` in the TOML `data`; raises `DecodingError`.

    Missing keys have the defaults for that id.
    """
    try:
        check_id(profile_id)
    except ValueError as error:
        raise DecodingError(f"the name of the file {error}") from None
    if not data.strip():
        raise DecodingError("the file is empty")
    file = from_toml(data, _File)
    if file.profile.id not in ("", profile_id):
        raise DecodingError(f"profile.id: must be {profile_id}, like the name of the file")
    return Profile(
        id=profile_id,
        display_name=file.profile.display_name or profile_id,
        min_ram_mb=file.profile.min_ram_mb,
        pinned_version=file.profile.pinned_version,
        data_dir=file.paths.data_dir or f"~/.{profile_id}",
        unit=file.service.unit or f"{profile_id}-gateway.service",
        ports=file.service.ports,
        http_check=file.health.http_check,
        channels=file.channels.supported,
        channel_ports=file.channels.ports,
        chat=file.chat,
    )


def gateway_url(profile: Profile) -> str:
    """The base URL of the gateway; raises `PlatformError` if the profile is wrong."""
    try:
        check_loopback_url(profile.http_check)
    except ValueError as error:
        raise PlatformError(
            Sentence(
                "{name} cannot be contacted: http_check in its profile {why}",
                name=profile.display_name,
                why=str(error),
            ),
            hint=correct(profile),
        ) from error
    parts = urlsplit(profile.http_check)
    return f"{parts.scheme}://{parts.netloc}"


def correct(profile: Profile) -> Sentence:
    """What to do if the profile is wrong."""
    return Sentence("Correct http_check or [chat] in {file}.", file=f"profiles/{profile.id}.toml")


def _check_folder(path: str) -> None:
    parts = path.split("/")
    if (
        len(path) > _LONGEST_PATH
        or not path.isprintable()
        or parts[0] not in ("", "~")
        or ".." in parts
        or not any(parts[1:])
    ):
        raise ValueError("must be a folder that starts with / or ~/, without ..")


def _check_port(port: str) -> None:
    found = _PORT.fullmatch(port)
    if found is None or int(found["number"]) > _HIGHEST_PORT:
        raise ValueError("must be a port and a protocol, such as 443/tcp")


def _check_url_path(path: str) -> None:
    if (
        len(path) > _LONGEST_URL_PATH
        or not path.startswith("/")
        or not path.isascii()
        or not path.isprintable()
        or " " in path
    ):
        raise ValueError("must start with a slash and hold printable ASCII without blanks")
