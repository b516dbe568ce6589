"""The five answers of the dashboard, and the other calls that its pages make."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

from platform_common.control import Slice, View
from platform_common.decoding import from_json
from platform_common.records.limits import Limits
from platform_common.views import Cost, Model, Status, Verdict, Version, read_models


def _json(shape: type[Any]) -> Any:
    return partial(from_json, shape=shape)


STATUS: View[Status] = View(("status", "--json"), _json(Status), Status())
VERSION: View[Version] = View(("version", "--json"), _json(Version), Version())
LIMITS: View[Limits] = View(("limits", "--json"), _json(Limits), Limits())
COST: View[Cost] = View(("cost", "--json"), _json(Cost), Cost())
DOCTOR: View[Verdict] = View(("doctor", "--json"), _json(Verdict), Verdict())
MODELS: View[tuple[Model, ...]] = View(("model", "list", "--json"), read_models, ())
OVERVIEW: tuple[View[Any], ...] = (STATUS, VERSION, LIMITS, COST, DOCTOR)


class Overview(NamedTuple):
    """What the dashboard shows, in the order of `OVERVIEW`."""

    status: Slice[Status]
    version: Slice[Version]
    limits: Slice[Limits]
    cost: Slice[Cost]
    doctor: Slice[Verdict]

    @property
    def stub(self) -> bool:
        """Whether any of it stands in for an answer."""
        return any(found.stub for found in self)
