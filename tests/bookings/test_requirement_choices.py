"""How the resources of requirements are chosen: modes, stretches, alternatives, named ones."""

from collections import Counter
from typing import Any

import pytest

from availability.models import Event
from tests.bookings.one_day import PERSON, clock_time, span
from tests.world import Answer, Tenant

pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.both_databases]


class Shop:
    """Resources by name, and what their calendars show."""

    def __init__(self, tenant: Tenant) -> None:
        self.tenant = tenant
        self.ids: dict[str, str] = {}

    def add(self, *names: str, **given: Any) -> list[str]:
        for name in names:
            self.ids[name] = self.tenant.make_resource(name, **given)["id"]
        return [self.ids[name] for name in names]

    def name_of(self, resource_id: Any) -> str:
        return next(name for name, each in self.ids.items() if each == str(resource_id))

    def project(self, requires: Any, **terms: Any) -> str:
        given = {"name": "Job", "requires": requires, "availability": {"length": "1 hour", **terms}}
        return self.tenant.post("/projects", given).data["id"]

    def book(self, project: str, start: str, end: str, **given: Any) -> Answer:
        return self.tenant.book(project_id=project, **span(start, end), **given)

    def close(self, name: str, start: str, end: str) -> None:
        """Take the time of one resource."""
        self.tenant.book(resource_id=self.ids[name], **span(start, end))

    def taken(self) -> list[tuple[str, str]]:
        """The busy times as `10:00-11:00`, with the name of the resource."""
        rows = Event.objects.filter(busy=True).order_by("start", "resource__name")
        return [
            (f"{row.start:%H:%M}-{row.end:%H:%M}", self.name_of(row.resource_id)) for row in rows
        ]

    def offered(self, first: str, last: str, **given: Any) -> list[tuple[str, list[str]]]:
        body = {"from": clock_time(first), "to": clock_time(last), **given}
        slots = self.tenant.post("/availability", body).data
        return [
            (slot["start"][11:16], [each["name"] for each in slot["resources"]]) for slot in slots
        ]


@pytest.fixture
def shop(tenant: Tenant) -> Shop:
    return Shop(tenant)


# --- Modes ----------------------------------------------------------------------------------------
def test_resources_of_tags_are_taken_by_name(shop: Shop) -> None:
    shop.add("Zoe", "Ada", "ben", tags=["dentist"])
    project = shop.project([{"name": "dentist", "any_of": {"tags": ["dentist"]}}])

    taken = [shop.book(project, "10:00", "11:00").data["resource_id"] for _ in range(3)]

    assert [shop.name_of(each) for each in taken] == ["Ada", "ben", "Zoe"]
    assert shop.offered("09:00", "10:00", project_id=project) == [("09:00", ["Ada"])]


def test_prioritized_order_is_kept_where_requirements_share_resources(shop: Shop) -> None:
    ada, ben, cleo = shop.add("Ada", "Ben", "Cleo")
    project = shop.project(
        [
            {"name": "first", "any_of": [ada, ben]},
            {"name": "second", "any_of": [ada, cleo, ben]},
        ]
    )

    assert shop.offered("09:00", "10:00", project_id=project) == [("09:00", ["Ada", "Cleo"])]


def test_random_requirement_takes_every_resource(shop: Shop) -> None:
    ids = shop.add("Ada", "Ben", "Cleo")
    project = shop.project(
        [{"name": "who", "any_of": ids, "mode": "random"}], timeslot_increments="5 mins"
    )

    body = {"project_id": project, "from": clock_time("09:00"), "to": clock_time("17:00")}
    chosen = {
        shop.tenant.post("/availability", body).data[0]["resources"][0]["name"] for _ in range(60)
    }

    assert chosen == {"Ada", "Ben", "Cleo"}


def test_fair_requirement_follows_its_weights(shop: Shop) -> None:
    ids = shop.add("Ada", "Ben", "Cleo", "Dan")
    rooms = shop.add("Room 1", "Room 2")
    weights = {ids[0]: 2, ids[3]: 0}
    project = shop.project(
        [
            {"name": "room", "any_of": rooms},
            {"name": "engineer", "any_of": ids, "mode": "fair", "weights": weights},
        ]
    )

    for day in range(1, 13):
        start = f"2026-12-{day:02}T10:00:00+00:00"
        shop.tenant.book(project_id=project, start=start, end=start.replace("T10", "T11"))

    chosen = Event.objects.filter(requirement="engineer").values_list("resource__name", flat=True)
    assert Counter(chosen) == {"Ada": 6, "Ben": 3, "Cleo": 3}


