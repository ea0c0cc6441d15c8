"""`buffer_before` and `buffer_after`: of whoever asks, and those that bookings were made with."""

from typing import Any

import pytest

from availability.core.busy_items import Buffers
from availability.models import Event, Hold, Resource
from availability.search.queries import TimeSpan, fetch_busy_events
from tests.availability.queries import lines
from tests.world import Caller, Tenant, at

pytestmark = [pytest.mark.usefixtures("monday"), pytest.mark.both_databases]

DAY = {"from": "2026-11-24T08:00:00Z", "to": "2026-11-24T18:00:00Z"}
AFTER = {"buffer_after": "30 minutes"}
BEFORE = {"buffer_before": "20 minutes"}


@pytest.fixture
def ada(tenant: Tenant) -> Any:
    return tenant.make_resource("Ada")


def make_project(tenant: Tenant, *resources: Any, **terms: Any) -> str:
    ids = [resource["id"] for resource in resources]
    given = {"availability": {"length": None, **terms}, "settings": {"enforce_availability": True}}
    return tenant.make_project(*ids, name="Treatment", **given)["id"]


def span(start: str, end: str) -> dict[str, str]:
    return {"start": f"2026-11-24T{start}:00Z", "end": f"2026-11-24T{end}:00Z"}


def book(tenant: Tenant, project_id: str | None, start: str, end: str, **given: Any) -> Any:
    answer = tenant.book(project_id=project_id, **span(start, end), **given)
    assert answer.status == 201, answer.json
    return answer.data


def free(caller: Caller, project_id: str, **given: Any) -> list[str]:
    answer = caller.post("/availability", {"project_id": project_id, **DAY, **given})
    return [line.split()[1] for line in lines(answer)]


def reasons(answer: Any) -> list[str]:
    assert (answer.status, answer.json["code"]) == (409, "not_available")
    return [reason["text"] for reason in answer.json["reasons"]]


@pytest.mark.parametrize("capacity", [1, 2])
def test_larger_buffer_of_both_bookings_applies(tenant: Tenant, ada: Any, capacity: int) -> None:
    tenant.put(f"/resources/{ada['id']}", {"capacity": capacity})
    first, second = make_project(tenant, ada, **AFTER), make_project(tenant, ada, **BEFORE)
    for _ in range(capacity):
        book(tenant, first, "12:00", "13:00")

    assert free(tenant, first) == ["08:00-11:30", "13:30-18:00"]
    assert free(tenant, second) == ["08:00-12:00", "13:30-18:00"]
    assert free(tenant, second, buffer="45 minutes") == ["08:00-11:15", "13:45-18:00"]
    assert free(tenant, second, buffer_before=0) == ["08:00-12:00", "13:30-18:00"]
    refused = tenant.book(project_id=second, **span("13:29", "14:00"))
    assert book(tenant, second, "13:30", "14:00")["start"] == "2026-11-24T13:30:00+00:00"
    assert reasons(refused) == [
        "Within the buffer of 30 minutes after an event."
        if capacity == 1
        else "Within the buffers of bookings that take all 2 places."
    ]


@pytest.mark.parametrize("capacity", [1, 2])
def test_buffer_before_applies_between_bookings_of_one_project(
    tenant: Tenant, ada: Any, capacity: int
) -> None:
    tenant.put(f"/resources/{ada['id']}", {"capacity": capacity})
    project = make_project(tenant, ada, **BEFORE)
    for _ in range(capacity):
        book(tenant, project, "12:00", "13:00")

    offered = free(tenant, project)
    times = (span("11:00", "11:41"), span("13:19", "14:00"), span("11:00", "11:40"))
    statuses = [tenant.book(project_id=project, **each).status for each in times]

    assert offered == ["08:00-11:40", "13:20-18:00"]
    assert statuses == [409, 409, 201]


def test_a_booking_keeps_its_buffers(tenant: Tenant, ada: Any) -> None:
    project, other = make_project(tenant, ada, **AFTER), make_project(tenant, ada)
    booking = book(tenant, project, "12:00", "13:00")
    book(tenant, project, "10:00", "11:30")

    answer = tenant.put(f"/projects/{project}", {"availability": {"buffer": "5 minutes"}})
    changed = free(tenant, other)
    too_late = tenant.post(f"/bookings/{booking['id']}/reschedule", span("09:00", "09:40"))
    moved = tenant.post(f"/bookings/{booking['id']}/reschedule", span("09:00", "09:30"))

    assert answer.data["availability"] == {"length": None, "buffer": "5 minutes"}
    assert changed == ["08:00-10:00", "13:30-18:00"]
    assert reasons(too_late) == ["Within the buffer of 30 minutes around an event."]
    assert moved.status == 200, moved.json
    assert free(tenant, other) == ["08:00-09:00", "12:00-18:00"]
    assert set(Event.objects.values_list("buffer_before", "buffer_after")) == {(0, 1800)}


def test_confirmed_request_keeps_its_buffers(tenant: Tenant, ada: Any) -> None:
    project, other = make_project(tenant, ada, **AFTER), make_project(tenant, ada)
    tenant.put(f"/projects/{project}", {"booking": {"graph": "confirm_decline"}})
    request = book(tenant, project, "12:00", "13:00")
    book(tenant, other, "13:15", "14:00")
    tenant.put(f"/projects/{project}", {"availability": {"buffer_after": None}})

    refused = tenant.put(f"/bookings/{request['id']}/confirm")

    assert reasons(refused) == ["Within the buffer of 30 minutes before an event."]


