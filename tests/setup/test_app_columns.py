"""What the database itself says of apps: rows are written past the services here, as the previous
release, a careless script or a bug would.
"""

import contextlib
import uuid
from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from django.apps import apps
from django.db import IntegrityError, connection, transaction
from django.db.migrations.loader import MigrationLoader

from bookings.models import Booking, BookingTally, StateChange
from common.ids import home_of_id
from common.migration_sql import FillColumns
from common.sql import id_param, to_uuid
from notifications.models import Attempt, Delivery
from tests.world import Tenant

pytestmark = pytest.mark.both_databases

HOME = 77


class Child(NamedTuple):
    """A table whose rows have the app of their parent, which `column` refers to."""

    table: str
    parent: str
    column: str
    old_key: str = ""


CHILDREN = (
    Child("availability_calendar", "availability_resource", "resource_id"),
    Child("availability_event", "availability_calendar", "calendar_id"),
    Child("bookings_customer", "bookings_booking", "booking_id"),
    Child("bookings_statechange", "bookings_booking", "booking_id", "id"),
    Child("notifications_attempt", "notifications_delivery", "delivery_id", "id"),
)
every_child = pytest.mark.parametrize("child", CHILDREN, ids=[child.table for child in CHILDREN])
# A copy of an event takes its time only once.
NO_CONFLICT: dict[str, Any] = {"exclusive": False}
PARENTS = ["availability_resource", "bookings_booking", "notifications_delivery"]


def run(sql: str, params: Any = ()) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return cursor.fetchall() if cursor.description else []


