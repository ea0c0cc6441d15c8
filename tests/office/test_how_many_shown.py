"""Bookings of several units, people, seats at a place, or steps: the export and the desk."""

import csv
import io
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from tests.office.conftest import logged_in, member_of
from tests.world import Tenant

pytestmark = pytest.mark.usefixtures("clock")

DAY = "2026-11-24"
MARTY = {"name": "Marty", "email": "marty@example.com"}
NINE = {"start": f"{DAY}T09:00:00Z", "end": f"{DAY}T10:30:00Z"}


@pytest.fixture
def editor(tenant: Tenant) -> Client:
    """Of an app with three of four bikes, a table for six, two seats on a balcony and a visit."""
    bikes = tenant.make_resource("Bikes", "UTC", capacity=4)
    table = tenant.make_resource("Table", "UTC", party={"min": 1, "max": 6})
    hall = tenant.make_resource("Hall", "UTC")
    hanna, ada = (tenant.make_resource(name, "UTC") for name in ("=Hanna", "Ada"))
    steps = [
        {"name": "cleaning", "length": "30 mins", "resources": [hanna["id"]]},
        {"name": "check-up", "length": "1 hour", "resources": [ada["id"]]},
    ]
    visit = tenant.post("/projects", {"name": "Visit", "steps": steps}).data
    group = tenant.book(
        graph="group_owner",
        resource_id=hall["id"],
        what="Concert",
        settings={"places": {"=balcony": 5}},
        **NINE,
    ).data
    seats = {"related": {"owner_booking_id": group["id"]}, "quantity": 2, "place": "=balcony"}
    given: list[dict[str, Any]] = [
        {"resource_id": bikes["id"], "what": "Bike", "quantity": 3, **NINE},
        {"resource_id": table["id"], "what": "Dinner", "party_size": 6, **NINE},
        {"graph": "group_customer", **seats},
        {"project_id": visit["id"], "what": "Visit", **NINE},
    ]
    for body in given:
        answer = tenant.book(customer=MARTY, **body)
        assert answer.status == 201, answer.json
    return logged_in(member_of(tenant, "editor"))


def test_export_has_numbers_resources_and_steps(
    editor: Client, django_assert_num_queries: Any
) -> None:
    answer = editor.get(reverse("admin:bookings_booking_export_rows")).json()

    rows = [
        tuple(row[name] for name in ("what", "quantity", "party_size", "place", "resources"))
        for row in csv.DictReader(io.StringIO(answer["csv"]))
    ][::-1]
    steps = next(csv.DictReader(io.StringIO(answer["csv"])))["steps"]
    assert rows == [
        ("Concert", "1", "", "", "Hall"),
        ("Bike", "3", "", "", "Bikes"),
        ("Dinner", "1", "6", "", "Table"),
        ("Concert", "2", "", "'=balcony", "Hall"),
        ("Visit", "1", "", "", "'=Hanna; Ada"),
    ]
    assert steps == (
        f"cleaning {DAY}T09:00:00+00:00/{DAY}T09:30:00+00:00 =Hanna;"
        f" check-up {DAY}T09:30:00+00:00/{DAY}T10:30:00+00:00 Ada"
    )


def test_desk_shows_numbers_people_and_steps(editor: Client) -> None:
    page = editor.get("/admin/", {"day": DAY}).content.decode()

    for title in (
        "3 × Bike · Marty",
        "Dinner · Marty · People: 6",
        "Concert (2 of 5)",
        "cleaning · Marty",
        "check-up · Marty",
    ):
        assert page.count(title) >= 1, title


def test_day_sheet_has_numbers_people_and_places(editor: Client) -> None:
    sheets = editor.get(reverse("admin:day_sheet"), {"day": DAY}).context["tables"]

    found = {
        (column.resource.name, row.what): row.answers for column, rows in sheets for row in rows
    }
    assert found == {
        ("Bikes", "Bike"): [("Number", "3")],
        ("Table", "Dinner"): [("People", "6")],
        ("Hall", "Concert (2 of 5)"): [("Number", "2"), ("Place", "=balcony")],
        ("=Hanna", "cleaning"): [],
        ("Ada", "check-up"): [],
    }


def test_requests_show_the_number(tenant: Tenant, editor: Client) -> None:
    bikes = tenant.make_resource("Tandems", "UTC", capacity=4)
    given = {"graph": "confirm_decline", "what": "Tandem", "quantity": 3, **NINE}
    asked = tenant.book(resource_id=bikes["id"], customer=MARTY, **given)
    assert asked.status == 201

    [line] = editor.get("/admin/").context["requests"]

    assert (line["who"], line["what"]) == ("Marty", "3 × Tandem")
