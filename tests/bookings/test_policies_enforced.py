"""Enforced availability: what a project's own values refuse, and with which reason (section 5)."""

from datetime import datetime
from typing import Any

import pytest

from bookings.models import Booking
from tests.bookings.booking_drafts import MONDAY, NINE, act, answered, shown, span, whole
from tests.world import BERLIN, Answer, Tenant, at, hours

pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.both_databases]

FREE = {"length": None}
HOURS = {"allow_hours": {"start": 8, "end": 18}}


class Desk:
    """A resource, a project with it, and bookings through that project."""

    def __init__(
        self,
        tenant: Tenant,
        *,
        rules: list[Any] | None = None,
        timezone: str = "UTC",
        **project: Any,
    ) -> None:
        self.tenant = tenant
        self.resource = tenant.make_resource(
            timezone=timezone, availability_constraints=rules or []
        )
        self.calendar = self.resource["calendars"][0]["id"]
        self.project = tenant.make_project(self.resource["id"], **project)["id"]

    def book(self, times: dict[str, str], **given: Any) -> Answer:
        return self.tenant.book(project_id=self.project, **times, **given)

    def event(self, start: str, end: str, **given: Any) -> Any:
        return self.tenant.make_event(self.calendar, **span(start, end), **given)["id"]


def reasons(answer: Answer) -> list[dict[str, Any]]:
    assert (answer.status, answer.json["code"]) == (409, "not_available"), answer.json
    return answer.json["reasons"]


def reason(kind: str, text: str, source: str | None = None, **given: Any) -> dict[str, Any]:
    return {"type": kind, "source": source, **given, "text": text}


# --- Every type of reason -------------------------------------------------------------------------
def test_whole_refusal(tenant: Tenant) -> None:
    desk = Desk(tenant, rules=[HOURS])

    answer = desk.book(span("07:30", "08:30"))

    assert (answer.status, answer.error) == (
        409,
        {
            "error": "The time is not available.",
            "code": "not_available",
            "reasons": [
                reason(
                    "constraint",
                    "Outside the resource's opening hours: 08:00 to 18:00.",
                    "resource",
                    constraint=HOURS,
                )
            ],
            "alternatives": [
                shown("08:00", "09:00"),
                shown("09:00", "10:00"),
                shown("10:00", "11:00"),
            ],
        },
    )
    assert not Booking.objects.exists()


@pytest.mark.parametrize("source", ["resource", "project"])
@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ({"allow_hours": {"start": 10, "end": 12}},
         "Outside the {}'s opening hours: 10:00 to 12:00."),
        ({"block_hours": {"start": "09:30", "end": 12}},
         "Blocked by the {}'s rule: 09:30 to 12:00 every day."),
        ({"allow_day": {"day": "Tuesday"}}, "Outside the {}'s days: Tuesdays."),
        ({"block_day": {"day": "Monday"}}, "Blocked by the {}'s rule: Mondays."),
        ({"allow_weekends": {}}, "Outside the {}'s days: Saturday and Sunday."),
        ({"block_weekdays": {}}, "Blocked by the {}'s rule: Monday to Friday."),
        ({"allow_day_and_time": {"day": "Monday", "start": 12, "end": 13}},
         "Outside the {}'s opening hours: Mondays 12:00 to 13:00."),
        ({"block_day_and_time": {"day": "Monday", "start": 8, "end": "09:01"}},
         "Blocked by the {}'s rule: Mondays 08:00 to 09:01."),
        ({"allow_period": {"start": "2026-11-24 00:00:00", "end": "2026-11-25 00:00:00"}},
         "Outside the {}'s period: 2026-11-24 00:00:00 to 2026-11-25 00:00:00."),
        ({"block_period": {"start": "2026-11-23 09:59:59", "end": "2026-11-25 00:00:00"}},
         "Blocked by the {}'s rule: 2026-11-23 09:59:59 to 2026-11-25 00:00:00."),
    ],
)  # fmt: skip
@pytest.mark.matrix
def test_constraints_of_each_source(tenant: Tenant, source: str, rule: Any, text: str) -> None:
    rules = {"rules": [rule]} if source == "resource" else {"availability_constraints": [rule]}
    desk = Desk(tenant, **rules)

    answer = desk.book(NINE)

    assert reasons(answer) == [reason("constraint", text.format(source), source, constraint=rule)]


