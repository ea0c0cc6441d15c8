"""The booking's page shows what each requirement got, and replaces one of them by name."""

from typing import Any

import pytest
from django.urls import reverse

from availability.models import Event
from tests.office.conftest import Enter
from tests.world import Tenant

pytestmark = pytest.mark.usefixtures("clock")

TIMES = {"start": "2026-11-23T10:00:00Z", "end": "2026-11-23T11:00:00Z"}


def page_of(booking: Any) -> str:
    return reverse("admin:bookings_booking_change", args=[booking["id"]])


def move(client: Any, booking: Any, **changes: str) -> Any:
    path = reverse("admin:bookings_booking_move", args=[booking["id"]])
    form = {"start": "2026-11-23T10:00", "end": "2026-11-23T11:00", **changes}
    return client.post(path, form, follow=True)


def resources_of(booking: Any) -> dict[str, str]:
    main = Event.objects.get(bookings=booking["id"])
    rows = [main, *main.companions.order_by("id")]
    return {f"{number} {row.requirement}": row.resource.name for number, row in enumerate(rows)}


def test_one_resource_is_replaced_by_the_name_of_its_requirement(
    tenant: Tenant, enter: Enter
) -> None:
    ids = {name: tenant.make_resource(name)["id"] for name in ("Ada", "Ben", "Room 1", "Room 2")}
    requires = [
        {"name": "dentist", "any_of": [ids["Ada"], ids["Ben"]]},
        {"name": "room", "any_of": [ids["Room 1"], ids["Room 2"]], "length": "90 mins"},
    ]
    given = {"name": "Check-up", "requires": requires, "availability": {"length": "1 hour"}}
    project = tenant.post("/projects", given).data["id"]
    booking = tenant.book(project_id=project, **TIMES).data
    client = enter(tenant)

    shown = client.get(page_of(booking)).context
    answer = move(client, booking, **{"place-0": ids["Ada"], "place-1": ids["Room 2"]})

    assert [(place.name, place.resource.name, bool(part)) for place, part in shown["places"]] == [
        ("dentist", "Ada", False),
        ("room", "Room 1", True),
    ]
    assert [[each.name for each in others] for _, others in shown["replaceable"]] == [
        ["Ada", "Ben"],
        ["Room 1", "Room 2"],
    ]
    assert answer.status_code == 200
    assert resources_of(booking) == {"0 dentist": "Ada", "1 room": "Room 2"}
    logs = tenant.get(f"/bookings/{booking['id']}?include=logs").data["logs"]
    assert logs[-1]["action"] == "reassign"


def test_one_of_a_mutual_booking_is_replaced(tenant: Tenant, enter: Enter) -> None:
    ids = {name: tenant.make_resource(name)["id"] for name in ("Ada", "Ben", "Cleo")}
    given = {"name": "Talk", "resources": [ids["Ada"], ids["Ben"]]}
    project = tenant.post("/projects", {**given, "availability": {"mode": "mutual"}}).data["id"]
    booking = tenant.book(project_id=project, **TIMES).data
    client = enter(tenant)

    move(client, booking, **{"place-1": ids["Cleo"]})

    assert resources_of(booking) == {"0 None": "Ada", "1 None": "Cleo"}