def test_fair_requirement_gives_free_turns_only_and_counts_named_ones(shop: Shop) -> None:
    ids = shop.add("Ada", "Ben")
    project = shop.project([{"name": "who", "any_of": ids, "mode": "fair"}])
    for hour in ("09", "10", "11"):
        shop.book(project, f"{hour}:00", f"{int(hour) + 1}:00", resources={"who": ids[0]})
    shop.close("Ben", "12:00", "13:00")

    taken = [
        shop.book(project, start, end).data["resource_id"]
        for start, end in (("12:00", "13:00"), ("13:00", "14:00"), ("14:00", "15:00"))
    ]

    assert [shop.name_of(each) for each in taken] == ["Ada", "Ben", "Ben"]


# --- Tags -----------------------------------------------------------------------------------------
def test_all_tags_must_match(shop: Shop) -> None:
    shop.add("Ada", tags=["heating", "zip-606"])
    shop.add("Ben", tags=["heating", "zip-607"])
    shop.add("Cleo", tags=["plumbing", "zip-606"])

    def offered(**any_of: list[str]) -> list[str]:
        requires = [{"name": "who", "any_of": any_of}]
        hours = {"from": clock_time("09:00"), "to": clock_time("10:00")}
        body = {"requires": requires, "length": "1 hour", **hours}
        explained = shop.tenant.post("/availability/explain", body).data
        return [each["resource"]["name"] for each in explained]

    assert offered(all=["Heating", "zip-606"]) == ["Ada"]
    assert offered(all=["zip-606"], any=["plumbing", "roofs"]) == ["Cleo"]
    assert offered(tags=["plumbing", "zip-607"]) == ["Ben", "Cleo"]
    assert offered(any=["plumbing", "zip-607"]) == ["Ben", "Cleo"]


# --- Stretches ------------------------------------------------------------------------------------
def workshop(shop: Shop) -> str:
    """A mechanic for the job, a bay for its second half, a loan car for an hour longer."""
    mechanic, bay, car = shop.add("Mia", "Bay", "Car")
    return shop.project(
        [
            {"name": "mechanic", "any_of": [mechanic]},
            {"name": "bay", "any_of": [bay], "offset": "1 hour"},
            {"name": "car", "any_of": [car], "length": "3 hours"},
        ],
        length="2 hours",
        lengths=["2 hours", "3 hours"],
    )


def test_requirements_take_their_own_stretches(shop: Shop) -> None:
    project = workshop(shop)

    answer = shop.book(project, "10:00", "12:00")

    assert answer.status == 201
    assert shop.taken() == [
        ("10:00-13:00", "Car"),
        ("10:00-12:00", "Mia"),
        ("11:00-12:00", "Bay"),
    ]
    body = {"project_id": project, "timeslot_increments": "1 hour"}
    assert [start for start, _ in shop.offered("06:00", "16:00", **body)] == [
        *("06:00", "07:00", "13:00", "14:00")
    ]


def test_a_stretch_that_is_taken_refuses_the_booking(shop: Shop) -> None:
    project = workshop(shop)
    shop.close("Car", "12:30", "13:00")

    refused = shop.book(project, "10:00", "12:00")
    before = shop.book(project, "09:30", "11:30")

    assert (refused.status, refused.json["code"]) == (409, "slot_taken")
    assert before.status == 201
    assert shop.taken() == [
        ("09:30-12:30", "Car"),
        ("09:30-11:30", "Mia"),
        ("10:30-11:30", "Bay"),
        ("12:30-13:00", "Car"),
    ]


def test_a_stretch_keeps_the_hours_of_its_resource_and_not_those_of_the_project(
    shop: Shop,
) -> None:
    mechanic, car = shop.add("Mia", "Car")
    hours = [{"allow_hours": {"start": 8, "end": 14}}]
    shop.tenant.put(f"/resources/{car}", {"availability_constraints": hours})
    given = {
        "name": "Job",
        "requires": [
            {"name": "mechanic", "any_of": [mechanic]},
            {"name": "car", "any_of": [car], "length": "3 hours"},
        ],
        "availability": {"length": "1 hour", "timeslot_increments": "1 hour"},
        "availability_constraints": [{"allow_hours": {"start": 9, "end": 13}}],
    }
    project = shop.tenant.post("/projects", given).data["id"]

    offered = [start for start, _ in shop.offered("00:00", "23:00", project_id=project)]

    assert offered == ["09:00", "10:00", "11:00"]
    assert [shop.book(project, f"{hour}:00", f"{hour + 1}:00").status for hour in (11, 12)] == [
        *(201, 409)
    ]


