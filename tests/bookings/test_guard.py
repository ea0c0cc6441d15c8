"""The database's own guard: what holds where nobody locked and nobody looked.

Rows are written past the services here, as a careless script or a bug would.
"""

import re
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction

from availability.models import Calendar, Event
from availability.search.visit_slots import place_visit_at
from bookings.services import resource_assignment
from tests.services import ROOT
from tests.world import Tenant, at

pytestmark = pytest.mark.both_databases

START, END = at("2077-03-01 10:00"), at("2077-03-01 12:00")

OVERLAPPING = [
    ("2077-03-01 10:00", "2077-03-01 12:00"),  # the same
    ("2077-03-01 10:30", "2077-03-01 11:30"),  # within
    ("2077-03-01 09:00", "2077-03-01 13:00"),  # around
    ("2077-03-01 09:00", "2077-03-01 10:00:00.000001"),  # into the start, by a microsecond
    ("2077-03-01 11:59:59.999999", "2077-03-01 13:00"),  # out of the end
    ("2077-03-01 11:59", "2077-03-02 00:00"),  # over midnight
]
FREE = [
    ("2077-03-01 09:00", "2077-03-01 10:00"),
    ("2077-03-01 12:00", "2077-03-01 13:00"),
    ("2077-03-02 10:00", "2077-03-02 12:00"),
]
overlapping = pytest.mark.parametrize(("start", "end"), OVERLAPPING)
free = pytest.mark.parametrize(("start", "end"), FREE)


@pytest.fixture
def calendar(tenant: Tenant) -> Calendar:
    return Calendar.objects.get(id=tenant.make_resource()["calendars"][0]["id"])


def make_event(calendar: Calendar, start: datetime = START, end: datetime = END, **given: Any):
    """One that is not saved; exclusive unless something else is said."""
    given = {"what": "Booked", "busy": True, "exclusive": True, **given}
    given |= {"app_id": calendar.app_id, "calendar": calendar}
    return Event(resource_id=calendar.resource_id, start=start, end=end, **given)


def write_together(first: Event, second: Event) -> None:
    Event.objects.bulk_create([first, second])


def write_one_by_one(first: Event, second: Event) -> None:
    first.save()
    second.save()


def write_then_update(first: Event, second: Event) -> None:
    """The second was elsewhere before, and is moved there by an UPDATE."""
    start, end = second.start, second.end
    second.start, second.end = at("2027-06-01 10:00"), at("2027-06-01 12:00")
    write_together(first, second)
    Event.objects.filter(id=second.id).update(start=start, end=end)


def write_then_bulk_update(first: Event, second: Event) -> None:
    start, end = second.start, second.end
    second.start, second.end = at("2027-06-01 10:00"), at("2027-06-01 12:00")
    write_together(first, second)
    second.start, second.end = start, end
    Event.objects.bulk_update([first, second], ["start", "end"])


def write_then_make_exclusive(first: Event, second: Event) -> None:
    second.exclusive = False
    write_together(first, second)
    Event.objects.filter(id=second.id).update(exclusive=True)


every_way = pytest.mark.parametrize(
    "write",
    [
        write_together,
        write_one_by_one,
        write_then_update,
        write_then_bulk_update,
        write_then_make_exclusive,
    ],
    ids=lambda way: way.__name__,
)
Write = Callable[[Event, Event], None]


@pytest.mark.every_case
@every_way
@overlapping
def test_overlapping_exclusive_events_are_refused(
    calendar: Calendar, write: Write, start: str, end: str
) -> None:
    first, second = make_event(calendar), make_event(calendar, at(start), at(end))

    with pytest.raises(IntegrityError, match="slot_taken"), transaction.atomic():
        write(first, second)

    assert Event.objects.count() == 0


@pytest.mark.every_case
@every_way
@free
def test_events_that_only_touch_are_written(
    calendar: Calendar, write: Write, start: str, end: str
) -> None:
    write(make_event(calendar), make_event(calendar, at(start), at(end)))

    spans = Event.objects.order_by("start").values_list("start", "end")
    assert list(spans) == sorted([(START, END), (at(start), at(end))])


@every_way
def test_events_of_two_resources_are_written(
    tenant: Tenant, calendar: Calendar, write: Write
) -> None:
    other = Calendar.objects.get(id=tenant.make_resource("Ben")["calendars"][0]["id"])

    write(make_event(calendar), make_event(other))

    assert Event.objects.filter(exclusive=True).count() == 2


