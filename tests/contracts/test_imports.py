"""Which modules may import which: the table of the architecture, read from the syntax trees."""

from __future__ import annotations

import ast
import fnmatch
import graphlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from dev.distributions import ROOT
from dev.docs import architecture
from dev.docs.imports import (
    NEVER,
    PACKAGES,
    PARTS,
    UNKNOWN,
    graph,
    imported,
    module_name,
    part_of,
    sources,
)

# The code that speaks HTTP; the values that it shows come from other modules.
_PAGES = (
    "platform_common/web/*.py",
    *("pwa_app/app.py", "pwa_app/context.py", "pwa_app/pwa_install.py", "pwa_app/*/page.py"),
    *("wizard_app/app.py", "wizard_app/context.py", "wizard_app/pages/*.py"),
    *("wizard_app/chat/routes.py", "wizard_app/access/gate.py"),
    "wizard_app/access/request_info.py",
)
# Modules, and the only files that may import them.
ONLY_IMPORTERS: Mapping[str, tuple[str, ...]] = {
    "flask": _PAGES,
    "werkzeug": _PAGES,
    "gunicorn": tuple(
        f"platform_common/web/serving/{name}.py" for name in ("gunicorn_log", "server", "worker")
    ),
    "jinja2": ("platform_common/web/factory.py",),
    "babel": ("platform_common/web/language.py",),
    "py_vapid": ("pwa_app/push/vapid.py",),
    "cryptography": ("pwa_app/push/vapid.py", "wizard_app/access/certificate.py"),
    "subprocess": (
        "platform_common/process/spawn.py",
        "platform_common/process/run.py",
        "release_tools/verifying/streaming_process.py",
    ),
    "requests": (
        "platform_common/provider_key/request.py",
        "release_tools/origins/http_origin.py",
    ),
    "requests_aws4auth": ("platform_common/provider_key/request.py",),
    "tomlkit": ("platformctl/toml_edit.py",),
    "markdown_it": ("wizard_app/chat/markdown.py",),
    "obstore": ("release_tools/origins/object_origin.py",),
    "nacl": ("release_tools/signing/secret_key.py", "release_tools/signing/signature_check.py"),
    "jsonschema": ("release_tools/manifest/rules.py",),
    "pickle": (),
    "importlib.resources": ("platform_common/resources.py",),
    # They import what their tables name; the graph counts these as imports.
    UNKNOWN: ("platform_common/cli/group.py", "platformctl/root_helper/operations.py"),
}
# The files that may read the environment: command lines, modules that pass a part of it on to
# programs, the module for object stores, which are configured by their own variables, and the
# module for sockets that systemd passes on in variables.
ENVIRONMENT = (
    "*/cli.py",
    "*/wsgi.py",
    "platform_common/cli/group.py",
    "release_tools/commands/*.py",
    "platform_common/process/spawn.py",
    "platform_common/web/serving/listening.py",
    "release_tools/origins/object_origin.py",
)
# Names that shadow the standard library, or that say nothing.
BAD_NAMES = frozenset(
    [
        *("platform", "secrets", "http", "json", "logging", "types"),
        *("utils", "helpers", "common", "misc", "manager", "handler", "base"),
    ]
)


def violations(files: Mapping[str, str]) -> list[str]:
    """The violations in `files`, which are paths in the checkout and source texts."""
    return [
        f"{path}:{number}: {problem}"
        for path, text in files.items()
        for number, problem in _problems(path, ast.parse(text))
    ]


def _problems(path: str, tree: ast.Module) -> Iterator[tuple[int, str]]:
    part = part_of(module_name(path))
    allowed = PARTS[part] | {part, ""}
    for node in ast.walk(tree):
        for name in imported(node):
            if name.split(".")[0] in NEVER or part_of(name) not in allowed:
                yield _line(node), f"{part} may not import {name}"
            for module, importers in ONLY_IMPORTERS.items():
                if f"{name}.".startswith(f"{module}.") and not _matches(path, importers):
                    yield (
                        _line(node),
                        f"only {', '.join(importers) or 'nobody'} may import {module}",
                    )
        if _reads_environment(node) and not _matches(path, ENVIRONMENT):
            yield _line(node), "the environment is read in cli.py alone"


