"""The channels in the wizard's answers: `/var/lib/platform/wizard-state.json`.

Only the wizard writes that file, or reads all of it.
"""

from __future__ import annotations

from msgspec import Struct

from platform_common.formats.decode import from_json
from platform_common.records.channel_names import check_channels

_DONE = "done"


class _Answers(Struct, frozen=True):
    channels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_channels(self.channels)


class _File(Struct, frozen=True):
    step: str
    answers: _Answers = _Answers()


def parse_channels(data: bytes) -> tuple[str, ...]:
    """The channel ids of a configured device; raises `DecodingError`."""
    file = from_json(data, _File)
    return file.answers.channels if file.step == _DONE else ()
