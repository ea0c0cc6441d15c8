"""A project without a resource: which one is taken, by the project's mode (section 5)."""

import random
from collections import Counter
from typing import Any

import pytest
from django.db import connection, transaction

from availability.models import Event, Project
from bookings.booking_target import BookingTarget
from bookings.models import Booking
from bookings.services import resource_assignment
from tests.bookings.booking_drafts import (
    MONDAY,
    NINE,
    act,
    answered,
    busy_times,
    shown,
    span,
    whole,
)
from tests.queries import Queries
from tests.world import NOW, Answer, Tenant, at

pytestmark = pytest.mark.usefixtures("clock")


# The usual size is that of every other test.
USUAL = pytest.param(resource_assignment.FIRST_BATCH, marks=pytest.mark.deep)


@pytest.fixture(autouse=True, params=[1, USUAL])
def first_batch(request: Any, monkeypatch: pytest.MonkeyPatch) -> int:
    """The choice is the same however many resources are read at once."""
    monkeypatch.setattr(resource_assignment, "FIRST_BATCH", request.param)
    return request.param


MODES = ("roundrobin_random", "roundrobin_prioritized", "exclusive")
OPEN = {"settings": {"enforce_availability": False}}


def make_three(tenant: Tenant) -> list[Any]:
    return [tenant.make_resource(name) for name in ("Ada", "Bob", "Cleo")]


def make_project(tenant: Tenant, resources: list[Any], mode: str | None, **given: Any) -> str:
    availability = {"mode": mode, **given.pop("availability", {})}
    ids = [resource["id"] for resource in resources]
    return tenant.make_project(*ids, availability=availability, **given)["id"]


def chosen(tenant: Tenant, answer: Answer) -> str:
    """Whom the booking went to."""
    assert answer.status == 201, answer.json
    return whole(tenant, answer.data)["resource"]["name"]


# --- One of several -------------------------------------------------------------------------------
@pytest.mark.parametrize("mode", ["roundrobin_prioritized", "exclusive"])
def test_prioritized_takes_the_first_free_resource(tenant: Tenant, mode: str) -> None:
    ada, bob, cleo = make_three(tenant)
    project = make_project(tenant, [cleo, ada, bob], mode)

    answers = [tenant.book(project_id=project, **NINE) for _ in range(4)]

    assert [chosen(tenant, answer) for answer in answers[:3]] == ["Cleo", "Ada", "Bob"]
    assert (answers[3].status, answers[3].json["code"]) == (409, "slot_taken")


@pytest.mark.parametrize("mode", [None, "roundrobin_random"])
def test_random_spreads_over_all_free_resources(tenant: Tenant, mode: str | None) -> None:
    random.seed(7)
    project = make_project(tenant, make_three(tenant), mode)

    answers = [
        tenant.book(project_id=project, **OPEN, **span(f"{hour:02}:00", f"{hour:02}:30"))
        for hour in range(18)
    ]

    counts = Counter(chosen(tenant, answer) for answer in answers)
    assert set(counts) == {"Ada", "Bob", "Cleo"}
    assert max(counts.values()) < 12


@pytest.mark.parametrize("mode", MODES)
def test_last_free_resource_is_taken(tenant: Tenant, mode: str) -> None:
    project = make_project(tenant, make_three(tenant), mode)

    answers = [tenant.book(project_id=project, **NINE) for _ in range(4)]

    assert [answer.status for answer in answers] == [201, 201, 201, 409]
    assert {chosen(tenant, answer) for answer in answers[:3]} == {"Ada", "Bob", "Cleo"}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("enforced", [True, False])
def test_busy_resources_are_not_chosen(tenant: Tenant, mode: str, enforced: bool) -> None:
    ada, bob, cleo = make_three(tenant)
    tenant.make_event(ada["calendars"][0]["id"], **NINE)
    tenant.book(resource_id=cleo["id"], **NINE)
    project = make_project(tenant, [ada, bob, cleo], mode)

    answer = tenant.book(project_id=project, settings={"enforce_availability": enforced}, **NINE)

    assert chosen(tenant, answer) == "Bob"


