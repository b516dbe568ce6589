"""The fonts of the browser tests: those of some Debian packages, whatever else a machine has."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Page

# As Playwright takes it.
Environment = dict[str, str | float | bool]

_FOLDER = Path("/usr/share/fonts")
_CONFIGURATION = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd">
<fontconfig>
<dir>{folder}</dir>
<cachedir>{folder}/cache</cachedir>
<alias binding="same">
  <family>monospace</family>
  <prefer><family>{font.mono}</family></prefer>
</alias>
<match target="pattern">
  <edit name="family" mode="append_last"><string>{font.sans}</string></edit>
</match>
</fontconfig>
"""
# What our stylesheet takes text and code from.
_WEAR = """([sans, mono]) => {
  document.documentElement.style.setProperty("--font", `"${sans}"`);
  document.documentElement.style.setProperty("--mono", `"${mono}"`);
  // Asking for a size has it laid out now, and not with the next picture.
  return document.documentElement.offsetWidth;
}"""


class Font(NamedTuple):
    """A family for text and one for code, and the files of both."""

    sans: str
    mono: str
    files: tuple[str, ...]

    def wear(self, page: Page) -> None:
        """Show the page that is open in it."""
        page.evaluate(_WEAR, [self.sans, self.mono])


def _font(sans: str, mono: str, files: str, *kinds: str) -> Font:
    return Font(sans, mono, tuple(files.format(kind) for kind in kinds))


FONTS: Mapping[str, Font] = {
    # What pages are shown in unless a test says otherwise.
    "DejaVu": _font(
        *("DejaVu Sans", "DejaVu Sans Mono", "truetype/dejavu/DejaVuSans{}.ttf"),
        *("", "-Bold", "Mono", "Mono-Bold"),
    ),
    "Noto": _font(
        *("Noto Sans", "Noto Sans Mono", "truetype/noto/Noto{}.ttf"),
        *("Sans-Regular", "Sans-Bold", "SansMono-Regular", "SansMono-Bold"),
    ),
    "Liberation": _font(
        *("Liberation Sans", "Liberation Mono", "truetype/liberation/Liberation{}.ttf"),
        *("Sans-Regular", "Sans-Bold", "Mono-Regular", "Mono-Bold"),
    ),
    # Far wider than the others, as every letter takes as much room as an m.
    "wide": _font(
        *("OpenDyslexicMono", "OpenDyslexicMono", "opentype/opendyslexic/OpenDyslexicMono-{}.otf"),
        "Regular",
    ),
}


def only(folder: Path, *fonts: Font) -> Environment:
    """The environment of a browser that finds these fonts and no other, the first by itself.

    What is needed for that is put into `folder`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for font in fonts:
        for file in font.files:
            _link(folder / Path(file).name, _FOLDER / file)
    configuration = folder / "fonts.conf"
    configuration.write_text(_CONFIGURATION.format(folder=folder, font=fonts[0]))
    return {**os.environ, "FONTCONFIG_FILE": str(configuration)}


def _link(link: Path, file: Path) -> None:
    # A link that leads nowhere would leave a browser with another font, and without a word.
    if not file.is_file():
        raise FileNotFoundError(f"{file}: `python3 dev/packages.py test` installs it")
    link.symlink_to(file)


def fonts_of(page: Page, selector: str) -> set[str]:
    """The families whose glyphs the browser really draws an element's text with."""
    tools = page.context.new_cdp_session(page)
    tools.send("DOM.enable")
    tools.send("CSS.enable")
    root = tools.send("DOM.getDocument")["root"]["nodeId"]
    node = tools.send("DOM.querySelector", {"nodeId": root, "selector": selector})["nodeId"]
    used = tools.send("CSS.getPlatformFontsForNode", {"nodeId": node})["fonts"]
    tools.detach()
    return {font["familyName"] for font in used}
