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
html_theme_options = {"page_width": "auto"}
html_sidebars = {"**": ["about.html", "navigation.html", "searchbox.html"]}
html_copy_source = False
# The tables of contents: on which page, under which title, of which pages.
_CONTENTS = (
    (root_doc, "Tutorials", ("docs/tutorials/*",)),
    (root_doc, "How-to pages", ("docs/how-to/*",)),
    (root_doc, "Explanation", ("docs/architecture", "docs/security")),
    (root_doc, "Reference", ("docs/README", "docs/benchmarks", "docs/reference/*")),
    (root_doc, "Project", ("CONTRIBUTING", "CHANGELOG")),
    ("docs/README", "Decisions", ("explanation/adr/*",)),
)


def _add_contents(app: Sphinx, name: str, source: list[str]) -> None:
    """Append tables of contents, which would be noise where pages are read outside the site."""
    for page, title, pages in _CONTENTS:
        if page == name:
            lines = [":hidden:", ":glob:", f":caption: {title}", ":maxdepth: 1", "", *pages]
            source[0] += "\n\n```{toctree}\n" + "\n".join(lines) + "\n```\n"


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("source-read", _add_contents)