@pytest.mark.parametrize(("enforced", "name"), [(True, "Bob"), (False, "Ada")])
def test_rules_count_if_enforced(tenant: Tenant, enforced: bool, name: str) -> None:
    ada = tenant.make_resource("Ada", availability_constraints=[{"block_weekdays": {}}])
    bob = tenant.make_resource("Bob")
    project = make_project(tenant, [ada, bob], "roundrobin_prioritized")

    answer = tenant.book(project_id=project, settings={"enforce_availability": enforced}, **NINE)

    assert chosen(tenant, answer) == name


def test_double_bookings_may_overlap(tenant: Tenant) -> None:
    ada, bob, _ = make_three(tenant)
    project = make_project(
        tenant, [ada, bob], "roundrobin_prioritized", settings={"allow_double_bookings": True}
    )

    answers = [tenant.book(project_id=project, **NINE) for _ in range(3)]

    assert [chosen(tenant, answer) for answer in answers] == ["Ada"] * 3


def test_named_resource_is_taken(tenant: Tenant) -> None:
    ada, bob, cleo = make_three(tenant)
    project = make_project(tenant, [ada, bob], "roundrobin_prioritized")

    answers = [
        tenant.book(project_id=project, resource_id=one["id"], **NINE) for one in (bob, cleo, bob)
    ]

    assert [chosen(tenant, answer) for answer in answers[:2]] == ["Bob", "Cleo"]
    assert answers[2].status == 409


def test_removed_resources_are_not_chosen(tenant: Tenant) -> None:
    ada, bob, _ = make_three(tenant)
    project = make_project(tenant, [ada, bob], "roundrobin_prioritized")
    tenant.delete(f"/resources/{ada['id']}")

    assert chosen(tenant, tenant.book(project_id=project, **NINE)) == "Bob"


def test_the_event_goes_into_the_first_calendar(tenant: Tenant, clock: Any) -> None:
    ada = tenant.make_resource("Ada")
    clock.shift(1)
    tenant.post("/calendars", {"name": "Second", "resource_id": ada["id"]})
    project = make_project(tenant, [ada], None)

    booking = tenant.book(project_id=project, **NINE).data

    assert whole(tenant, booking)["calendar"]["id"] == ada["calendars"][0]["id"]


@pytest.mark.parametrize("mode", [*MODES, "mutual"])
@pytest.mark.parametrize("enforced", [True, False])
def test_a_project_without_resources(tenant: Tenant, mode: str, enforced: bool) -> None:
    project = make_project(tenant, [], mode)

    answer = tenant.book(project_id=project, settings={"enforce_availability": enforced}, **NINE)

    text = "The project has no resources."
    assert (answer.status, answer.error) == (
        409,
        {
            "error": "The time is not available.",
            "code": "not_available",
            "reasons": [{"type": "limit", "source": "project", "text": text}],
            "alternatives": [],
        },
    )


@pytest.mark.parametrize("enforced", [True, False])
def test_concurrently_taken_candidates_are_replaced(tenant: Tenant, enforced: bool) -> None:
    ada, bob, cleo = make_three(tenant)
    project = make_project(tenant, [ada, bob, cleo], "roundrobin_prioritized")
    target = BookingTarget(
        app=tenant.app, project=Project.objects.get(id=project), calendar=None, now=NOW
    )
    rules = target.policies if enforced else None
    nine = at(f"{MONDAY} 09:00")
    time_request = target.time_request(
        nine, at(f"{MONDAY} 10:00"), blocks=True, allow_double_bookings=False, rules=rules
    )

    candidates = resource_assignment.find_candidates(time_request, target)
    for resource in (ada, bob):
        tenant.book(resource_id=resource["id"], **NINE)

    with (
        transaction.atomic(),
        resource_assignment.reserve_time(time_request, target, candidates) as found,
    ):
        assert [str(place.calendar.resource_id) for place in found] == [cleo["id"]]