def test_a_booking_that_ends_before_a_stretch_begins_is_refused(shop: Shop) -> None:
    mechanic, bay = shop.add("Mia", "Bay")
    requires = [
        {"name": "mechanic", "any_of": [mechanic]},
        {"name": "bay", "any_of": [bay], "offset": "1 hour"},
    ]
    project = shop.project(requires, length="1 hour", lengths=["1 hour", "2 hours"])

    short = shop.book(project, "10:00", "11:00")
    long = shop.book(project, "10:00", "12:00")
    shortened = shop.tenant.post(f"/bookings/{long.data['id']}/reschedule", span("13:00", "14:00"))

    assert [each.status for each in (short, long, shortened)] == [409, 201, 409]
    assert shop.offered("14:00", "17:00", project_id=project) == []
    assert shop.taken() == [("10:00-12:00", "Mia"), ("11:00-12:00", "Bay")]


def test_stretches_move_with_the_booking(shop: Shop) -> None:
    project = workshop(shop)
    booking = shop.book(project, "10:00", "12:00").data["id"]
    path = f"/bookings/{booking}/reschedule"

    moved = shop.tenant.post(path, span("11:00", "14:00"))
    shop.close("Bay", "16:30", "17:00")
    refused = shop.tenant.post(path, span("14:00", "17:00"))

    assert (moved.status, refused.status) == (200, 409)
    assert shop.taken() == [
        ("11:00-14:00", "Car"),
        ("11:00-14:00", "Mia"),
        ("12:00-14:00", "Bay"),
        ("16:30-17:00", "Bay"),
    ]


def test_stretches_are_held_and_booked(shop: Shop) -> None:
    project = workshop(shop)

    hold = shop.tenant.post("/bookings/reserve", {"project_id": project, **span("10:00", "12:00")})
    blocked = shop.book(project, "12:00", "14:00")
    booked = shop.book(project, "10:00", "12:00", reservation_id=hold.data["reservation_id"])

    assert [answer.status for answer in (hold, blocked, booked)] == [201, 409, 201]
    assert shop.taken() == [
        ("10:00-13:00", "Car"),
        ("10:00-12:00", "Mia"),
        ("11:00-12:00", "Bay"),
    ]


def test_series_of_stretches(shop: Shop) -> None:
    project = workshop(shop)

    answer = shop.book(project, "10:00", "12:00", recurrence="FREQ=DAILY;COUNT=2")

    assert answer.status == 201
    rows = Event.objects.order_by("start", "resource__name")
    assert [f"{row.start:%d %H:%M}-{row.end:%H:%M} {row.requirement}" for row in rows] == [
        "23 10:00-13:00 car",
        "23 10:00-12:00 mechanic",
        "23 11:00-12:00 bay",
        "24 10:00-13:00 car",
        "24 10:00-12:00 mechanic",
        "24 11:00-12:00 bay",
    ]


# --- Alternatives and optional requirements -------------------------------------------------------
def test_first_alternative_that_fits_is_taken(shop: Shop) -> None:
    six, four, two = shop.add("Six", "Four", "Two")
    alternatives = [
        [{"name": "table", "any_of": [six]}],
        [{"name": "table", "any_of": [four]}, {"name": "second table", "any_of": [two]}],
    ]
    project = shop.project({"alternatives": alternatives})
    shop.close("Six", "10:00", "11:00")

    offered = shop.offered("09:00", "11:00", project_id=project)
    statuses = [shop.book(project, "10:00", "11:00").status for _ in range(2)]

    assert offered == [("09:00", ["Six"]), ("10:00", ["Four", "Two"])]
    assert statuses == [201, 409]
    assert shop.taken() == [("10:00-11:00", name) for name in ("Four", "Six", "Two")]
    assert shop.tenant.get(f"/projects/{project}").data["requires"] == {
        "alternatives": alternatives
    }


