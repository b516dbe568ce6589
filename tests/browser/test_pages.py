"""Every page in every state, opened once in each language and checked by every rule.

A fault names its rule, and where it was found: page, language, width, and font or light.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

import pytest
from flask import request
from playwright.sync_api import Page, Playwright

import platform_common.web
import platform_common.web.factory
from dev.messages import collected
from platform_common.web.language import Language, language
from tests.browser.conftest import OpenPage
from tests.support.accessibility import violations
from tests.support.browsers import CHROMIUM, FLAGS
from tests.support.dashboard_states import MARKUP
from tests.support.fonts import FONTS, fonts_of, only
from tests.support.layout import clipped, sideways_scroll, small_targets
from tests.support.markup import html_problems, parse_errors, style_problems
from tests.support.pseudo_language import PseudoLanguage, leftovers, texts
from tests.support.scenes import SCENES

PHONE, DESK = 320, 1280
HEIGHT = 900
# Content that a person can unfold is checked as well.
UNFOLDED = "document.querySelectorAll('details').forEach(one => { one.open = true; })"
# Elements that only occur if a text has become markup.
FOREIGN = "script:not([src]), main script, main [onerror], main img:not(.code)"
# These scenes show each page in one state; the other scenes take many times as long.
EVERY_DAY = ("sample", "logs-filtered", "wizard-answered", "wizard-set up")


def groups() -> Iterator[tuple[str, list[str]]]:
    """The scenes of each test: the scenes of one dashboard page are a group."""
    found: dict[str, list[str]] = {}
    for name in SCENES:
        alone = name in EVERY_DAY or name.startswith("wizard-")
        found.setdefault(name if alone else name.partition("-")[0], []).append(name)
    yield from found.items()


class Light(NamedTuple):
    """How colours are shown."""

    name: str
    scheme: Literal["light", "dark"]
    forced: Literal["active", "none"]


LIGHT, DARK, FORCED = LIGHTS = (
    Light("light", "light", "none"),
    Light("dark", "dark", "none"),
    Light("forced colours", "dark", "active"),
)
LAYOUT: Mapping[str, Callable[[Page], list[str]]] = {
    "sideways": sideways_scroll,
    "clipped": clipped,
    "target": small_targets,
}


class PageLanguage(NamedTuple):
    """A language that a browser asks for, and how to find texts in another language."""

    tag: str
    foreign: Callable[[Page, Collection[str]], list[str]]


@cache
def english() -> set[str]:
    """Our texts whose German translation differs."""
    said = {
        message.id: language("de").gettext(message.id)
        for message in collected()
        if isinstance(message.id, str)
    }
    return said.keys() - said.values()


def not_german(page: Page, _: Collection[str]) -> list[str]:
    found = [text for text, _ in texts(page) if text in english()]
    return found + ([] if page.locator("html[lang=de]").count() else ["the page is not German"])


ENGLISH = PageLanguage("en-GB", lambda page, known: [])
PSEUDO, GERMAN = PageLanguage("en-XA", leftovers), PageLanguage("de-CH", not_german)
SPOKEN = PseudoLanguage()


def pseudo_or(code: str) -> Language:
    """The language `code`, or the pseudo-language if the browser asks for it."""
    return SPOKEN if PSEUDO.tag in request.headers.get("Accept-Language", "") else language(code)


@pytest.fixture(autouse=True)
def _pseudo_language_is_available(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform_common.web.factory, "language", pseudo_or)


def layout_faults(page: Page, where: str) -> Iterator[str]:
    for rule, found in LAYOUT.items():
        yield from (f"{rule}: {where}: {fault}" for fault in found(page))


def faults_in_every_font(page: Page, width: int) -> Iterator[str]:
    # The page keeps the last font.
    for name, font in reversed(list(FONTS.items())):
        font.apply_to(page)
        yield from layout_faults(page, f"{width} px, {name}")


def faults_in_every_light(page: Page, width: int) -> Iterator[str]:
    for light in LIGHTS:
        page.emulate_media(color_scheme=light.scheme, forced_colors=light.forced)
        where = f"{width} px, {light.name}"
        # The other lights only change the colours.
        found = violations(page, colours_alone=light is not LIGHT)
        yield from (f"axe: {where}: {fault}" for fault in found)
        if light is FORCED:
            # Forced colours have their own style rules.
            yield from layout_faults(page, where)
    page.emulate_media(color_scheme=LIGHT.scheme, forced_colors=LIGHT.forced)


def faults(page: Page, page_language: PageLanguage, known: Collection[str] = ()) -> Iterator[str]:
    """The faults of the open page; each begins with its rule."""
    yield from (
        f"text: {page_language.tag}: {fault}" for fault in page_language.foreign(page, known)
    )
    if page.locator(FOREIGN).count():
        yield f"markup: {page.locator(FOREIGN).first.evaluate('e => e.outerHTML')}"
    page.evaluate(UNFOLDED)
    for width in (PHONE, DESK):
        page.set_viewport_size({"width": width, "height": HEIGHT})
        yield from faults_in_every_font(page, width)
        if page_language is ENGLISH:
            yield from faults_in_every_light(page, width)


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(names, id=name, marks=[] if name in EVERY_DAY else pytest.mark.long)
        for name, names in groups()
    ],
)
def test_cli_14_http_14_and_n22_a_page_passes_every_rule(
    names: list[str], open_page: OpenPage, tmp_path: Path
) -> None:
    # Without motion, colours change at once.
    pages = {
        page_language: open_page("about:blank", locale=page_language.tag)
        for page_language in (ENGLISH, PSEUDO, GERMAN)
    }
    found, documents = [], {}
    for name in names:
        scene, folder = SCENES[name], tmp_path / name
        folder.mkdir()
        with scene.staged(folder) as stage:
            for page_language, page in pages.items():
                if scene.odd and page_language is not ENGLISH:
                    continue
                for view in scene.views:
                    about = f"{name}, {view.name}"
                    answer = view.open(page, stage.url)
                    assert view.status in {None, answer.status}, about
                    found += [
                        f"{about}: {fault}" for fault in faults(page, page_language, stage.known)
                    ]
                    if page_language is ENGLISH:
                        documents[about] = html = answer.text()
                        found += [f"{about}: html: {fault}" for fault in parse_errors(html)]
                    if name == "wizard-hostile":
                        assert MARKUP[:20] in page.inner_text("body"), about
                # The page stops polling before the app ends.
                page.goto("about:blank")
    found += html_problems(documents)
    assert not found, "\n".join(found)


def test_the_page_for_a_wrong_host_name_passes_every_rule(stranger: Page, tmp_path: Path) -> None:
    with SCENES["errors"].staged(tmp_path) as stage:
        answer = stranger.goto(stage.url.replace("127.0.0.1", "a-name-of-another-device.example"))
        assert answer is not None
        assert answer.status == 421
        # Under this name even the stylesheet is refused, so the browser chooses the colours.
        assert [*violations(stranger), *sideways_scroll(stranger)] == []


def test_texts_of_scripts_are_translated(open_page: OpenPage, tmp_path: Path) -> None:
    page = open_page("about:blank", locale=PSEUDO.tag)
    with SCENES["sample"].staged(tmp_path) as stage:
        page.goto(f"{stage.url}/app/dashboard")
        page.locator("#update-notice a").wait_for()
        assert leftovers(page, stage.known) == []
        page.goto(f"{stage.url}/app/keys/openai")
        page.locator("[data-reveal]").click()
        assert leftovers(page, stage.known) == []
        page.goto(f"{stage.url}/app/notifications")
        page.locator("#state [data-state=unknown]").wait_for(state="hidden")
        assert leftovers(page, stage.known) == []
        page.goto("about:blank")


def test_the_stylesheet_is_valid() -> None:
    assert style_problems(Path(platform_common.web.__path__[0]) / "static/style.css") == []


# The rules themselves: each finds its faults, and no others.

FRAME = "<!DOCTYPE html><html lang={}><title>Test</title><main><h1>{}</h1>{}</main>"


# A page: the rules that it breaks, the number of faults, the language, and the content.
FAULTY: Mapping[str, tuple[set[str], int, PageLanguage, str]] = {
    "fit": (set(), 0, ENGLISH, "<p>Text</p>"),
    # At both widths, in two lights.
    "pale": ({"axe"}, 4, ENGLISH, "<p style='color: #aaa'>Pale</p>"),
    # In all fonts, and in forced colours.
    "small": ({"target"}, 10, ENGLISH, "<button style='width: 20px; height: 60px'>x</button>"),
    # The element, and the page, which scrolls.
    "far": ({"sideways"}, 20, ENGLISH, "<p style='position: absolute; left: 2000px'>Far</p>"),
    "wide-and-high": (
        *({"clipped"}, 2 * 2 * 4, GERMAN),
        (
            "<p style='width: 10em; height: 1em; overflow: hidden'>Zwei<br>Zeilen"
            "<p style='width: 5em'>Benachrichtigungen"
        ),
    ),
    "not-german": ({"text"}, 1, GERMAN, "<p>3</p><p>Save</p>"),
    "not-translated": (
        *({"text"}, 3, PSEUDO),
        (
            "<b class=brand>kitchen</b><p>⟦Čóst⟧ 3 openai</p><p>Cost</p><p lang=en>Cost</p>"
            "<p aria-label=Cost>⟦Čóst⟧ of openai</p><code>ls</code>"
        ),
    ),
    "markup": ({"markup"}, 1, GERMAN, "<img alt='' src=data:,>"),
    # Only in the widest font, and at the smaller width.
    "in-one-font": (
        *({"clipped"}, 1, GERMAN),
        (
            "<p style='width: 80vw; font-family: var(--font); white-space: nowrap'>"
            "Seit dem letzten Neustart"
        ),
    ),
}


@pytest.mark.parametrize(
    ("rules", "count", "page_language", "content"), FAULTY.values(), ids=FAULTY
)
def test_each_rule_finds_its_faults(
    rules: set[str], count: int, page_language: PageLanguage, content: str, open_page: OpenPage
) -> None:
    page = open_page("about:blank")
    language_, title = ("de", "3") if page_language is GERMAN else (page_language.tag, "⟦Tést⟧")
    page.set_content(FRAME.format(language_, title, content).replace("<title>Test", "<title>3"))
    found = list(faults(page, page_language, {"openai"}))
    assert ({fault.partition(":")[0] for fault in found}, len(found)) == (rules, count), found


def test_invalid_html_is_found_by_both_parsers() -> None:
    broken = "<!DOCTYPE html><html lang=en><title>Test</title><p>Text<img src=a></b>"
    assert len(parse_errors(broken)) == 1
    # The fast parser finds one fault; the other also finds that the image has no alternative text.
    assert len(html_problems({"broken": broken})) == 2


# The fonts: the browser really uses each of them, as on a machine without other fonts.


def test_the_browser_draws_with_each_font_and_the_last_is_the_widest(open_page: OpenPage) -> None:
    page = open_page("about:blank")
    page.set_content(
        "<style>p { width: fit-content; font: 16px var(--font, system-ui) }</style>"
        "<p>Benachrichtigungen 0123456789"
        "<p style='font-weight: 700'>Benachrichtigungen 0123456789"
        "<p style='font-family: var(--mono, monospace)'>Benachrichtigungen 0123456789"
    )
    widths = []
    for font in (None, *FONTS.values()):
        if font is not None:
            font.apply_to(page)
        drawn = font or FONTS["DejaVu"]
        for number, family in enumerate((drawn.sans, drawn.sans, drawn.mono), 1):
            assert fonts_of(page, f"p:nth-child({number})") == {family}
        boxes = "[...document.querySelectorAll('p')].map(e => e.getBoundingClientRect().width)"
        widths.append(page.evaluate(boxes))
    *others, widest = widths
    for kind, width in enumerate(widest):
        assert width > 1.15 * max(one[kind] for one in others)


@pytest.mark.parametrize("name", FONTS)
def test_a_page_has_the_same_width_without_other_fonts(
    name: str, playwright: Playwright, open_page: OpenPage, tmp_path: Path
) -> None:
    font = FONTS[name]
    boxes = "[...document.querySelectorAll('h1, label, button')].map(e => e.offsetWidth)"
    alone = playwright.chromium.launch(
        executable_path=CHROMIUM, args=FLAGS, env=only(tmp_path / "fonts", font)
    )
    with SCENES["logs-filtered"].staged(tmp_path) as stage:
        pages = alone.new_page(locale="de"), open_page("about:blank", locale="de")
        found = []
        for page in pages:
            page.set_viewport_size({"width": PHONE, "height": HEIGHT})
            SCENES["logs-filtered"].views[0].open(page, stage.url)
            if page is pages[1]:
                font.apply_to(page)
            assert fonts_of(page, "h1") == {font.sans}
            assert list(layout_faults(page, name)) == []
            found.append(page.evaluate(boxes))
            page.goto("about:blank")
    alone.close()
    assert found[0] == found[1]
