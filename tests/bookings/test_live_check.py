"""`settings.check_external`: other calendars are asked just before a booking takes its time."""

from collections.abc import Collection
from typing import Any
from uuid import UUID

import pytest
from django.db import connection

from availability.models import Event
from availability.search import live_freebusy
from availability.search.queries import TimeSpan
from bookings.models import Booking
from common.time.instants import to_datetime
from tests.bookings.booking_drafts import MARTY, MONDAY, NINE, shown, span, whole
from tests.world import Answer, Tenant, at

pytestmark = pytest.mark.usefixtures("clock")

CHECKED = {"check_external": True}
TUESDAY = "2026-11-24"


class FakeFreebusy:
    """Calendars elsewhere: what stands in them, who was asked about what, how deep in transactions
    that was, and what happens meanwhile."""

    def __init__(self) -> None:
        self.busy: dict[str, list[tuple[str, str]]] = {}
        self.asked: list[tuple[list[str], str, str, bool]] = []
        self.depths: set[int] = set()
        self.meanwhile: Any = lambda: None

    def __call__(
        self, resource_ids: Collection[UUID], span: TimeSpan, *, ignore_all_day: bool
    ) -> dict[UUID, list[TimeSpan]]:
        when = (f"{to_datetime(instant):%a %H:%M}" for instant in span)
        self.asked.append((sorted(map(str, resource_ids)), *when, ignore_all_day))
        self.depths.add(len(connection.savepoint_ids))
        self.meanwhile()
        return {
            resource_id: [
                TimeSpan(*(int(at(text).timestamp()) for text in pair))
                for pair in self.busy.get(str(resource_id), ())
            ]
            for resource_id in resource_ids
        }

    def add_busy(self, resource: Any, start: str, end: str, day: str = MONDAY) -> None:
        self.busy.setdefault(resource["id"], []).append((f"{day} {start}", f"{day} {end}"))


@pytest.fixture
def fake_freebusy(monkeypatch: pytest.MonkeyPatch) -> FakeFreebusy:
    asker = FakeFreebusy()
    monkeypatch.setattr(live_freebusy, "freebusy_sources", [asker])
    return asker


@pytest.fixture
def depth(db: None) -> int:
    """How deep in transactions a test itself is."""
    return len(connection.savepoint_ids)


def make_project(tenant: Tenant, *resources: Any, mode: str | None = None, **given: Any) -> str:
    settings = given.pop("settings", CHECKED)
    availability = {"mode": mode, **given.pop("availability", {})}
    ids = [resource["id"] for resource in resources]
    return tenant.make_project(*ids, settings=settings, availability=availability, **given)["id"]


def refusal_of(answer: Answer) -> tuple[int, str, list[Any], list[str]]:
    """A refusal: its status, code, conflicts, and the starts of its alternatives."""
    body = answer.json
    return (
        answer.status,
        body["code"],
        body["conflicts"],
        [one["start"] for one in body["alternatives"]],
    )


def starts(*hours: str, day: str = MONDAY) -> list[str]:
    return [f"{day}T{hour}:00+00:00" for hour in hours]


# --- One resource ---------------------------------------------------------------------------------
def test_busy_external_calendar_is_a_whole_refusal(
    tenant: Tenant, fake_freebusy: FakeFreebusy
) -> None:
    """The conflict says no more than what was asked about; nothing stays behind."""
    ada = tenant.make_resource("Ada")
    project = make_project(tenant, ada)
    fake_freebusy.add_busy(ada, "08:00", "09:15")
    fake_freebusy.add_busy(ada, "09:45", "17:00")

    answer = tenant.book(project_id=project, resource_id=ada["id"], **NINE)

    assert (answer.status, answer.error) == (
        409,
        {
            "error": "The time is taken.",
            "code": "slot_taken",
            "conflicts": [shown("09:00", "09:15"), shown("09:45", "10:00")],
            "alternatives": [
                shown("10:00", "11:00"),
                shown("11:00", "12:00"),
                shown("12:00", "13:00"),
            ],
        },
    )
    assert fake_freebusy.asked == [([ada["id"]], "Mon 09:00", "Mon 10:00", False)]
    assert (Booking.objects.count(), Event.objects.count()) == (0, 0)


