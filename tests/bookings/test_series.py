"""Series: one booking for each occurrence of a rule (section 5)."""

from typing import Any

import pytest
from django.db import connection

from tests.availability.queries import refusal
from tests.bookings.booking_drafts import (
    MONDAY,
    NINE,
    act,
    answered,
    busy_times,
    entry,
    shown,
    span,
)
from tests.queries import Queries
from tests.world import BERLIN, Answer, Tenant

pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.both_databases]

WEEKLY = {"recurrence": "FREQ=WEEKLY;COUNT=3", **NINE}
DAYS = (MONDAY, "2026-11-30", "2026-12-07")


@pytest.fixture
def ada(tenant: Tenant) -> Any:
    return tenant.make_resource()


def starts(tenant: Tenant, **query: str) -> list[tuple[str, str]]:
    """(start, state) of all bookings, by start."""
    rows = tenant.get("/bookings?include=event&orderBy=event.start&sortedBy=asc&limit=400").data
    return [(row["event"]["start"], row["state"]) for row in rows]


def occurrences(answer: Answer) -> Any:
    return answer.data["series"]["occurrences"]


def test_a_series_is_a_booking_for_each_occurrence(tenant: Tenant, ada: Any) -> None:
    answer = tenant.book(resource_id=ada["id"], **WEEKLY)

    bookings = tenant.get("/bookings?orderBy=event.start&sortedBy=asc").data
    series = {
        "id": answer.data["series"]["id"],
        "rrule": "FREQ=WEEKLY;COUNT=3",
        "occurrences": [
            {**shown("09:00", "10:00", day), "booking_id": booking["id"]}
            for day, booking in zip(DAYS, bookings, strict=True)
        ],
    }
    assert (answer.status, answer.json) == (
        201,
        {"data": answered(bookings[0], "confirmed", series=series)},
    )
    assert bookings == [entry(booking, "confirmed") for booking in bookings]
    assert [
        tenant.get(f"/bookings/{booking['id']}?include=series").data["series"]
        for booking in bookings
    ] == [series] * 3
    assert [busy_times(tenant, ada["id"], day=day) for day in DAYS] == [["09:00-10:00"]] * 3


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        pytest.param(
            ("2027-03-27 02:30:00", "2027-03-27 03:30:00"),
            [
                ("2027-03-27T01:30:00+00:00", "2027-03-27T02:30:00+00:00"),
                ("2027-03-28T01:00:00+00:00", "2027-03-28T02:00:00+00:00"),
                ("2027-03-29T00:30:00+00:00", "2027-03-29T01:30:00+00:00"),
            ],
            id="starts in the skipped hour",
        ),
        pytest.param(
            ("2027-03-27 01:30:00", "2027-03-27 02:30:00"),
            [
                ("2027-03-27T00:30:00+00:00", "2027-03-27T01:30:00+00:00"),
                ("2027-03-28T00:30:00+00:00", "2027-03-28T01:30:00+00:00"),
                ("2027-03-28T23:30:00+00:00", "2027-03-29T00:30:00+00:00"),
            ],
            id="ends in the skipped hour",
        ),
        pytest.param(
            ("2027-10-30 02:30:00", "2027-10-30 03:30:00"),
            [
                ("2027-10-30T00:30:00+00:00", "2027-10-30T01:30:00+00:00"),
                ("2027-10-31T00:30:00+00:00", "2027-10-31T01:30:00+00:00"),
                ("2027-11-01T01:30:00+00:00", "2027-11-01T02:30:00+00:00"),
            ],
            id="starts in the repeated hour",
        ),
        pytest.param(
            ("2027-10-29 22:00:00", "2027-10-30 06:00:00"),
            [
                ("2027-10-29T20:00:00+00:00", "2027-10-30T04:00:00+00:00"),
                ("2027-10-30T20:00:00+00:00", "2027-10-31T04:00:00+00:00"),
                ("2027-10-31T21:00:00+00:00", "2027-11-01T05:00:00+00:00"),
            ],
            id="lasts over the repeated hour",
        ),
    ],
)
def test_series_keeps_wall_clock_and_length_over_clock_changes(
    tenant: Tenant, first: tuple[str, str], expected: list[tuple[str, str]]
) -> None:
    """02:30 does not exist on 28 March 2027 in Berlin, and comes twice on 31 October."""
    berlin = tenant.make_resource("Ada", BERLIN)["id"]

    answer = tenant.book(
        resource_id=berlin, start=first[0], end=first[1], recurrence="FREQ=DAILY;COUNT=3"
    )

    assert [(found["start"], found["end"]) for found in occurrences(answer)] == expected


