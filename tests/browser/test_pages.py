"""Every page in every state, narrow and wide: light, dark and in forced colours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

import pytest
from playwright.sync_api import Page

import platform_common.web
from pwa_app.app import create_app
from pwa_app.settings import PwaSettings
from tests.browser.conftest import OpenPage, ServeDashboard
from tests.support.accessibility import violations
from tests.support.control_cli import FakeCtl
from tests.support.devices import Device
from tests.support.layout import sideways_scroll, small_targets
from tests.support.markup import html_problems, parse_errors, style_problems
from tests.support.scenes import SCENES, STATUSES, Scene, faulty_app, faulty_dashboard, serving
from tests.support.wizard_states import SCENES as WIZARD_SCENES

WIDTHS = (320, 1280)
HEIGHT = 900
BROKEN = "<!DOCTYPE html><html lang=en><title>Test</title><p>Text<img src=a></b>"


class Light(NamedTuple):
    """How colours are shown."""

    name: str
    scheme: Literal["light", "dark"]
    forced: Literal["active", "none"]


LIGHTS = (
    Light("light", "light", "none"),
    Light("dark", "dark", "none"),
    Light("forced colours", "dark", "active"),
)


def faults(page: Page, lights: Iterable[Light] = LIGHTS) -> Iterator[str]:
    """What is wrong with the page that is open, at every width and in every light."""
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": HEIGHT})
        for light in lights:
            page.emulate_media(color_scheme=light.scheme, forced_colors=light.forced)
            # Dark is the same page in other colours; forced colours have rules of style.
            dark = light.name == "dark"
            found = violations(page, colours_alone=dark)
            if not dark:
                found += [*sideways_scroll(page), *small_targets(page)]
            yield from (f"{width} px, {light.name}: {fault}" for fault in found)


def environments(
    scenes: tuple[Scene, ...], ctl: FakeCtl, folder: Path
) -> Iterator[tuple[Scene, Mapping[str, str]]]:
    """Each scene, set up, with the environment of the dashboard that shows it."""
    for scene in scenes:
        # Nothing is left of what the control CLI answered before.
        afresh = FakeCtl(ctl.folder)
        place = folder / scene.state
        place.mkdir(parents=True)
        yield scene, scene.prepare(afresh, place)


@pytest.mark.parametrize("name", SCENES)
def test_a_page_is_fit_for_everybody_in_every_state(
    name: str, open_page: OpenPage, serve_dashboard: ServeDashboard, ctl: FakeCtl, tmp_path: Path
) -> None:
    # Without motion, colours change at once.
    page = open_page("about:blank", reduced_motion="reduce")
    running: dict[frozenset[tuple[str, str]], str] = {}
    found = []
    for scene, environment in environments(SCENES[name], ctl, tmp_path):
        key = frozenset(environment.items())
        if key not in running:
            running[key] = serve_dashboard(**environment).url
        for address in scene.addresses:
            page.goto(running[key] + address)
            found += [f"{scene.state} {address}: {fault}" for fault in faults(page)]
    assert found == []


@pytest.mark.parametrize("state", WIZARD_SCENES)
def test_n22_a_page_of_the_wizard_is_fit_for_everybody(
    state: str, open_page: OpenPage, tmp_path: Path
) -> None:
    page = open_page("about:blank", reduced_motion="reduce")
    scene = WIZARD_SCENES[state]
    found, seen = [], set()
    with serving(scene.app(tmp_path)) as url:
        for view in scene.views:
            view.open(page, url)
            kind = (view.address, view.form is None)
            # A page with odd values, or with another error, has the colours that it had before.
            known = state in {"hostile", "long"} or kind in seen
            seen.add(kind)
            lights = LIGHTS[:1] if known else LIGHTS
            found += [f"{view.name}: {fault}" for fault in faults(page, lights)]
        page.goto("about:blank")
    assert found == []


def test_an_error_page_is_fit_for_everybody(open_page: OpenPage) -> None:
    page = open_page("about:blank", reduced_motion="reduce")
    found = []
    with faulty_dashboard() as url:
        for status in STATUSES:
            answer = page.goto(f"{url}/error/{status}")
            assert answer is not None
            assert answer.status == status
            found += [f"{status}: {fault}" for fault in faults(page)]
    assert found == []


def test_the_page_for_a_wrong_name_is_fit_for_everybody(stranger: Page) -> None:
    with faulty_dashboard() as url:
        answer = stranger.goto(url.replace("127.0.0.1", "a-name-of-another-device.example"))
        assert answer is not None
        assert answer.status == 421
        # To this name not even the stylesheet is given, so the browser chooses the colours.
        assert [*violations(stranger), *sideways_scroll(stranger)] == []


@pytest.fixture
def documents(device: Device, ctl: FakeCtl, tmp_path: Path) -> Mapping[str, str]:
    """The HTML of every page in every state, by a name."""
    found = {}
    for name, scenes in SCENES.items():
        for scene, environment in environments(scenes, ctl, tmp_path / name):
            variables = {"PLATFORM_ROOT": str(device.root), **environment}
            client = create_app(PwaSettings.from_env(variables)).test_client()
            for address in scene.addresses:
                found[f"{scene.state} {address}"] = client.get(address).text
    for state, of_wizard in WIZARD_SCENES.items():
        client = of_wizard.app(tmp_path / f"wizard-{state}").test_client()
        found |= {f"wizard, {state}, {view.name}": view.html(client) for view in of_wizard.views}
    client = faulty_app().test_client()
    return found | {f"{status}": client.get(f"/error/{status}").text for status in STATUSES}


def test_every_page_is_valid_html(documents: Mapping[str, str]) -> None:
    assert {
        name: errors for name, html in documents.items() if (errors := parse_errors(html))
    } == {}
    assert html_problems(documents) == []


def test_the_stylesheet_is_valid() -> None:
    assert style_problems(Path(platform_common.web.__path__[0]) / "static/style.css") == []


def test_a_page_out_of_form_is_found_by_the_quick_parser() -> None:
    assert len(parse_errors(BROKEN)) == 1


def test_a_page_that_is_unfit_is_found_out(open_page: OpenPage) -> None:
    page = open_page("about:blank")
    page.set_content(
        "<!DOCTYPE html><html lang=en><title>Test</title><main><h1>Test</h1>"
        "<button style='width: 20px; height: 60px'>x</button><p style='color: #aaa'>Pale</p>"
        "<p style='width: 2000px'>Wide</p></main>"
    )
    assert [found.partition(":")[0] for found in violations(page)] == ["color-contrast"]
    assert [found.partition(":")[0] for found in small_targets(page)] == ["20 by 60"]
    assert len(sideways_scroll(page)) == 2
