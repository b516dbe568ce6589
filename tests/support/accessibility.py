"""The accessibility checker: axe-core examines a page as it is displayed."""

from __future__ import annotations

from functools import cache
from typing import Any

from playwright.sync_api import Page

from tests.support.environments import node_modules

# WCAG 2.0 to 2.2, levels A and AA, and the best practices of axe-core.
_TAGS = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22a", "wcag22aa", "best-practice")
_ALL = {"type": "tag", "values": _TAGS}
_COLOURS = {"type": "rule", "values": ("color-contrast", "link-in-text-block")}
# In forced colours the browser ensures the contrast; there Chromium reports a
# -webkit-text-fill-color that it does not paint, and axe-core relies on that.
_FORCED = {"type": "rule", "values": ("link-in-text-block",)}
_RUN = """([usual, forced]) => axe.run(document, {
  runOnly: matchMedia("(forced-colors: active)").matches ? forced : usual,
  resultTypes: ["violations"],
}).then(found => found.violations)"""


def violations(page: Page, *, colours_alone: bool = False) -> list[str]:
    """The faults that axe-core finds: one line each with the rule, the reason and the element.

    With `colours_alone` only those rules run that depend on colours.
    """
    # Evaluated, because the page's policy forbids inserting it as a script element.
    if not page.evaluate("() => typeof axe === 'object'"):
        page.evaluate(_axe())
    found: list[dict[str, Any]] = page.evaluate(
        _RUN, [_COLOURS if colours_alone else _ALL, _FORCED]
    )
    return [_line(rule, node) for rule in found for node in rule["nodes"]]


def _line(rule: dict[str, Any], node: dict[str, Any]) -> str:
    reasons = [check["message"] for kind in ("any", "all", "none") for check in node[kind]]
    why = "; ".join(reasons) or rule["help"]
    return f"{rule['id']}: {why}: {node['html'][:160]}"


@cache
def _axe() -> str:
    return (node_modules("browser-tools") / "axe-core/axe.min.js").read_text("utf-8")
