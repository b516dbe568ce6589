"""The layout rules: what a page needs for fingers, keyboards and narrow screens."""

from __future__ import annotations

from dataclasses import dataclass

from playwright.sync_api import Page

# Elements that extend beyond the page, unless they are in a box that scrolls.
_BEYOND = """() => {
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= width) return [];
  const scrolls = e => e && e !== document.body
    && (["auto", "scroll"].includes(getComputedStyle(e).overflowX) || scrolls(e.parentElement));
  return [...document.body.querySelectorAll("*")]
    .filter(e => e.getBoundingClientRect().right > width + 0.5 && !scrolls(e.parentElement))
    .map(e => `${Math.round(e.getBoundingClientRect().right)} > ${width}: `
      + e.outerHTML.slice(0, 120))
    .concat("the page scrolls sideways");
}"""
# Elements with more text than fits, except boxes that scroll, and text for screen readers only.
_CLIPPED = """() => {
  const found = [];
  for (const e of document.body.querySelectorAll("*")) {
    const style = getComputedStyle(e);
    if (style.display === "inline" || e.closest(".hidden, svg, .skip, select, input")
      || !e.checkVisibility({visibilityProperty: true})) continue;
    const scrolls = way => ["auto", "scroll"].includes(way);
    const wide = e.scrollWidth > e.clientWidth + 1 && e.clientWidth && !scrolls(style.overflowX);
    const high = e.scrollHeight > e.clientHeight + 1
      && ["hidden", "clip"].includes(style.overflowY);
    if (wide || high) found.push(
      `${e.scrollWidth} by ${e.scrollHeight} in ${e.clientWidth} by ${e.clientHeight}: `
      + e.outerHTML.slice(0, 120));
  }
  return found;
}"""
# Links within text may be as small as their words if they have enough distance (WCAG 2.5.8), which
# axe-core checks.
_SMALL = """least => [...document.querySelectorAll(
    "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']")]
  .filter(e => e.checkVisibility({visibilityProperty: true}))
  .filter(e => getComputedStyle(e).display !== "inline")
  .map(e => [e, (e.labels?.length && ["checkbox", "radio"].includes(e.type)
    ? e.labels[0] : e).getBoundingClientRect()])
  .filter(([e, box]) => !e.matches(".hidden, .skip")
    && Math.min(box.width, box.height) < least)
  .map(([e, box]) => `${Math.round(box.width)} by ${Math.round(box.height)}: `
    + e.outerHTML.slice(0, 120))"""
_LEAST_PX = 24

# The focused element, whether it is visible there, and what it looks like.
_FOCUSED = """() => {
  const e = document.activeElement;
  if (!e || e === document.body || e === document.documentElement) return null;
  window.looks ??= e => ["outlineStyle", "outlineWidth", "outlineColor", "boxShadow",
    "backgroundColor"].map(name => getComputedStyle(e)[name]).join(" ");
  const again = window.visited.includes(e);
  if (!again) window.visited.push(e);
  const labels = [...(e.labels ?? [])];
  const box = e.getBoundingClientRect();
  const x = Math.min(Math.max(box.left + Math.min(box.width, 40) / 2, 0), innerWidth - 1);
  const seen = y => {
    const top = document.elementFromPoint(x, y);
    return !!top && (e.contains(top) || top.contains(e) || labels.some(l => l.contains(top)));
  };
  return {
    name: (e.ariaLabel || labels[0]?.textContent || e.textContent || e.id).trim()
      .replace(/\\s+/g, " ").slice(0, 40),
    element: e.localName + (e.id ? "#" + e.id : ""),
    again,
    covered: !seen(Math.max(box.top + 2, 1)) || !seen(Math.min(box.bottom - 2, innerHeight - 1)),
    looks: looks(e),
  };
}"""
_NEXT_PICTURE = "new Promise(done => requestAnimationFrame(() => setTimeout(done)))"
_LOOKS_WITHOUT = """() => {
  document.activeElement?.blur();
  return window.visited.map(looks);
}"""
# The elements that the walk should reach, and at its end those that it missed; elements that appear
# or disappear meanwhile do not count.
_BEGIN = """() => {
  window.visited = [];
  window.expected = () => [...document.querySelectorAll(
      "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']")]
    .filter(e => e.checkVisibility({visibilityProperty: true}) && !e.disabled && e.tabIndex >= 0)
    // The browser stops once at a group of radio buttons.
    .filter(e => e.type !== "radio"
      || e === (document.querySelector(`[name="${e.name}"]:checked`)
        ?? document.querySelector(`[name="${e.name}"]`)));
  window.ahead = expected();
}"""
_LEFT_OUT = """() => {
  const now = expected();
  return ahead.filter(e => now.includes(e) && !visited.includes(e))
    .map(e => e.outerHTML.slice(0, 120));
}"""
_MOST_STOPS = 400


@dataclass(frozen=True)
class Stop:
    """An element that the Tab key reaches."""

    name: str
    element: str
    covered: bool
    visible: bool


def sideways_scroll(page: Page) -> list[str]:
    """The elements that make the page wider than its window; empty if there are none."""
    found: list[str] = page.evaluate(_BEYOND)
    return found


def clipped(page: Page) -> list[str]:
    """The elements that are wider than their box, or cut off by it."""
    found: list[str] = page.evaluate(_CLIPPED)
    return found


def small_targets(page: Page) -> list[str]:
    """The elements that are too small for a finger, although they stand alone."""
    found: list[str] = page.evaluate(_SMALL, _LEAST_PX)
    return found


def focus_walk(page: Page, *, backwards: bool = False) -> list[Stop]:
    """The stops of the Tab key, from one end of the page until it leaves the page.

    Raises `AssertionError` if it turns back before it has been everywhere.
    """
    # A script may move the page under the focus, but only once.
    page.wait_for_load_state("networkidle")
    page.evaluate(_BEGIN)
    seen = []
    for _ in range(_MOST_STOPS):
        page.keyboard.press("Shift+Tab" if backwards else "Tab")
        # The page scrolls to the focus before it is drawn again.
        page.evaluate(_NEXT_PICTURE)
        stop = page.evaluate(_FOCUSED)
        if stop is None or stop.pop("again"):
            break
        seen.append(stop)
    without = page.evaluate(_LOOKS_WITHOUT)
    stops = [
        Stop(stop["name"], stop["element"], stop["covered"], stop["looks"] != plain)
        for stop, plain in zip(seen, without, strict=True)
    ]
    left_out = page.evaluate(_LEFT_OUT)
    assert left_out == [], left_out
    return stops
