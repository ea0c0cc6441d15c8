"""Series of visits: each occurrence is a visit with steps of its own."""

from typing import Any

import pytest
from django.db import connection

from availability.models import Event
from availability.search import live_freebusy
from bookings.models import Booking
from notifications.models import Delivery
from tests.bookings.booking_drafts import span
from tests.bookings.test_live_check import CHECKED, FakeFreebusy
from tests.bookings.test_visits import Clinic
from tests.queries import Queries
from tests.world import Answer, Tenant

pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.both_databases]

DAYS = ("2026-11-23", "2026-11-30", "2026-12-07")
FIRST = ("Hanna", "Room 1", "Ada")


@pytest.fixture
def clinic(tenant: Tenant) -> Clinic:
    return Clinic(tenant)


def book(clinic: Clinic, recurrence: str = "FREQ=WEEKLY;COUNT=3", **given: Any) -> Answer:
    terms = {"project_id": clinic.project, "recurrence": recurrence, **span("09:00", "10:30")}
    return clinic.tenant.book(**terms | given)


def close(clinic: Clinic, day: str, *names: str) -> None:
    for name in names:
        clinic.tenant.book(resource_id=clinic.ids[name], **span("08:00", "12:00", day))


def visits(clinic: Clinic) -> list[tuple[str, str, tuple[str, ...]]]:
    """Start and state of each booking of a series, and who blocks time for it."""
    names = {each: name for name, each in clinic.ids.items()}
    rows = Booking.objects.exclude(series=None).select_related("event").order_by("event__start")
    return [
        (
            f"{row.event.start:%Y-%m-%d %H:%M}",
            row.state,
            tuple(
                names[str(each.resource_id)]
                for each in row.event.companions.order_by("start", "id")
                if each.busy
            ),
        )
        for row in rows
    ]


def act(clinic: Clinic, answer: Answer, number: int, action: str, **given: Any) -> Answer:
    booking = answer.data["series"]["occurrences"][number]["booking_id"]
    return clinic.tenant.post(f"/bookings/{booking}/{action}", given)


def test_visits_keep_the_resources_of_the_first_where_they_are_free(clinic: Clinic) -> None:
    close(clinic, DAYS[1], "Hanna", "Ada")

    answer = book(clinic)

    assert answer.status == 201
    assert visits(clinic) == [
        (f"{DAYS[0]} 09:00", "confirmed", FIRST),
        (f"{DAYS[1]} 09:00", "confirmed", ("Henk", "Room 1", "Ben")),
        (f"{DAYS[2]} 09:00", "confirmed", FIRST),
    ]
    second = answer.data["series"]["occurrences"][1]["booking_id"]
    record = clinic.tenant.get(f"/bookings/{second}?include=steps").data
    assert [(step["name"], step["start"], step["end"]) for step in record["steps"]] == [
        ("cleaning", f"{DAYS[1]}T09:00:00+00:00", f"{DAYS[1]}T09:30:00+00:00"),
        ("check-up", f"{DAYS[1]}T09:30:00+00:00", f"{DAYS[1]}T10:30:00+00:00"),
    ]


def test_one_conflict_fails_the_series_or_is_skipped(clinic: Clinic) -> None:
    close(clinic, DAYS[1], "Ada", "Ben")
    events = Event.objects.count()

    refused = book(clinic)
    left = Event.objects.count()
    made = book(clinic, on_conflict="skip")

    conflict = {
        "start": f"{DAYS[1]}T09:00:00+00:00",
        "end": f"{DAYS[1]}T10:30:00+00:00",
        "reason": "slot_taken",
    }
    assert (refused.status, refused.error["code"]) == (409, "slot_taken")
    assert (refused.error["occurrences"], left) == ([conflict], events)
    assert (made.status, made.data["series"]["occurrences"][1]) == (201, conflict)
    assert [found[0][:10] for found in visits(clinic)] == [DAYS[0], DAYS[2]]