def test_series_with_fixed_length_over_a_clock_change(
    tenant: Tenant,
) -> None:
    berlin = tenant.make_resource("Ada", BERLIN)["id"]
    project = tenant.make_project(berlin, availability={"length": "8 hours", "to": "300 days"})

    answer = tenant.book(
        project_id=project["id"],
        start="2027-03-27 22:00:00",
        end="2027-03-28 07:00:00",
        recurrence="FREQ=DAILY;COUNT=2",
    )

    assert (answer.status, [(row["start"], row["end"]) for row in occurrences(answer)]) == (
        201,
        [
            ("2027-03-27T21:00:00+00:00", "2027-03-28T05:00:00+00:00"),
            ("2027-03-28T20:00:00+00:00", "2027-03-29T04:00:00+00:00"),
        ],
    )


def test_missing_days_of_a_month_are_skipped(tenant: Tenant, ada: Any) -> None:
    answer = tenant.book(
        resource_id=ada["id"],
        **span("09:00", "10:00", "2027-01-31"),
        recurrence="RRULE:FREQ=MONTHLY;UNTIL=20270531",
    )

    assert [occurrence["start"][:10] for occurrence in occurrences(answer)] == [
        *("2027-01-31", "2027-03-31", "2027-05-31")
    ]


# --- Conflicts ------------------------------------------------------------------------------------
def test_one_conflict_fails_the_series(tenant: Tenant, ada: Any) -> None:
    tenant.book(resource_id=ada["id"], **span("09:30", "10:30", DAYS[1]))

    answer = tenant.book(resource_id=ada["id"], **WEEKLY)

    assert (answer.status, answer.error) == (
        409,
        {
            "error": "The time is taken.",
            "code": "slot_taken",
            "conflicts": [shown("09:30", "10:30", DAYS[1])],
            "alternatives": [],
            "occurrences": [{**shown("09:00", "10:00", DAYS[1]), "reason": "slot_taken"}],
        },
    )
    assert starts(tenant) == [(f"{DAYS[1]}T09:30:00+00:00", "confirmed")]


def test_conflicts_can_be_skipped(tenant: Tenant, ada: Any) -> None:
    tenant.book(resource_id=ada["id"], **span("09:30", "10:30", DAYS[1]))

    answer = tenant.book(resource_id=ada["id"], on_conflict="skip", **WEEKLY)

    first, last = [
        row["id"]
        for row in tenant.get("/bookings?include=event&orderBy=event.start&sortedBy=asc").data
        if row["event"]["start"].endswith("09:00:00+00:00")
    ]
    series = {
        "id": answer.data["series"]["id"],
        "rrule": "FREQ=WEEKLY;COUNT=3",
        "occurrences": [
            {**shown("09:00", "10:00", DAYS[0]), "booking_id": first},
            {**shown("09:00", "10:00", DAYS[1]), "reason": "slot_taken"},
            {**shown("09:00", "10:00", DAYS[2]), "booking_id": last},
        ],
    }
    assert (answer.status, answer.json) == (
        201,
        {"data": answered({"id": first}, "confirmed", series=series)},
    )
    assert tenant.get(f"/bookings/{last}?include=series").data["series"] == series


def test_series_without_free_occurrences_is_refused(tenant: Tenant, ada: Any) -> None:
    for day in DAYS:
        tenant.book(resource_id=ada["id"], **span("09:30", "10:30", day))

    answer = tenant.book(resource_id=ada["id"], on_conflict="skip", **WEEKLY)

    assert (answer.status, answer.error) == (
        409,
        {
            "error": "The time is taken.",
            "code": "slot_taken",
            "conflicts": [shown("09:30", "10:30", day) for day in DAYS],
            "alternatives": [],
            "occurrences": [
                {**shown("09:00", "10:00", day), "reason": "slot_taken"} for day in DAYS
            ],
        },
    )
    assert tenant.get("/bookings").json["total"] == 3


def test_overlapping_occurrences_conflict(tenant: Tenant, ada: Any) -> None:
    """Thirty hours every day."""
    times = {"start": f"{MONDAY}T09:00:00Z", "end": "2026-11-24T15:00:00Z"}

    answer = tenant.book(
        resource_id=ada["id"],
        recurrence="FREQ=DAILY;COUNT=4",
        on_conflict="skip",
        **times,
    )

    assert [occurrence.get("reason") for occurrence in occurrences(answer)] == [
        None,
        "slot_taken",
    ] * 2