@pytest.mark.parametrize("enforced", [True, False])
def test_busy_external_calendar_with_and_without_enforced_rules(
    tenant: Tenant, fake_freebusy: FakeFreebusy, enforced: bool
) -> None:
    ada = tenant.make_resource("Ada")
    project = make_project(tenant, ada, settings={**CHECKED, "enforce_availability": enforced})
    fake_freebusy.add_busy(ada, "09:30", "09:40")

    answers = [
        tenant.book(project_id=project, **named, **NINE)
        for named in ({}, {"resource_id": ada["id"]})
    ]

    assert [(*refusal_of(answer)[:3], answer.json["alternatives"][0]) for answer in answers] == [
        (409, "slot_taken", [shown("09:30", "09:40")], shown("09:40", "10:40"))
    ] * 2


def test_free_external_calendar_is_booked(
    tenant: Tenant, fake_freebusy: FakeFreebusy, depth: int
) -> None:
    """Touching is fine; it is asked once, outside of every transaction."""
    ada = tenant.make_resource("Ada")
    project = make_project(tenant, ada)
    fake_freebusy.add_busy(ada, "08:00", "09:00")
    fake_freebusy.add_busy(ada, "10:00", "11:00")

    answer = tenant.book(project_id=project, **NINE)

    assert answer.status == 201
    assert fake_freebusy.asked == [([ada["id"]], "Mon 09:00", "Mon 10:00", False)]
    assert fake_freebusy.depths == {depth}


def test_local_conflicts_are_named_first(tenant: Tenant, fake_freebusy: FakeFreebusy) -> None:
    ada = tenant.make_resource("Ada")
    project = make_project(tenant, ada)
    tenant.make_event(ada["calendars"][0]["id"], f"{MONDAY}T08:30:00Z", f"{MONDAY}T09:30:00Z")
    fake_freebusy.add_busy(ada, "08:30", "09:30")

    answer = tenant.book(project_id=project, resource_id=ada["id"], **NINE)

    assert answer.json["conflicts"] == [shown("08:30", "09:30")]


def test_all_day_events_can_be_ignored(tenant: Tenant, fake_freebusy: FakeFreebusy) -> None:
    ada = tenant.make_resource("Ada")
    project = make_project(tenant, ada, availability={"ignore_all_day_events": True})

    tenant.book(project_id=project, **NINE)

    assert fake_freebusy.asked == [([ada["id"]], "Mon 09:00", "Mon 10:00", True)]


@pytest.mark.parametrize(
    ("settings", "given"),
    [
        ({}, {}),
        ({"check_external": False}, {}),
        (CHECKED, {"settings": {"allow_double_bookings": True}}),
        (CHECKED, {"graph": "confirm_decline"}),
        (CHECKED, {"action": "create"}),
    ],
    ids=["not set", "off", "may overlap", "a request", "a draft"],
)
def test_no_check_without_setting_or_for_non_blocking_bookings(
    tenant: Tenant, fake_freebusy: FakeFreebusy, settings: dict[str, Any], given: dict[str, Any]
) -> None:
    """Where the project does not want it, or the booking does not keep others out."""
    ada = tenant.make_resource("Ada")
    project = make_project(tenant, ada, settings=settings)
    fake_freebusy.add_busy(ada, "09:00", "10:00")

    answers = [
        tenant.book(project_id=project, **NINE, **given),
        tenant.post("/bookings/reserve", {"resource_id": ada["id"], **span("12:00", "13:00")}),
    ]

    assert [answer.status for answer in answers] == [201, 201]
    assert fake_freebusy.asked == []