def insert_copy(table: str, *, without: tuple[str, ...], **changed: Any) -> dict[str, Any]:
    """Write a row like the table's first one; returns what has been stored of it."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {table} ORDER BY 1 LIMIT 1")
        assert cursor.description is not None
        names = [column[0] for column in cursor.description]
        values = dict(zip(names, cursor.fetchone(), strict=True)) | changed
        named = [name for name in names if name not in without and values[name] is not None]
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
    return Booking.objects.get(id=made["id"])


@pytest.fixture
def other_app(booking: Booking, make_tenant: Callable[..., Tenant]) -> Any:
    return id_param(make_tenant().app.id)


def new_key(child: Child) -> dict[str, Any]:
    return {} if child.old_key else {"id": id_param(uuid.uuid4())}


# --- The app --------------------------------------------------------------------------------------
@pytest.mark.every_case
@every_child
def test_a_row_of_another_app_than_its_parents_is_refused(child: Child, other_app: Any) -> None:
    with pytest.raises(IntegrityError, match="another app"), transaction.atomic():
        insert_copy(child.table, without=("id", "uuid"), **new_key(child), app_id=other_app)

    with pytest.raises(IntegrityError, match="another app"), transaction.atomic():
        run(f"UPDATE {child.table} SET app_id = %s", [other_app])


@pytest.mark.every_case
@every_child
def test_no_row_is_without_an_app(child: Child, booking: Booking) -> None:
    """PostgreSQL fills it again, SQLite refuses the change."""
    with contextlib.suppress(IntegrityError), transaction.atomic():
        run(f"UPDATE {child.table} SET app_id = NULL")

    assert set(run(f"SELECT app_id FROM {child.table}")) == {(id_param(booking.app_id),)}


@pytest.mark.every_case
@every_child
def test_a_row_without_a_parent_is_refused(child: Child, booking: Booking) -> None:
    nobody = {child.column: id_param(uuid.uuid4())}
    for without in (("id", "uuid"), ("id", "uuid", "app_id")):
        with pytest.raises(IntegrityError), transaction.atomic():
            insert_copy(child.table, without=without, **new_key(child), **nobody)


@pytest.mark.every_case
@every_child
def test_the_previous_release_writes_no_app(child: Child, booking: Booking) -> None:
    row = insert_copy(
        child.table,
        without=("app_id", "id", "uuid") if child.old_key else ("app_id",),
        **NO_CONFLICT,
        **new_key(child),
    )

    assert to_uuid(row["app_id"]) == booking.app_id


@pytest.mark.parametrize("table", PARENTS)
def test_a_parent_stays_in_its_app(table: str, other_app: Any) -> None:
    with pytest.raises(IntegrityError, match="a row stays in its app"), transaction.atomic():
        run(f"UPDATE {table} SET app_id = %s", [other_app])


def test_every_model_with_a_parents_app_is_compared() -> None:
    """A model that gets the field gets its triggers, and a row in the tests above."""
    fields = {
        model._meta.db_table
        for model in apps.get_models()
        for field in model._meta.fields
        if type(field).__name__ == "ParentsAppField"
    }

    assert fields == {child.table for child in CHILDREN}


# --- The keys that were counters ------------------------------------------------------------------
@pytest.mark.parametrize("model", [StateChange, Attempt])
def test_the_previous_release_writes_no_uuid(model: Any, booking: Booking) -> None:
    table = model._meta.db_table
    before = list(model.objects.values_list("id", flat=True))

    rows = [insert_copy(table, without=("app_id", "id", "uuid")) for _ in range(3)]

    made = [to_uuid(row["uuid"]) for row in rows]
    assert made == sorted(made)
    assert [(found.version, found.variant, home_of_id(found)) for found in made] == [
        (8, uuid.RFC_4122, HOME)
    ] * 3
    assert list(model.objects.values_list("id", flat=True)) == [*before, *made]


def test_deliveries_have_both_references(booking: Booking) -> None:
    """The previous release writes and reads `change_id`, this one `change_uuid`."""
    pairs = {(number, key) for number, key in run("SELECT id, uuid FROM bookings_statechange")}
    found = set(run("SELECT change_id, change_uuid FROM notifications_delivery"))
    assert found == pairs

    row = insert_copy("bookings_statechange", without=("app_id", "id", "uuid"))
    written = insert_copy(
        "notifications_delivery",
        without=("change_uuid",),
        id=id_param(uuid.uuid4()),
        change_id=row["id"],
    )

    assert (written["change_id"], written["change_uuid"]) == (row["id"], row["uuid"])


def test_the_log_keeps_its_keys(booking: Booking) -> None:
    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        run("UPDATE bookings_statechange SET uuid = %s", [id_param(uuid.uuid4())])


@pytest.mark.postgresql
def test_triggers_need_no_search_path(booking: Booking) -> None:
    """Whoever writes a row may have another schema in front, or none."""
    run("SET LOCAL search_path = ''")

    made = [
        insert_copy(
            f"public.{child.table}",
            without=("app_id", "id", "uuid") if child.old_key else ("app_id",),
            **NO_CONFLICT,
            **new_key(child),
        )
        for child in CHILDREN
    ]
    run("UPDATE public.bookings_booking SET state = 'completed'")
    run("SET LOCAL search_path = DEFAULT")

    assert [row["app_id"] for row in made] == [booking.app_id] * len(CHILDREN)
    tally = BookingTally.objects.filter(app=booking.app_id).exclude(count=0)
    assert list(tally.values_list("state", "count")) == [("completed", 1)]


# --- Rows of older releases -----------------------------------------------------------------------
FILLED = {
    "availability_calendar": ["app_id"],
    "availability_event": ["app_id"],
    "bookings_customer": ["app_id"],
    "bookings_statechange": ["app_id", "uuid"],
    "notifications_attempt": ["app_id", "uuid"],
    "notifications_delivery": ["change_uuid"],
}
FILLS = [
    ("availability", "0010"),
    ("availability", "0012"),
    ("bookings", "0014"),
    ("notifications", "0013"),
]


def empty_new_columns() -> None:
    """As the database was before these migrations."""
    if connection.vendor == "postgresql":
        run("SET CONSTRAINTS ALL IMMEDIATE")
    for table, columns in reversed(FILLED.items()):
        if connection.vendor == "postgresql":
            run(f"ALTER TABLE {table} DISABLE TRIGGER USER")
            for column in columns:
                name = f"{table.partition('_')[2]}_{column}_not_null"
                run(f"ALTER TABLE {table} DROP CONSTRAINT IF EXISTS {name}")
        else:
            triggers = "SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = %s"
            for (name,) in run(triggers, [table]):
                run(f"DROP TRIGGER {name}")
        run(f"UPDATE {table} SET {', '.join(f'{column} = NULL' for column in columns)}")


def fill_new_columns() -> None:
    loader = MigrationLoader(connection)
    editor: Any = SimpleNamespace(connection=connection)
    for app, name in FILLS:
        for operation in loader.get_migration_by_prefix(app, name).operations:
            if isinstance(operation, FillColumns) and operation.table in FILLED:
                operation.fill(loader.project_state().apps, editor)


def test_rows_of_older_releases_are_filled(
    booking: Booking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("common.migration_sql.MAX_ROWS_PER_UPDATE", 2)
    order = {
        "bookings_statechange": "booking_id, {} FROM bookings_statechange ORDER BY booking_id",
        "notifications_attempt": "delivery_id, {} FROM notifications_attempt ORDER BY delivery_id",
    }
    apps_before = {child: run(f"SELECT app_id FROM {child.table}") for child in CHILDREN}
    kinds_before = sorted(Delivery.objects.values_list("change__action", "kind"))
    empty_new_columns()
    # The later row of a request that began earlier, and waited for a lock.
    run(
        "UPDATE bookings_statechange SET created_at = '2001-01-01 00:00:00+00:00'"
        " WHERE id = (SELECT max(id) FROM bookings_statechange)"
    )

    fill_new_columns()

    assert {child: run(f"SELECT app_id FROM {child.table}") for child in CHILDREN} == apps_before
    for table, sql in order.items():
        by_counter, by_uuid = (run(f"SELECT {sql.format('id')}, {key}") for key in ("id", "uuid"))
        assert by_uuid == by_counter, table
    keys = [*StateChange.objects.values_list("id", flat=True), *Attempt.objects.values_list("id")]
    assert len(set(keys)) == len(keys)
    change = StateChange.objects.first()
    assert change is not None
    assert (change.id.version, change.id.variant, home_of_id(change.id)) == (
        *(8, uuid.RFC_4122, HOME),
    )
    assert sorted(Delivery.objects.values_list("change__action", "kind")) == kinds_before