def test_calendars_of_one_resource_conflict(tenant: Tenant, calendar: Calendar) -> None:
    second = Calendar.objects.create(
        app_id=calendar.app_id, resource_id=calendar.resource_id, name="Second"
    )

    with pytest.raises(IntegrityError, match="slot_taken"), transaction.atomic():
        write_together(make_event(calendar), make_event(second))


def test_an_event_changes_resource_only_into_free_time(tenant: Tenant, calendar: Calendar) -> None:
    other = Calendar.objects.get(id=tenant.make_resource("Ben")["calendars"][0]["id"])
    event, taken = make_event(calendar), make_event(other)
    write_together(event, taken)

    with pytest.raises(IntegrityError, match="slot_taken"), transaction.atomic():
        Event.objects.filter(id=event.id).update(resource_id=other.resource_id)

    event.refresh_from_db()
    assert event.resource_id == calendar.resource_id


@pytest.mark.parametrize("busy", [True, False])
def test_events_that_are_not_exclusive_may_overlap(calendar: Calendar, busy: bool) -> None:
    """Events by hand, double bookings: against these the lock and the check decide."""
    others = [make_event(calendar, busy=busy, exclusive=False) for _ in range(2)]

    Event.objects.bulk_create([make_event(calendar), *others])

    assert Event.objects.count() == 3


def test_event_does_not_conflict_with_itself(calendar: Calendar) -> None:
    event = make_event(calendar)
    event.save()
    event.start = at("2077-03-01 10:30")

    event.save()

    assert Event.objects.get().start == at("2077-03-01 10:30")


# --- Through the API: the refusal of the database is the same answer ------------------------------
TAKEN = {
    "error": "The time is taken.",
    "code": "slot_taken",
    "conflicts": [{"start": "2077-03-01T10:00:00+00:00", "end": "2077-03-01T12:00:00+00:00"}],
    "alternatives": [
        {"start": "2077-03-01T12:00:00+00:00", "end": "2077-03-01T14:00:00+00:00"},
        {"start": "2077-03-01T14:00:00+00:00", "end": "2077-03-01T16:00:00+00:00"},
        {"start": "2077-03-01T16:00:00+00:00", "end": "2077-03-01T18:00:00+00:00"},
    ],
}
SPAN = {"start": "2077-03-01T10:00:00Z", "end": "2077-03-01T12:00:00Z"}


@pytest.fixture
def no_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """The service does not look whether the time is free."""
    monkeypatch.setattr(resource_assignment, "check_request", lambda *args, **kwargs: None)


@pytest.mark.usefixtures("no_check")
def test_a_booking_that_only_the_guard_refuses_is_a_conflict(tenant: Tenant) -> None:
    resource = tenant.make_resource()["id"]
    made = tenant.book(resource_id=resource, **SPAN).data

    refused = tenant.book(resource_id=resource, **SPAN)

    assert (refused.status, refused.error) == (409, TAKEN)
    assert [one["id"] for one in tenant.get("/bookings").data] == [made["id"]]


@pytest.mark.usefixtures("no_check")
def test_a_confirmation_that_only_the_guard_refuses_is_a_conflict(tenant: Tenant) -> None:
    resource = tenant.make_resource()["id"]
    pending = tenant.book(resource_id=resource, graph="confirm_decline", **SPAN).data["id"]
    tenant.book(resource_id=resource, **SPAN)

    refused = tenant.put(f"/bookings/{pending}/confirm")

    assert (refused.status, refused.error) == (409, TAKEN)
    assert tenant.get(f"/bookings/{pending}").data["state"] == "tentative"


@pytest.mark.usefixtures("no_check")
def test_a_move_that_only_the_guard_refuses_is_a_conflict(tenant: Tenant) -> None:
    resource = tenant.make_resource()["id"]
    tenant.book(resource_id=resource, **SPAN)
    evening = {"start": "2077-03-01T20:00:00Z", "end": "2077-03-01T22:00:00Z"}
    booking = tenant.book(resource_id=resource, **evening).data["id"]

    refused = tenant.post(f"/bookings/{booking}/reschedule", SPAN)

    assert (refused.status, refused.error) == (409, TAKEN)
    event = tenant.get(f"/bookings/{booking}").data["event"]
    assert event["start"] == "2077-03-01T20:00:00+00:00"