def test_united_rules_are_named_together(tenant: Tenant) -> None:
    rules = [{"allow_day": {"day": "Tuesday"}}, {"allow_day": {"day": "Friday"}}]
    desk = Desk(tenant, rules=rules)

    answer = desk.book(NINE)

    text = "Outside the resource's days: Tuesdays and Fridays."
    assert reasons(answer) == [reason("constraint", text, "resource", constraints=rules)]


def test_rules_apply_in_the_zone_of_the_resource(tenant: Tenant) -> None:
    desk = Desk(tenant, rules=[{"allow_hours": {"start": 9, "end": 10}}], timezone=BERLIN)

    answers = [desk.book(span(*times)) for times in (("09:00", "10:00"), ("08:00", "09:00"))]

    assert [answer.status for answer in answers] == [409, 201]


@pytest.mark.parametrize("times", [("09:30", "10:30"), ("08:30", "09:30"), ("09:00", "10:00")])
def test_overlap_alone_is_slot_taken(tenant: Tenant, times: tuple[str, str]) -> None:
    desk = Desk(tenant, rules=[HOURS])
    desk.event("09:00", "10:00")

    answer = desk.book(span(*times))

    assert (answer.status, answer.json["code"], answer.json["conflicts"]) == (
        409,
        "slot_taken",
        [shown("09:00", "10:00")],
    )


def test_overlap_and_broken_rule_are_both_named(tenant: Tenant) -> None:
    rule = {"block_hours": {"start": 9, "end": 10}}
    desk = Desk(tenant, rules=[rule])
    event = desk.event("09:30", "09:45")

    answer = desk.book(NINE)

    assert reasons(answer) == [
        reason(
            "constraint",
            "Blocked by the resource's rule: 09:00 to 10:00 every day.",
            "resource",
            constraint=rule,
        ),
        reason("event", "Overlaps an event.", event_id=event),
    ]


@pytest.mark.parametrize(
    ("times", "status"),
    [
        (("09:00", "10:00"), 201),
        (("09:01", "10:01"), 409),
        (("11:29", "12:29"), 409),
        (("11:30", "12:30"), 201),
    ],
)
def test_buffer_before_and_after(tenant: Tenant, times: tuple[str, str], status: int) -> None:
    desk = Desk(tenant, availability={"buffer": "30 minutes"})
    event = desk.event("10:30", "11:00")

    answer = desk.book(span(*times))

    text = "Within the buffer of 30 minutes around an event."
    assert answer.status == status
    if status == 409:
        assert reasons(answer) == [reason("buffer", text, event_id=event)]


def test_buffer_applies_once_between_two_bookings(tenant: Tenant) -> None:
    desk = Desk(tenant, availability={"buffer": "30 minutes"})
    desk.book(NINE)

    answers = [desk.book(span(*times)) for times in (("10:29", "11:29"), ("10:30", "11:30"))]

    assert [answer.status for answer in answers] == [409, 201]


@pytest.mark.parametrize(
    ("earliest", "start", "status"),
    [
        ("2 hours", "2026-11-20T11:29:59Z", 409),
        ("2 hours", "2026-11-20T11:30:00Z", 201),
        ("3 days", f"{MONDAY}T09:29:00Z", 409),
        ("3 days", f"{MONDAY}T09:30:00Z", 201),
        ("tomorrow", "2026-11-20T23:59:00Z", 409),
        ("tomorrow", "2026-11-21T00:00:00Z", 201),
        ("2026-11-23T09:30:00Z", f"{MONDAY}T09:29:59Z", 409),
        ("2026-11-23T09:30:00Z", f"{MONDAY}T09:30:00Z", 201),
        ("2026-11-23 09:30:00", f"{MONDAY}T09:30:00Z", 201),
    ],
)
def test_minimum_notice_is_not_rounded(
    tenant: Tenant, earliest: str, start: str, status: int
) -> None:
    desk = Desk(tenant, availability={"from": earliest, **FREE})

    answer = desk.book({"start": start, "end": "2026-11-24T00:00:00Z"})

    assert answer.status == status
    if status == 409:
        assert reasons(answer) == [reason("notice", "Starts within the minimum notice.")]