def test_optional_requirement_is_booked_where_it_is_free(shop: Shop) -> None:
    doctor, trainee = shop.add("Ada", "Tom")
    project = shop.project(
        [
            {"name": "doctor", "any_of": [doctor]},
            {"name": "trainee", "any_of": [trainee], "optional": True},
        ]
    )
    shop.close("Tom", "10:00", "11:00")

    assert shop.offered("09:00", "11:00", project_id=project) == [
        ("09:00", ["Ada", "Tom"]),
        ("10:00", ["Ada"]),
    ]
    assert shop.book(project, "10:00", "11:00").status == 201
    named = shop.book(project, "10:00", "11:00", resources={"trainee": trainee})
    assert named.status == 409


def test_explain_shows_alternatives_and_stretches(shop: Shop) -> None:
    """A part of a booking keeps the hours of its resource, and not those of the project."""
    mia, car, van = shop.add("Mia", "Car", "Van")
    shop.close("Car", "11:00", "12:00")
    given = {
        "name": "Job",
        "requires": {
            "alternatives": [
                [
                    {"name": "mechanic", "any_of": [mia]},
                    {"name": "car", "any_of": [car], "length": "2 hours"},
                ],
                [{"name": "van", "any_of": [van]}],
            ]
        },
        "availability": {"length": "1 hour"},
        "availability_constraints": [{"allow_hours": {"start": 10, "end": 12}}],
    }
    project = shop.tenant.post("/projects", given).data["id"]
    body = {"project_id": project, "from": clock_time("09:00"), "to": clock_time("13:00")}

    found = shop.tenant.post("/availability/explain", body).json["requirements"]

    assert [
        (
            each["alternative"],
            each["name"],
            [(span["start"][11:16], span["end"][11:16]) for span in each["free"]],
        )
        for each in found
    ] == [
        (1, "mechanic", [("10:00", "12:00")]),
        (1, "car", [("09:00", "11:00"), ("12:00", "13:00")]),
        (2, "van", [("10:00", "12:00")]),
    ]


def test_refusal_names_the_first_requirement_that_fails_of_each_alternative(shop: Shop) -> None:
    six, four, two = shop.add("Six", "Four", "Two")
    closed = [{"block_hours": {"start": 10, "end": 11}}]
    for name in ("Six", "Two"):
        shop.tenant.put(f"/resources/{shop.ids[name]}", {"availability_constraints": closed})
    project = shop.project(
        {
            "alternatives": [
                [{"name": "table", "any_of": [six]}],
                [{"name": "table", "any_of": [four]}, {"name": "second", "any_of": [two]}],
            ]
        }
    )

    refused = shop.book(project, "10:00", "11:00")
    of_named = shop.book(project, "10:00", "11:00", resources={"second": two})

    reasons = [[reason["text"] for reason in each.json["reasons"]] for each in (refused, of_named)]
    assert reasons == [
        ['No resource for "table" is open.', 'No resource for "second" is open.'],
        ['No resource for "second" is open.'],
    ]


# --- Requirements of the request ------------------------------------------------------------------
def test_what_a_query_with_requirements_offers_can_be_booked(shop: Shop) -> None:
    shop.add("Ada", "Ben", tags=["dentist"])
    shop.add("Room", tags=["room"])
    requires = [
        {"name": "dentist", "any_of": {"tags": ["dentist"]}},
        {"name": "room", "any_of": {"tags": ["room"]}, "length": "90 mins"},
    ]
    shop.close("Room", "11:00", "11:30")
    body = {"requires": requires, "length": "1 hour", "timeslot_increments": "30 mins"}

    offered = shop.offered("09:00", "12:30", **body)
    held = shop.tenant.post("/bookings/reserve", {"requires": requires, **span("09:00", "10:00")})
    booked = shop.tenant.book(
        requires=requires, **span("09:00", "10:00"), reservation_id=held.data["reservation_id"]
    )
    refused = shop.tenant.book(requires=requires, **span("10:00", "11:00"))

    assert offered == [
        ("09:00", ["Ada", "Room"]),
        ("09:30", ["Ada", "Room"]),
        ("11:30", ["Ada", "Room"]),
    ]
    assert [answer.status for answer in (held, booked, refused)] == [201, 201, 409]
    assert shop.taken() == [
        ("09:00-10:00", "Ada"),
        ("09:00-10:30", "Room"),
        ("11:00-11:30", "Room"),
    ]