def test_blocking_request_is_checked(tenant: Tenant, fake_freebusy: FakeFreebusy) -> None:
    ada = tenant.make_resource("Ada")
    project = make_project(tenant, ada, settings={**CHECKED, "pending_blocks": True})
    fake_freebusy.add_busy(ada, "09:00", "10:00")

    answer = tenant.book(project_id=project, graph="confirm_decline", **NINE)

    assert refusal_of(answer)[:3] == (409, "slot_taken", [shown("09:00", "10:00")])


def test_hold_is_checked_when_it_is_booked(tenant: Tenant, fake_freebusy: FakeFreebusy) -> None:
    ada = tenant.make_resource("Ada")
    project = make_project(tenant, ada)
    hold = tenant.post("/bookings/reserve", {"project_id": project, **NINE}).data["reservation_id"]
    fake_freebusy.add_busy(ada, "09:00", "10:00")

    refused = tenant.book(project_id=project, reservation_id=hold, **NINE)
    fake_freebusy.busy.clear()
    made = tenant.book(project_id=project, reservation_id=hold, **NINE)

    assert (refusal_of(refused)[:3], made.status) == (
        (409, "slot_taken", [shown("09:00", "10:00")]),
        201,
    )


def test_group_is_checked_and_seats_are_not(tenant: Tenant, fake_freebusy: FakeFreebusy) -> None:
    ada = tenant.make_resource("Ada")
    project = make_project(tenant, ada)
    group = {"graph": "group_owner", "settings": {"max_seats": 2}}
    fake_freebusy.add_busy(ada, "09:00", "10:00")

    refused = tenant.book(project_id=project, **group, **NINE)
    made = tenant.book(project_id=project, **group, **span("11:00", "12:00"))
    fake_freebusy.asked.clear()
    seat = tenant.book(graph="group_customer", related={"owner_booking_id": made.data["id"]})

    assert [one.status for one in (refused, made, seat)] == [409, 201, 201]
    assert fake_freebusy.asked == []


def test_widget_key_is_refused(tenant: Tenant, fake_freebusy: FakeFreebusy) -> None:
    ada = tenant.make_resource("Ada")
    project = make_project(tenant, ada)
    fake_freebusy.add_busy(ada, "09:00", "10:00")

    answer = tenant.widget().post(
        "/bookings", {"project_id": project, "what": "Meeting", "customer": MARTY, **NINE}
    )

    assert refusal_of(answer) == (
        409,
        "slot_taken",
        [shown("09:00", "10:00")],
        starts("10:00", "11:00", "12:00"),
    )


# --- Several resources ----------------------------------------------------------------------------
@pytest.mark.parametrize("mode", ["roundrobin_prioritized", "roundrobin_random", "exclusive"])
def test_another_free_resource_is_booked(
    tenant: Tenant, fake_freebusy: FakeFreebusy, mode: str
) -> None:
    """Only those are asked that are free by what is known here, all at once."""
    ada, bob, cleo = (tenant.make_resource(name) for name in ("Ada", "Bob", "Cleo"))
    project = make_project(tenant, ada, bob, cleo, mode=mode)
    tenant.make_event(ada["calendars"][0]["id"], NINE["start"], NINE["end"])
    fake_freebusy.add_busy(bob, "09:59", "10:30")

    answer = tenant.book(project_id=project, **NINE)

    assert whole(tenant, answer.data)["resource"]["name"] == "Cleo"
    asked = sorted([bob["id"], cleo["id"]])
    assert fake_freebusy.asked == [(asked, "Mon 09:00", "Mon 10:00", False)]


def test_alternatives_of_any_resource_if_all_are_busy(
    tenant: Tenant, fake_freebusy: FakeFreebusy
) -> None:
    ada, bob = (tenant.make_resource(name) for name in ("Ada", "Bob"))
    project = make_project(tenant, ada, bob, mode="roundrobin_prioritized")
    fake_freebusy.add_busy(ada, "09:00", "12:00")
    fake_freebusy.add_busy(bob, "09:30", "10:00")

    answer = tenant.book(project_id=project, **NINE)

    code, conflicts = answer.json["code"], answer.json["conflicts"]
    assert (answer.status, code, conflicts) == (409, "slot_taken", [shown("09:00", "10:00")])
    assert shown("09:00", "10:00") not in answer.json["alternatives"]