def test_rules_of_the_project_apply_to_each_occurrence(tenant: Tenant, ada: Any) -> None:
    rule = {"block_period": {"start": f"{DAYS[1]} 00:00:00", "end": f"{DAYS[1]} 23:00:00"}}
    project = tenant.make_project(
        ada["id"],
        availability={"length": "1 hour", "to": "12 months"},
        availability_constraints=[rule],
    )

    failed = tenant.book(project_id=project["id"], **WEEKLY)
    made = tenant.book(project_id=project["id"], on_conflict="skip", **WEEKLY)

    assert (failed.status, failed.error) == (
        409,
        {
            "error": "The time is not available.",
            "code": "not_available",
            "reasons": [
                {
                    "type": "constraint",
                    "source": "project",
                    "constraint": rule,
                    "text": "Blocked by the project's rule: "
                    f"{DAYS[1]} 00:00:00 to {DAYS[1]} 23:00:00.",
                }
            ],
            "alternatives": [],
            "occurrences": [{**shown("09:00", "10:00", DAYS[1]), "reason": "not_available"}],
        },
    )
    assert [occurrence.get("reason") for occurrence in occurrences(made)] == [
        None,
        "not_available",
        None,
    ]


def test_daily_limit_counts_occurrences_of_the_series(tenant: Tenant, ada: Any) -> None:
    """Over midnight, so that two nights share a day."""
    project = tenant.make_project(
        ada["id"], availability={"length": None, "to": "12 months"}, settings={"max_per_day": 1}
    )

    answer = tenant.book(
        project_id=project["id"],
        start=f"{MONDAY}T22:00:00Z",
        end="2026-11-24T02:00:00Z",
        recurrence="FREQ=DAILY;COUNT=4",
        on_conflict="skip",
    )

    assert [occurrence.get("reason") for occurrence in occurrences(answer)] == [
        None,
        "not_available",
    ] * 2


def test_series_takes_one_resource_free_for_all(tenant: Tenant, ada: Any) -> None:
    bob = tenant.make_resource("Bob")
    project = tenant.make_project(
        ada["id"],
        bob["id"],
        availability={"mode": "roundrobin_prioritized", "length": "1 hour", "to": "12 months"},
    )
    tenant.book(resource_id=ada["id"], **span("09:30", "10:30", DAYS[2]))

    answer = tenant.book(project_id=project["id"], **WEEKLY)

    assert answer.status == 201
    assert [busy_times(tenant, bob["id"], day=day) for day in DAYS] == [["09:00-10:00"]] * 3


def test_occurrences_are_in_the_zone_of_each_resource(tenant: Tenant, ada: Any) -> None:
    """Both are taken at nine UTC of the second Monday, when Berlin's clock has changed."""
    ben = tenant.make_resource("Ben", BERLIN)
    project = tenant.make_project(
        ada["id"],
        ben["id"],
        availability={"mode": "roundrobin_prioritized", "length": "1 hour", "to": "12 months"},
    )
    for resource in (ada, ben):
        tenant.book(resource_id=resource["id"], **span("09:00", "10:00", "2027-03-29"))

    answer = tenant.book(
        project_id=project["id"],
        **span("09:00", "10:00", "2027-03-22"),
        recurrence="FREQ=WEEKLY;COUNT=2",
    )

    assert (answer.status, answer.data["resource_id"]) == (201, ben["id"])
    assert [occurrence["start"] for occurrence in occurrences(answer)] == [
        *("2027-03-22T09:00:00+00:00", "2027-03-29T08:00:00+00:00"),
    ]


def test_query_count_of_choosing_a_resource_is_constant(tenant: Tenant) -> None:
    """The first batch is taken; only the last of the project's resources is free."""
    counts = {}
    for number in (2, 7, 9):
        resources = [tenant.make_resource(f"R{number}") for _ in range(number)]
        for resource in resources[:-1]:
            tenant.book(resource_id=resource["id"], **span("09:30", "10:30", DAYS[2]))
        project = tenant.make_project(
            *[resource["id"] for resource in resources],
            availability={"mode": "roundrobin_prioritized", "length": "1 hour", "to": "12 months"},
        )

        with Queries(connection) as queries:
            tenant.book(project_id=project["id"], **WEEKLY)

        counts[number] = len(queries)
        assert [busy_times(tenant, resources[-1]["id"], day=day) for day in DAYS] == [
            ["09:00-10:00"]
        ] * 3

    # Nine resources are two batches: one more query for busy times.
    assert counts == {2: counts[2], 7: counts[2], 9: counts[2] + 1}


