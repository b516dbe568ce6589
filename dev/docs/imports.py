"""Who imports whom: read from the syntax trees of the packages.

`tests/contracts/test_imports.py` holds the code to `PARTS`, and
`dev/docs/architecture.py` draws it.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping

from dev.distributions import ROOT

# The parts that each part may import beside itself. A module belongs to the longest part that
# matches. The order is that of the picture, from left to right.
PARTS: Mapping[str, frozenset[str]] = {
    "platformctl": frozenset({"platform_common", "release_tools", "wizard_app.setup"}),
    "wizard_app": frozenset({"platform_common", "platform_common.web", "wizard_app.setup"}),
    "pwa_app": frozenset({"platform_common", "platform_common.web"}),
    "release_tools": frozenset({"platform_common"}),
    "wizard_app.setup": frozenset({"platform_common"}),
    "platform_common.web": frozenset({"platform_common"}),
    "platform_common": frozenset(),
}
PACKAGES = frozenset(part for part in PARTS if "." not in part)
# Tests, tools and the mapped folders are not modules of a package.
NEVER = frozenset({"tests", "dev", "bench", "schemas", "systemd", "templates"})
# An import whose name is not in the text.
UNKNOWN = "importlib.import_module"


def sources() -> dict[str, str]:
    """Every module of the packages: its path to its text."""
    return {
        path.relative_to(ROOT).as_posix(): path.read_text("utf-8")
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
    }


def graph() -> dict[str, set[str]]:
    """Every module, and the modules of ours that it imports."""
    trees = {module_name(path): ast.parse(text) for path, text in sources().items()}
    return {module: _of_ours(tree, trees.keys()) - {module} for module, tree in trees.items()}


def _of_ours(tree: ast.Module, modules: Collection[str]) -> set[str]:
    names = {name for node in ast.walk(tree) for name in (*imported(node), *_named(node))}
    # `from a.b import c` names a module `a.b.c`, or something in the module `a.b`.
    return {
        found
        for name in names
        if (found := name if name in modules else name.rpartition(".")[0]) in modules
    }


def imported(node: ast.AST) -> list[str]:
    """The dotted names that a statement imports."""
    match node:
        case ast.Import(names=names):
            return [alias.name for alias in names]
        case ast.ImportFrom(module=str(module), level=0, names=names):
            return [f"{module}.{alias.name}" for alias in names]
        case ast.ImportFrom():
            return ["tests"]  # A relative import; ours are absolute.
        case ast.Call(func=ast.Name("__import__") | ast.Attribute(attr="import_module")):
            return [UNKNOWN]
    return []


def _named(node: ast.AST) -> list[str]:
    """What a table of commands or operations names, to be imported on demand."""
    match node:
        case ast.Constant(value=str(text)) if part_of(text) and text.count(".") > 1:
            return [text]
    return []


def module_name(path: str) -> str:
    """The dotted name of the module at `path`."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def part_of(name: str) -> str:
    """The part that has the module `name`; empty for a module that is not ours."""
    return max((part for part in PARTS if f"{name}.".startswith(f"{part}.")), key=len, default="")
