"""What leads customers to a project's page: link, QR code, poster, signature."""

from collections.abc import Callable
from html import unescape
from typing import Any

import pytest
from django.urls import reverse

from apps_config.models import Membership
from office.resources.share import qr_code
from tests.browser import Browser
from tests.office.conftest import Enter, Visit
from tests.world import Tenant

PAGES = ("project_share", "project_qr", "project_poster")


@pytest.fixture
def project(tenant: Tenant) -> Any:
    return tenant.make_project(name="Check-up <1>", slug="check-up")


def address(page: str, project: Any) -> str:
    return reverse(f"admin:{page}", args=[project["id"]])


def test_page_offers_link_code_and_texts(
    tenant: Tenant, project: Any, enter: Enter, settings: Any
) -> None:
    settings.PUBLIC_URL = "https://bookings.example.com"
    client = enter(tenant, Membership.VIEWER)

    answer = client.get(address("project_share", project))

    page = "https://bookings.example.com/book/check-up"
    signature = f'<p><a href="{page}">Book an appointment: Check-up &lt;1&gt;</a></p>'
    assert answer.context["address"] == page
    assert answer.context["signature"] == signature
    assert f">{signature}</div>" in answer.text
    assert signature in unescape(answer.text)
    assert [kind for kind, _, _ in answer.context["snippets"]] == ["inline", "popup", "button"]
    assert "The page is not published." not in answer.text


def test_code_is_an_svg_of_the_address(
    tenant: Tenant, project: Any, enter: Enter, settings: Any
) -> None:
    settings.PUBLIC_URL = "https://bookings.example.com"
    client = enter(tenant, Membership.VIEWER)

    shown = client.get(address("project_qr", project))
    saved = client.get(address("project_qr", project) + "?download")

    assert shown.content == qr_code("https://bookings.example.com/book/check-up")
    assert shown.content.startswith(b"<svg ")
    assert (shown["Content-Type"], "Content-Disposition" in shown) == ("image/svg+xml", False)
    assert saved["Content-Disposition"] == 'attachment; filename="check-up-qr.svg"'
    assert saved.content == shown.content


def test_poster_has_the_language_of_the_project(tenant: Tenant, enter: Enter) -> None:
    german = tenant.make_project(name="Kontrolle", settings={"language": "de"})

    answer = enter(tenant).get(address("project_poster", german))

    assert '<html lang="de">' in answer.text
    assert '<h1 dir="auto">Kontrolle</h1>' in answer.text
    assert "Scannen und Termin buchen" in answer.text


def test_unpublished_page_is_said_to_be_so(tenant: Tenant, enter: Enter) -> None:
    hidden = tenant.make_project(settings={"published": False})

    answer = enter(tenant).get(address("project_share", hidden))

    assert "The page is not published." in answer.text


@pytest.mark.parametrize("page", PAGES)
def test_project_of_another_app_is_not_found(tenant: Tenant, enter: Enter, page: str) -> None:
    other = Tenant("globex").make_project()

    assert enter(tenant).get(address(page, other)).status_code == 404


@pytest.mark.parametrize("width", [390, 1280])
def test_texts_are_copied_and_the_poster_opens(
    browser: Browser, office: Tenant, editor: Any, visit: Callable[..., Visit], width: int
) -> None:
    project = office.make_project(name="Check-up", slug="check-up")
    visited = visit(editor, f"/admin/availability/project/{project['id']}/change/", width=width)
    page = visited.page
    share = address("project_share", project)
    assert page.evaluate(f"!!document.querySelector('a[href=\"{share}\"]')")

    visited.go(share)
    page.click("[data-copy=signature]")
    page.wait_for("!!document.querySelector('#copied').innerText")
    loaded = page.evaluate("document.querySelector('.office-qr').naturalWidth > 0")
    page.save_screenshot(f"share-{width}", whole=True)
    visited.go(address("project_poster", project))
    page.save_screenshot(f"poster-{width}", whole=True)

    assert loaded
    assert page.texts("h1, .scan") == ["Check-up", "Scan to book"]