@pytest.mark.parametrize(
    ("latest", "end", "status"),
    [
        (None, "2026-12-18T09:30:00Z", 201),
        (None, "2026-12-18T09:30:01Z", 409),
        ("1 week", "2026-11-27T09:30:00Z", 201),
        ("1 week", "2026-11-27T09:31:00Z", 409),
        ("2026-11-24T00:00:00Z", "2026-11-24T00:00:00Z", 201),
        ("2026-11-24T00:00:00Z", "2026-11-24T00:00:01Z", 409),
    ],
)
def test_booking_window(tenant: Tenant, latest: str | None, end: str, status: int) -> None:
    desk = Desk(tenant, availability={"to": latest, **FREE})

    answer = desk.book({"start": f"{MONDAY}T09:00:00Z", "end": end})

    assert answer.status == status
    if status == 409:
        assert reasons(answer) == [reason("limit", "Beyond the booking window.")]


@pytest.mark.parametrize(
    ("start", "status"),
    [("2026-11-20T09:30:00Z", 201), ("2026-11-20T09:29:59Z", 409), ("2026-11-19T12:00:00Z", 409)],
)
@pytest.mark.parametrize("through_project", [True, False])
def test_time_in_the_past(tenant: Tenant, through_project: bool, start: str, status: int) -> None:
    desk = Desk(tenant, availability=FREE)
    target = {"project_id": desk.project}
    if not through_project:
        target = {"resource_id": desk.resource["id"]}

    answer = tenant.book(
        start=start,
        end="2026-11-20T12:00:00Z",
        settings={"enforce_availability": True},
        **target,
    )

    assert answer.status == status
    if status == 409:
        assert reasons(answer) == [reason("past", "Is in the past.")]


@pytest.mark.parametrize(
    ("length", "times", "text"),
    [
        ({}, ("09:00", "10:00"), None),
        ({}, ("09:00", "09:30"), "Must last exactly 60 minutes."),
        ({"length": "30 minutes"}, ("09:00", "09:30"), None),
        ({"length": "30 minutes"}, ("09:00", "10:00"), "Must last exactly 30 minutes."),
        ({"length": "90 seconds"}, ("09:00", "09:01"), "Must last exactly 1 minutes 30 seconds."),
        ({"length": None}, ("09:00", "09:17"), None),
    ],
)
def test_length_of_the_project(
    tenant: Tenant, length: dict[str, Any], times: tuple[str, str], text: str | None
) -> None:
    desk = Desk(tenant, availability=length)

    answer = desk.book(span(*times))

    if text:
        assert reasons(answer) == [reason("limit", text, "project")]
    else:
        assert answer.status == 201


LENGTHS = {"length": "1 hour", "lengths": ["30 minutes", "1 hour", "90 seconds"]}


@pytest.mark.parametrize(
    ("start", "end", "status"),
    [("09:00", "09:30", 201), ("09:00", "10:00", 201), ("09:00", "09:45", 409)],
)
def test_booking_with_one_of_several_lengths(
    tenant: Tenant, start: str, end: str, status: int
) -> None:
    desk = Desk(tenant, availability=LENGTHS)
    asked = {"project_id": desk.project, **span(start, end)}

    held = tenant.post("/bookings/reserve", asked)
    if held.status == 201:
        tenant.delete(f"/bookings/reserve/{held.data['reservation_id']}")
    answer = desk.book(span(start, end))

    assert (held.status, answer.status) == (status, status)
    if status == 409:
        text = "Must last 30 minutes, 60 minutes or 1 minutes 30 seconds."
        assert reasons(answer) == [reason("limit", text, "project")]


def test_query_with_one_of_several_lengths(tenant: Tenant) -> None:
    desk = Desk(tenant, rules=[HOURS], availability={**LENGTHS, "to": "1 day"})
    callers = (tenant, tenant.widget())

    lengths = [
        {
            slot_length(slot)
            for slot in caller.post("/availability", {"project_id": desk.project, **asked}).data
        }
        for caller in callers
        for asked in ({}, {"length": "30 minutes"}, {"length": "45 minutes"})
    ]

    # A server key may ask for any length, a widget key for the project's.
    assert lengths == [{60}, {30}, {45}, {60}, {30}, {60}]