def test_series_without_a_free_occurrence_is_refused(clinic: Clinic) -> None:
    for day in DAYS:
        close(clinic, day, "Ada", "Ben")

    answer = book(clinic, on_conflict="skip")

    assert (answer.status, len(answer.error["occurrences"]), visits(clinic)) == (409, 3, [])


def test_limits_count_the_visits_before(clinic: Clinic) -> None:
    path = f"/projects/{clinic.project}"
    clinic.tenant.put(path, {"settings": {"max_per_week": 1}, "availability": {"to": "60 days"}})

    answer = book(clinic, "FREQ=DAILY;COUNT=3", on_conflict="skip", enforce_availability=True)

    assert answer.status == 201
    assert visits(clinic) == [
        ("2026-11-23 09:00", "confirmed", FIRST),
        ("2026-11-24 09:00", "confirmed", ("Henk", "Room 2", "Ben")),
    ]
    assert answer.data["series"]["occurrences"][2]["reason"] == "not_available"


def test_visits_that_overlap_take_other_resources(clinic: Clinic) -> None:
    steps = [{**clinic.steps[0], "length": "30 hours"}, clinic.steps[1]]
    project = clinic.make_project(steps)
    times = {"start": "2026-11-23T09:00:00Z", "end": "2026-11-24T16:00:00Z"}

    answer = clinic.tenant.book(project_id=project, recurrence="FREQ=DAILY;COUNT=2", **times)

    assert answer.status == 201
    assert visits(clinic) == [
        ("2026-11-23 09:00", "confirmed", FIRST),
        ("2026-11-24 09:00", "confirmed", ("Henk", "Room 2", "Ada")),
    ]


def test_visits_of_a_series_keep_the_pace(clinic: Clinic) -> None:
    terms = {"max_starts": {"quantity": 1, "per": "1 hour"}, "to": "60 days"}
    clinic.tenant.put(f"/projects/{clinic.project}", {"availability": terms})
    other = clinic.tenant.book(project_id=clinic.project, **span("09:30", "11:00", DAYS[1]))

    answer = book(clinic, on_conflict="skip", enforce_availability=True)

    assert (other.status, answer.status) == (201, 201)
    occurrences = answer.data["series"]["occurrences"]
    assert [each.get("reason") for each in occurrences] == [None, "not_available", None]
    assert [found[0] for found in visits(clinic)] == [f"{DAYS[0]} 09:00", f"{DAYS[2]} 09:00"]


def test_visits_are_on_the_wall_clock_of_the_first_resource(clinic: Clinic) -> None:
    clinic.tenant.put(f"/resources/{clinic.ids['Hanna']}", {"timezone": "Europe/Berlin"})
    clinic.tenant.put(f"/resources/{clinic.ids['Henk']}", {"timezone": "America/New_York"})
    clinic.tenant.put(f"/projects/{clinic.project}", {"availability": {"to": "180 days"}})

    answer = book(clinic, start="2027-03-22T09:00:00Z", end="2027-03-22T10:30:00Z")

    assert answer.status == 201
    assert visits(clinic) == [
        ("2027-03-22 09:00", "confirmed", FIRST),
        ("2027-03-29 08:00", "confirmed", FIRST),
        ("2027-04-05 08:00", "confirmed", FIRST),
    ]


