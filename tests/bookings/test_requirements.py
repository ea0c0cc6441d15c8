"""Projects whose bookings need several resources: `requires`."""

import json
import re
from typing import Any

import pytest
from django.db import connection

from availability.models import Event, Hold
from tests.guide import block_of_guide
from tests.office.staff import superuser
from tests.queries import Queries
from tests.world import Answer, Caller, Tenant, at

pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.both_databases]

DAY = "2026-11-23"


def clock_time(hour: int) -> str:
    return f"{DAY}T{hour:02}:00:00+00:00"


def span(start: int, end: int) -> dict[str, str]:
    return {"start": clock_time(start), "end": clock_time(end)}


class Practice:
    """Two dentists, two rooms (one with X-ray), and a project that needs one of each."""

    def __init__(self, tenant: Tenant) -> None:
        self.tenant = tenant
        rooms = {"Room 1": ["room"], "Room 2": ["room", "x-ray"]}
        made = {
            name: tenant.make_resource(
                name, tags=rooms.get(name, []), email=f"{name.replace(' ', '')}@example.com".lower()
            )
            for name in ("Ada", "Ben", *rooms)
        }
        self.ids = {name: each["id"] for name, each in made.items()}
        self.tokens = {name: each["api_token"] for name, each in made.items()}
        self.names = {each: name for name, each in self.ids.items()}
        dentists = [self.ids["Ada"], self.ids["Ben"]]
        self.requires = [
            {"name": "dentist", "any_of": dentists},
            {"name": "room", "any_of": {"tags": ["Room"]}},
        ]
        terms = {"length": "1 hour"}
        given = {"name": "Check-up", "requires": self.requires, "availability": terms}
        self.project = tenant.post("/projects", given).data

    def book(self, start: int, **given: Any) -> Answer:
        times = span(start, start + 1)
        return self.tenant.book(project_id=self.project["id"], **times, **given)

    def take(self, name: str, start: int, end: int) -> Any:
        """A booking of one resource alone."""
        return self.tenant.book(resource_id=self.ids[name], **span(start, end)).data["id"]

    def taken(self) -> list[tuple[int, str]]:
        rows = Event.objects.filter(busy=True).order_by("start", "resource__name")
        return [(row.start.hour, self.names[str(row.resource_id)]) for row in rows]

    def offered(self, caller: Any = None, **given: Any) -> list[tuple[int, list[str]]]:
        body = {"project_id": self.project["id"], "from": clock_time(9), "to": clock_time(12)}
        slots = (caller or self.tenant).post("/availability", {**body, **given}).data
        return [
            (int(slot["start"][11:13]), [one["name"] for one in slot["resources"]])
            for slot in slots
        ]

    def resources_of(self, booking: str) -> list[str]:
        event = Event.objects.get(bookings=booking)
        rows = [event, *event.companions.order_by("id")]
        return [self.names[str(row.resource_id)] for row in rows]


@pytest.fixture
def practice(tenant: Tenant) -> Practice:
    return Practice(tenant)


# --- The project ----------------------------------------------------------------------------------
def test_resources_are_derived(practice: Practice) -> None:
    tenant, path = practice.tenant, f"/projects/{practice.project['id']}"
    before = [practice.names[each] for each in tenant.get(path).data["resources"]]

    tenant.put(f"/resources/{practice.ids['Room 1']}", {"tags": []})
    third = tenant.make_resource("Room 3", tags=["ROOM"])["id"]
    practice.names[third] = "Room 3"
    after = tenant.get(path).data

    assert before == ["Ada", "Ben", "Room 1", "Room 2"]
    assert [practice.names[each] for each in after["resources"]] == [
        "Ada",
        "Ben",
        "Room 2",
        "Room 3",
    ]
    assert after["requires"] == practice.requires


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"requires": [{"name": "a", "any_of": []}]}, "requires.0.any_of"),
        ({"requires": [{"name": "a", "any_of": 7}]}, "requires.0.any_of"),
        ({"requires": [{"name": "a", "any_of": {"tags": []}}]}, "requires.0.any_of.tags"),
        ({"requires": [{"any_of": {"tags": ["a"]}}]}, "requires.0.name"),
        ({"requires": [{"name": "a", "any_of": {"tags": ["a"]}, "count": 0}]}, "requires.0.count"),
        ({"requires": [{"name": "a", "any_of": {"tags": ["a"]}}] * 2}, "requires"),
        ({"requires": []}, "requires"),
        (
            {"requires": [{"name": "a", "any_of": ["01a1f84a-95c0-8000-800d-abcfa11ac8c6"]}]},
            "requires.0.any_of.0",
        ),
        ({"resources": []}, "resources"),
        ({"availability": {"length": None}}, "availability.length"),
    ],
)
def test_wrong_requirements_are_refused(practice: Practice, given: Any, path: str) -> None:
    answer = practice.tenant.put(f"/projects/{practice.project['id']}", given)

    assert (answer.status, list(answer.json["errors"])) == (422, [path])


