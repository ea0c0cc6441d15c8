"""The page at `/`: links to what runs, no secrets, and little in production."""

from typing import Any

import pytest
from django.test import Client

from tests.world import Tenant

pytestmark = pytest.mark.django_db


def links(client: Client) -> list[str]:
    page = client.get("/")
    assert page.status_code == 200
    return [part.partition('"')[0] for part in page.content.decode().split('<a href="')[1:]]


def test_home_links_to_demo_and_staff_pages() -> None:
    tenant = Tenant("demo")
    tenant.make_project(tenant.make_resource()["id"], name="Check-up")

    found = links(Client())

    assert found == ["/book/check-up", "/admin/", "/docs", "/admin/e-mails/"]


def test_unpublished_demo_is_not_linked() -> None:
    tenant = Tenant("demo")
    tenant.make_project(tenant.make_resource()["id"], settings={"published": False})

    assert links(Client()) == ["/admin/", "/docs", "/admin/e-mails/"]


def test_production_home_has_few_links_and_no_queries(
    settings: Any, django_assert_num_queries: Any
) -> None:
    settings.HTTPS = True

    with django_assert_num_queries(0):
        found = links(Client())

    assert found == ["/admin/", "/docs"]