def test_requirements_of_a_booking_within_its_project(shop: Shop) -> None:
    ada, ben, room = shop.add("Ada", "Ben", "Room")
    given = {"name": "Job", "resources": [ada, ben], "availability": {"length": "1 hour"}}
    project = shop.tenant.post("/projects", given).data["id"]
    requires = [{"name": "who", "any_of": [ben]}, {"name": "where", "any_of": [room]}]

    booked = shop.book(project, "10:00", "11:00", requires=requires)
    too_long = shop.book(project, "12:00", "14:00", requires=requires)
    moved = shop.tenant.post(f"/bookings/{booked.data['id']}/reschedule", span("15:00", "16:00"))

    assert [answer.status for answer in (booked, too_long, moved)] == [201, 409, 200]
    assert shop.taken() == [("15:00-16:00", "Ben"), ("15:00-16:00", "Room")]


def test_public_callers_send_no_requirements(shop: Shop) -> None:
    ids = shop.add("Ada")
    project = shop.project([{"name": "who", "any_of": ids}])
    widget = shop.tenant.widget()
    requires = [{"name": "who", "any_of": ids}]
    body = {"project_id": project, "requires": requires, **span("10:00", "11:00")}

    answers = [
        widget.post("/bookings", body),
        widget.post("/bookings/reserve", body),
        widget.post("/availability", {"project_id": project, "requires": requires}),
    ]

    assert [(each.status, each.json["code"]) for each in answers] == [(403, "forbidden")] * 3


# --- Named resources ------------------------------------------------------------------------------
def test_times_of_a_named_resource(shop: Shop) -> None:
    ada, ben, cleo = shop.add("Ada", "Ben", "Cleo")
    rooms = shop.add("Room 1", "Room 2")
    project = shop.project(
        [{"name": "dentist", "any_of": [ada, ben, cleo]}, {"name": "room", "any_of": rooms}]
    )
    shop.close("Ben", "10:00", "11:00")
    hours = {"project_id": project}

    def offered(**resources: Any) -> list[tuple[str, list[str]]]:
        return shop.offered("09:00", "11:00", resources=resources, **hours)

    assert offered(dentist=ben) == [("09:00", ["Ben", "Room 1"])]
    assert offered(dentist=[cleo, ben], room=rooms[1]) == [
        ("09:00", ["Ben", "Room 2"]),
        ("10:00", ["Cleo", "Room 2"]),
    ]
    wrong = shop.tenant.post("/availability", {**hours, "resources": {"dentist": rooms[0]}})
    assert (wrong.status, list(wrong.json["errors"])) == (422, ["resources.dentist"])
    widget = shop.tenant.widget()
    body = {**hours, "from": clock_time("09:00"), "to": clock_time("11:00")}
    public = widget.post("/availability", {**body, "resources": {"dentist": ben}})
    assert [slot["start"][11:16] for slot in public.data] == ["09:00"]
    body = {"project_id": project, **PERSON, "resources": {"dentist": [cleo, ben]}}
    booked = widget.post("/bookings", {**body, **span("10:00", "11:00")})
    assert booked.status == 201
    assert ("10:00-11:00", "Cleo") in shop.taken()


def test_named_resources_replace_those_of_a_booking(shop: Shop) -> None:
    ada, ben = shop.add("Ada", "Ben")
    rooms = shop.add("Room 1", "Room 2", "Room 3")
    project = shop.project(
        [{"name": "dentist", "any_of": [ada, ben]}, {"name": "room", "any_of": rooms}]
    )
    booking = shop.book(project, "10:00", "11:00").data["id"]
    path = f"/bookings/{booking}/reschedule"
    shop.close("Room 2", "10:00", "11:00")

    same_time = shop.tenant.post(path, {"resources": {"room": rooms[2]}})
    taken_room = shop.tenant.post(path, {"resources": {"room": rooms[1]}})
    any_other = shop.tenant.post(path, {"resources": {"room": [rooms[1], rooms[0]]}})
    other_time = shop.tenant.post(path, {"resources": {"dentist": ben}, **span("12:00", "13:00")})
    unknown = shop.tenant.post(path, {"resources": {"chair": ben}})

    answers = (same_time, taken_room, any_other, other_time, unknown)
    assert [answer.status for answer in answers] == [200, 409, 200, 200, 422]
    assert shop.taken() == [
        ("10:00-11:00", "Room 2"),
        ("12:00-13:00", "Ben"),
        ("12:00-13:00", "Room 1"),
    ]
    logs = shop.tenant.get(f"/bookings/{booking}?include=logs").data["logs"]
    assert [log["action"] for log in logs] == ["confirm", "reassign", "reassign", "reschedule"]