def test_more_than_500_or_10_are_refused(practice: Practice) -> None:
    one = {"any_of": {"tags": ["room"]}}
    many = [{"name": str(number), **one} for number in range(11)]

    answer = practice.tenant.put(f"/projects/{practice.project['id']}", {"requires": many})

    assert (answer.status, list(answer.json["errors"])) == (422, ["requires"])


# --- Availability ---------------------------------------------------------------------------------
def test_a_slot_has_a_resource_for_each_requirement(practice: Practice) -> None:
    practice.take("Ada", 9, 10)
    practice.take("Room 1", 10, 11)
    practice.take("Room 1", 11, 12)
    practice.take("Room 2", 11, 12)

    assert practice.offered() == [(9, ["Ben", "Room 1"]), (10, ["Ada", "Room 2"])]
    assert practice.offered(practice.tenant.widget()) == practice.offered()


def test_requirements_of_a_request(practice: Practice) -> None:
    tenant = practice.tenant
    room, ray = {"tags": ["room"]}, {"tags": ["x-ray"]}
    body = {"project_id": None, "length": "1 hour", "from": clock_time(9), "to": clock_time(10)}

    def ask(*requires: Any) -> Any:
        return practice.offered(**body, requires=list(requires))

    both = ask({"name": "any", "any_of": room}, {"name": "ray", "any_of": ray})
    two = ask({"name": "any", "any_of": room, "count": 2})
    three = ask({"name": "any", "any_of": room, "count": 3})
    public = tenant.widget().post(
        "/availability",
        {"project_id": practice.project["id"], "requires": practice.requires},
    )

    assert both == [(9, ["Room 1", "Room 2"])]
    assert two == [(9, ["Room 1", "Room 2"])]
    assert three == []
    assert (public.status, public.error["code"]) == (403, "forbidden")


# --- Bookings -------------------------------------------------------------------------------------
def test_a_booking_takes_one_of_each(practice: Practice) -> None:
    first, second, third = (practice.book(10) for _ in range(3))

    assert [first.status, second.status, third.status] == [201, 201, 409]
    assert third.error["code"] == "slot_taken"
    assert third.error["alternatives"][0] == span(11, 12)
    assert practice.resources_of(first.data["id"]) == ["Ada", "Room 1"]
    assert practice.resources_of(second.data["id"]) == ["Ben", "Room 2"]
    assert first.data["resource_id"] == practice.ids["Ada"]


def test_named_resources_are_booked(practice: Practice) -> None:
    ids = practice.ids

    named = practice.book(9, resources={"room": ids["Room 2"]})
    plain = practice.book(10, resource_id=ids["Room 2"])
    both = practice.book(11, resource_id=ids["Ben"], resources={"room": ids["Room 2"]})
    practice.take("Room 2", 12, 13)
    taken = practice.book(12, resources={"room": ids["Room 2"]})

    made = [practice.resources_of(answer.data["id"]) for answer in (named, plain, both)]
    assert made == [["Ada", "Room 2"], ["Ada", "Room 2"], ["Ben", "Room 2"]]
    assert (taken.status, taken.error["code"]) == (409, "slot_taken")
    assert taken.error["alternatives"][0] == span(13, 14)