def test_query_count_is_constant(tenant: Tenant, first_batch: int) -> None:
    counts = []
    for size in (first_batch + 1, first_batch + 12):
        resources = [tenant.make_resource(f"{size}-{number}") for number in range(size)]
        project = make_project(tenant, resources, None)
        tenant.book(project_id=project, **span("07:00", "08:00"))
        with Queries(connection) as queries:
            tenant.book(project_id=project, **NINE)
        counts.append(len(queries))

    assert counts[0] == counts[1]


def test_random_order_has_each_resource_once() -> None:
    letters = "abcdefgh"

    orders = {"".join(resource_assignment.in_random_order(letters)) for _ in range(50)}

    assert {"".join(sorted(order)) for order in orders} == {letters}
    assert len(orders) > 40


# --- None is free ---------------------------------------------------------------------------------
def test_alternatives_of_any_resource(tenant: Tenant) -> None:
    ada, bob, _ = make_three(tenant)
    tenant.make_event(ada["calendars"][0]["id"], **span("09:00", "12:00"))
    tenant.make_event(bob["calendars"][0]["id"], **span("09:00", "10:30"))
    project = make_project(tenant, [ada, bob], "roundrobin_prioritized")

    answer = tenant.book(project_id=project, **NINE)

    assert (answer.status, answer.error) == (
        409,
        {
            "error": "The time is taken.",
            "code": "slot_taken",
            "conflicts": [shown("09:00", "12:00")],
            "alternatives": [
                shown("10:30", "11:30"),
                shown("11:30", "12:30"),
                shown("12:00", "13:00"),
            ],
        },
    )


def test_taken_resource_takes_precedence_over_closed_one(tenant: Tenant) -> None:
    """The nearer truth: there is time, somebody else has it."""
    ada = tenant.make_resource("Ada", availability_constraints=[{"block_weekdays": {}}])
    bob = tenant.make_resource("Bob")
    tenant.make_event(bob["calendars"][0]["id"], **NINE)
    project = make_project(tenant, [ada, bob], "roundrobin_prioritized")

    answer = tenant.book(project_id=project, **NINE)

    assert (answer.status, answer.json["code"]) == (409, "slot_taken")


def test_all_resources_closed(tenant: Tenant) -> None:
    resources = [
        tenant.make_resource(name, availability_constraints=[{"block_day": {"day": "Monday"}}])
        for name in ("Ada", "Bob")
    ]
    project = make_project(tenant, resources, None)

    answer = tenant.book(project_id=project, **NINE)

    assert (answer.status, answer.error) == (
        409,
        {
            "error": "The time is not available.",
            "code": "not_available",
            "reasons": [
                {
                    "type": "constraint",
                    "source": "resource",
                    "constraint": {"block_day": {"day": "Monday"}},
                    "text": "Blocked by the resource's rule: Mondays.",
                }
            ],
            "alternatives": [
                shown(f"{hour:02}:00", f"{hour + 1:02}:00", "2026-11-24") for hour in range(3)
            ],
        },
    )


@pytest.mark.parametrize("mode", ["exclusive", "mutual"])
def test_alternatives_of_many_resources_with_many_starts(tenant: Tenant, mode: str) -> None:
    """Of a fortnight there would be more than 100,000: the first three are found all the same."""
    resources = [tenant.make_resource(str(number)) for number in range(6)]
    for resource in resources:
        tenant.make_event(resource["calendars"][0]["id"], **span("09:00", "09:30"))
    fine = {"timeslot_increments": "1 minute", "length": "10 minutes"}
    project = make_project(tenant, resources, mode, availability=fine)

    answer = tenant.book(project_id=project, **span("09:10", "09:20"))

    assert (answer.status, answer.json["code"], answer.json["alternatives"]) == (
        409,
        "slot_taken",
        [shown(f"09:{30 + minute}", f"09:{40 + minute}") for minute in range(3)],
    )


def test_alternatives_after_full_days(tenant: Tenant) -> None:
    """The part that is looked through grows until it has three or is a fortnight."""
    resources = [tenant.make_resource(str(number)) for number in range(8)]
    for resource in resources:
        tenant.make_event(
            resource["calendars"][0]["id"], f"{MONDAY}T00:00:00Z", "2026-12-01T07:00:00Z"
        )
    fine = {"timeslot_increments": "1 minute", "length": "1 minute"}
    project = make_project(tenant, resources, "exclusive", availability=fine)

    answer = tenant.book(project_id=project, **span("09:00", "09:01"))

    assert answer.json["alternatives"] == [
        shown(f"07:0{minute}", f"07:0{minute + 1}", "2026-12-01") for minute in range(3)
    ]


