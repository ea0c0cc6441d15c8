"""The page at `/`: links to what runs, no secrets, and little in production."""

from typing import Any

import pytest
from django.test import Client

from tests.world import Tenant

pytestmark = pytest.mark.django_db


POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self' data:; base-uri 'none';"
    " frame-ancestors 'none'; {more}form-action 'self'"
)


def links(client: Client) -> list[str]:
    page = client.get("/")
    assert page.status_code == 200
    return [part.partition('"')[0] for part in page.content.decode().split('<a href="')[1:]]


def test_home_links_to_demo_and_staff_pages() -> None:
    tenant = Tenant("demo")
    tenant.make_project(tenant.make_resource()["id"], name="Check-up")

    found = links(Client())
    page = Client().get("/")

    assert found == [
        *("/book/check-up", "/book/demo/mine", "/admin/", "/docs"),
        *("/admin/e-mails/", "/admin/calendar/", "/admin/bookings/booking/"),
    ]
    assert 'data-booking-inline="check-up"' in page.text
    more = "script-src 'self'; frame-src 'self'; "
    assert page["Content-Security-Policy"] == POLICY.format(more=more)


def test_unpublished_demo_is_not_linked() -> None:
    tenant = Tenant("demo")
    tenant.make_project(tenant.make_resource()["id"], settings={"published": False})

    assert links(Client()) == ["/admin/", "/docs"]
    page = Client().get("/")
    assert "<script" not in page.text
    assert page["Content-Security-Policy"] == POLICY.format(more="")


def test_production_home_has_few_links_and_no_queries(
    settings: Any, django_assert_num_queries: Any
) -> None:
    settings.HTTPS = True

    with django_assert_num_queries(0):
        found = links(Client())

    assert found == ["/admin/", "/docs"]
