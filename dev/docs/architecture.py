"""Draws who imports whom, from the imports themselves, into docs/architecture.md.

`make docs` runs this; a test fails when the page or the picture is out of date.
"""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from html import escape

from dev.distributions import ROOT
from dev.docs.imports import PARTS, graph, part_of

PAGE = ROOT / "docs/architecture.md"
PICTURE = ROOT / "docs/architecture.svg"
BEGIN, END = "<!-- imports: begin -->\n", "<!-- imports: end -->\n"
_COMMON = "platform_common"

Rooms = Mapping[str, Collection[str]]


def rooms(modules: Mapping[str, Collection[str]]) -> Rooms:
    """Every part and every folder in one (a "room"), with the other rooms that it imports."""
    found: dict[str, set[str]] = {}
    for module, imported in modules.items():
        of_module = found.setdefault(_room(module, modules), set())
        of_module |= {_room(other, modules) for other in imported}
    return {room: sorted(found[room] - {room}) for room in sorted(found)}


def _room(module: str, modules: Collection[str]) -> str:
    part = part_of(module)
    folder = f"{part}.{module.removeprefix(part).lstrip('.').partition('.')[0]}"
    has_modules = any(other.startswith(f"{folder}.") for other in modules)
    return folder if has_modules else part


def page(text: str, found: Rooms) -> str:
    """Return the page `text` with the tables for `found`."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{''.join(_tables(found))}\n{END}{after}"


def _tables(found: Rooms) -> Iterator[str]:
    imports = _between_parts(found)
    yield _row(["imports →", *(f"`{part}`" for part in PARTS)])
    yield _row(["---"] * (len(PARTS) + 1))
    for part, allowed in PARTS.items():
        words = (
            "itself"
            if other == part
            else "**yes**"
            if other in imports[part]
            else "may"
            if other in allowed
            else "no"
            for other in PARTS
        )
        yield _row([f"`{part}`", *words])
    yield "\n"
    yield _row(["folder", "imports from its own part", "from other parts, except the common one"])
    yield _row(["---"] * 3)
    for room, others in found.items():
        if not _is_common(room):
            own = [other for other in others if part_of(other) == part_of(room)]
            far = [other for other in others if other not in own and not _is_common(other)]
            yield _row([f"`{room}`", _listed(map(_short, own)), _listed(far)])
    yield "\n"
    yield _row(["folder of the common part", "is imported by", "and inside the common part by"])
    yield _row(["---"] * 3)
    for room in filter(_is_common, found):
        users = [other for other, imported in found.items() if room in imported]
        far = sorted({part_of(user) for user in users if not _is_common(user)})
        own = [_within_common(user) for user in users if _is_common(user)]
        yield _row([f"`{room}`", _listed(far), _listed(own)])


def _is_common(room: str) -> bool:
    return part_of(room).startswith(_COMMON)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _short(room: str) -> str:
    """The name of a folder; `top` for the modules that are in no folder of a part."""
    return room.removeprefix(f"{part_of(room)}.") if room != part_of(room) else "top"


def _within_common(room: str) -> str:
    """The name of a folder below the common package, of which `web` is a part of its own."""
    return room.removeprefix(_COMMON).lstrip(".") or "top"


def _row(cells: Collection[str]) -> str:
    return f"| {' | '.join(cells)} |\n".replace("  ", " ")


def _between_parts(found: Rooms) -> dict[str, set[str]]:
    imports: dict[str, set[str]] = {part: set() for part in PARTS}
    for room, others in found.items():
        imports[part_of(room)] |= {part_of(other) for other in others} - {part_of(room)}
    return imports


_WIDTH, _HEIGHT, _LINE, _GAP_X, _GAP_Y = 300, 100, 18, 25, 55
_CHARACTERS = 40


def picture(found: Rooms) -> str:
    """Draw the parts as boxes with their rooms, each above everything that it imports."""
    imports = _between_parts(found)

    @cache
    def level(part: str) -> int:
        return max((level(other) + 1 for other in imports[part]), default=0)

    rows = [[part for part in PARTS if level(part) == n] for n in range(max(map(level, PARTS)) + 1)]
    width = max(map(len, rows)) * (_WIDTH + _GAP_X) + _GAP_X
    height = len(rows) * (_HEIGHT + _GAP_Y) + _GAP_X
    corners = {
        part: (
            (width - len(row) * (_WIDTH + _GAP_X) + _GAP_X) // 2 + place * (_WIDTH + _GAP_X),
            _GAP_X + (len(rows) - 1 - n) * (_HEIGHT + _GAP_Y),
        )
        for n, row in enumerate(rows)
        for place, part in enumerate(row)
    }
    shapes = [*_arrows(imports, corners), *_boxes(found, corners)]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
        ' font-family="sans-serif" font-size="14" role="img">\n'
        "<title>Who imports whom</title>\n"
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>\n'
        '<marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8"'
        ' markerHeight="8" orient="auto"><path d="M0 0 10 5 0 10z" fill="#47525e"/></marker>\n'
        f"{''.join(shapes)}</svg>\n"
    )


def _arrows(
    imports: Mapping[str, Collection[str]], corners: Mapping[str, tuple[int, int]]
) -> Iterator[str]:
    """Yield an arrow for each import between parts, unless a longer path leads there too."""
    for part, others in imports.items():
        x, y = corners[part]
        for other in sorted(others):
            if not any(other in imports[between] for between in others):
                to_x, to_y = corners[other]
                yield (
                    f'<line x1="{x + _WIDTH // 2}" y1="{y + _HEIGHT}" x2="{to_x + _WIDTH // 2}"'
                    f' y2="{to_y}" stroke="#47525e" stroke-width="2" marker-end="url(#tip)"/>\n'
                )


def _boxes(found: Rooms, corners: Mapping[str, tuple[int, int]]) -> Iterator[str]:
    for part, (x, y) in corners.items():
        yield (
            f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="8"'
            ' fill="#eef3f8" stroke="#47525e"/>\n'
            f'<text x="{x + 14}" y="{y + 26}" font-weight="bold" fill="#1b2733">{part}</text>\n'
        )
        names = [_short(room) for room in found if part_of(room) == part and room != part]
        for number, line in enumerate(textwrap.wrap(", ".join(names), _CHARACTERS), 1):
            yield (
                f'<text x="{x + 14}" y="{y + 30 + number * _LINE}" fill="#1b2733">'
                f"{escape(line)}</text>\n"
            )


def main() -> None:
    """Write the page and the picture."""
    found = rooms(graph())
    PAGE.write_text(page(PAGE.read_text("utf-8"), found), "utf-8")
    PICTURE.write_text(picture(found), "utf-8")


if __name__ == "__main__":
    main()