# --- Mutual ---------------------------------------------------------------------------------------
@pytest.fixture
def three(tenant: Tenant) -> list[Any]:
    return make_three(tenant)


@pytest.fixture
def mutual(tenant: Tenant, three: list[Any]) -> str:
    return make_project(tenant, three, "mutual")


def events_of(tenant: Tenant, resources: list[Any]) -> list[list[Any]]:
    """Each resource's events on that Monday."""
    query = f"start={MONDAY}T00:00:00Z&end={MONDAY}T23:59:59Z"
    return [
        tenant.get(f"/events?{query}&search=resource.id:{resource['id']}").data
        for resource in resources
    ]


def spans_of(tenant: Tenant, resources: list[Any]) -> list[list[tuple[str, bool]]]:
    return [
        [(f"{event['start'][11:16]}-{event['end'][11:16]}", event["busy"]) for event in events]
        for events in events_of(tenant, resources)
    ]


def test_mutual_booking_blocks_all_resources(tenant: Tenant, three: list[Any], mutual: str) -> None:
    answer = tenant.book(project_id=mutual, where="Room 2", description="D", **NINE)

    booking = whole(tenant, answer.data)
    assert (answer.status, booking["resource"]["name"]) == (201, "Ada")
    assert booking["calendar"]["id"] == three[0]["calendars"][0]["id"]
    assert spans_of(tenant, three) == [[("09:00-10:00", True)]] * 3
    (first,), (second,), (third,) = events_of(tenant, three)
    assert first == booking["event"]
    for companion, resource in ((second, three[1]), (third, three[2])):
        assert companion == {
            **first,
            "id": companion["id"],
            "calendar_id": resource["calendars"][0]["id"],
        }
    assert [busy_times(tenant, resource["id"]) for resource in three] == [["09:00-10:00"]] * 3


@pytest.mark.parametrize("busy", [0, 1, 2])
@pytest.mark.parametrize("enforced", [True, False])
def test_mutual_booking_needs_all_resources_free(
    tenant: Tenant, three: list[Any], mutual: str, busy: int, enforced: bool
) -> None:
    tenant.book(resource_id=three[busy]["id"], **span("08:30", "09:30"))

    answer = tenant.book(project_id=mutual, settings={"enforce_availability": enforced}, **NINE)

    assert (answer.status, answer.error) == (
        409,
        {
            "error": "The time is taken.",
            "code": "slot_taken",
            "conflicts": [shown("08:30", "09:30")],
            "alternatives": [
                shown("09:30", "10:30"),
                shown("10:30", "11:30"),
                shown("11:30", "12:30"),
            ],
        },
    )
    assert (Booking.objects.count(), Event.objects.count()) == (1, 1)


def test_mutual_booking_checks_rules_of_each_resource(tenant: Tenant) -> None:
    ada = tenant.make_resource("Ada", availability_constraints=hours(8, 12))
    bob = tenant.make_resource("Bob", availability_constraints=hours(10, 14))
    project = make_project(tenant, [ada, bob], "mutual")

    answers = [
        tenant.book(project_id=project, **span(start, end))
        for start, end in (("09:00", "10:00"), ("11:00", "12:00"), ("12:00", "13:00"))
    ]

    assert [answer.status for answer in answers] == [409, 201, 409]
    assert [reason["text"] for reason in answers[0].json["reasons"]] == [
        "Outside the resource's opening hours: 10:00 to 14:00."
    ]
    assert answers[0].json["alternatives"] == [
        shown("10:00", "11:00"),
        shown("11:00", "12:00"),
        shown("10:00", "11:00", "2026-11-24"),
    ]


def hours(start: int, end: int) -> list[Any]:
    return [{"allow_hours": {"start": start, "end": end}}]


