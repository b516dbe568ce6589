"""What must hold for every tracked file of a public repository."""

from __future__ import annotations

import configparser
import json
import re

import pytest

from dev.distributions import ROOT, tracked_files
from tests.support.releases import KeyPair

PICTURES = [name for name in tracked_files() if name.endswith((".png", ".webp"))]
FILES = [name for name in tracked_files() if name not in PICTURES]
# Bracketed, so that this file does not contain what it looks for.
MACHINE = re.compile(r"(?<![\w.$}])/(?:[w]ork|[r]oot|[U]sers|[h]ome/(?!agent\b)\w+)/")
REGISTRY = re.compile(r"[p]ypi\.org|[p]ythonhosted\.org|[i]ndex-url|[f]ind-links|[n]pmjs\.")
SECRET_KEY = re.compile(r"\bRW[RQ][A-Za-z0-9+/]{208}=|^-----BEGIN [A-Z ]*PRIVATE KEY-----$")


def text(name: str) -> str:
    """A tracked file as text; a file that is neither text nor a picture does not belong here."""
    return (ROOT / name).read_text("utf-8")


def naming(pattern: re.Pattern[str]) -> list[str]:
    """Where the pattern is found, as `file:line`."""
    return [
        f"{name}:{number}"
        for name in FILES
        for number, line in enumerate(text(name).splitlines(), 1)
        if pattern.search(line)
    ]


def test_no_file_names_a_path_of_one_machine() -> None:
    assert naming(MACHINE) == []


def test_no_file_names_a_package_registry() -> None:
    # The verb that writes the lock files is told not to include a registry.
    assert [place for place in naming(REGISTRY) if not place.startswith("Makefile:")] == []


@pytest.mark.parametrize(
    ("line", "found"),
    [
        pytest.param("cd /" + "work/main", True, id="a-checkout"),
        pytest.param("FOLDER=/" + "root/x", True, id="a-root-home"),
        pytest.param('"/' + 'home/someone/keys"', True, id="a-home"),
        pytest.param("/home/agent/.khoj", False, id="the-user-of-the-appliance"),
    ],
)
def test_a_path_of_one_machine_is_recognised(line: str, found: bool) -> None:
    assert bool(MACHINE.search(line)) is found


def test_a_picture_is_small() -> None:
    assert [name for name in PICTURES if (ROOT / name).stat().st_size >= 60_000] == []


def test_every_file_ends_in_one_newline_and_no_line_has_trailing_blanks() -> None:
    contents = {name: text(name) for name in FILES}
    assert [name for name, said in contents.items() if not re.search(r"(\A|[^\n]\n)\Z", said)] == []
    assert naming(re.compile(r"[ \t\r]$")) == []


def test_artefact_has_one_spelling() -> None:
    assert naming(re.compile(r"(?i)arti[f]act")) == []


def test_no_secret_key_is_tracked(key_pair: KeyPair) -> None:
    assert SECRET_KEY.search(key_pair.secret.read_text())
    assert naming(SECRET_KEY) == []


def test_pytest_collects_nothing_from_the_packages() -> None:
    collected = re.compile(r"(?!tests/)(.*/)?(test_[^/]*|[^/]*_test|conftest)\.py")
    assert collected.fullmatch("platformctl/key_test.py")
    assert [name for name in FILES if collected.fullmatch(name)] == []


# The lock files.

PIN = re.compile(r"^([a-z0-9-]+)==(\S+)(?: ; [^\\\n]+)? \\\n((?:    --hash=sha256:\S+(?: \\)?\n)+)")


def pins(name: str) -> dict[str, str]:
    """Project to version in a lock file, which contains only pins with hashes."""
    rest = "".join(
        line for line in text(name).splitlines(keepends=True) if not line.startswith("#")
    )
    found: dict[str, str] = {}
    while rest:
        match = PIN.match(rest)
        assert match, f"{name}: not a pin with its hashes: {rest.splitlines()[0]}"
        found[match[1]] = match[2]
        rest = rest[match.end() :]
    return found


def extra(name: str) -> set[str]:
    """The projects in an extra of setup.cfg, and in the extras that it includes."""
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg", "utf-8")
    lines = parser["options.extras_require"][name].split("\n")
    return {re.split(r"[<>=!~ ]", line)[0].lower() for line in lines if line}


LOCKS = [name for name in FILES if re.fullmatch(r"requirements/.*\.txt", name)]
# Installed separately, because their versions conflict.
APART = frozenset(
    f"requirements/{name}.txt" for name in ("object-store-server", "key-test-servers")
)


def test_every_extra_has_a_lock_file() -> None:
    used = {f"requirements/{name}.txt" for name in ("dev", "lint", "package", "run")}
    assert set(LOCKS) == used | APART


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_file_contains_pins_with_hashes_and_agrees_with_the_others(name: str) -> None:
    assert pins(name)
    assert name in APART or pins(name).items() <= pins("requirements/dev.txt").items()


@pytest.mark.parametrize(
    ("name", "extras"),
    [
        ("run", ["release", "control", "web", "push"]),
        *(("lint", ["lint"]), ("package", ["package"])),
        ("dev", ["release", "object-store", "web", "test", "types", "dev"]),
    ],
    ids=["run", "lint", "package", "dev"],
)
def test_a_lock_file_contains_the_projects_of_its_extras(name: str, extras: list[str]) -> None:
    asked = set().union(*(extra(one) for one in extras))
    assert asked <= pins(f"requirements/{name}.txt").keys()
    # release-tools runs without a web framework.
    assert {"flask", "werkzeug", "jinja2", "gunicorn"}.isdisjoint(extra("release"))


NODE_LOCKS = [f"requirements/{name}/package-lock.json" for name in ("browser-tools", "lighthouse")]


@pytest.mark.parametrize("name", NODE_LOCKS)
def test_a_lock_file_of_node_contains_hashes_and_no_address(name: str) -> None:
    assert [name for name in FILES if name.endswith("package-lock.json")] == NODE_LOCKS
    packages = json.loads(text(name))["packages"]
    asked = json.loads(text(name.replace("package-lock", "package")))
    assert packages.pop("")["dependencies"] == asked["dependencies"]
    assert {f"node_modules/{project}" for project in asked["dependencies"]} <= packages.keys()
    assert [path for path, one in packages.items() if "integrity" not in one] == []
    assert [path for path, one in packages.items() if "resolved" in one] == []