def test_no_check_without_locally_free_resources(
    tenant: Tenant, fake_freebusy: FakeFreebusy
) -> None:
    ada = tenant.make_resource("Ada")
    project = make_project(tenant, ada)
    tenant.make_event(ada["calendars"][0]["id"], NINE["start"], NINE["end"])

    answer = tenant.book(project_id=project, **NINE)

    assert (answer.status, answer.json["code"], fake_freebusy.asked) == (409, "slot_taken", [])


def test_mutual_project_checks_all_resources(tenant: Tenant, fake_freebusy: FakeFreebusy) -> None:
    ada, bob = (tenant.make_resource(name) for name in ("Ada", "Bob"))
    project = make_project(tenant, ada, bob, mode="mutual")
    fake_freebusy.add_busy(bob, "09:00", "09:30")

    refused = tenant.book(project_id=project, **NINE)
    made = tenant.book(project_id=project, **span("10:00", "11:00"))

    assert (refusal_of(refused)[:3], made.status) == (
        (409, "slot_taken", [shown("09:00", "09:30")]),
        201,
    )
    both = sorted([ada["id"], bob["id"]])
    assert [question[0] for question in fake_freebusy.asked] == [both, both]


# --- Moves, series --------------------------------------------------------------------------------
def test_reschedule_is_checked_and_refusal_keeps_the_time(
    tenant: Tenant, fake_freebusy: FakeFreebusy, depth: int
) -> None:
    ada = tenant.make_resource("Ada")
    booking = tenant.book(project_id=make_project(tenant, ada), **NINE).data
    fake_freebusy.add_busy(ada, "11:00", "12:00")
    fake_freebusy.asked.clear()

    refused = tenant.post(f"/bookings/{booking['id']}/reschedule", span("11:30", "12:30"))
    stands = whole(tenant, booking)["event"]["start"]
    moved = tenant.post(f"/bookings/{booking['id']}/reschedule", span("12:00", "13:00"))

    assert refusal_of(refused)[:3] == (409, "slot_taken", [shown("11:30", "12:00")])
    assert (stands, moved.status) == (shown("09:00", "10:00")["start"], 200)
    assert [question[1:3] for question in fake_freebusy.asked] == [
        ("Mon 11:30", "Mon 12:30"),
        ("Mon 12:00", "Mon 13:00"),
    ]
    assert fake_freebusy.depths == {depth}


def test_series_is_checked_in_one_query(tenant: Tenant, fake_freebusy: FakeFreebusy) -> None:
    ada = tenant.make_resource("Ada")
    project = make_project(tenant, ada)
    daily = {"recurrence": "FREQ=DAILY;COUNT=3", **NINE}
    fake_freebusy.add_busy(ada, "09:30", "18:00", TUESDAY)

    refused = tenant.book(project_id=project, **daily)
    skipped = tenant.book(project_id=project, on_conflict="skip", **daily)

    assert refused.json["occurrences"] == [
        {**shown("09:00", "10:00", TUESDAY), "reason": "slot_taken"}
    ]
    assert refused.json["conflicts"] == [shown("09:30", "10:00", TUESDAY)]
    made = [one.get("reason") for one in skipped.data["series"]["occurrences"]]
    assert made == [None, "slot_taken", None]
    assert fake_freebusy.asked == [([ada["id"]], "Mon 09:00", "Wed 10:00", False)] * 2