def test_a_mutual_series_takes_the_time_of_all(tenant: Tenant, ada: Any) -> None:
    bob = tenant.make_resource("Bob")
    project = tenant.make_project(
        ada["id"],
        bob["id"],
        availability={"mode": "mutual", "length": "1 hour", "to": "12 months"},
    )
    tenant.book(resource_id=bob["id"], **span("09:30", "10:30", DAYS[1]))

    answer = tenant.book(project_id=project["id"], on_conflict="skip", **WEEKLY)

    assert [occurrence.get("reason") for occurrence in occurrences(answer)] == [
        None,
        "slot_taken",
        None,
    ]
    assert [busy_times(tenant, resource["id"], day=DAYS[2]) for resource in (ada, bob)] == [
        ["09:00-10:00"]
    ] * 2


# --- Actions and moves ----------------------------------------------------------------------------
CANCELLED = {
    None: ["confirmed", "cancelled", "confirmed"],
    "this": ["confirmed", "cancelled", "confirmed"],
    "following": ["confirmed", "cancelled", "cancelled"],
    "all": ["cancelled", "cancelled", "cancelled"],
}


@pytest.mark.parametrize("scope", CANCELLED)
def test_scope_of_an_action(tenant: Tenant, ada: Any, scope: str | None) -> None:
    made = occurrences(tenant.book(resource_id=ada["id"], **WEEKLY))
    second = {"id": made[1]["booking_id"]}

    answer = act(tenant, second, "cancel", {"scope": scope} if scope else None)

    assert (answer.status, answer.json) == (200, {"data": answered(second, "cancelled")})
    assert [state for _, state in starts(tenant)] == CANCELLED[scope]


def test_action_skips_cancelled_occurrences(tenant: Tenant, ada: Any) -> None:
    made = occurrences(tenant.book(resource_id=ada["id"], **WEEKLY))
    act(tenant, {"id": made[1]["booking_id"]}, "cancel")

    answer = act(tenant, {"id": made[0]["booking_id"]}, "cancel", {"scope": "all"})

    assert answer.status == 200
    assert [state for _, state in starts(tenant)] == ["cancelled"] * 3


MOVED = {
    "this": [(DAYS[0], "09:00"), ("2026-12-01", "10:00"), (DAYS[2], "09:00")],
    "following": [(DAYS[0], "09:00"), ("2026-12-01", "10:00"), ("2026-12-08", "10:00")],
    "all": [("2026-11-24", "10:00"), ("2026-12-01", "10:00"), ("2026-12-08", "10:00")],
}


@pytest.mark.parametrize("scope", MOVED)
def test_scope_of_a_reschedule(tenant: Tenant, ada: Any, scope: str) -> None:
    made = occurrences(tenant.book(resource_id=ada["id"], **WEEKLY))
    target = span("10:00", "11:00", "2026-12-01")

    answer = tenant.post(
        f"/bookings/{made[1]['booking_id']}/reschedule", {**target, "scope": scope}
    )

    second = {"id": made[1]["booking_id"]}
    assert (answer.status, answer.json) == (200, {"data": answered(second, "confirmed")})
    assert [start for start, _ in starts(tenant)] == [
        f"{day}T{time}:00+00:00" for day, time in MOVED[scope]
    ]


def test_reschedule_by_one_interval_frees_all_first(tenant: Tenant, ada: Any) -> None:
    made = occurrences(tenant.book(resource_id=ada["id"], **WEEKLY))

    answer = tenant.post(
        f"/bookings/{made[0]['booking_id']}/reschedule",
        {**span("09:00", "10:00", DAYS[1]), "scope": "all"},
    )

    assert answer.status == 200
    assert [start[:10] for start, _ in starts(tenant)] == [DAYS[1], DAYS[2], "2026-12-14"]
    assert busy_times(tenant, ada["id"], day=DAYS[0]) == []
    assert busy_times(tenant, ada["id"], day="2026-12-14") == ["09:00-10:00"]


