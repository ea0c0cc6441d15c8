"""Ids of another system: set for resources and projects, shown for bookings and customers."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from availability.models import Project, Resource
from bookings.models import AppCustomer
from tests.office.conftest import Enter
from tests.office.staff import faults, form_of, member
from tests.world import Tenant

pytestmark = pytest.mark.django_db

CUSTOMER = {"name": "Marty McFly", "email": "marty@example.com", "external_id": "crm-7"}
TIMES = {"start": "2030-03-04 09:00:00", "end": "2030-03-04 10:00:00"}
MODELS = {"resource": Resource, "project": Project}


def page_of(kind: str, pk: str) -> str:
    return reverse(f"admin:availability_{kind}_change", args=[pk])


def found(client: Client, page: str, term: str) -> list[str]:
    answer = client.get(reverse(f"admin:{page}_changelist"), {"q": term})
    return [str(row.pk) for row in answer.context["cl"].result_list]


@pytest.fixture
def rows(tenant: Tenant) -> dict[str, str]:
    """The ids of a resource and of a project."""
    resource = tenant.make_resource("Ada")["id"]
    return {"resource": resource, "project": tenant.make_project(resource)["id"]}


@pytest.mark.parametrize("kind", MODELS)
def test_id_is_set_changed_and_removed(tenant: Tenant, rows: dict[str, str], kind: str) -> None:
    owner = member(tenant.app, "owner")
    page, row = page_of(kind, rows[kind]), MODELS[kind].objects.get(id=rows[kind])

    stored = []
    for given in ("room/7", "room/8", ""):
        answer = owner.post(page, form_of(owner, page) | {"id_elsewhere": given})
        assert answer.status_code == 302, faults(answer)
        row.refresh_from_db()
        stored.append(row.external_id)

    assert stored == ["room/7", "room/8", None]


@pytest.mark.parametrize("kind", MODELS)
def test_taken_id_is_refused(tenant: Tenant, rows: dict[str, str], kind: str) -> None:
    tenant.put(f"/{kind}s/by-external-id/taken", {"name": "Bob", "timezone": "UTC"})
    owner = member(tenant.app, "owner")
    page = page_of(kind, rows[kind])

    answer = owner.post(page, form_of(owner, page) | {"id_elsewhere": "taken"})

    assert faults(answer) == {"id_elsewhere": ["This external id is already in use."]}


@pytest.mark.parametrize("kind", MODELS)
def test_other_changes_keep_the_id(tenant: Tenant, rows: dict[str, str], kind: str) -> None:
    tenant.put(f"/{kind}s/{rows[kind]}", {"external_id": "room/7"})
    owner = member(tenant.app, "owner")
    page = page_of(kind, rows[kind])

    owner.post(page, form_of(owner, page) | {"name": "Bea"})

    shown = tenant.get(f"/{kind}s/{rows[kind]}").data
    assert (shown["name"], shown["external_id"]) == ("Bea", "room/7")


@pytest.mark.parametrize("kind", MODELS)
def test_viewer_sees_the_id_and_searches_by_it(
    tenant: Tenant, rows: dict[str, str], kind: str, enter: Enter
) -> None:
    tenant.put(f"/{kind}s/{rows[kind]}", {"external_id": "room/7"})
    viewer = enter(tenant, "viewer")

    assert found(viewer, f"availability_{kind}", "room/7") == [rows[kind]]
    assert found(viewer, f"availability_{kind}", "room/8") == []
    assert "room/7" in viewer.get(page_of(kind, rows[kind])).text


def test_booking_and_customer_show_their_ids_and_are_found_by_them(
    tenant: Tenant, rows: dict[str, str], enter: Enter
) -> None:
    own: Any = {"resource_id": rows["resource"], "external_id": "inv 9", "customer": CUSTOMER}
    booking = tenant.book(**own, **TIMES).data["id"]
    later = {"start": "2030-03-05 09:00:00", "end": "2030-03-05 10:00:00"}
    tenant.book(resource_id=rows["resource"], **later)
    Tenant("other").make_resource("Eve")
    person = str(AppCustomer.objects.get(app=tenant.app).pk)
    viewer = enter(tenant, "viewer")

    assert found(viewer, "bookings_booking", " inv 9 ") == [booking]
    assert found(viewer, "bookings_booking", "crm-7") == [booking]
    assert found(viewer, "bookings_booking", "crm") == []
    assert found(viewer, "bookings_appcustomer", "crm-7") == [person]
    shown = viewer.get(reverse("admin:bookings_booking_change", args=[booking])).text
    assert [shown.count(each) for each in (">inv 9<", ">crm-7<")] == [1, 1]


def test_ids_of_another_app_are_not_found(
    tenant: Tenant, rows: dict[str, str], enter: Enter
) -> None:
    own: Any = {"resource_id": rows["resource"], "external_id": "inv-9", "customer": CUSTOMER}
    tenant.book(**own, **TIMES)
    stranger = enter(Tenant("other"), "owner")

    for term in ("inv-9", "crm-7"):
        assert found(stranger, "bookings_booking", term) == []
        assert found(stranger, "bookings_appcustomer", term) == []