def test_visits_keep_out_of_calendars_elsewhere(
    clinic: Clinic, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = FakeFreebusy()
    monkeypatch.setattr(live_freebusy, "freebusy_sources", [elsewhere])
    clinic.tenant.put(f"/projects/{clinic.project}", {"settings": CHECKED})
    elsewhere.add_busy({"id": clinic.ids["Hanna"]}, "08:00", "09:15", DAYS[1])
    for name in ("Ada", "Ben"):
        elsewhere.add_busy({"id": clinic.ids[name]}, "10:00", "11:00", DAYS[2])

    answer = book(clinic, on_conflict="skip")

    assert answer.status == 201
    assert visits(clinic) == [
        (f"{DAYS[0]} 09:00", "confirmed", FIRST),
        (f"{DAYS[1]} 09:00", "confirmed", ("Henk", "Room 1", "Ada")),
    ]
    assert answer.data["series"]["occurrences"][2]["reason"] == "slot_taken"
    assert len(elsewhere.asked) == 1


def test_moved_visits_count_once_for_a_resource_of_several_steps(clinic: Clinic) -> None:
    ada = clinic.of("Ada")
    steps = [{"name": name, "length": "30 mins", "resources": ada} for name in ("first", "last")]
    terms = {"settings": {"max_per_week": 2}, "availability": {"to": "60 days"}}
    project = clinic.make_project(steps, **terms)
    given = {"project_id": project, "enforce_availability": True}
    made = clinic.tenant.book(recurrence="FREQ=DAILY;COUNT=2", **span("09:00", "10:00"), **given)

    moved = act(clinic, made, 0, "reschedule", scope="all", **span("09:00", "10:00", DAYS[1]))
    third = clinic.tenant.book(**span("09:00", "10:00", "2026-12-03"), **given)

    assert (made.status, moved.status) == (201, 200)
    assert visits(clinic) == [
        (f"{DAYS[1]} 09:00", "confirmed", ("Ada", "Ada")),
        ("2026-12-01 09:00", "confirmed", ("Ada", "Ada")),
    ]
    assert (third.status, third.error["code"]) == (409, "slot_taken")


def test_one_visit_or_all_are_cancelled(clinic: Clinic) -> None:
    made = book(clinic)

    one = act(clinic, made, 1, "cancel")
    left = visits(clinic)
    every = act(clinic, made, 0, "cancel", scope="all")

    assert (one.status, every.status) == (200, 200)
    assert [(state, names) for _, state, names in left] == [
        ("confirmed", FIRST),
        ("cancelled", ()),
        ("confirmed", FIRST),
    ]
    assert [(state, names) for _, state, names in visits(clinic)] == [("cancelled", ())] * 3
    assert clinic.taken() == []


def test_one_visit_or_all_are_moved(clinic: Clinic) -> None:
    made = book(clinic)
    close(clinic, "2026-12-08", "Hanna")

    one = act(clinic, made, 1, "reschedule", **span("13:00", "14:30", DAYS[1]))
    moved = visits(clinic)
    times = span("10:00", "11:30", "2026-11-24")
    every = act(clinic, made, 0, "reschedule", scope="all", **times)

    assert (one.status, every.status) == (200, 200)
    assert [start for start, *_ in moved] == [
        f"{DAYS[0]} 09:00",
        f"{DAYS[1]} 13:00",
        f"{DAYS[2]} 09:00",
    ]
    assert visits(clinic) == [
        ("2026-11-24 10:00", "confirmed", FIRST),
        ("2026-12-01 14:00", "confirmed", FIRST),
        ("2026-12-08 10:00", "confirmed", ("Henk", "Room 1", "Ada")),
    ]


def test_a_customer_gets_one_mail_for_all_visits(clinic: Clinic) -> None:
    customer = {"name": "Marty", "email": "marty@example.com"}

    made = book(clinic, customer=customer)
    act(clinic, made, 0, "cancel", scope="all")

    mails = Delivery.objects.filter(type=Delivery.EMAIL, recipient="customer").order_by("id")
    rows = Booking.objects.exclude(series=None).order_by("event__start")
    ids = [str(booking.calendar_uid) for booking in rows]
    assert [(mail.kind, [entry[0] for entry in mail.content["occurrences"]]) for mail in mails] == [
        ("confirmed", ids),
        ("cancelled", ids),
    ]


def test_query_count_is_constant(clinic: Clinic) -> None:
    counts = []
    for number in (2, 9):
        with Queries(connection) as queries:
            answer = book(clinic, f"FREQ=DAILY;COUNT={number}")
        assert answer.status == 201
        counts.append(len(queries))
        act(clinic, answer, 0, "cancel", scope="all")

    assert counts[0] == counts[1], counts
