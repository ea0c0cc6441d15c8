"""Rows that no longer pass the validation: pages and answers say so, none is a 500."""

import json
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from availability.models import Project, Resource
from tests.office.conftest import WORKDAYS, Enter
from tests.world import BERLIN, Tenant

pytestmark = pytest.mark.usefixtures("clock")

BROKEN: list[Any] = [
    (Resource, {"timezone": "Berlin"}),
    (Resource, {"tags": {"a": 1}, "meta": ["a"]}),
    pytest.param(Project, {"availability": {"length": "banana"}}, marks=pytest.mark.deep),
    (Project, {"availability": {"length": 7, "mode": "nonsense", "buffer": [], "to": 5}}),
    (Project, {"availability": {"from": "2 weeks", "to": "1 week"}}),
    pytest.param(Project, {"availability": ["a"]}, marks=pytest.mark.deep),
    pytest.param(Project, {"booking": {"graph": "nonsense"}}, marks=pytest.mark.deep),
    (Project, {"booking": {"graph": ["a"], "what": 7, "description": ["a"]}}),
    (Project, {"booking": ["a"]}),
    pytest.param(Project, {"customer_fields": ["a"]}, marks=pytest.mark.deep),
    (Project, {"customer_fields": {"a": "b", "c": {"enum": 7, "title": 8, "format": ["x"]}}}),
    (Project, {"requires": ["a"]}),
    pytest.param(Project, {"requires": {"a": 1}}, marks=pytest.mark.deep),
    (Project, {"ui": ["a"]}),
    pytest.param(Project, {"ui": {"localization": ["a"]}}, marks=pytest.mark.deep),
    pytest.param(Project, {"settings": ["a"], "meta": "a"}, marks=pytest.mark.deep),
    (Project, {"settings": {"max_per_day": "a", "min_cancel_time": "b", "language": 7}}),
    (Project, {"slug": "a slug/with a space"}),
]


def answers(
    tenant: Tenant, client: Client, resource: Any, project: Any, bookings: Any
) -> dict[str, int]:
    """The status of each page and answer that reads the rows."""
    first, second = (booking["id"] for booking in bookings)
    later = {"start": "2026-11-25T10:00:00Z", "end": "2026-11-25T11:00:00Z"}
    slug = Project.objects.get().slug
    ids = {"project_id": project["id"]}
    drawn = [
        client.post(reverse("admin:rules_picture"), json.dumps(body), "application/json")
        for body in ({"resource_id": resource["id"]}, ids)
    ]
    why = reverse("admin:why_resource", args=[resource["id"]])
    calendar = reverse("admin:calendar")
    start = {"start": "2026-11-24T10:00:00Z", "end": "2026-11-24T11:00:00Z"}
    found = {
        "hosted": Client().get(f"/book/{slug}"),
        "why": client.get(why),
        "why of the project": client.get(why, {"project": project["id"]}),
        "rules of the resource": drawn[0],
        "rules of the project": drawn[1],
        "calendar events": client.get(
            reverse("admin:calendar_events"),
            {"resources": resource["id"], "start": "2026-11-23", "end": "2026-11-30"},
        ),
        "calendar": client.get(calendar, {"resources": resource["id"]}),
        "resource page": client.get(
            reverse("admin:availability_resource_change", args=[resource["id"]])
        ),
        "resources": client.get(reverse("admin:availability_resource_changelist")),
        "project page": client.get(
            reverse("admin:availability_project_change", args=[project["id"]])
        ),
        "projects": client.get(reverse("admin:availability_project_changelist")),
        "booking page": client.get(reverse("admin:bookings_booking_change", args=[second])),
        "list of bookings": client.get(reverse("admin:bookings_booking_changelist")),
        "today": client.get(reverse("admin:index")),
    }
    statuses = {name: answer.status_code for name, answer in found.items()}
    calls = {
        "availability": tenant.post("/availability", ids),
        "availability of the resource": tenant.post(
            "/availability", {"resources": [resource["id"]]}
        ),
        "explain": tenant.post("/availability/explain", ids),
        "booking": tenant.book(**ids, **start),
        "customer's cancel": tenant.put(f"/bookings/{first}/cancel_by_customer"),
        "move": tenant.post(f"/bookings/{second}/reschedule", later),
        "bookings": tenant.get("/bookings?include=project,resource"),
        "project": tenant.get(f"/projects/{project['id']}"),
        "project list": tenant.get("/projects"),
        "embed": tenant.widget().get(f"/projects/embed/{project['id']}"),
        "resource": tenant.get(f"/resources/{resource['id']}"),
    }
    return statuses | {name: answer.status for name, answer in calls.items()}


@pytest.mark.parametrize(("model", "values"), BROKEN)
@pytest.mark.matrix
def test_invalid_rows_cause_no_server_errors(
    tenant: Tenant, enter: Enter, model: Any, values: dict[str, Any]
) -> None:
    resource = tenant.make_resource(timezone=BERLIN, availability_constraints=WORKDAYS)
    project = tenant.make_project(resource["id"])
    bookings = [
        tenant.book(
            project_id=project["id"],
            start=f"2026-11-23 {hour:02}:00:00",
            end=f"2026-11-23 {hour + 1:02}:00:00",
        ).data
        for hour in (9, 11)
    ]
    client = enter(tenant)
    client.raise_request_exception = False
    tenant.client.raise_request_exception = False
    model.objects.update(**values)

    statuses = answers(tenant, client, resource, project, bookings)

    assert {name: status for name, status in statuses.items() if status >= 500} == {}