def test_wrong_named_resources_are_refused(practice: Practice) -> None:
    other = practice.tenant.make_resource("Cy")["id"]
    wrong = [
        ({"resources": {"lab": other}}, "resources.lab"),
        ({"resources": {"room": other}}, "resources.room"),
        ({"resources": {"room": "x"}}, "resources.room"),
        ({"resources": [1]}, "resources"),
        ({"resource_id": other}, "resource_id"),
    ]

    answers = [(practice.book(9, **given), path) for given, path in wrong]

    assert [(answer.status, list(answer.json["errors"])) for answer, _ in answers] == [
        (422, [path]) for _, path in answers
    ]


def test_included_resources_are_in_order_of_requirements(practice: Practice) -> None:
    tenant, path = practice.tenant, f"/projects/{practice.project['id']}"
    for name in ("Device 1", "Device 2"):
        practice.ids[name] = tenant.make_resource(name, tags=["device"])["id"]
    device = {"name": "device", "any_of": {"tags": ["device"]}}
    tenant.put(path, {"requires": [*practice.requires, device]})
    marty = {"name": "Marty McFly", "email": "marty@example.com"}
    body = {"project_id": practice.project["id"], "what": "X-ray", "customer": marty, **span(9, 10)}

    def names(booking: Any) -> list[str]:
        return [resource["name"] for resource in booking["resources"]]

    made = tenant.post("/bookings?include=resources", body).data
    whole = [tenant.get(f"/resources/{each['id']}").data for each in made["resources"]]
    public = tenant.widget().post("/bookings?include=resources", body).data
    alone = practice.take("Ada", 10, 11)
    practice.take("Room 1", 10, 11)
    moved = tenant.post(f"/bookings/{made['id']}/reschedule?include=resources", span(10, 11)).data
    single = tenant.get(f"/bookings/{made['id']}?include=resources").data
    listed = {row["id"]: row for row in tenant.get("/bookings?include=resources").data}

    assert names(made) == ["Ada", "Room 1", "Device 1"]
    assert made["resources"] == whole
    assert names(public) == ["Ben", "Room 2", "Device 2"]
    assert [set(each) for each in public["resources"]] == [{"id", "name", "image", "timezone"}] * 3
    assert names(moved) == names(single) == ["Ben", "Room 2", "Device 1"]
    assert listed[made["id"]]["resources"] == moved["resources"]
    assert names(listed[alone]) == ["Ada"]


def test_resource_key_cannot_include_resources(practice: Practice) -> None:
    booking = practice.book(9).data["id"]
    key = Caller(practice.tokens["Ada"], user="ada@example.com")

    answer = key.get(f"/bookings/{booking}?include=resources")

    assert (answer.status, list(answer.json["errors"])) == (422, ["include"])


def test_query_count_is_constant(practice: Practice) -> None:
    counts = []
    for hour in (9, 10, 11):
        practice.book(hour)
        with Queries(connection) as captured:
            practice.tenant.get("/bookings?include=resources")
        counts.append(len(captured))

    assert counts == counts[:1] * 3


def test_cancel_frees_all_resources(practice: Practice) -> None:
    booking = practice.book(10).data["id"]

    practice.tenant.put(f"/bookings/{booking}/cancel")

    assert practice.taken() == []


def test_a_hold_holds_one_of_each(practice: Practice) -> None:
    body = {"project_id": practice.project["id"], **span(10, 11)}
    held = practice.tenant.post("/bookings/reserve", body)
    practice.take("Ben", 10, 11)

    refused = practice.book(10)
    booked = practice.book(10, reservation_id=held.data["reservation_id"])

    assert (held.status, refused.status, booked.status) == (201, 409, 201)
    assert Hold.objects.count() == 2
    assert practice.resources_of(booked.data["id"]) == ["Ada", "Room 1"]


