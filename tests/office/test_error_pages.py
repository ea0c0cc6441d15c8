"""Error pages for people: what happened, and what to do next."""

from typing import Any

import pytest
from django.test import Client, override_settings
from django.urls import path, reverse

from apps_config.models import Membership
from scheduling import urls
from tests.office.conftest import Enter
from tests.world import Tenant


def fail(request: Any) -> None:
    raise RuntimeError("a bug")


urlpatterns = [path("admin/bug/", fail), *urls.urlpatterns]
handler403, handler404, handler500 = urls.handler403, urls.handler404, urls.handler500


def texts(answer: Any, *sentences: str) -> tuple[int, list[bool]]:
    page = answer.content.decode()
    return answer.status_code, [sentence in page for sentence in sentences]


def test_not_found_page(tenant: Tenant, enter: Enter) -> None:
    client = enter(tenant, Membership.VIEWER)

    inside = client.get("/admin/bookings/booking/nowhere/change/")
    outside = Client().get("/nowhere/")

    sentences = ("<h1>Page not found</h1>", "your account can't see it", 'href="/admin/"')
    assert texts(inside, *sentences) == (404, [True, True, True])
    assert texts(outside, *sentences) == (404, [True, False, False])


@pytest.mark.parametrize(
    ("language", "heading"),
    [("", "Page not found"), ("de-AT,en", "Seite nicht gefunden"), ("xx", "Page not found")],
)
def test_public_pages_are_not_found_in_the_look_of_the_booking_pages(
    db: None, language: str, heading: str
) -> None:
    client = Client(headers={"Accept-Language": language})

    for address in ("/book/", "/nowhere"):
        answer = client.get(address)

        assert texts(answer, f"<h1>{heading}</h1>", "bookings/page.css") == (404, [True, True])


@pytest.mark.parametrize("row", ["nowhere", "0193a4c2-0000-7000-8000-0000000000ff"])
@pytest.mark.parametrize("page", ["change", "delete", "history"])
def test_unknown_row_is_404(tenant: Tenant, enter: Enter, page: str, row: str) -> None:
    client = enter(tenant, Membership.EDITOR)

    answers = [
        client.get(reverse(f"admin:{model}_{page}", args=[row]))
        for model in ("availability_resource", "notifications_webhook", "availability_event")
    ]

    assert [answer.status_code for answer in answers if page != "delete"] == (
        [] if page == "delete" else [404] * 3
    )
    assert {answer.status_code for answer in answers} <= {403, 404}


def test_forbidden_page_sends_no_owner_to_an_owner(tenant: Tenant, enter: Enter) -> None:
    answer = enter(tenant, Membership.OWNER).get("/admin/apps_config/account/")

    sentences = ("This can't be done here", "Ask an owner")
    assert texts(answer, *sentences) == (403, [True, False])


def test_forbidden_page_names_the_account(tenant: Tenant, enter: Enter) -> None:
    answer = enter(tenant, Membership.VIEWER).get("/admin/apps_config/account/")

    account = f"viewer@{tenant.app.slug}.example.com"
    sentences = ("You don't have access to this page", f"logged in as {account}", 'href="/admin/"')
    assert texts(answer, *sentences) == (403, [True, True, True])


def test_expired_csrf_token_page(tenant: Tenant) -> None:
    answer = Client(enforce_csrf_checks=True).post("/admin/login/", {"username": "a"})

    assert texts(answer, "This page is out of date. Please reload.") == (403, [True])


@pytest.mark.django_db
@override_settings(ROOT_URLCONF="tests.office.test_error_pages")
def test_server_error_page_names_the_request() -> None:
    client = Client(raise_request_exception=False)

    answer = client.get("/admin/bug/", headers={"Service-Request-Id": "abc-1"})

    named = answer.headers["Service-Request-Id"]
    assert texts(answer, "Something went wrong", f"mention {named}.") == (500, [True, True])
