"""The preview of an app's look beside its form, in a real browser."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from apps_config.models import Account
from apps_config.services import store_logo
from tests.browser import Page, viewports
from tests.images import LOGO, image_file
from tests.office.conftest import Visit, member_of
from tests.office.test_set_up_in_a_browser import admin_page, set_value
from tests.world import Tenant

pytestmark = pytest.mark.django_db(transaction=True)

LOOK = {"accent_color": "#ff7700", "cover_text": "Welcome", "address": "Harbour Dental\nQuay 5"}
PRIVACY = "https://example.com/privacy"
FRAME = "document.querySelector('#branding-preview iframe').contentDocument"

COLOR = f"getComputedStyle({FRAME}.documentElement).getPropertyValue('--button').trim()"


@pytest.fixture
def owner(office: Tenant) -> Account:
    return member_of(office, "owner")


def publish(office: Tenant, ada: Any) -> None:
    office.make_project(ada["id"], slug="check-up", settings={"published": True})


def open_form(visit: Callable[..., Visit], office: Tenant, owner: Account, **window: Any) -> Visit:
    seen = visit(owner, admin_page("apps_config_app_change", office.app.pk), **window)
    seen.page.evaluate("document.querySelector('#branding-preview').scrollIntoView()")
    seen.page.wait_for(f"{FRAME}?.readyState === 'complete' && !!{FRAME}.querySelector('main')")
    return seen


def shown(seen: Visit) -> list[str]:
    """Colour of the arrows and frames, then each text of the app's own."""
    texts = f"[...{FRAME}.querySelectorAll('.cover, footer > *')].map(one => one.innerText)"
    return [seen.page.evaluate(COLOR), *seen.page.evaluate(texts)]


def wait_for_color(seen: Visit, color: str) -> None:
    seen.page.wait_for(f"{COLOR} === {color!r}")


@pytest.mark.parametrize(("width", "scheme"), viewports(only="wide"))
def test_preview_shows_unsaved_input(
    office: Tenant,
    ada: Any,
    owner: Account,
    visit: Callable[..., Visit],
    width: int,
    scheme: str,
) -> None:
    publish(office, ada)
    seen = open_form(visit, office, owner, width=width, scheme=scheme)
    before = shown(seen)

    for name, value in {**LOOK, "imprint_url": "https://example.com/imprint"}.items():
        set_value(seen.page, f"#id_{name}", value)
    colors = {"light": "#ad5100", "dark": "#ff7700"}
    wait_for_color(seen, colors[scheme])
    seen.page.save_screenshot(f"branding-preview-{width}-{scheme}")
    typed = shown(seen)
    set_value(seen.page, "#id_accent_color", "#ff77")
    unfinished = shown(seen)
    for name in (*LOOK, "imprint_url"):
        set_value(seen.page, f"#id_{name}", "")
    usual = {"light": "#1f4f99", "dark": "#9cc2ff"}[scheme]
    wait_for_color(seen, usual)
    emptied = shown(seen)

    assert before == [usual]
    assert typed == [colors[scheme], "Welcome", "Harbour Dental\nQuay 5", "Imprint"]
    assert unfinished == typed
    assert emptied == before
    office.app.refresh_from_db()
    assert "cover_text" not in office.app.settings  # nothing is saved


def test_preview_starts_with_saved_values(
    office: Tenant, ada: Any, owner: Account, visit: Callable[..., Visit]
) -> None:
    publish(office, ada)
    office.put(f"/apps/{office.app.slug}", {"settings": {**LOOK, "privacy_url": PRIVACY}})

    seen = open_form(visit, office, owner, scheme="light")
    saved = shown(seen)
    set_value(seen.page, "#id_accent_color", "")
    set_value(seen.page, "#id_privacy_url", "")
    wait_for_color(seen, "#1f4f99")

    assert saved == ["#ad5100", "Welcome", "Harbour Dental\nQuay 5", "Privacy"]
    assert shown(seen) == ["#1f4f99", "Welcome", "Harbour Dental\nQuay 5"]


def test_the_preview_shows_the_chosen_logo(
    office: Tenant, ada: Any, owner: Account, visit: Callable[..., Visit], tmp_path: Path
) -> None:
    publish(office, ada)
    store_logo(office.app, LOGO)
    file = tmp_path / "logo.png"
    file.write_bytes(image_file(size=(80, 40)))
    seen = open_form(visit, office, owner)
    before = seen.page.evaluate(LOGOS)

    seen.page.evaluate("document.querySelector('#id_removes_logo').click()")
    removed = seen.page.evaluate(LOGOS)
    choose_file(seen.page, "#id_logo_file", file)
    seen.page.wait_for(f"!!{FRAME}.querySelector('.chosen')?.naturalWidth")

    assert (before, removed) == ([9], [])
    assert seen.page.evaluate(LOGOS) == [80]


LOGOS = f"""
[...{FRAME}.querySelectorAll(".logo")].filter(one => one.checkVisibility())
  .map(one => one.naturalWidth)
"""


def choose_file(page: Page, selector: str, file: Path) -> None:
    document = page.send("DOM.getDocument")["root"]["nodeId"]
    found = page.send("DOM.querySelector", nodeId=document, selector=selector)
    page.send("DOM.setFileInputFiles", nodeId=found["nodeId"], files=[str(file)])


def test_no_preview_without_a_published_project(
    office: Tenant, owner: Account, visit: Callable[..., Visit]
) -> None:
    seen = visit(owner, admin_page("apps_config_app_change", office.app.pk))

    assert seen.page.evaluate("document.querySelectorAll('#branding-preview, iframe').length") == 0
    assert seen.page.evaluate("!!document.querySelector('#id_accent_color')")


def test_colour_is_picked_beside_the_text(
    office: Tenant, ada: Any, owner: Account, visit: Callable[..., Visit]
) -> None:
    publish(office, ada)
    seen = open_form(visit, office, owner)
    seen.expected = ["net::ERR_ABORTED"]  # the style of the colour before
    page = seen.page
    set_value(page, "#id_accent_color", "#FF7700")
    followed = page.evaluate("document.querySelector('.office-color').value")

    page.evaluate(
        "(() => { const picker = document.querySelector('.office-color'); picker.value = '#1f4f99';"
        " picker.dispatchEvent(new Event('input', {bubbles: true})); })()"
    )
    page.wait_for(f"!!{FRAME}.querySelector('link[href$=\"1f4f99.css\"]')")

    assert followed == "#ff7700"
    assert page.evaluate("document.querySelector('#id_accent_color').value") == "#1f4f99"