@pytest.mark.parametrize("action", ["cancel", "cancel_by_customer", "complete"])
def test_mutual_booking_frees_all_resources(
    tenant: Tenant, three: list[Any], mutual: str, action: str
) -> None:
    booking = tenant.book(project_id=mutual, **NINE).data

    act(tenant, booking, action)

    assert spans_of(tenant, three) == [[("09:00-10:00", False)]] * 3
    assert [busy_times(tenant, resource["id"]) for resource in three] == [[]] * 3


def test_mutual_booking_moves_all_resources(tenant: Tenant, three: list[Any], mutual: str) -> None:
    booking = tenant.book(project_id=mutual, **NINE).data

    answer = tenant.post(f"/bookings/{booking['id']}/reschedule", span("09:30", "10:30"))

    assert (answer.status, answer.json) == (200, {"data": answered(booking, "confirmed")})
    assert spans_of(tenant, three) == [[("09:30-10:30", True)]] * 3


@pytest.mark.parametrize("busy", [0, 1, 2])
def test_mutual_booking_is_not_moved_if_one_resource_is_taken(
    tenant: Tenant, three: list[Any], mutual: str, busy: int
) -> None:
    booking = tenant.book(project_id=mutual, **NINE).data
    tenant.book(resource_id=three[busy]["id"], **span("10:00", "10:30"))

    answer = tenant.post(f"/bookings/{booking['id']}/reschedule", span("09:30", "10:30"))

    assert (answer.status, answer.json["conflicts"]) == (409, [shown("10:00", "10:30")])
    expected = [[("09:00-10:00", True)]] * 3
    expected[busy] = [("10:00-10:30", True), ("09:00-10:00", True)]
    found = spans_of(tenant, three)
    assert [sorted(spans) for spans in found] == [sorted(spans) for spans in expected]


def test_mutual_booking_keeps_its_resources(tenant: Tenant, three: list[Any], mutual: str) -> None:
    booking = tenant.book(project_id=mutual, **NINE).data
    path = f"/bookings/{booking['id']}/reschedule"

    answers = [
        tenant.post(path, {**span("10:00", "11:00"), "resource_id": one["id"]})
        for one in (three[1], three[0])
    ]

    assert [answer.status for answer in answers] == [422, 200]
    assert answers[0].json["errors"] == {
        "resource_id": ["The resources of a mutual booking can't be changed."]
    }


def test_tentative_mutual_booking_blocks_when_confirmed(
    tenant: Tenant, three: list[Any], mutual: str
) -> None:
    booking = tenant.book(project_id=mutual, graph="confirm_decline", **NINE).data
    before = spans_of(tenant, three)

    answer = act(tenant, booking, "confirm")

    assert before == [[("09:00-10:00", False)]] * 3
    assert answer.status == 200
    assert spans_of(tenant, three) == [[("09:00-10:00", True)]] * 3


@pytest.mark.parametrize("busy", [0, 1, 2])
def test_tentative_mutual_booking_stays_if_one_resource_is_taken(
    tenant: Tenant, three: list[Any], mutual: str, busy: int
) -> None:
    booking = tenant.book(project_id=mutual, graph="confirm_decline", **NINE).data
    tenant.book(resource_id=three[busy]["id"], **span("09:30", "10:00"))

    answer = act(tenant, booking, "confirm")

    assert (answer.status, answer.json["conflicts"]) == (409, [shown("09:30", "10:00")])
    assert whole(tenant, booking)["state"] == "tentative"
    assert [len(busy_times(tenant, resource["id"])) for resource in three].count(1) == 1


def test_mutual_booking_counts_for_each_resource(tenant: Tenant, three: list[Any]) -> None:
    project = make_project(tenant, three, "mutual", settings={"max_per_day": 1})
    tenant.book(project_id=project, **NINE)

    answers = [
        tenant.book(project_id=project, resource_id=resource["id"], **span("12:00", "13:00"))
        for resource in three
    ]

    assert [answer.status for answer in answers] == [409] * 3
    assert [reason["text"] for reason in answers[2].json["reasons"]] == ["Daily limit reached."]