@pytest.mark.usefixtures("no_check")
def test_a_visit_that_only_the_guard_refuses_is_a_conflict(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    ignoring_busy = partial(place_visit_at, counts_busy=False)
    monkeypatch.setattr(
        resource_assignment, "place_visit_at", lambda *args, **_: ignoring_busy(*args)
    )
    hygienist, dentist = (tenant.make_resource(name)["id"] for name in ("Hanna", "Ada"))
    steps = [
        {"name": "cleaning", "length": "1 hour", "resources": [hygienist]},
        {"name": "check-up", "length": "1 hour", "resources": [dentist]},
    ]
    project = tenant.post("/projects", {"name": "Visit", "steps": steps}).data["id"]
    made = tenant.book(project_id=project, **SPAN).data

    refused = tenant.book(project_id=project, **SPAN)

    assert (refused.status, refused.json["code"]) == (409, "slot_taken")
    assert [one["id"] for one in tenant.get("/bookings").data] == [made["id"]]


# --- It is there ----------------------------------------------------------------------------------
CHECKED = (
    *("availability_calendar", "availability_event", "bookings_customer"),
    *("bookings_statechange", "notifications_attempt", "notifications_sentemail"),
)


def app_guards(table: str) -> set[str]:
    if connection.vendor == "postgresql":
        return {"app_on_insert", "app_on_update"}
    return {f"{table}_app_on_insert", f"{table}_app_on_update"}


def guards() -> dict[str, set[str]]:
    """Table -> the names of its triggers and exclusion constraints."""
    postgresql = connection.vendor == "postgresql"
    of_parent = "fixed_app" if postgresql else "{}_fixed_app"
    found = {table: app_guards(table) for table in CHECKED}
    for table in ("availability_resource", "bookings_booking", "notifications_delivery"):
        found[table] = {of_parent.format(table)}
    names = ("slot_taken", "slot_taken_unit", "slot_taken_capacity")
    on_sqlite = {f"{name}_on_{event}" for name in names for event in ("insert", "update")}
    found["availability_event"] |= set(names) if postgresql else on_sqlite
    found["bookings_statechange"] |= {"log_append_only"}
    found["bookings_booking"] |= {"app_customer_booking", *on_change("tally_bookings")}
    found["bookings_booking"] |= {
        f"group_full_on_{event}" for event in ("insert", "update", "fewer_seats")
    }
    found["bookings_customer"] |= on_change("app_customer")
    for table, name in TALLIED.items():
        deleted = {f"tally_deleted_{name.removeprefix('tally_')}"} & STATEMENT_TRIGGERS
        tallies = {name} | deleted if postgresql else on_change(name) - {f"{name}_update"}
        found[table] = found.get(table, set()) | tallies
    for path in ROOT.glob(f"*/migrations/*_changes.{connection.vendor}.sql"):
        for name, table in TRIGGER.findall(path.read_text()):
            found.setdefault(table, set()).add(name)
    found["notifications_delivery"] |= on_change("delivery_lane_check") - {
        "delivery_lane_check_delete"
    }
    return found


# Of a whole statement: a batch of deletions counts once.
STATEMENT_TRIGGERS = {"tally_deleted_deliveries"}
# Their rows are counted by what never changes.
TALLIED = {"bookings_appcustomer": "tally_customers", "notifications_delivery": "tally_deliveries"}


# Those of the list of changes, in the files that make them.
TRIGGER = re.compile(r"^CREATE .*TRIGGER (?:IF NOT EXISTS )?(\w+) AFTER .* ON (\w+)", re.MULTILINE)


def on_change(name: str) -> set[str]:
    return {f"{name}_{event}" for event in ("insert", "update", "delete")}


NAMES = {
    "postgresql": """
        SELECT conrelid::regclass::text, conname FROM pg_constraint WHERE contype = 'x'
        UNION ALL
        SELECT tgrelid::regclass::text, tgname FROM pg_trigger WHERE NOT tgisinternal""",
    "sqlite": "SELECT tbl_name, name FROM sqlite_master WHERE type = 'trigger'",
}


@pytest.mark.django_db
def test_guards_exist_after_all_migrations() -> None:
    """A migration that makes Django rebuild a table on SQLite drops its triggers: make them again.

    The tests above fail then too, but do not say why.
    """
    with connection.cursor() as cursor:
        cursor.execute(NAMES[connection.vendor])
        found: dict[str, set[str]] = {}
        for table, name in cursor.fetchall():
            found.setdefault(table, set()).add(name)

    assert found == guards()
