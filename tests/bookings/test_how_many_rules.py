"""Rules of a project: party sizes, windows for start and end, and pacing."""

from typing import Any

import pytest

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
