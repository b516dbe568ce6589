"""Compiles the templates to Python modules, so that the first page after a start is not slow.

`python3 -m dev.debian_package.compiled_templates` puts them beside the
templates, where the apps look for them.
"""

from __future__ import annotations

from platform_common.resources import compiled_templates
from platform_common.web.factory import new_application


def main() -> None:
    """Compile every template; the same templates are the same bytes."""
    environment = new_application("compiling", after_preferences="/").jinja_env
    environment.compile_templates(compiled_templates(), extensions=["html"], zip=None)


if __name__ == "__main__":
    main()
