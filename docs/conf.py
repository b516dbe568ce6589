"""Sphinx's settings for the site of the documents, which `make docs` builds."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "Platform"
extensions = ["myst_parser"]
# The sources are the whole checkout: pages link to files outside `docs/`.
root_doc = "README"
include_patterns = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/**"]
myst_heading_anchors = 3
# An example on a page may end early; it is still shown.
highlight_language = "none"
html_theme = "alabaster"
html_theme_options = {"page_width": "1100px", "fixed_sidebar": True}
html_sidebars = {"**": ["about.html", "navigation.html", "searchbox.html"]}
html_copy_source = False
_SECTIONS = {
    "Start": ["docs/tutorials/*"],
    "How to": ["docs/how-to/*"],
    "Explanation": ["docs/architecture", "docs/security", "docs/explanation/adr/*"],
    "Reference": ["docs/benchmarks", "docs/reference/*", "docs/README"],
    "Project": ["CONTRIBUTING", "CHANGELOG"],
}


def _add_contents(app: Sphinx, name: str, source: list[str]) -> None:
    """Append the table of contents to the first page, which is also read outside the site."""
    if name != root_doc:
        return
    for title, pages in _SECTIONS.items():
        lines = [":hidden:", ":glob:", f":caption: {title}", ":maxdepth: 1", "", *pages]
        source[0] += "\n\n```{toctree}\n" + "\n".join(lines) + "\n```\n"


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("source-read", _add_contents)
