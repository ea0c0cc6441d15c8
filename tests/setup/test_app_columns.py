"""What the database itself says of apps: rows are written past the services here, as a careless
script or a bug would.
"""

import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any, NamedTuple

import pytest
from django.apps import apps
from django.db import IntegrityError, connection, transaction

from apps_config.models import ListingTally
from bookings.models import Booking
from common.db.sql import id_param
from notifications.models import Attempt, Delivery, SentEmail
from tests.world import Tenant

pytestmark = pytest.mark.both_databases

HOME = 77


class Child(NamedTuple):
    """A table whose rows have the app of their parent, which `column` refers to."""

    table: str
    parent: str
    column: str


CHILDREN = (
    Child("availability_calendar", "availability_resource", "resource_id"),
    Child("availability_event", "availability_calendar", "calendar_id"),
    Child("bookings_customer", "bookings_booking", "booking_id"),
    Child("bookings_statechange", "bookings_booking", "booking_id"),
    Child("notifications_attempt", "notifications_delivery", "delivery_id"),
    Child("notifications_sentemail", "notifications_delivery", "delivery_id"),
)
every_child = pytest.mark.parametrize("child", CHILDREN, ids=[child.table for child in CHILDREN])
# A copy of an event takes its time only once.
NO_CONFLICT: dict[str, Any] = {"exclusive": False}
PARENTS = ["availability_resource", "bookings_booking", "notifications_delivery"]


def run(sql: str, params: Any = ()) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return cursor.fetchall() if cursor.description else []


def insert_copy(table: str, **changed: Any) -> dict[str, Any]:
    """Write a row like the table's first one; returns what has been stored of it."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {table} ORDER BY 1 LIMIT 1")
        assert cursor.description is not None
        names = [column[0] for column in cursor.description]
        values = dict(zip(names, cursor.fetchone(), strict=True)) | changed
        named = [name for name in names if values[name] is not None]
        columns = ", ".join(f'"{name}"' for name in named)
        cursor.execute(
            f"INSERT INTO {table} ({columns}) VALUES ({', '.join(['%s'] * len(named))})"
            " RETURNING *",
            [values[name] for name in named],
        )
        (found,) = cursor.fetchall()
        key = "id" if "id" in names else names[0]
        cursor.execute(f"SELECT * FROM {table} WHERE {key} = %s", [found[names.index(key)]])
        return dict(zip(names, cursor.fetchone(), strict=True))


@pytest.fixture
def booking(make_tenant: Callable[..., Tenant], settings: Any) -> Booking:
    """A booking with all that hangs on it, of an app of that home."""
    settings.HOME_NUMBER = HOME
    tenant = make_tenant()
    resource = tenant.make_resource(email="ada@example.com")
    span = {"start": "2077-03-01T10:00:00Z", "end": "2077-03-01T11:00:00Z"}
    made = tenant.book(resource_id=resource["id"], **span).data
    tenant.post(
        f"/bookings/{made['id']}/reschedule",
        {"start": "2077-03-01T12:00:00Z", "end": "2077-03-01T13:00:00Z"},
    )
    for delivery in Delivery.objects.all():
        for at in (delivery.due_at, delivery.due_at - timedelta(hours=1)):
            Attempt.objects.create(app_id=delivery.app_id, delivery=delivery, at=at, seconds=1.0)
            SentEmail.objects.create(app_id=delivery.app_id, delivery=delivery, sent_at=at)
    return Booking.objects.get(id=made["id"])


@pytest.fixture
def other_app(booking: Booking, make_tenant: Callable[..., Tenant]) -> Any:
    return id_param(make_tenant().app.id)


def new_key() -> dict[str, Any]:
    return {"id": id_param(uuid.uuid4())}


# --- The app --------------------------------------------------------------------------------------
@pytest.mark.every_case
@every_child
def test_row_with_another_app_than_its_parent_is_refused(child: Child, other_app: Any) -> None:
    with pytest.raises(IntegrityError, match="another app"), transaction.atomic():
        insert_copy(child.table, **new_key(), app_id=other_app)

    with pytest.raises(IntegrityError, match="another app"), transaction.atomic():
        run(f"UPDATE {child.table} SET app_id = %s", [other_app])


@pytest.mark.every_case
@every_child
def test_app_cannot_be_null(child: Child, booking: Booking) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        run(f"UPDATE {child.table} SET app_id = NULL")

    assert set(run(f"SELECT app_id FROM {child.table}")) == {(id_param(booking.app_id),)}


@pytest.mark.every_case
@every_child
def test_a_row_without_a_parent_is_refused(child: Child, booking: Booking) -> None:
    nobody = {child.column: id_param(uuid.uuid4())}
    with pytest.raises(IntegrityError), transaction.atomic():
        insert_copy(child.table, **new_key(), **nobody)


@pytest.mark.parametrize("table", PARENTS)
def test_app_of_a_parent_cannot_be_changed(table: str, other_app: Any) -> None:
    with pytest.raises(IntegrityError, match="a row stays in its app"), transaction.atomic():
        run(f"UPDATE {table} SET app_id = %s", [other_app])


def test_every_model_with_an_app_column_is_checked() -> None:
    """A model that gets the field gets its triggers, and a row in the tests above."""
    fields = {
        model._meta.db_table
        for model in apps.get_models()
        for field in model._meta.fields
        if type(field).__name__ == "ParentsAppField"
    }

    assert fields == {child.table for child in CHILDREN}


# --- Triggers ------------------------------------------------------------------------------------
def test_keys_of_the_log_are_kept(booking: Booking) -> None:
    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        run("UPDATE bookings_statechange SET id = %s", [id_param(uuid.uuid4())])


@pytest.mark.postgresql
def test_triggers_need_no_search_path(booking: Booking) -> None:
    """Whoever writes a row may have another schema in front, or none."""
    run("SET LOCAL search_path = ''")

    made = [insert_copy(f"public.{child.table}", **NO_CONFLICT, **new_key()) for child in CHILDREN]
    run("UPDATE public.bookings_booking SET state = 'completed'")
    run("SET LOCAL search_path = DEFAULT")

    assert [row["app_id"] for row in made] == [booking.app_id] * len(CHILDREN)
    tally = ListingTally.objects.filter(app=booking.app_id, listing="bookings").exclude(count=0)
    assert list(tally.values_list("part", "count")) == [("completed", 1)]