def test_reschedule_keeps_free_resources(practice: Practice) -> None:
    booking = practice.book(10, resources={"room": practice.ids["Room 2"]}).data["id"]

    answer = practice.tenant.post(f"/bookings/{booking}/reschedule", span(11, 12))

    assert answer.status == 200
    assert practice.taken() == [(11, "Ada"), (11, "Room 2")]


def test_reschedule_replaces_taken_resources(practice: Practice) -> None:
    booking = practice.book(10).data["id"]
    practice.take("Room 1", 11, 12)
    practice.take("Ada", 12, 13)
    path = f"/bookings/{booking}/reschedule"

    moved = practice.tenant.post(path, span(11, 12))
    at_eleven = practice.resources_of(booking)
    again = practice.tenant.post(path, span(12, 13))
    at_twelve = practice.resources_of(booking)
    practice.take("Ben", 13, 14)
    practice.take("Ada", 13, 14)
    refused = practice.tenant.post(path, span(13, 14))

    assert (moved.status, at_eleven) == (200, ["Ada", "Room 2"])
    assert again.status == 200
    assert at_twelve[0] == "Ben"
    assert again.data["resource_id"] == practice.ids["Ben"]
    assert (refused.status, refused.error["code"]) == (409, "slot_taken")
    assert practice.resources_of(booking) == at_twelve


@pytest.mark.parametrize(
    ("named", "start", "expected"),
    [
        pytest.param("Room 2", 10, ["Ada", "Room 2"], id="another room at the same time"),
        pytest.param("Ben", 11, ["Ben", "Room 1"], id="another dentist at another time"),
        pytest.param("Room 1", 12, ["Ben", "Room 1"], id="its own room where its dentist is taken"),
        pytest.param("Ada", 11, ["Ada", "Room 1"], id="its own dentist"),
    ],
)
def test_reschedule_to_a_named_resource_changes_one_requirement(
    practice: Practice, named: str, start: int, expected: list[str]
) -> None:
    booking = practice.book(10).data["id"]
    practice.take("Ada", 12, 13)

    answer = practice.tenant.post(
        f"/bookings/{booking}/reschedule",
        {**span(start, start + 1), "resource_id": practice.ids[named]},
    )

    assert (answer.status, practice.resources_of(booking)) == (200, expected)
    assert answer.data["resource_id"] == practice.ids[expected[0]]


def test_reschedule_to_a_taken_resource_is_refused(practice: Practice) -> None:
    booking = practice.book(10).data["id"]
    practice.take("Room 2", 10, 11)

    answer = practice.tenant.post(
        f"/bookings/{booking}/reschedule",
        {**span(10, 11), "resource_id": practice.ids["Room 2"]},
    )

    assert (answer.status, answer.json["code"]) == (409, "slot_taken")
    assert practice.resources_of(booking) == ["Ada", "Room 1"]


def test_reschedule_to_an_unfit_resource_is_refused(
    practice: Practice,
) -> None:
    booking = practice.book(10).data["id"]
    other = practice.tenant.make_resource("Eve")

    answer = practice.tenant.post(
        f"/bookings/{booking}/reschedule", {**span(11, 12), "resource_id": other["id"]}
    )

    assert (answer.status, answer.json["errors"]) == (
        422,
        {"resource_id": ["Fits no requirement of the project."]},
    )
    assert practice.taken() == [(10, "Ada"), (10, "Room 1")]


def test_reschedule_moves_each_event_out_of_a_deleted_calendar(
    practice: Practice, clock: Any
) -> None:
    booking = practice.book(10).data["id"]
    event = Event.objects.get(bookings=booking)
    old = [row.calendar_id for row in (event, *event.companions.order_by("id"))]
    new = [
        practice.tenant.post("/calendars", {"name": "New", "resource_id": practice.ids[name]}).data[
            "id"
        ]
        for name in ("Ada", "Room 1")
    ]
    clock.move_to(at(f"{DAY} 11:00"))
    for calendar in old:
        assert practice.tenant.delete(f"/calendars/{calendar}").status == 204

    answer = practice.tenant.post(f"/bookings/{booking}/reschedule", span(14, 15))

    event = Event.objects.get(bookings=booking)
    rows = [event, *event.companions.order_by("id")]
    assert (answer.status, [str(row.calendar_id) for row in rows]) == (200, new)