def test_reschedule_with_one_conflict_keeps_all(tenant: Tenant, ada: Any) -> None:
    made = occurrences(tenant.book(resource_id=ada["id"], **WEEKLY))
    tenant.book(resource_id=ada["id"], **span("11:30", "12:30", DAYS[2]))
    before = starts(tenant)

    answer = tenant.post(
        f"/bookings/{made[0]['booking_id']}/reschedule",
        {**span("11:00", "12:00"), "scope": "all"},
    )

    assert (answer.status, answer.error) == (
        409,
        {
            "error": "The time is taken.",
            "code": "slot_taken",
            "conflicts": [shown("11:30", "12:30", DAYS[2])],
            "alternatives": [
                shown(f"{hour}:30", f"{hour + 1}:30", DAYS[2]) for hour in (12, 13, 14)
            ],
        },
    )
    assert starts(tenant) == before
    assert [busy_times(tenant, ada["id"], day=day) for day in DAYS[:2]] == [["09:00-10:00"]] * 2


def test_reschedule_keeps_the_wall_clock_of_each_occurrence(tenant: Tenant) -> None:
    berlin = tenant.make_resource("Ada", BERLIN)["id"]
    made = occurrences(
        tenant.book(
            resource_id=berlin,
            start="2027-03-22 09:00:00",
            end="2027-03-22 10:00:00",
            recurrence="FREQ=WEEKLY;COUNT=2",
        )
    )

    tenant.post(
        f"/bookings/{made[0]['booking_id']}/reschedule",
        {"start": "2027-03-22 11:00:00", "end": "2027-03-22 12:00:00", "scope": "all"},
    )

    assert [start for start, _ in starts(tenant)] == [
        *("2027-03-22T10:00:00+00:00", "2027-03-29T09:00:00+00:00"),
    ]


def test_reschedule_into_a_skipped_hour_keeps_the_length(tenant: Tenant) -> None:
    """From 02:00 to 03:00 of 28 March 2027 there is no time in Berlin."""
    berlin = tenant.make_resource("Ada", BERLIN)["id"]
    made = occurrences(
        tenant.book(
            resource_id=berlin,
            start="2027-03-27 09:00:00",
            end="2027-03-27 09:30:00",
            recurrence="FREQ=DAILY;COUNT=2",
        )
    )

    answer = tenant.post(
        f"/bookings/{made[0]['booking_id']}/reschedule",
        {"start": "2027-03-27 02:15:00", "end": "2027-03-27 02:45:00", "scope": "all"},
    )

    assert answer.status == 200
    assert [busy_times(tenant, berlin, day=day) for day in ("2027-03-27", "2027-03-28")] == [
        ["01:15-01:45"],
        ["01:00-01:30"],
    ]


def test_reschedule_keeps_length_over_a_clock_change(tenant: Tenant) -> None:
    """On 31 October 2027, 02:00 to 03:00 comes twice in Berlin."""
    berlin = tenant.make_resource("Ada", BERLIN)["id"]
    made = occurrences(
        tenant.book(
            resource_id=berlin,
            start="2027-10-30 09:00:00",
            end="2027-10-30 10:00:00",
            recurrence="FREQ=DAILY;COUNT=2",
        )
    )

    answer = tenant.post(
        f"/bookings/{made[0]['booking_id']}/reschedule",
        {"start": "2027-10-30 02:00:00", "end": "2027-10-30 03:30:00", "scope": "all"},
    )

    assert (answer.status, starts(tenant)) == (
        200,
        [("2027-10-30T00:00:00+00:00", "confirmed"), ("2027-10-31T00:00:00+00:00", "confirmed")],
    )
    assert [busy_times(tenant, berlin, day=day) for day in ("2027-10-30", "2027-10-31")] == [
        ["00:00-01:30"],
        ["00:00-01:30"],
    ]


def test_reschedule_to_another_length_applies_to_all(tenant: Tenant, ada: Any) -> None:
    made = occurrences(tenant.book(resource_id=ada["id"], **WEEKLY))

    answer = tenant.post(
        f"/bookings/{made[0]['booking_id']}/reschedule",
        {**span("10:00", "12:00"), "scope": "all"},
    )

    assert answer.status == 200
    assert [busy_times(tenant, ada["id"], day=day) for day in DAYS] == [["10:00-12:00"]] * 3