def _reads_environment(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(value=ast.Name("os"), attr="environ" | "environb" | "getenv"):
            return True
        case ast.ImportFrom(module="os", names=names):
            return any(alias.name in {"environ", "environb", "getenv"} for alias in names)
    return False


def _matches(path: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns)


def _line(node: ast.AST) -> int:
    return getattr(node, "lineno", 0)


def test_no_part_imports_what_the_table_forbids() -> None:
    assert violations(sources()) == []


def test_the_page_and_the_picture_of_the_architecture_are_up_to_date() -> None:
    found = architecture.rooms(graph())
    text = architecture.PAGE.read_text("utf-8")
    assert text == architecture.page(text, found), "run: make docs"
    assert architecture.PICTURE.read_text("utf-8") == architecture.picture(found), "run: make docs"


def test_no_imports_are_circular() -> None:
    # Raises an error that names the modules.
    graphlib.TopologicalSorter(graph()).prepare()


@pytest.mark.parametrize(
    ("path", "text", "caught"),
    [
        ("platform_common/x.py", "import release_tools", True),
        ("platform_common/x.py", "from release_tools import build", True),
        ("platform_common/x.py", "from tests.support import tree", True),
        ("release_tools/x.py", "from flask import Flask", True),
        ("release_tools/x.py", "def f():\n    import flask.views", True),
        ("release_tools/x.py", "import subprocess", True),
        ("release_tools/verifying/verify.py", "import requests", True),
        ("release_tools/x.py", "import os\nos.environ['A']", True),
        ("release_tools/x.py", "import os\nos.getenv('A')", True),
        ("release_tools/x.py", "from os import environ", True),
        # A mapped folder, found by its path; and imports that cannot be read from the text.
        ("release_tools/x.py", "import schemas", True),
        ("release_tools/x.py", "from . import build", True),
        ("release_tools/x.py", "__import__('flask')", True),
        ("release_tools/x.py", "from importlib import import_module", True),
        ("platformctl/root_helper/operations.py", "from importlib import import_module", False),
        ("release_tools/x.py", "from importlib import resources", True),
        ("release_tools/cli.py", "import os\nos.environ['A']", False),
        ("release_tools/x.py", "import platform_common.errors", False),
        ("platform_common/process/run.py", "import subprocess", False),
        ("platform_common/paths.py", "import platform_common.web.headers", True),
        ("platformctl/x.py", "from wizard_app.setup.steps import STEPS", False),
        ("platformctl/x.py", "from wizard_app.setup import steps", False),
        ("platformctl/x.py", "from wizard_app import setup", False),
        ("platformctl/x.py", "from wizard_app.chat import gateway", True),
        ("wizard_app/setup/x.py", "from wizard_app.chat import gateway", True),
        ("wizard_app/setup/x.py", "from platform_common.web import headers", True),
        ("wizard_app/chat/x.py", "from wizard_app.setup import steps", False),
        # A longer name.
        ("release_tools/x.py", "import requests_other", False),
    ],
)
def test_only_violations_are_found(path: str, text: str, caught: bool) -> None:
    assert len(violations({path: text})) == caught


def test_every_package_is_in_the_table_and_costs_nothing_to_import() -> None:
    assert {path.parent.name for path in ROOT.glob("*/__init__.py")} - NEVER == PACKAGES
    for package in PACKAGES:
        assert (ROOT / package / "__init__.py").read_bytes() == b""


def test_no_module_name_shadows_the_standard_library_or_says_nothing() -> None:
    found = {path for path in sources() if Path(path).stem in BAD_NAMES}
    # The base of all steps, and the only base there is.
    assert found == {"wizard_app/setup/steps/base.py"}