def test_series_takes_the_same_resources_every_day(practice: Practice) -> None:
    practice.tenant.book(
        resource_id=practice.ids["Ada"],
        start="2026-11-24T10:00:00Z",
        end="2026-11-24T11:00:00Z",
    )

    made = practice.book(10, recurrence="FREQ=DAILY;COUNT=2")

    assert made.status == 201
    assert practice.resources_of(made.data["id"]) == ["Ben", "Room 1"]


def test_closed_requirements_are_named(practice: Practice) -> None:
    for name in ("Room 1", "Room 2"):
        practice.tenant.put(
            f"/resources/{practice.ids[name]}",
            {"availability_constraints": [{"block_hours": {"start": 10, "end": 11}}]},
        )

    refused = practice.book(10)

    assert (refused.status, refused.error["code"]) == (409, "not_available")
    assert refused.error["reasons"] == [
        {"type": "requirement", "source": "project", "text": 'No resource for "room" is open.'}
    ]
    assert practice.offered() == [(9, ["Ada", "Room 1"]), (11, ["Ada", "Room 1"])]


def test_explain_shows_when_each_requirement_is_met(practice: Practice) -> None:
    for name in ("Room 1", "Room 2"):
        practice.take(name, 10, 11)
    body = {"project_id": practice.project["id"], "from": clock_time(9), "to": clock_time(12)}

    answer = practice.tenant.post("/availability/explain", body).json

    assert answer["requirements"] == [
        {"alternative": 1, "name": "dentist", "free": [span(9, 12)]},
        {"alternative": 1, "name": "room", "free": [span(9, 10), span(11, 12)]},
    ]


def test_dates_and_count_with_requirements(practice: Practice) -> None:
    body = {"project_id": practice.project["id"], "from": clock_time(9), "to": clock_time(12)}

    dates = practice.tenant.post("/availability/dates", body).data
    counts = practice.tenant.post("/availability/count", body).data

    assert [row["date"] for row in dates] == [DAY]
    assert [practice.names[each] for each in dates[0]["resources"]] == ["Ada", "Room 1"]
    assert [row["count"] for row in counts] == [3]


# --- The booking --------------------------------------------------------------------------------
def test_mails_and_the_back_office_name_all_resources(practice: Practice) -> None:
    practice.take("Room 1", 9, 10)
    booking = practice.book(9).data["id"]
    given = {"booking_id": booking}

    mail = practice.tenant.post("/templates/confirmed_customer/preview", given).data
    page = superuser().get(f"/admin/bookings/booking/{booking}/change/").content.decode()

    assert re.findall(r"^With: *(.*)$", mail["text"], re.M) == ["Ada, Room 2"]
    links = re.findall(r'<dt>(?:dentist|room)</dt><dd><a href="([^"]*)">([^<]*)</a>', page)
    assert links == [
        (f"/admin/availability/resource/{practice.ids[name]}/change/", name)
        for name in ("Ada", "Room 2")
    ]


def test_recipe_of_the_guide(tenant: Tenant) -> None:
    recipe = block_of_guide("json requires")
    known = {}
    for tag in ("dentist", "room", "x-ray"):
        known[tag] = tenant.make_resource(tag.title(), tags=[tag])["id"]
    known["device"] = known["x-ray"]
    for request in recipe.strip().split("\n\n"):
        line, _, body = request.partition("\n")
        for name, resource_id in known.items():
            body = body.replace(f"<{name} id>", resource_id)
        answer = tenant.post(line.removeprefix("POST /v2"), json.loads(body))
        assert answer.status in (200, 201), answer.json
        if "projects" in line:
            known["project"] = answer.data["id"]

    assert Event.objects.filter(busy=True).count() == 3