def test_series_is_checked_62_days_ahead(tenant: Tenant, fake_freebusy: FakeFreebusy) -> None:
    """62 days in one question; the last of them still counts."""
    ada = tenant.make_resource("Ada")
    project = make_project(tenant, ada, settings={**CHECKED, "enforce_availability": False})
    fake_freebusy.add_busy(ada, "09:00", "10:00", "2027-01-24")  # 62 days after that Monday
    fake_freebusy.add_busy(ada, "09:00", "10:00", "2027-01-25")

    answer = tenant.book(
        project_id=project, recurrence="FREQ=DAILY;COUNT=70", on_conflict="skip", **NINE
    )

    lost = [
        record["start"] for record in answer.data["series"]["occurrences"] if "reason" in record
    ]
    assert lost == [shown("09:00", "10:00", "2027-01-24")["start"]]


def test_series_reschedule_is_checked_in_one_query(
    tenant: Tenant, fake_freebusy: FakeFreebusy
) -> None:
    ada = tenant.make_resource("Ada")
    series = tenant.book(
        project_id=make_project(tenant, ada), recurrence="FREQ=DAILY;COUNT=2", **NINE
    ).data
    fake_freebusy.add_busy(ada, "11:00", "12:00", TUESDAY)
    fake_freebusy.asked.clear()

    path = f"/bookings/{series['id']}/reschedule"
    refused = tenant.post(path, {**span("11:00", "12:00"), "scope": "all"})
    moved = tenant.post(path, {**span("12:00", "13:00"), "scope": "all"})

    assert refusal_of(refused)[:3] == (409, "slot_taken", [shown("11:00", "12:00", TUESDAY)])
    assert moved.status == 200
    assert [question[1:3] for question in fake_freebusy.asked] == [
        ("Mon 11:00", "Tue 12:00"),
        ("Mon 12:00", "Tue 13:00"),
    ]


# --- In one transaction with others ---------------------------------------------------------------
def test_check_with_idempotency_key_is_outside_the_transaction(
    tenant: Tenant, fake_freebusy: FakeFreebusy, depth: int
) -> None:
    """Once: a replay asks nobody, and a refusal is not kept."""
    ada = tenant.make_resource("Ada")
    body = {"project_id": make_project(tenant, ada), "what": "x", "customer": MARTY, **NINE}
    fake_freebusy.add_busy(ada, "09:00", "10:00")

    refused = tenant.post("/bookings", body, Idempotency_Key="one")
    fake_freebusy.busy.clear()
    made = tenant.post("/bookings", body, Idempotency_Key="one")
    again = tenant.post("/bookings", body, Idempotency_Key="one")

    assert refusal_of(refused)[:3] == (409, "slot_taken", [shown("09:00", "10:00")])
    assert [(one.status, one.headers.get("Idempotent-Replayed")) for one in (made, again)] == [
        (201, None),
        (201, "true"),
    ]
    assert made.content == again.content
    assert (len(fake_freebusy.asked), fake_freebusy.depths) == (2, {depth})
    assert Booking.objects.count() == 1


def test_check_with_if_match_is_outside_the_transaction(
    tenant: Tenant, fake_freebusy: FakeFreebusy, depth: int
) -> None:
    ada = tenant.make_resource("Ada")
    booking = tenant.book(project_id=make_project(tenant, ada), **NINE).data
    path = f"/bookings/{booking['id']}"
    fake_freebusy.asked.clear()

    stale = tenant.post(f"{path}/reschedule", span("10:00", "11:00"), **{"If-Match": '"other"'})
    asked_in_vain = list(fake_freebusy.asked)
    etag = tenant.get(path).headers["ETag"]
    moved = tenant.post(f"{path}/reschedule", span("10:00", "11:00"), **{"If-Match": etag})

    assert (stale.status, asked_in_vain) == (412, [])
    assert moved.status == 200, moved.json
    assert fake_freebusy.asked == [([ada["id"]], "Mon 10:00", "Mon 11:00", False)]
    assert fake_freebusy.depths == {depth}


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("key", [{}, {"Idempotency_Key": "bulk"}], ids=["plain", "with a key"])
def test_bulk_request_is_checked(
    tenant: Tenant, fake_freebusy: FakeFreebusy, depth: int, together: bool, key: dict[str, str]
) -> None:
    """Each is asked about once, outside of every transaction, and made once."""
    ada = tenant.make_resource("Ada")
    project = make_project(tenant, ada)
    fake_freebusy.add_busy(ada, "11:00", "11:30")
    times = [(f"{hour}:00", f"{hour + 1}:00") for hour in (10, 11, 12)]
    body = {"project_id": project, "what": "x", "customer": MARTY}
    bodies = [{**body, **span(*pair)} for pair in times]

    answer = tenant.post(
        "/bookings/bulk", {"bookings": bodies, "delete_all_on_error": together}, **key
    )

    assert [record["status"] for record in answer.data] == (
        [424, 409, 424] if together else [201, 409, 201]
    )
    assert answer.data[1]["error"]["conflicts"] == [shown("11:00", "11:30")]
    assert Booking.objects.count() == (0 if together else 2)
    assert [question[1:3] for question in fake_freebusy.asked] == [
        (f"Mon {start}", f"Mon {end}") for start, end in times
    ]
    assert fake_freebusy.depths == {depth}


