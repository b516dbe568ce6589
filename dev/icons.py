"""Draw the PNG icons of the dashboard from its SVG icon: `python -m dev.icons`.

What this writes is tracked, so that nobody needs a browser to build or run the apps.
"""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from dev.distributions import ROOT

SVG = ROOT / "platform_common" / "web" / "static" / "icon.svg"
FOLDER = ROOT / "pwa_app" / "static"
CHROMIUM = "/usr/bin/chromium"
# Name to width, and whether the background fills the corners, for systems that round them.
ICONS = {
    "icon-180.png": (180, True),
    "icon-192.png": (192, False),
    "icon-512.png": (512, False),
    "icon-maskable-512.png": (512, True),
}


def draw(browser: Browser, width: int, *, full: bool) -> bytes:
    """The icon as a PNG of `width` pixels, transparent outside its corners unless `full`."""
    svg = SVG.read_text("utf-8")
    style = f"<style>*{{margin:0}}svg{{display:block;width:{width}px}}"
    style += "rect{rx:0}</style>" if full else "</style>"
    context = browser.new_context(viewport={"width": width, "height": width})
    try:
        page = context.new_page()
        page.set_content(style + svg)
        return page.screenshot(omit_background=True)
    finally:
        context.close()


def main(folder: Path = FOLDER) -> None:
    """Write every icon."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for name, (width, full) in ICONS.items():
            (folder / name).write_bytes(draw(browser, width, full=full))
        browser.close()


if __name__ == "__main__":
    main()