def test_events_and_older_bookings_use_buffers_of_the_query(tenant: Tenant, ada: Any) -> None:
    first, second = make_project(tenant, ada, **AFTER), make_project(tenant, ada)
    book(tenant, first, "12:00", "13:00")
    Event.objects.update(buffer_before=None, buffer_after=None)
    tenant.make_event(ada["calendars"][0]["id"], *span("15:00", "16:00").values())

    assert free(tenant, first) == ["08:00-11:30", "13:30-14:30", "16:30-18:00"]
    assert free(tenant, second) == ["08:00-12:00", "13:00-15:00", "16:00-18:00"]


def test_hold_keeps_its_buffers(tenant: Tenant, ada: Any) -> None:
    project, other = make_project(tenant, ada, **AFTER), make_project(tenant, ada)

    held = tenant.post("/bookings/reserve", {"project_id": project, **span("12:00", "13:00")})

    assert held.status == 201, held.json
    assert Hold.objects.values_list("buffer_before", "buffer_after").get() == (0, 1800)
    assert free(tenant, other) == ["08:00-12:00", "13:30-18:00"]


def test_long_buffers_outside_the_range_block(tenant: Tenant, ada: Any) -> None:
    far, other = make_project(tenant, ada, buffer_after="10 hours"), make_project(tenant, ada)
    ben = tenant.make_resource("Ben")
    both = make_project(tenant, ada, ben, mode="exclusive")
    answer = tenant.book(project_id=far, start="2026-11-23T22:00:00Z", end="2026-11-23T23:00:00Z")

    assert answer.status == 201, answer.json
    assert free(tenant, other) == ["09:00-18:00"]
    assert free(tenant, both) == ["08:00-18:00", "09:00-18:00"]
    explained = tenant.post("/availability/explain", {"project_id": other, **DAY}).data
    assert [
        [reason["text"] for reason in segment["reasons"]] for segment in explained[0]["segments"]
    ] == [["Within the buffer of 10 hours after an event."], []]
    assert reasons(tenant.book(project_id=other, **span("08:30", "10:00"))) == [
        "Within the buffer of 10 hours after an event."
    ]
    assert tenant.book(project_id=other, **span("09:00", "10:00")).status == 201


def test_check_finds_a_longer_buffer_written_concurrently(tenant: Tenant, ada: Any) -> None:
    """The resource was read before its lock; meanwhile a booking with a long buffer was made."""
    far = make_project(tenant, ada, buffer_after="10 hours")
    resource = Resource.objects.get()
    tenant.book(project_id=far, start="2026-11-23T22:00:00Z", end="2026-11-23T23:00:00Z")
    morning = TimeSpan(*(int(at(f"2026-11-24 {time}").timestamp()) for time in ("08:00", "09:00")))

    found = fetch_busy_events([resource.id], morning, buffers=Buffers(), now=at("2026-11-23 08:00"))
    without = fetch_busy_events([resource.id], morning, now=at("2026-11-23 08:00"))

    ((item,),) = found.values()
    assert (item.before, item.after, without) == (0, 36_000, {})
    assert (resource.longest_buffer, Resource.objects.get().longest_buffer) == (0, 36_000)


def test_a_move_takes_the_buffer_to_another_resource(tenant: Tenant, ada: Any) -> None:
    ben = tenant.make_resource("Ben")
    project = make_project(tenant, ada, **AFTER)
    booking = book(tenant, project, "12:00", "13:00")

    body = {**span("12:00", "13:00"), "resource_id": ben["id"]}
    answer = tenant.post(f"/bookings/{booking['id']}/reschedule", body)

    assert answer.status == 200, answer.json
    assert Resource.objects.get(id=ben["id"]).longest_buffer == 1800
    assert free(tenant, make_project(tenant, ben)) == ["08:00-12:00", "13:30-18:00"]


def test_without_enforced_rules_only_overlaps_count(tenant: Tenant, ada: Any) -> None:
    project = make_project(tenant, ada, **AFTER)
    book(tenant, project, "12:00", "13:00")
    unruled = {"settings": {"enforce_availability": False}}

    beside = tenant.book(project_id=project, **span("13:00", "14:00"), **unruled)
    across = tenant.book(project_id=project, **span("13:30", "14:30"), **unruled)

    assert (beside.status, across.status, across.json["code"]) == (201, 409, "slot_taken")
    assert set(Event.objects.values_list("buffer_before", "buffer_after")) == {(0, 1800)}


def test_a_widget_key_only_lengthens_buffers(tenant: Tenant, ada: Any) -> None:
    project = make_project(tenant, ada, buffer_before="10 minutes", buffer_after="20 minutes")
    tenant.make_event(ada["calendars"][0]["id"], *span("12:00", "13:00").values())
    widget = tenant.widget()

    assert free(widget, project, buffer=0) == ["08:00-11:40", "13:20-18:00"]
    assert free(widget, project, buffer_before="1 hour") == ["08:00-11:00", "14:00-18:00"]


def test_buffers_of_a_project(tenant: Tenant, ada: Any) -> None:
    terms = {"length": None, "buffer": "1 hour", **AFTER}
    project = make_project(tenant, ada, **terms)
    path = f"/projects/{project}"

    shown = [
        tenant.put(path, {"availability": given}).data["availability"]
        for given in ({"buffer_before": "5 minutes"}, {"buffer": None}, {"buffer": "1 minute"})
    ]

    assert tenant.get(path).data["availability"] == shown[-1]
    assert shown == [
        {**terms, "buffer_before": "5 minutes"},
        {"length": None, "buffer_before": "5 minutes", **AFTER},
        {"length": None, "buffer": "1 minute"},
    ]
    wrong = {"buffer_before": "-1 minute", "buffer_after": "367 days"}
    refused = tenant.put(path, {"availability": wrong})
    outside = ["Must be from 0 seconds to 366 days."]
    assert refused.json["errors"] == {f"availability.{name}": outside for name in wrong}
