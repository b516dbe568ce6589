"""The pages in other languages: all of a page is translated, and there is room for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Page

import platform_common.web.application
from dev.messages import collected
from platform_common.web.language import language
from pwa_app.app import create_app
from pwa_app.settings import PwaSettings
from tests.browser.conftest import OpenPage
from tests.support.control_cli import FakeCtl
from tests.support.devices import Device
from tests.support.layout import clipped, sideways_scroll
from tests.support.pseudo_language import PseudoLanguage, leftovers, texts, values_of
from tests.support.scenes import SCENES, STATUSES, Scene, faulty_app, serving
from tests.support.wizard_states import SCENES as WIZARD_SCENES
from tests.support.wizard_states import known_values

WIDTHS = (320, 1280)
HEIGHT = 900
# Here values are made to look like anything; the texts around them are those of other states.
ODD = frozenset({"hostile", "long", "huge"})
# What a person may open or press is on the page as well.
UNFOLDED = "document.querySelectorAll('details').forEach(one => { one.open = true; })"

Show = Callable[[Scene], AbstractContextManager[str]]


@pytest.fixture
def show(device: Device, ctl: FakeCtl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Show:
    """Serve a dashboard that shows a scene, in this process."""

    @contextmanager
    def shown(scene: Scene) -> Iterator[str]:
        place = tmp_path / scene.state
        place.mkdir()
        environment = scene.prepare(FakeCtl(ctl.folder), place)
        monkeypatch.setenv("PATH", environment["PATH"])
        variables = {"PLATFORM_ROOT": str(device.root), **environment}
        with serving(create_app(PwaSettings.from_env(variables))) as url:
            yield url

    return shown


@pytest.fixture
def in_pseudo_language(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a browser asks for is answered in that language."""
    spoken = PseudoLanguage()
    monkeypatch.setattr(platform_common.web.application, "language", lambda _: spoken)


def too_narrow(page: Page) -> list[str]:
    """What has no room on the page that is open."""
    found = []
    page.evaluate(UNFOLDED)
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": HEIGHT})
        found += [f"{width} px: {fault}" for fault in (*sideways_scroll(page), *clipped(page))]
    return found


def not_german() -> set[str]:
    """The texts of ours that are another one in German."""
    said = {
        message.id: language("de").gettext(message.id)
        for message in collected()
        if isinstance(message.id, str)
    }
    return said.keys() - said.values()


def scenes(name: str) -> Iterator[Scene]:
    return (scene for scene in SCENES[name] if scene.state not in ODD)


@pytest.mark.usefixtures("in_pseudo_language")
@pytest.mark.parametrize("name", SCENES)
def test_all_of_a_page_is_translated_and_has_room_for_longer_texts(
    name: str, open_page: OpenPage, show: Show, ctl: FakeCtl
) -> None:
    page = open_page("about:blank", reduced_motion="reduce")
    found = []
    for scene in scenes(name):
        with show(scene) as url:
            for address in scene.addresses:
                page.goto(url + address)
                faults = [*leftovers(page, values_of(ctl)), *too_narrow(page)]
                found += [f"{scene.state} {address}: {fault}" for fault in faults]
            page.goto("about:blank")
    assert found == []


@pytest.mark.usefixtures("in_pseudo_language")
@pytest.mark.parametrize("state", [state for state in WIZARD_SCENES if state not in ODD])
def test_all_of_the_wizard_is_translated_and_has_room_for_longer_texts(
    state: str, open_page: OpenPage, tmp_path: Path
) -> None:
    page = open_page("about:blank", reduced_motion="reduce")
    found = []
    scene = WIZARD_SCENES[state]
    with serving(scene.app(tmp_path)) as url:
        for view in scene.views:
            view.open(page, url)
            faults = [*leftovers(page, known_values()), *too_narrow(page)]
            found += [f"{view.name}: {fault}" for fault in faults]
        page.goto("about:blank")
    assert found == []


@pytest.mark.usefixtures("in_pseudo_language")
def test_all_of_an_error_page_is_translated_and_has_room(open_page: OpenPage) -> None:
    page = open_page("about:blank")
    found = []
    with serving(faulty_app()) as url:
        for status in STATUSES:
            page.goto(f"{url}/error/{status}")
            found += [f"{status}: {fault}" for fault in (*leftovers(page, ()), *too_narrow(page))]
    assert found == []


@pytest.mark.usefixtures("in_pseudo_language")
def test_what_scripts_say_is_translated(open_page: OpenPage, show: Show, ctl: FakeCtl) -> None:
    (scene,) = SCENES["sample"]
    with show(scene) as url:
        page = open_page(f"{url}/app/dashboard")
        page.locator("#update-notice a").wait_for()
        assert leftovers(page, values_of(ctl)) == []
        page.goto(f"{url}/app/keys/openai")
        page.locator("[data-reveal]").click()
        assert leftovers(page, values_of(ctl)) == []
        page.goto(f"{url}/app/notifications")
        page.locator("#state [data-state=unknown]").wait_for(state="hidden")
        assert leftovers(page, values_of(ctl)) == []
        page.goto("about:blank")


@pytest.mark.parametrize("name", SCENES)
def test_a_german_page_has_no_english_text_and_has_room(
    name: str, open_page: OpenPage, show: Show
) -> None:
    english = not_german()
    page = open_page("about:blank", locale="de-CH", reduced_motion="reduce")
    found = []
    for scene in scenes(name):
        with show(scene) as url:
            for address in scene.addresses:
                page.goto(url + address)
                assert page.evaluate("document.documentElement.lang") == "de"
                faults = [text for text, _ in texts(page) if text in english] + too_narrow(page)
                found += [f"{scene.state} {address}: {fault}" for fault in faults]
            page.goto("about:blank")
    assert found == []


@pytest.mark.parametrize("state", [state for state in WIZARD_SCENES if state not in ODD])
def test_the_wizard_in_german_has_no_english_text_and_has_room(
    state: str, open_page: OpenPage, tmp_path: Path
) -> None:
    english = not_german()
    page = open_page("about:blank", locale="de-CH", reduced_motion="reduce")
    found = []
    scene = WIZARD_SCENES[state]
    with serving(scene.app(tmp_path)) as url:
        for view in scene.views:
            view.open(page, url)
            assert page.evaluate("document.documentElement.lang") == "de"
            faults = [text for text, _ in texts(page) if text in english] + too_narrow(page)
            found += [f"{view.name}: {fault}" for fault in faults]
        page.goto("about:blank")
    assert found == []


def test_a_text_that_is_not_translated_is_found(open_page: OpenPage) -> None:
    page = open_page("about:blank")
    page.set_content(
        '<html lang="en-XA"><b class="brand">kitchen</b><p>⟦Čóst⟧ 3 openai</p><p>Cost</p>'
        '<p lang="en">Cost</p><p aria-label="Cost">⟦Čóst⟧ of openai</p><code>ls</code>'
    )
    assert [fault.split(" in ")[0] for fault in leftovers(page, {"openai"})] == [
        "'Cost'",
        "'⟦Čóst⟧ of openai'",
        "'Cost'",
    ]


def test_a_text_without_room_is_found(open_page: OpenPage) -> None:
    page = open_page("about:blank")
    page.set_content(
        '<p style="width: 12em">Benachrichtigungen<p style="width: 5em">Benachrichtigungen'
        '<p style="height: 1em; overflow: hidden">Zwei<br>Zeilen'
    )
    assert len(clipped(page)) == 2