# --- Refused bodies -------------------------------------------------------------------------------
REFUSED = {
    "FREQ=SECONDLY;COUNT=3": "FREQ can't be SECONDLY.",
    "FREQ=WEEKLY": "Either COUNT or UNTIL is required.",
    "FREQ=WEEKLY;COUNT=3;UNTIL=20270101": "Either COUNT or UNTIL is required.",
    "COUNT=3": "FREQ is required.",
    "FREQ=WEEKLY;COUNT=367": "COUNT can't be 367.",
    "FREQ=WEEKLY;COUNT=0": "COUNT can't be 0.",
    "FREQ=WEEKLY;COUNT=3;COUNT=4": "COUNT occurs twice.",
    "FREQ=WEEKLY;COUNT=3;BYHOUR=9": "BYHOUR is not supported.",
    "FREQ=WEEKLY;COUNT=3;BYEASTER=1": "BYEASTER is not supported.",
    "FREQ=WEEKLY;COUNT=3;BYDAY=XX": "BYDAY can't be XX.",
    "FREQ=WEEKLY;COUNT=3;BYDAY=1MO": "BYDAY takes numbers only in MONTHLY and YEARLY rules.",
    "FREQ=WEEKLY;COUNT=3;BYDAY=TU": "The start must be an occurrence of the rule.",
    "FREQ=YEARLY;COUNT=3;BYMONTH=2;BYMONTHDAY=30": "The start must be an occurrence of the rule.",
    "FREQ=DAILY;COUNT=3;BYMONTH=2;BYMONTHDAY=30": "The start must be an occurrence of the rule.",
    "FREQ=MONTHLY;BYSETPOS=366;COUNT=3": "BYSETPOS requires another BY part.",
    "FREQ=MONTHLY;BYDAY=MO;BYSETPOS=366;COUNT=3": "The start must be an occurrence of the rule.",
    "FREQ=YEARLY;COUNT=366": "Must end within 10 years.",
    "FREQ=DAILY;UNTIL=20361124": "Must end within 10 years.",
    "FREQ=DAILY;UNTIL=20281124": "Must have at most 366 occurrences.",
    "FREQ=DAILY;UNTIL=20261122": "The start must be an occurrence of the rule.",
    "FREQ=DAILY;UNTIL=20270231": "UNTIL: There is no such date or time.",
    "FREQ=DAILY;INTERVAL=0;COUNT=2": "INTERVAL can't be 0.",
    "FREQ=DAILY;INTERVAL=99999999999;COUNT=2": "INTERVAL can't be 99999999999.",
    "every day": "EVERY DAY is not supported.",
}


@pytest.mark.parametrize("rule", REFUSED)
@pytest.mark.matrix
def test_wrong_rules_are_refused(tenant: Tenant, ada: Any, rule: str) -> None:
    answer = tenant.book(resource_id=ada["id"], recurrence=rule, **NINE)

    assert (answer.status, answer.json["errors"]) == (422, {"recurrence": [REFUSED[rule]]})
    assert tenant.get("/bookings").json["total"] == 0


@pytest.mark.parametrize("scope", ["some", "", 5])
def test_unknown_scopes_are_refused(tenant: Tenant, ada: Any, scope: Any) -> None:
    booking = {"id": occurrences(tenant.book(resource_id=ada["id"], **WEEKLY))[0]["booking_id"]}

    answers = [
        act(tenant, booking, "cancel", {"scope": scope}),
        tenant.post(f"/bookings/{booking['id']}/reschedule", {**NINE, "scope": scope}),
    ]

    expected = (422, refusal(scope="Must be one of this, following, all."))
    assert [(answer.status, answer.error) for answer in answers] == [expected] * 2
    assert [state for _, state in starts(tenant)] == ["confirmed"] * 3


def test_a_conflict_fails_or_is_left_out(tenant: Tenant, ada: Any) -> None:
    answer = tenant.book(resource_id=ada["id"], on_conflict="ask", **WEEKLY)

    assert (answer.status, answer.error) == (
        422,
        refusal(on_conflict="Must be one of fail, skip."),
    )
    assert tenant.get("/bookings").json["total"] == 0


@pytest.mark.parametrize("scope", ["following", "all"])
def test_scope_without_a_series_changes_one_booking(tenant: Tenant, ada: Any, scope: str) -> None:
    first, second = (
        tenant.book(resource_id=ada["id"], **span("09:00", "10:00", day)).data for day in DAYS[:2]
    )

    answer = act(tenant, first, "cancel", {"scope": scope})

    assert (answer.status, answer.json) == (200, {"data": answered(first, "cancelled")})
    assert tenant.get(f"/bookings/{second['id']}").data["state"] == "confirmed"


def test_a_year_of_days(tenant: Tenant, ada: Any) -> None:
    answer = tenant.book(resource_id=ada["id"], recurrence="FREQ=DAILY;COUNT=366", **NINE)

    assert len({occurrence["booking_id"] for occurrence in occurrences(answer)}) == 366
    assert tenant.get("/bookings").json["total"] == 366