def slot_length(slot: dict[str, str]) -> float:
    first, last = (datetime.fromisoformat(slot[key]) for key in ("start", "end"))
    return (last - first).total_seconds() / 60


def test_alternatives_have_the_chosen_length(tenant: Tenant) -> None:
    desk = Desk(tenant, rules=[HOURS], availability=LENGTHS)
    desk.book(NINE)

    answer = desk.book(span("09:30", "10:00"))

    assert answer.json["code"] == "slot_taken"
    assert {slot_length(slot) for slot in answer.json["alternatives"]} == {30}


def test_alternatives_have_the_projects_length(tenant: Tenant) -> None:
    desk = Desk(tenant, rules=[HOURS], availability={"length": "30 minutes"})

    answer = desk.book(NINE)

    assert answer.json["alternatives"] == [
        shown("09:00", "09:30"),
        shown("09:30", "10:00"),
        shown("10:00", "10:30"),
    ]


def test_the_grid_of_starts_is_not_enforced(tenant: Tenant) -> None:
    desk = Desk(tenant, rules=[HOURS], availability={"timeslot_increments": "1 hour"})

    answer = desk.book(span("09:17", "10:17"))

    assert (answer.status, answer.json) == (201, {"data": answered(answer.data, "confirmed")})


@pytest.mark.parametrize(("ignored", "status"), [(True, 201), (False, 409)])
@pytest.mark.parametrize("enforced", [True, False])
def test_all_day_events(tenant: Tenant, ignored: bool, enforced: bool, status: int) -> None:
    desk = Desk(tenant, availability={"ignore_all_day_events": ignored})
    body = {"calendar_id": desk.calendar, "what": "Fair", "all_day": True, "start": MONDAY}
    tenant.post("/events", body)

    answer = desk.book(NINE, settings={"enforce_availability": enforced})

    assert answer.status == status


def test_all_reasons_together(tenant: Tenant) -> None:
    rules = [{"block_day": {"day": "Monday"}}]
    desk = Desk(
        tenant,
        rules=rules,
        availability={"from": "4 days", "to": "5 days", "buffer": "1 hour", **FREE},
    )
    event = desk.event("10:30", "11:00")

    answer = desk.book(NINE)

    assert [
        (each_reason["type"], each_reason.get("event_id")) for each_reason in reasons(answer)
    ] == [
        ("constraint", None),
        ("notice", None),
        ("buffer", event),
    ]


@pytest.mark.parametrize("setting", ["project", "request"])
def test_no_rules_without_enforcement(tenant: Tenant, setting: str) -> None:
    off = {"enforce_availability": False}
    desk = Desk(
        tenant,
        rules=[{"block_day": {"day": "Monday"}}],
        availability={"from": "4 days", "to": "5 days", "buffer": "1 hour"},
        settings={"max_per_day": 1, **(off if setting == "project" else {})},
    )
    desk.event("10:00", "11:00")

    answers = [
        desk.book(span(*times), settings=off if setting == "request" else {})
        for times in (("09:00", "10:00"), ("11:00", "11:20"), ("10:30", "10:40"))
    ]

    assert [answer.status for answer in answers] == [201, 201, 409]


def test_rules_of_the_resource_apply_without_a_project(tenant: Tenant) -> None:
    resource = tenant.make_resource(availability_constraints=[HOURS])["id"]

    answers = [
        tenant.book(
            resource_id=resource, settings={"enforce_availability": True}, **span(start, end)
        )
        for start, end in (("08:00", "08:17"), ("07:30", "08:30"), ("08:17", "18:00"))
    ]

    assert [answer.status for answer in answers] == [201, 409, 201]


