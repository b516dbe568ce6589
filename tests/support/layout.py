"""The gate of layout: what a page needs to be used with a finger or a keyboard, and narrow."""

from __future__ import annotations

from dataclasses import dataclass

from playwright.sync_api import Page

# Elements that reach beyond the page, but for what lies in a box that scrolls by itself.
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
# Elements with more text than they have room for, but for boxes that scroll by themselves
# and what is there for screen readers alone.
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
# Links among text may be as small as their words where they keep a distance (WCAG 2.5.8),
# which axe-core looks at.
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

# Where the focus is now, whether it can be seen there, and how that looks.
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
# What the walk should come by, and at its end what of that it did not; what comes or
# goes meanwhile does not count.
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
    """An element that the Tab key leads to."""

    name: str
    element: str
    covered: bool
    visible: bool


def sideways_scroll(page: Page) -> list[str]:
    """What makes the page wider than its window; empty when nothing does."""
    found: list[str] = page.evaluate(_BEYOND)
    return found


def clipped(page: Page) -> list[str]:
    """What is wider than its own box, or cut off by it."""
    found: list[str] = page.evaluate(_CLIPPED)
    return found


def small_targets(page: Page) -> list[str]:
    """What is too small for a finger, though it stands by itself."""
    found: list[str] = page.evaluate(_SMALL, _LEAST_PX)
    return found


def focus_walk(page: Page, *, backwards: bool = False) -> list[Stop]:
    """Where the Tab key leads, from one end of the page until it leaves it.

    Raises `AssertionError` where it turns back before it has been everywhere.
    """
    # What a script asks for may move the page under the focus, once.
    page.wait_for_load_state("networkidle")
    page.evaluate(_BEGIN)
    seen = []
    for _ in range(_MOST_STOPS):
        page.keyboard.press("Shift+Tab" if backwards else "Tab")
        # The page moves to the focus before the next picture of it.
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