def test_resource_of_one_requirement_can_take_over_another(shop: Shop) -> None:
    ada, ben, cleo = shop.add("Ada", "Ben", "Cleo")
    project = shop.project(
        [{"name": "first", "any_of": [ada, ben]}, {"name": "second", "any_of": [ada, ben, cleo]}]
    )
    booking = shop.book(project, "10:00", "11:00").data["id"]
    path = f"/bookings/{booking}/reschedule"

    answer = shop.tenant.post(path, {"resources": {"first": ben}})

    assert answer.status == 200
    rows = Event.objects.filter(busy=True).order_by("requirement")
    assert [(row.requirement, row.resource.name) for row in rows] == [
        ("first", "Ben"),
        ("second", "Ada"),
    ]


def test_booking_moves_after_a_resource_of_its_own_requirements_is_deleted(shop: Shop) -> None:
    ada, ben = shop.add("Ada", "Ben")
    requires = [{"name": "who", "any_of": [ada, ben]}]
    booking = shop.tenant.book(requires=requires, **span("10:00", "11:00")).data["id"]
    assert shop.tenant.delete(f"/resources/{ben}").status == 204

    moved = shop.tenant.post(f"/bookings/{booking}/reschedule", span("12:00", "13:00"))
    named = shop.tenant.post(f"/bookings/{booking}/reschedule", {"resources": {"who": ada}})

    assert [answer.status for answer in (moved, named)] == [200, 200]


def test_resources_of_other_bookings_are_named_by_the_present_one(shop: Shop) -> None:
    ada, ben, cleo = shop.add("Ada", "Ben", "Cleo")
    given = {"name": "Talk", "resources": [ada, ben], "availability": {"mode": "mutual"}}
    project = shop.tenant.post("/projects", given).data["id"]
    booking = shop.book(project, "10:00", "11:00").data["id"]
    path = f"/bookings/{booking}/reschedule"

    second = shop.tenant.post(path, {"resources": {ben: cleo}})
    main = shop.tenant.post(path, {"resources": {ada: ben}, **span("12:00", "13:00")})
    wrong = [
        shop.tenant.post(path, {"resources": resources})
        for resources in ({ada: cleo}, {ben: cleo}, {ben: project})
    ]

    assert [answer.status for answer in (second, main)] == [200, 200]
    assert [(each.status, list(each.json["errors"])) for each in wrong] == [
        (422, [f"resources.{ada}"]),
        (422, [f"resources.{ben}"]),
        (422, [f"resources.{ben}"]),
    ]
    assert shop.taken() == [("12:00-13:00", "Ben"), ("12:00-13:00", "Cleo")]


# --- Wrong requirements ---------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("requires", "path"),
    [
        ([{"name": "a", "any_of": {}}], "requires.0.any_of"),
        ([{"name": "a", "any_of": {"all": []}}], "requires.0.any_of.all"),
        ([{"name": "a", "any_of": {"tags": ["t"]}, "mode": "best"}], "requires.0.mode"),
        ([{"name": "a", "any_of": {"tags": ["t"]}, "length": "soon"}], "requires.0.length"),
        ([{"name": "a", "any_of": {"tags": ["t"]}, "length": "0 mins"}], "requires.0.length"),
        ([{"name": "a", "any_of": {"tags": ["t"]}, "offset": "5 mins"}], "requires"),
        ([{"name": "a", "any_of": {"tags": ["t"]}, "optional": True}], "requires"),
        ({"alternatives": []}, "requires.alternatives"),
        ({"alternatives": [[]]}, "requires.alternatives.0"),
        ({"either": []}, "requires"),
        ({"alternatives": [[{"name": "a"}]]}, "requires.alternatives.0.0.any_of"),
    ],
)
def test_wrong_requirements_are_refused(shop: Shop, requires: Any, path: str) -> None:
    answer = shop.tenant.post("/projects", {"name": "Job", "requires": requires})

    assert (answer.status, list(answer.json["errors"])) == (422, [path])