# --- Races ----------------------------------------------------------------------------------------
def test_concurrent_booking_during_the_check_is_seen(
    tenant: Tenant, fake_freebusy: FakeFreebusy
) -> None:
    """The question holds no lock: whoever comes meanwhile is first, and the rows are looked at
    afterwards."""
    ada, bob = (tenant.make_resource(name) for name in ("Ada", "Bob"))
    project = make_project(tenant, ada, bob, mode="roundrobin_prioritized")

    def book_ada() -> None:
        fake_freebusy.meanwhile = lambda: None
        assert tenant.book(resource_id=ada["id"], **NINE).status == 201

    fake_freebusy.meanwhile = book_ada
    first = tenant.book(project_id=project, **NINE)
    fake_freebusy.meanwhile = lambda: tenant.book(resource_id=bob["id"], **span("11:00", "12:00"))
    second = tenant.book(project_id=project, resource_id=bob["id"], **span("11:00", "12:00"))

    assert whole(tenant, first.data)["resource"]["name"] == "Bob"
    assert refusal_of(second)[:3] == (409, "slot_taken", [shown("11:00", "12:00")])


def test_resource_freed_during_the_check_is_booked(
    tenant: Tenant, fake_freebusy: FakeFreebusy
) -> None:
    """It was not asked, because it was taken then."""
    ada, bob = (tenant.make_resource(name) for name in ("Ada", "Bob"))
    project = make_project(tenant, ada, bob, mode="roundrobin_prioritized")
    event = tenant.make_event(ada["calendars"][0]["id"], NINE["start"], NINE["end"])
    fake_freebusy.add_busy(bob, "09:00", "10:00")
    fake_freebusy.meanwhile = lambda: tenant.delete(f"/events/{event['id']}")

    answer = tenant.book(project_id=project, **NINE)

    assert whole(tenant, answer.data)["resource"]["name"] == "Ada"


# --- The setting ----------------------------------------------------------------------------------
def test_setting_is_stored_merged_and_removed(tenant: Tenant) -> None:
    project = tenant.post_project(settings={"max_per_day": 3, "check_external": True})
    path = f"/projects/{project['id']}"

    found = [project["settings"]]
    for value in (False, None):
        tenant.put(path, {"settings": {"check_external": value}})
        found.append(tenant.get(path).data["settings"])

    assert found == [
        {"max_per_day": 3, "check_external": True},
        {"max_per_day": 3, "check_external": False},
        {"max_per_day": 3},
    ]


@pytest.mark.parametrize("value", ["yes", 1, [], "true"])
def test_a_wrong_value_is_refused(tenant: Tenant, value: Any) -> None:
    answer = tenant.post("/projects", {"name": "P", "settings": {"check_external": value}})

    assert (answer.status, list(answer.json["errors"])) == (422, ["settings.check_external"])