@pytest.mark.parametrize("allowed", [True, False])
def test_double_booking_checks_only_the_rules(tenant: Tenant, allowed: bool) -> None:
    desk = Desk(tenant, rules=[HOURS], availability={"buffer": "30 minutes"})
    desk.event("09:00", "10:00")

    answers = [
        desk.book(span(*times), settings={"allow_double_bookings": allowed})
        for times in (("09:00", "10:00"), ("10:15", "11:15"), ("07:00", "08:00"))
    ]

    expected = [201, 201, 409] if allowed else [409, 409, 409]
    assert [answer.status for answer in answers] == expected


# --- Bookings a day -------------------------------------------------------------------------------
def limited(tenant: Tenant, most: int = 1, **given: Any) -> Desk:
    return Desk(tenant, availability=FREE, settings={"max_per_day": most}, **given)


LIMIT = [reason("limit", "Daily limit reached.")]


def test_max_per_day(tenant: Tenant) -> None:
    desk = limited(tenant, 2)

    answers = [desk.book(span(f"{hour:02}:00", f"{hour:02}:30")) for hour in (9, 11, 13)]
    next_day = desk.book(span("09:00", "09:30", "2026-11-24"))

    assert [answer.status for answer in answers] == [201, 201, 409]
    assert reasons(answers[2]) == LIMIT
    assert answers[2].json["alternatives"][0] == shown("00:00", "00:30", "2026-11-24")
    assert next_day.status == 201


def days(*numbers: int) -> list[str]:
    return [f"2026-12-{number:02}" for number in numbers]


@pytest.mark.parametrize(
    ("key", "text", "booked", "closed", "open_again"),
    [
        # Monday to Sunday, and the Monday after
        ("max_per_week", "Weekly limit reached.", days(7, 13), days(8), days(14)),
        ("max_per_month", "Monthly limit reached.", days(1, 31), days(2, 20), ["2027-01-01"]),
    ],
)
def test_max_per_week_and_month(
    tenant: Tenant, key: str, text: str, booked: list[str], closed: list[str], open_again: list[str]
) -> None:
    desk = Desk(
        tenant, availability={"to": "60 days"}, settings={key: 2}, timezone="Pacific/Auckland"
    )

    def book(day: str) -> Answer:
        return desk.book({"start": f"{day}T00:00:00+13:00", "end": f"{day}T01:00:00+13:00"})

    made = [book(day).status for day in booked]
    refused = [reasons(book(day)) for day in closed]
    asked = {"project_id": desk.project, "output_timezone": "Pacific/Auckland"}
    offered = tenant.post("/availability", asked).data
    again = [book(day).status for day in open_again]

    found = {slot["start"][:10] for slot in offered}
    assert (made, again) == ([201] * len(booked), [201] * len(open_again))
    assert refused == [[reason("limit", text)]] * len(closed)
    assert found.isdisjoint({*booked, *closed})
    assert found > set(open_again)


def test_a_booking_over_sunday_midnight_counts_in_both_weeks(tenant: Tenant) -> None:
    desk = Desk(tenant, availability=FREE, settings={"max_per_week": 1})
    made = desk.book({"start": "2026-11-29T23:30:00Z", "end": "2026-11-30T00:30:00Z"})

    answers = [
        desk.book(span("12:00", "13:00", day)) for day in ("2026-11-25", "2026-12-04", "2026-12-08")
    ]

    assert [answer.status for answer in (made, *answers)] == [201, 409, 409, 201]


def test_a_booking_until_midnight_counts_on_one_day(tenant: Tenant) -> None:
    desk = limited(tenant, timezone=BERLIN)
    made = desk.book({"start": "2026-11-24 22:00:00", "end": "2026-11-25 00:00:00"})

    answers = [desk.book(span("12:00", "13:00", f"2026-11-{day}")) for day in (24, 25)]

    assert [answer.status for answer in (made, *answers)] == [201, 409, 201]
    assert reasons(answers[0]) == LIMIT


def test_series_stops_at_the_weekly_limit(tenant: Tenant) -> None:
    desk = Desk(tenant, availability=FREE, settings={"max_per_week": 2, "max_per_month": 3})

    answer = desk.book(NINE, recurrence="FREQ=DAILY;COUNT=10", on_conflict="skip")

    rows = Booking.objects.order_by("event__start").values_list("event__start", flat=True)
    assert answer.status == 201
    assert [row.strftime("%m-%d") for row in rows] == ["11-23", "11-24", "11-30", "12-01"]


