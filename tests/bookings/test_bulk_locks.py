"""Bulk requests that are one transaction lock their resources in advance."""

import uuid
from concurrent.futures import ThreadPoolExecutor
from threading import Event as Flag
from typing import Any

import pytest
from django.db import connection, connections

from bookings.models import Booking
from bookings.services import bulk, bulk_locks
from bookings.services.bulk_locks import lock_named_rows
from bookings.views import bulk as bulk_views
from tests.bookings.booking_drafts import MARTY, span
from tests.queries import Queries
from tests.waiters import wait_for_a_waiter
from tests.world import Tenant

pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.postgresql]


def bodies(resources: list[Any]) -> list[dict[str, Any]]:
    """Bookings of 9 to 10 in the order of the resources, each with a customer of its own."""
    return [
        {"resource_id": one["id"], "customer": {**MARTY, "email": f"{one['name']}@example.com"}}
        | {"what": "Check-up", **span("09:00", "10:00")}
        for one in resources
    ]


def bulk_in_both_orders(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch, *, is_locked: bool
) -> list[list[int]]:
    """Two requests at once, all or none, each after the first booking of the other if that is
    possible; return the statuses of their items.
    """
    resources = [tenant.make_resource(name) for name in ("ada", "ben")]
    second_has_begun = Flag()
    make_booking = bulk_views.make_booking

    def make(*args: Any, **kwargs: Any) -> Booking:
        booking = make_booking(*args, **kwargs)
        if is_first.pop("first", False):
            second = pool.submit(send, list(reversed(resources)))
            answers.append(second)
            wait_for_a_waiter() if is_locked else second_has_begun.wait(20)
        else:
            second_has_begun.set()
        return booking

    def send(order: list[Any]) -> list[int]:
        try:
            body = {"bookings": bodies(order), "delete_all_on_error": True}
            answer = tenant.post("/bookings/bulk", body)
            return [item["status"] for item in answer.json["data"]] if answer.status == 200 else []
        finally:
            connections.close_all()

    is_first, answers = {"first": True}, []
    monkeypatch.setattr(bulk_views, "make_booking", make)
    monkeypatch.setattr("common.api.lock_retry.TRY_AGAIN", frozenset())
    if not is_locked:
        monkeypatch.setattr(bulk, "lock_named_rows", lambda app, bodies: None)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(send, resources)
        return [first.result(), answers[0].result()]


@pytest.mark.django_db(transaction=True)
def test_opposite_resource_orders_are_serialised(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = bulk_in_both_orders(tenant, monkeypatch, is_locked=True)

    assert (first, second) == ([201, 201], [409, 409])


@pytest.mark.django_db(transaction=True)
def test_control_without_advance_locks_deadlock(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = bulk_in_both_orders(tenant, monkeypatch, is_locked=False)

    assert sorted(found) == [[], [201, 201]]


@pytest.mark.django_db
def test_lock_named_rows_locks_projects_then_bookings_then_resources(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada, ben, eve, fay = (tenant.make_resource(name) for name in ("Ada", "Ben", "Eve", "Fay"))
    project = tenant.make_project(ada["id"])
    booking = tenant.book(resource_id=ben["id"], **span("09:00", "10:00")).data
    hold = tenant.post("/bookings/reserve", {"resource_id": eve["id"], **span("09:00", "10:00")})
    named = [
        {"project_id": project["id"], "related": {"owner_booking_id": booking["id"]}},
        {"event": {"calendar_id": fay["calendars"][0]["id"]}, "what": "no id"},
        {"reservation_id": hold.data["reservation_id"], "meta": {"n": [1, None, "x"]}},
    ]

    locked: list[set[uuid.UUID]] = []
    monkeypatch.setattr(bulk_locks, "lock_resources", locked.append)

    with Queries(connection) as queries:
        lock_named_rows(tenant.app, named)

    locks = [query["sql"] for query in queries.captured_queries if " FOR " in query["sql"]]
    tables = [sql.split("FROM ")[1].split()[0].strip('"') for sql in locks]
    assert tables == ["availability_project", "bookings_booking"]
    assert locked == [{uuid.UUID(one["id"]) for one in (ada, ben, eve, fay)}]
