"""Rules of a project: party sizes, windows for start and end, and pacing."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest

from availability.core.matching import Requirement
from availability.core.parties import Party
from availability.search.availability_query import (
    AvailabilityQuery,
    SearchResource,
    party_limits,
    takes_party,
)
from availability.search.parameters import SlotParameters
from availability.search.requirements import requirements_for_party
from common.errors import Invalid
from tests.world import Answer, Tenant

pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.both_databases]

CUSTOMER = {"name": "Marty", "email": "marty@example.com"}


def instant(day: int, hour: int, minute: int = 0) -> str:
    return f"2026-11-{day:02}T{hour:02}:{minute:02}:00+00:00"


def book(caller: Any, project: Any, start: str, end: str, **given: Any) -> Answer:
    body = {"project_id": project["id"], "customer": CUSTOMER, "what": "Visit"}
    return caller.post("/bookings", {**body, "start": start, "end": end, **given})


def slots(caller: Any, project: Any, first: int, last: int, **given: Any) -> list[tuple[str, str]]:
    range_ = {"from": instant(first, 0), "to": instant(last, 0)}
    found = caller.post("/availability", {"project_id": project["id"], **range_, **given}).data
    return [(slot["start"][8:16], slot["end"][8:16]) for slot in found]


def reasons(answer: Answer) -> list[str]:
    assert (answer.status, answer.error["code"]) == (409, "not_available"), answer.json
    return [reason["text"] for reason in answer.error["reasons"]]


# --- Parties --------------------------------------------------------------------------------------
@pytest.fixture
def tables(tenant: Tenant) -> dict[str, Any]:
    parties = {"Big": (4, 8), "Any": None, "Small": (1, 2), "Middle": (2, 4)}
    return {
        name: tenant.make_resource(name, party=party and {"min": party[0], "max": party[1]})
        for name, party in parties.items()
    }


@pytest.mark.parametrize("mode", ["roundrobin_random", "roundrobin_prioritized", "exclusive"])
@pytest.mark.parametrize(
    ("party_size", "names"),
    [
        (1, ["Small", "Any"]),
        (2, ["Small", "Middle", "Any"]),
        (4, ["Middle", "Big", "Any"]),
        (9, ["Any"]),
    ],
)
def test_smallest_table_that_suits_the_party_is_taken(
    tenant: Tenant, tables: Any, mode: str, party_size: int, names: list[str]
) -> None:
    ids = [table["id"] for table in tables.values()]
    project = tenant.make_project(*ids, availability={"mode": mode})
    query = {
        "project_id": project["id"],
        "party_size": party_size,
        "from": instant(23, 9),
        "to": instant(23, 10),
    }
    offered = tenant.post("/availability", query).data
    assert [[each["name"] for each in slot["resources"]] for slot in offered] == [
        names if mode == "exclusive" else names[:1]
    ]

    taken = []
    while (
        answer := book(tenant, project, instant(23, 9), instant(23, 10), party_size=party_size)
    ).status == 201:
        whole = tenant.get(f"/bookings/{answer.data['id']}").data
        taken.append(whole["resource"]["name"])
        assert whole["party_size"] == party_size
    assert taken == names


def test_named_table_and_move_must_suit_the_party(tenant: Tenant, tables: Any) -> None:
    project = tenant.make_project(*[table["id"] for table in tables.values()])
    small = tables["Small"]["id"]
    refused = book(
        tenant, project, instant(23, 9), instant(23, 10), party_size=4, resource_id=small
    )
    assert reasons(refused) == ["Is for 1 to 2 people."]
    booking = book(tenant, project, instant(23, 9), instant(23, 10), party_size=4).data
    body = {"start": instant(23, 9), "end": instant(23, 10), "resource_id": small}
    moved = tenant.post(f"/bookings/{booking['id']}/reschedule", body)
    assert reasons(moved) == ["Is for 1 to 2 people."]


def test_requirement_takes_the_smallest_table(tenant: Tenant, tables: Any) -> None:
    ids = [table["id"] for table in tables.values()]
    waiter = tenant.make_resource("Waiter", capacity=10)
    requires = [{"name": "table", "any_of": ids}, {"name": "waiter", "any_of": [waiter["id"]]}]
    project = tenant.post("/projects", {"name": "Dinner", "requires": requires}).data
    offered = tenant.post(
        "/availability",
        {
            "project_id": project["id"],
            "party_size": 3,
            "from": instant(23, 9),
            "to": instant(23, 10),
        },
    ).data
    booking = book(tenant, project, instant(23, 9), instant(23, 10), party_size=3)
    assert [each["name"] for each in offered[0]["resources"]] == ["Middle", "Waiter"]
    assert tenant.get(f"/bookings/{booking.data['id']}").data["resource"]["name"] == "Middle"


@pytest.fixture
def sizes(tenant: Tenant) -> dict[str, str]:
    """Tables for 2, 4, 4 and 6, and a waiter."""
    known = {
        name: tenant.make_resource(name, party={"min": 1, "max": size})["id"]
        for name, size in {"Two": 2, "Four": 4, "Other four": 4, "Six": 6}.items()
    }
    return known | {"Tom": tenant.make_resource("Tom", capacity=10)["id"]}


def joined_tables(tenant: Tenant, sizes: dict[str, str]) -> Any:
    """A project that takes two tables and a waiter."""
    tables = [each for name, each in sizes.items() if name != "Tom"]
    names = ("first", "second")
    requires = [
        *({"name": name, "any_of": tables} for name in names),
        {"name": "waiter", "any_of": [sizes["Tom"]]},
    ]
    return tenant.post("/projects", {"name": "Large party", "requires": requires}).data


def names_of(tenant: Tenant, booking_id: str) -> list[str]:
    shown = tenant.get(f"/bookings/{booking_id}?include=resources").data
    return [each["name"] for each in shown["resources"]]


EVENING = {"start": instant(23, 18), "end": instant(23, 19)}


@pytest.mark.parametrize(
    ("party_size", "names"),
    [
        (2, ["Two", "Four"]),
        (6, ["Two", "Four"]),
        (7, ["Four", "Other four"]),
        (9, ["Four", "Six"]),
        (10, ["Four", "Six"]),
        (11, []),
        (1, []),
    ],
)
def test_joined_tables_suit_a_party_together(
    tenant: Tenant, sizes: dict[str, str], party_size: int, names: list[str]
) -> None:
    project = joined_tables(tenant, sizes)
    range_ = {"from": EVENING["start"], "to": EVENING["end"]}
    query = {"project_id": project["id"], "party_size": party_size, **range_}

    offered = tenant.post("/availability", query).data
    booking = book(tenant, project, **EVENING, party_size=party_size)

    assert [sorted(each["name"] for each in slot["resources"]) for slot in offered] == (
        [sorted([*names, "Tom"])] if names else []
    )
    if names:
        assert sorted(names_of(tenant, booking.data["id"])) == sorted([*names, "Tom"])
    else:
        text = f"No choice of open resources is for {party_size} people."
        assert reasons(booking) == [text]


def test_larger_joined_tables_are_taken_when_the_small_ones_are_busy(
    tenant: Tenant, sizes: dict[str, str]
) -> None:
    project = joined_tables(tenant, sizes)

    made = [book(tenant, project, **EVENING, party_size=6) for _ in range(3)]

    assert [each.status for each in made] == [201, 201, 409]
    assert [names_of(tenant, each.data["id"]) for each in made[:2]] == [
        ["Two", "Four", "Tom"],
        ["Other four", "Six", "Tom"],
    ]


def test_alternative_of_joined_tables_is_taken_where_no_table_is_large_enough(
    tenant: Tenant, sizes: dict[str, str]
) -> None:
    one = [{"name": "table", "any_of": [sizes["Four"], sizes["Six"]]}]
    two = [
        {"name": "table", "any_of": [sizes["Four"]]},
        {"name": "second", "any_of": [sizes["Two"]]},
    ]
    given = {"name": "Dinner", "requires": {"alternatives": [one, two]}}
    project = tenant.post("/projects", given).data

    made = [book(tenant, project, **EVENING, party_size=6) for _ in range(3)]

    assert [each.status for each in made] == [201, 201, 409]
    assert [names_of(tenant, each.data["id"]) for each in made[:2]] == [["Six"], ["Four", "Two"]]


def test_all_tables_of_mode_mutual_suit_a_party_together(
    tenant: Tenant, sizes: dict[str, str]
) -> None:
    ids = [sizes["Two"], sizes["Four"]]
    project = tenant.make_project(*ids, availability={"mode": "mutual"})
    query = {"project_id": project["id"], "from": EVENING["start"], "to": EVENING["end"]}

    assert len(tenant.post("/availability", {**query, "party_size": 6}).data) == 1
    assert tenant.post("/availability", {**query, "party_size": 7}).data == []
    assert reasons(book(tenant, project, **EVENING, party_size=7)) == ["Is for 2 to 6 people."]
    booking = book(tenant, project, **EVENING, party_size=6)
    assert names_of(tenant, booking.data["id"]) == ["Two", "Four"]
    moved = {"start": instant(23, 20), "end": instant(23, 21)}
    assert tenant.post(f"/bookings/{booking.data['id']}/reschedule", moved).status == 200


def test_joined_tables_are_moved_and_replaced_for_the_same_party(
    tenant: Tenant, sizes: dict[str, str]
) -> None:
    booking = book(tenant, joined_tables(tenant, sizes), **EVENING, party_size=6).data["id"]
    path = f"/bookings/{booking}/reschedule"

    moved = tenant.post(path, {"start": instant(23, 20), "end": instant(23, 21)})
    assert (moved.status, names_of(tenant, booking)) == (200, ["Two", "Four", "Tom"])
    replaced = tenant.post(path, {"resources": {"second": sizes["Other four"]}})
    assert (replaced.status, names_of(tenant, booking)) == (200, ["Two", "Other four", "Tom"])
    for name in ("Four", "Other four", "Six"):
        tenant.put(f"/resources/{sizes[name]}", {"party": {"min": 1, "max": 2}})
    refused = tenant.post(path, {"resources": {"second": sizes["Four"]}})
    assert reasons(refused) == ["Is for 2 to 4 people."]
    assert names_of(tenant, booking) == ["Two", "Other four", "Tom"]


def test_hold_of_joined_tables_is_booked_by_a_party_that_they_suit(
    tenant: Tenant, sizes: dict[str, str]
) -> None:
    project = joined_tables(tenant, sizes)
    body = {"project_id": project["id"], "party_size": 6, "reservation_time": 600, **EVENING}
    hold = {"reservation_id": tenant.post("/bookings/reserve", body).data["reservation_id"]}

    refused = book(tenant, project, **EVENING, party_size=8, **hold)
    assert reasons(refused) == ["Is for 2 to 6 people."]
    made = book(tenant, project, **EVENING, party_size=5, **hold)
    assert names_of(tenant, made.data["id"]) == ["Two", "Four", "Tom"]


def test_any_joined_tables_are_taken_where_rules_are_not_enforced(
    tenant: Tenant, sizes: dict[str, str]
) -> None:
    project = joined_tables(tenant, sizes)
    unenforced = {"settings": {"enforce_availability": False}}

    made = book(tenant, project, **EVENING, party_size=50, **unenforced)
    moved = {"start": instant(23, 20), "end": instant(23, 21)}

    assert made.status == 201
    path = f"/bookings/{made.data['id']}/reschedule"
    assert tenant.post(path, {**moved, "resources": {"first": sizes["Six"]}}).status == 200


def test_step_of_a_visit_joins_tables(tenant: Tenant, sizes: dict[str, str]) -> None:
    tables = [{"name": name, "any_of": [sizes["Two"], sizes["Four"]]} for name in ("one", "two")]
    steps = [
        {"name": "drinks", "length": "30 mins", "resources": [sizes["Tom"]]},
        {"name": "dinner", "length": "30 mins", "requires": tables},
    ]
    project = tenant.post("/projects", {"name": "Evening", "steps": steps}).data
    query = {"project_id": project["id"], "from": EVENING["start"], "to": EVENING["end"]}
    time = {"project_id": project["id"], "reservation_time": 600, **EVENING}

    assert len(tenant.post("/availability", {**query, "party_size": 6}).data) == 1
    assert tenant.post("/availability", {**query, "party_size": 7}).data == []
    text = "No choice of open resources is for 7 people."
    assert reasons(book(tenant, project, **EVENING, party_size=7)) == [text]
    hold = tenant.post("/bookings/reserve", {**time, "party_size": 6}).data
    held = {"reservation_id": hold["reservation_id"]}
    assert book(tenant, project, **EVENING, party_size=6, **held).status == 201


def test_explain_names_tables_that_no_choice_for_the_party_contains(
    tenant: Tenant, sizes: dict[str, str]
) -> None:
    query = {
        "project_id": joined_tables(tenant, sizes)["id"],
        "party_size": 9,
        "from": EVENING["start"],
        "to": EVENING["end"],
    }
    explained = tenant.post("/availability/explain", query).data

    assert {
        each["resource"]["name"]: [
            reason["text"] for part in each["segments"] for reason in part["reasons"]
        ]
        for each in explained
    } == {"Two": ["Is for 1 to 2 people."], "Four": [], "Other four": [], "Six": [], "Tom": []}


def test_party_of_too_many_different_tables_is_refused(tenant: Tenant) -> None:
    parties = {uuid4(): (1, most) for most in range(1, 46)}
    few = dict(list(parties.items())[:44])

    def for_party(ranges: dict[UUID, tuple[int, int]]) -> Any:
        tables = [Requirement("tables", tuple(ranges), number=2)]
        return requirements_for_party([tables], Party(10, ranges))

    assert for_party(few)[0][0].party == Party(10, few)
    with pytest.raises(Invalid) as refused:
        for_party(parties)
    assert list(refused.value.fields["errors"]) == ["party_size"]


def test_limits_of_a_party_are_those_of_all_tables_of_a_choice() -> None:
    two, four, waiter = (
        SearchResource(uuid4(), "Name", "UTC", (), party=party) for party in ((1, 2), (2, 4), None)
    )
    tables = Requirement("table", (two.id, four.id), number=2)
    staff = Requirement("waiter", (waiter.id,))
    now = datetime(2026, 11, 23, tzinfo=UTC)

    def limits(resources: Any, mode: str = "exclusive", *requirements: Requirement) -> Any:
        terms = SlotParameters(mode=mode)
        alternatives = [requirements] if requirements else []
        return party_limits(AvailabilityQuery(resources, terms, now, alternatives=alternatives))

    assert limits([waiter]) is None
    assert limits([two, four, waiter]) == (1, 4)
    assert limits([two, four, waiter], "mutual") == (3, 6)
    assert limits([two, four, waiter], "exclusive", tables, staff) == (2, 8)


def test_sizes_in_a_gap_between_tables_are_not_taken() -> None:
    couple, group, waiter = (
        SearchResource(uuid4(), "Name", "UTC", (), party=party) for party in ((1, 2), (6, 7), None)
    )
    now = datetime(2026, 11, 23, tzinfo=UTC)
    table = Requirement("table", (couple.id, group.id))
    both = Requirement("table", (couple.id, group.id), number=2)
    staff = Requirement("waiter", (waiter.id,))

    def sizes(resources: Any, mode: str = "exclusive", *requirements: Requirement) -> list[int]:
        terms = SlotParameters(mode=mode)
        alternatives = [requirements] if requirements else []
        query = AvailabilityQuery(resources, terms, now, alternatives=alternatives)
        return [size for size in range(1, 12) if takes_party(query, size)]

    assert sizes([couple, group]) == [1, 2, 6, 7]
    assert sizes([couple, group, waiter], "mutual") == [7, 8, 9]
    assert sizes([couple, group, waiter], "exclusive", table, staff) == [1, 2, 6, 7]
    assert sizes([couple, group, waiter], "exclusive", both, staff) == [7, 8, 9]


def test_party_of_a_resource_is_stored(tenant: Tenant) -> None:
    table = tenant.post(
        "/resources", {"name": "T", "timezone": "UTC", "party": {"min": 2, "max": 4}}
    ).data
    assert table["party"] == {"min": 2, "max": 4}
    path = f"/resources/{table['id']}"
    assert tenant.put(path, {"party": {"min": 5, "max": 4}}).status == 422
    assert tenant.put(path, {"party": None}).data["party"] is None


# --- Windows --------------------------------------------------------------------------------------
DESK = [{"allow_hours": {"start": 9, "end": 18}}]


@pytest.fixture
def van(tenant: Tenant) -> Any:
    return tenant.make_resource("Van", availability_constraints=DESK)


def rental(tenant: Tenant, van: Any, **availability: Any) -> Any:
    terms = {"start_window": DESK, "end_window": DESK, "length": "1 day", "to": "2 weeks"}
    return tenant.make_project(van["id"], availability={**terms, **availability})


def test_rental_over_night_is_offered_and_booked(tenant: Tenant, van: Any) -> None:
    project = rental(tenant, van, timeslot_increments="3 hours")
    assert slots(tenant, project, 23, 26) == [
        ("23T09:00", "24T09:00"),
        ("23T12:00", "24T12:00"),
        ("23T15:00", "24T15:00"),
        ("24T09:00", "25T09:00"),
        ("24T12:00", "25T12:00"),
        ("24T15:00", "25T15:00"),
    ]
    assert book(tenant, project, instant(23, 12), instant(24, 12)).status == 201
    assert slots(tenant, project, 23, 26) == [
        ("24T12:00", "25T12:00"),
        ("24T15:00", "25T15:00"),
    ]


def test_start_and_end_lie_in_their_windows(tenant: Tenant, van: Any) -> None:
    project = rental(tenant, van, length=None)
    for start, end, text in [
        (instant(23, 8), instant(24, 10), "Bookings can't start at this time."),
        (instant(23, 18), instant(24, 10), "Bookings can't start at this time."),
        (instant(23, 10), instant(24, 19), "Bookings can't end at this time."),
    ]:
        assert reasons(book(tenant, project, start, end)) == [text]
    assert book(tenant, project, instant(23, 17, 59), instant(24, 9)).status == 201
    assert book(tenant, project, instant(24, 9), instant(24, 18)).status == 201


def test_blocking_rules_hold_for_the_time_between(tenant: Tenant) -> None:
    closed = [
        *DESK,
        {"block_period": {"start": "2026-11-24 02:00:00", "end": "2026-11-24 03:00:00"}},
    ]
    van = tenant.make_resource("Van", availability_constraints=closed)
    project = rental(tenant, van)
    assert slots(tenant, project, 23, 26) == [("24T09:00", "25T09:00")]
    refused = book(tenant, project, instant(23, 9), instant(24, 9))
    assert [text[:28] for text in reasons(refused)] == ["Blocked by the resource's ru"]


def test_widget_key_keeps_to_the_grid_of_the_start_window(tenant: Tenant, van: Any) -> None:
    project = rental(tenant, van, timeslot_increments="3 hours")
    widget = tenant.widget()
    assert reasons(book(widget, project, instant(23, 10), instant(24, 10))) == [
        "Must start at one of the offered times."
    ]
    assert book(widget, project, instant(23, 12), instant(24, 12)).status == 201


def test_wrong_windows_are_refused(tenant: Tenant, van: Any) -> None:
    answer = tenant.post(
        "/projects", {"name": "R", "availability": {"start_window": [{"allow": 1}]}}
    )
    assert answer.status == 422
    assert list(answer.error["errors"]) == ["availability.start_window.0"]
    project = tenant.post("/projects", {"name": "R", "availability": {"start_window": DESK}}).data
    assert project["availability"]["start_window"] == DESK
    path = f"/projects/{project['id']}"
    assert tenant.put(path, {"availability": {"start_window": None}}).data["availability"] == {}


# --- Pacing ---------------------------------------------------------------------------------------
@pytest.fixture
def dinner(tenant: Tenant) -> Any:
    tables = [tenant.make_resource(f"Table {n}", capacity=5)["id"] for n in range(2)]
    return tenant.make_project(
        *tables,
        availability={
            "length": "2 hours",
            "timeslot_increments": "15 minutes",
            "max_starts": {"quantity": 2, "per": "30 minutes"},
        },
        availability_constraints=[{"allow_hours": {"start": 18, "end": 21}}],
    )


def starts(caller: Any, project: Any, **given: Any) -> list[str]:
    return [start[3:] for start, _ in slots(caller, project, 23, 24, **given)]


def test_no_more_bookings_start_than_the_pace_allows(tenant: Tenant, dinner: Any) -> None:
    assert starts(tenant, dinner) == ["18:00", "18:15", "18:30", "18:45", "19:00"]
    assert book(tenant, dinner, instant(23, 18), instant(23, 20)).status == 201
    assert starts(tenant, dinner) == ["18:00", "18:15", "18:30", "18:45", "19:00"]
    assert starts(tenant, dinner, quantity=2) == ["18:30", "18:45", "19:00"]
    assert book(tenant, dinner, instant(23, 18, 15), instant(23, 20, 15)).status == 201
    assert starts(tenant, dinner) == ["18:30", "18:45", "19:00"]
    refused = book(tenant, dinner, instant(23, 18, 20), instant(23, 20, 20))
    assert reasons(refused) == ["At most 2 bookings start within 30 minutes."]
    refused = book(tenant, dinner, instant(23, 19), instant(23, 21), quantity=3)
    assert reasons(refused) == ["At most 2 bookings start within 30 minutes."]


def test_holds_count_for_the_pace_until_they_are_used(tenant: Tenant, dinner: Any) -> None:
    body = {
        "project_id": dinner["id"],
        "start": instant(23, 18),
        "end": instant(23, 20),
        "quantity": 2,
    }
    hold = tenant.post("/bookings/reserve", body).data
    assert starts(tenant, dinner) == ["18:30", "18:45", "19:00"]
    booking = book(
        tenant, dinner, instant(23, 18), instant(23, 20), reservation_id=hold["reservation_id"]
    )
    assert booking.status == 201
    moved = {"start": instant(23, 18, 15), "end": instant(23, 20, 15)}
    assert tenant.post(f"/bookings/{booking.data['id']}/reschedule", moved).status == 200
    more = tenant.put(f"/bookings/{booking.data['id']}", {"quantity": 3})
    assert reasons(more) == ["At most 2 bookings start within 30 minutes."]


def test_series_keeps_to_the_pace(tenant: Tenant, dinner: Any) -> None:
    rule = {"recurrence": "FREQ=DAILY;COUNT=2", "quantity": 2}
    assert book(tenant, dinner, instant(23, 18), instant(23, 20), **rule).status == 201
    refused = book(tenant, dinner, instant(24, 18), instant(24, 20))
    assert reasons(refused) == ["At most 2 bookings start within 30 minutes."]


def test_explain_names_the_pace(tenant: Tenant, dinner: Any) -> None:
    book(tenant, dinner, instant(23, 18), instant(23, 20), quantity=2)
    range_ = {"from": instant(23, 18), "to": instant(23, 19)}
    explained = tenant.post("/availability/explain", {"project_id": dinner["id"], **range_}).data
    assert [
        (part["start"][11:16], part["end"][11:16], [reason["text"] for reason in part["reasons"]])
        for part in explained[0]["segments"]
    ] == [
        ("18:00", "18:30", ["At most 2 bookings start within 30 minutes."]),
        ("18:30", "19:00", []),
    ]


# --- What is left ---------------------------------------------------------------------------------
def test_slots_say_how_many_are_left(tenant: Tenant) -> None:
    bikes = tenant.make_resource("Bikes", capacity=4)
    project = tenant.make_project(
        bikes["id"], settings={"max_per_day": 3}, availability={"length": "1 hour"}
    )
    book(tenant, project, instant(23, 9), instant(23, 10), quantity=2)
    query = {"project_id": project["id"], "from": instant(23, 9), "to": instant(23, 10)}
    other_day = {**query, "from": instant(24, 9), "to": instant(24, 10)}
    resources = {"resources": [bikes["id"]], "from": instant(23, 9), "to": instant(23, 10)}
    path = "/availability?include=remaining"
    assert [
        tenant.post(path, each).data[0]["remaining"] for each in (query, other_day, resources)
    ] == [1, 3, 2]

    widget = tenant.widget()
    assert widget.post(path, query).status == 403
    tenant.put(f"/projects/{project['id']}", {"settings": {"show_remaining": True}})
    assert widget.post(path, query).data[0]["remaining"] == 1