@pytest.mark.parametrize(
    ("action", "status"), [("complete", 409), ("cancel", 201), ("cancel_by_customer", 201)]
)
def test_a_completed_booking_counts_on_its_day(tenant: Tenant, action: str, status: int) -> None:
    desk = limited(tenant)
    booking = desk.book(NINE).data
    tenant.put(f"/bookings/{booking['id']}/{action}")

    answer = desk.book(span("11:00", "12:00"))
    repeated = desk.book(span("13:00", "14:00"), recurrence="FREQ=DAILY;COUNT=2")

    assert (answer.status, repeated.status) == (status, 409)


def test_a_completed_mutual_booking_counts_for_each_resource(tenant: Tenant) -> None:
    ada, bob = (tenant.make_resource(name)["id"] for name in ("Ada", "Bob"))
    limits = {"availability": FREE, "settings": {"max_per_day": 1}}
    both = tenant.make_project(ada, bob, **limits, name="Both")["id"]
    tenant.put(f"/projects/{both}", {"availability": {**FREE, "mode": "mutual"}})
    booking = tenant.book(project_id=both, **NINE).data
    tenant.put(f"/bookings/{booking['id']}/complete")

    answers = [
        tenant.book(project_id=both, resource_id=resource, **span("11:00", "12:00"))
        for resource in (ada, bob)
    ]

    assert [reasons(answer) for answer in answers] == [LIMIT, LIMIT]


def test_a_completed_booking_that_is_hidden_does_not_count(tenant: Tenant) -> None:
    desk = limited(tenant)
    booking = desk.book(NINE).data
    tenant.put(f"/bookings/{booking['id']}/complete")
    tenant.delete(f"/bookings/{booking['id']}")

    answer = desk.book(span("11:00", "12:00"))

    assert answer.status == 201


def test_limit_applies_to_server_keys(tenant: Tenant) -> None:
    """It is a limit, not a policy."""
    desk = limited(tenant)
    desk.book(NINE)

    answer = tenant.member("owner@example.com").post(
        "/bookings",
        {
            "project_id": desk.project,
            "what": "A",
            "customer": {"name": "A", "email": "a@example.com"},
            **span("11:00", "12:00"),
        },
    )

    assert reasons(answer) == LIMIT


@pytest.mark.parametrize(
    ("first", "second", "status"),
    [
        ("2026-11-23 23:00", "2026-11-24 00:00", 201),
        ("2026-11-23 00:00", "2026-11-23 23:00", 409),
        ("2026-11-23 23:45", "2026-11-24 09:00", 409),  # over midnight: counts on both
    ],
)
def test_day_is_in_the_zone_of_the_resource(
    tenant: Tenant, first: str, second: str, status: int
) -> None:
    desk = limited(tenant, timezone=BERLIN)

    answers = [
        desk.book({"start": start, "end": (datetime.fromisoformat(start) + hours(0.5)).isoformat()})
        for start in (first, second)
    ]

    assert [answer.status for answer in answers] == [201, status]


def test_bookings_that_count_towards_the_limit(tenant: Tenant) -> None:
    """Blocking bookings of the resource through the project, nothing else."""
    desk = limited(tenant)
    bob = tenant.make_resource("Bob")["id"]
    tenant.post(f"/projects/{desk.project}/resources", {"resource_id": bob})
    mine = {"resource_id": desk.resource["id"]}
    desk.event("07:00", "07:30")
    tenant.book(**mine, **span("08:00", "08:30"))
    tenant.book(project_id=desk.project, resource_id=bob, **span("08:00", "08:30"))
    desk.book(span("10:00", "10:30"), graph="confirm_decline", **mine)
    desk.book(span("10:00", "10:30"), action="create", **mine)
    cancelled = desk.book(span("11:00", "11:30"), **mine).data
    full = desk.book(span("12:00", "12:30"), **mine)
    act(tenant, cancelled, "cancel")

    answers = [desk.book(span(f"{hour}:00", f"{hour}:30"), **mine) for hour in (13, 14)]

    assert reasons(full) == LIMIT
    assert answers[0].status == 201
    assert reasons(answers[1]) == LIMIT


