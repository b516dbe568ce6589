"""The accessibility gate: axe-core looks at a page as it is shown."""

from __future__ import annotations

from functools import cache
from typing import Any

from playwright.sync_api import Page

from tests.support.environments import node_modules

# WCAG 2.0 to 2.2, levels A and AA, and what axe-core advises beside them.
_TAGS = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22a", "wcag22aa", "best-practice")
_ALL = {"type": "tag", "values": _TAGS}
_COLOURS = {"type": "rule", "values": ("color-contrast", "link-in-text-block")}
# In forced colours the browser sees to the contrast; there Chromium gives as
# -webkit-text-fill-color, which axe-core goes by, a colour that it does not paint.
_FORCED = {"type": "rule", "values": ("link-in-text-block",)}
_RUN = """([usual, forced]) => axe.run(document, {
  runOnly: matchMedia("(forced-colors: active)").matches ? forced : usual,
  resultTypes: ["violations"],
}).then(found => found.violations)"""


def violations(page: Page, *, colours_alone: bool = False) -> list[str]:
    """What axe-core objects to: the rule, why, and the element, a line each.

    With `colours_alone` only the rules are tried that other colours can break.
    """
    # Evaluated, since the page's policy forbids a script element with it.
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
