"""The fonts of the browser tests, from some Debian packages; others on the machine are ignored."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Page

# The type that Playwright expects.
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
# The variables of our stylesheet for the fonts of text and code.
_WEAR = """([sans, mono]) => {
  document.documentElement.style.setProperty("--font", `"${sans}"`);
  document.documentElement.style.setProperty("--mono", `"${mono}"`);
  // Asking for a size has it laid out now, and not with the next picture.
  return document.documentElement.offsetWidth;
}"""


class Font(NamedTuple):
    """A font family for text, one for code, and the files of both."""

    sans: str
    mono: str
    files: tuple[str, ...]

    def apply_to(self, page: Page) -> None:
        """Display the open page in this font."""
        page.evaluate(_WEAR, [self.sans, self.mono])


def _font(sans: str, mono: str, files: str, *kinds: str) -> Font:
    return Font(sans, mono, tuple(files.format(kind) for kind in kinds))


FONTS: Mapping[str, Font] = {
    # The default font of the pages.
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
    # Much wider than the others, because every letter is as wide as an m.
    "wide": _font(
        *("OpenDyslexicMono", "OpenDyslexicMono", "opentype/opendyslexic/OpenDyslexicMono-{}.otf"),
        "Regular",
    ),
}


def only(folder: Path, *fonts: Font) -> Environment:
    """The environment of a browser that only finds these fonts, the first one by default.

    The necessary files are created in `folder`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for font in fonts:
        for file in font.files:
            _link(folder / Path(file).name, _FOLDER / file)
    configuration = folder / "fonts.conf"
    configuration.write_text(_CONFIGURATION.format(folder=folder, font=fonts[0]))
    return {**os.environ, "FONTCONFIG_FILE": str(configuration)}


def _link(link: Path, file: Path) -> None:
    # With a dangling link the browser would silently use another font.
    if not file.is_file():
        raise FileNotFoundError(f"{file}: `python3 dev/packages.py test` installs it")
    link.symlink_to(file)


def fonts_of(page: Page, selector: str) -> set[str]:
    """The font families with which the browser really draws the text of an element."""
    tools = page.context.new_cdp_session(page)
    tools.send("DOM.enable")
    tools.send("CSS.enable")
    root = tools.send("DOM.getDocument")["root"]["nodeId"]
    node = tools.send("DOM.querySelector", {"nodeId": root, "selector": selector})["nodeId"]
    used = tools.send("CSS.getPlatformFontsForNode", {"nodeId": node})["fonts"]
    tools.detach()
    return {font["familyName"] for font in used}