def test_limit_applies_to_offered_slots(tenant: Tenant) -> None:
    desk = limited(tenant)
    desk.book(NINE)

    dates = tenant.post(
        "/availability/dates",
        {"project_id": desk.project, "from": f"{MONDAY}T00:00:00Z", "to": "2026-11-25T00:00:00Z"},
    ).data

    assert dates == [{"date": "2026-11-24", "resources": [desk.resource["id"]]}]


# --- Asked again when a booking begins to block ---------------------------------------------------
def pending(desk: Desk, times: dict[str, str] = NINE) -> Any:
    answer = desk.book(times, graph="confirm_decline", resource_id=desk.resource["id"])
    assert answer.status == 201, answer.json
    return answer.data


def test_confirm_checks_overlaps(tenant: Tenant) -> None:
    desk = Desk(tenant)
    booking = pending(desk)
    desk.event("09:30", "09:45")

    answer = act(tenant, booking, "confirm")

    assert (answer.status, answer.error) == (
        409,
        {
            "error": "The time is taken.",
            "code": "slot_taken",
            "conflicts": [shown("09:30", "09:45")],
            "alternatives": [
                shown("09:45", "10:45"),
                shown("10:45", "11:45"),
                shown("11:45", "12:45"),
            ],
        },
    )
    assert whole(tenant, booking)["state"] == "tentative"


def test_confirm_checks_the_buffer(tenant: Tenant) -> None:
    desk = Desk(tenant, availability={"buffer": "15 minutes"})
    booking = pending(desk)
    event = desk.event("10:10", "10:20")

    answer = act(tenant, booking, "confirm")

    text = "Within the buffer of 15 minutes around an event."
    assert reasons(answer) == [reason("buffer", text, event_id=event)]
    assert whole(tenant, booking)["state"] == "tentative"


def test_confirm_checks_the_limit(tenant: Tenant) -> None:
    desk = limited(tenant)
    booking = pending(desk)
    desk.book(span("12:00", "13:00"))

    answer = act(tenant, booking, "confirm")

    assert reasons(answer) == LIMIT


@pytest.mark.parametrize("graph", ["instant", "confirm_decline"])
def test_confirm_checks_no_other_rules(tenant: Tenant, clock: Any, graph: str) -> None:
    """Hours, notice, length, horizon and the past: confirming late is the owner's right."""
    desk = Desk(tenant, availability={"from": "1 day"})
    booking = desk.book(NINE, graph=graph, action="create").data
    tenant.put(
        f"/projects/{desk.project}",
        {
            "availability": {"length": "30 minutes", "from": "1 week", "to": "2 weeks"},
            "availability_constraints": [{"block_day": {"day": "Monday"}}],
        },
    )
    tenant.put(
        f"/resources/{desk.resource['id']}",
        {"availability_constraints": [{"block_weekdays": {}}]},
    )
    clock.move_to(at(f"{MONDAY} 12:00"))

    answer = act(tenant, booking, "confirm")

    assert (answer.status, answer.data["state"]) == (200, "confirmed")


def test_confirm_does_not_conflict_with_itself(tenant: Tenant) -> None:
    desk = Desk(
        tenant,
        availability={"buffer": "1 hour"},
        settings={"pending_blocks": True, "max_per_day": 1},
    )
    booking = pending(desk)

    assert act(tenant, booking, "confirm").status == 200


def test_confirm_of_a_double_booking(tenant: Tenant) -> None:
    desk = Desk(tenant, settings={"allow_double_bookings": True})
    booking = pending(desk)
    desk.event("09:00", "10:00")

    assert act(tenant, booking, "confirm").status == 200


def test_confirm_without_enforcement_checks_only_overlaps(tenant: Tenant) -> None:
    desk = Desk(
        tenant,
        availability={"buffer": "1 hour"},
        settings={"enforce_availability": False, "max_per_day": 1},
    )
    booking = pending(desk)
    desk.event("10:00", "11:00")
    desk.book(span("12:00", "13:00"))
    blocked = pending(desk, span("10:30", "11:30"))

    answers = [act(tenant, one, "confirm") for one in (booking, blocked)]

    assert [answer.status for answer in answers] == [200, 409]
