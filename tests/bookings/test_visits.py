"""Visits: several steps in one booking."""

import json
from typing import Any

import pytest
from django.db import connection

from availability.models import Event
from bookings.models import Booking
from bookings.pages.email_links import booking_facts
from tests.bookings.one_day import DAY, PERSON, clock_time, span
from tests.guide import block_of_guide
from tests.queries import Queries
from tests.world import Answer, Tenant

pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.both_databases]


class Clinic:
    """A cleaning by a hygienist in a room, then a check-up by a dentist, at most an hour later."""

    def __init__(self, tenant: Tenant) -> None:
        self.tenant = tenant
        names = ("Hanna", "Henk", "Room 1", "Room 2", "Ada", "Ben")
        self.ids = {name: tenant.make_resource(name)["id"] for name in names}
        self.steps: list[dict[str, Any]] = [
            {
                "name": "cleaning",
                "length": "30 mins",
                "requires": [
                    {"name": "hygienist", "any_of": self.of("Hanna", "Henk")},
                    {"name": "room", "any_of": self.of("Room 1", "Room 2")},
                ],
            },
            {
                "name": "check-up",
                "length": "1 hour",
                "resources": self.of("Ada", "Ben"),
                "gap": {"max": "1 hour"},
            },
        ]
        self.project = self.make_project(self.steps)

    def of(self, *names: str) -> list[str]:
        return [self.ids[name] for name in names]

    def make_project(self, steps: Any, **given: Any) -> str:
        terms = {"timeslot_increments": "30 mins"}
        body = {"name": "Visit", "steps": steps, "availability": terms, **given}
        return self.tenant.post("/projects", body).data["id"]

    def close(self, name: str, start: str, end: str) -> None:
        self.tenant.book(resource_id=self.ids[name], **span(start, end))

    def book(self, start: str, end: str, **given: Any) -> Answer:
        return self.tenant.book(project_id=self.project, **span(start, end), **given)

    def offered(self, first: str, last: str, caller: Any = None, **given: Any) -> list[Any]:
        """`[(start, end, [(step, start, end, names)])]`"""
        hours = {"from": clock_time(first), "to": clock_time(last)}
        body = {"project_id": self.project, **hours, **given}
        answer = (caller or self.tenant).post("/availability", body)
        assert answer.status == 200
        return [
            (
                slot["start"][11:16],
                slot["end"][11:16],
                [
                    (
                        step["name"],
                        step["start"][11:16],
                        step["end"][11:16],
                        [each["name"] for each in step["resources"]],
                    )
                    for step in slot["steps"]
                ],
            )
            for slot in answer.data
        ]

    def taken(self) -> list[tuple[str, str]]:
        names = {each: name for name, each in self.ids.items()}
        rows = Event.objects.filter(busy=True).order_by("start", "resource__name")
        return [(f"{row.start:%H:%M}-{row.end:%H:%M}", names[str(row.resource_id)]) for row in rows]


@pytest.fixture
def clinic(tenant: Tenant) -> Clinic:
    return Clinic(tenant)


def test_slots_have_their_steps(clinic: Clinic) -> None:
    clinic.close("Hanna", "09:00", "10:00")
    clinic.close("Ada", "08:00", "10:30")
    clinic.close("Ben", "08:00", "10:00")

    assert clinic.offered("09:00", "11:30") == [
        (
            "09:00",
            "11:00",
            [
                ("cleaning", "09:00", "09:30", ["Henk", "Room 1"]),
                ("check-up", "10:00", "11:00", ["Ben"]),
            ],
        ),
        (
            "09:30",
            "11:00",
            [
                ("cleaning", "09:30", "10:00", ["Henk", "Room 1"]),
                ("check-up", "10:00", "11:00", ["Ben"]),
            ],
        ),
        (
            "10:00",
            "11:30",
            [
                ("cleaning", "10:00", "10:30", ["Hanna", "Room 1"]),
                ("check-up", "10:30", "11:30", ["Ada"]),
            ],
        ),
    ]
    project = {"project_id": clinic.project}
    hours = {"from": clock_time("09:00"), "to": clock_time("11:30")}
    tenant = clinic.tenant
    assert tenant.post("/availability/count", {**project, **hours}).data == [
        {"date": DAY, "count": 3}
    ]
    (day,) = tenant.post("/availability/dates", {**project, **hours}).data
    assert set(day["resources"]) == set(clinic.of("Hanna", "Henk", "Room 1", "Ada", "Ben"))


def test_a_visit_is_one_booking_with_an_event_for_each_step(clinic: Clinic) -> None:
    answer = clinic.book("09:00", "10:30")

    assert answer.status == 201
    assert clinic.taken() == [
        ("09:00-09:30", "Hanna"),
        ("09:00-09:30", "Room 1"),
        ("09:30-10:30", "Ada"),
    ]
    path = f"/bookings/{answer.data['id']}?include=steps,resources,event"
    record = clinic.tenant.get(path).data
    assert [
        (step["name"], step["start"], step["end"], [each["name"] for each in step["resources"]])
        for step in record["steps"]
    ] == [
        ("cleaning", clock_time("09:00"), clock_time("09:30"), ["Hanna", "Room 1"]),
        ("check-up", clock_time("09:30"), clock_time("10:30"), ["Ada"]),
    ]
    assert [each["name"] for each in record["resources"]] == ["Hanna", "Room 1", "Ada"]
    assert (record["event"]["start"], record["event"]["end"]) == (
        clock_time("09:00"),
        clock_time("10:30"),
    )


def test_every_offered_visit_can_be_booked_and_no_other(clinic: Clinic) -> None:
    clinic.close("Ada", "09:00", "11:00")
    clinic.close("Ben", "10:00", "12:00")
    clinic.tenant.set_public_limits()
    widget = clinic.tenant.widget()
    body = {"project_id": clinic.project, **PERSON}

    offered = clinic.offered("08:00", "13:00", widget)
    assert offered
    for start, end, _ in offered:
        answer = widget.post("/bookings", {**body, **span(start, end)})
        assert answer.status == 201
        cancelled = clinic.tenant.post(f"/bookings/{answer.data['id']}/cancel", {})
        assert cancelled.status == 200
    known = {(start, end) for start, end, _ in offered}
    times = [f"{hour:02}:{minute}" for hour in range(8, 13) for minute in ("00", "15", "30")]
    for start in times:
        for end in times:
            if start < end and (start, end) not in known:
                answer = widget.post("/bookings", {**body, **span(start, end)})
                assert (answer.status, start, end) == (409, start, end)


def test_a_taken_visit_is_refused_with_alternatives(clinic: Clinic) -> None:
    for name in ("Ada", "Ben"):
        clinic.close(name, "09:00", "10:30")
    clinic.close("Hanna", "08:00", "12:00")
    closed = [{"allow_hours": {"start": 13, "end": 17}}]
    for name in ("Ada", "Ben"):
        path = f"/resources/{clinic.ids[name]}"
        if name == "Ben":
            clinic.tenant.put(path, {"availability_constraints": closed})

    taken = clinic.book("09:00", "10:30")
    clinic.tenant.put(f"/resources/{clinic.ids['Ada']}", {"availability_constraints": closed})
    shut = clinic.book("09:00", "10:30")

    assert (taken.status, taken.json["code"]) == (409, "slot_taken")
    assert taken.json["alternatives"][0] == span("09:00", "11:30")
    assert (shut.status, shut.json["code"]) == (409, "not_available")
    assert [reason["text"] for reason in shut.json["reasons"]] == [
        'No resource for the step "check-up" is open.'
    ]


def test_named_resources_of_a_visit(clinic: Clinic) -> None:
    clinic.close("Ben", "09:30", "10:00")

    offered = clinic.offered("09:00", "11:00", resources={"check-up": clinic.ids["Ben"]})
    booked = clinic.book("09:00", "11:00", resources={"check-up": clinic.ids["Ben"]})

    assert [(start, end) for start, end, _ in offered] == [("09:00", "11:00"), ("09:30", "11:00")]
    assert booked.status == 201
    assert ("10:00-11:00", "Ben") in clinic.taken()


def test_the_pace_counts_a_visit_once_at_its_start(clinic: Clinic) -> None:
    terms = {"max_starts": {"quantity": 1, "per": "1 hour"}, "timeslot_increments": "30 mins"}
    clinic.tenant.put(f"/projects/{clinic.project}", {"availability": terms})

    first = clinic.book("09:00", "10:30")  # its second step begins at 09:30
    too_soon = clinic.book("09:30", "11:00")
    offered = [start for start, *_ in clinic.offered("08:00", "12:00")]
    held = {"project_id": clinic.project, **span("10:00", "11:30")}
    second = clinic.tenant.post("/bookings/reserve", held)
    left = [start for start, *_ in clinic.offered("08:00", "13:00")]

    assert (first.status, too_soon.status, second.status) == (201, 409, 201)
    assert [each["text"] for each in too_soon.error["reasons"]] == [
        "At most 1 bookings start within 60 minutes."
    ]
    assert (offered, left) == (["08:00", "10:00", "10:30"], ["08:00", "11:00", "11:30"])


def test_cancelling_frees_all_steps(clinic: Clinic) -> None:
    booking = clinic.book("09:00", "10:30").data["id"]

    clinic.tenant.post(f"/bookings/{booking}/cancel", {})

    assert clinic.taken() == []


def test_a_visit_to_confirm_takes_its_time_when_it_is_confirmed(clinic: Clinic) -> None:
    tenant = clinic.tenant
    graph = {"graph": "confirm_decline"}
    first, second = (clinic.book("09:00", "10:30", **graph).data["id"] for _ in range(2))
    before = clinic.taken()
    for name in ("Henk", "Ben"):
        clinic.close(name, "09:00", "10:30")

    statuses = [tenant.post(f"/bookings/{each}/confirm", {}).status for each in (first, second)]

    assert (before, statuses) == ([], [200, 409])
    assert [name for _, name in clinic.taken()] == ["Ben", "Hanna", "Henk", "Room 1", "Ada"]


def test_a_hold_of_a_visit_is_booked(clinic: Clinic) -> None:
    tenant = clinic.tenant
    times = span("09:00", "10:30")

    hold = tenant.post("/bookings/reserve", {"project_id": clinic.project, **times})
    for name in ("Henk", "Ben"):
        clinic.close(name, "09:00", "10:30")
    refused = clinic.book("09:00", "10:30")
    other_time = clinic.book("09:00", "10:00", reservation_id=hold.data["reservation_id"])
    booked = clinic.book("09:00", "10:30", reservation_id=hold.data["reservation_id"])

    assert (hold.status, hold.data["start"], hold.data["end"]) == (201, *times.values())
    assert [each.status for each in (refused, other_time, booked)] == [409, 422, 201]
    assert ("09:30-10:30", "Ada") in clinic.taken()


def test_a_visit_moves_as_a_whole(clinic: Clinic) -> None:
    booking = clinic.book("09:00", "10:30").data["id"]
    clinic.close("Ada", "12:00", "13:30")

    answer = clinic.tenant.post(f"/bookings/{booking}/reschedule", span("12:00", "13:30"))

    assert answer.status == 200
    assert clinic.taken() == [
        ("12:00-13:30", "Ada"),
        ("12:00-12:30", "Hanna"),
        ("12:00-12:30", "Room 1"),
        ("12:30-13:30", "Ben"),
    ]


def test_steps_of_one_resource_keep_no_buffer_between_them(clinic: Clinic) -> None:
    people = clinic.of("Ada")
    steps = [
        {"name": "cut", "length": "30 mins", "resources": people},
        {"name": "dry", "length": "30 mins", "resources": people},
    ]
    terms = {"availability": {"buffer": "15 mins"}, "settings": {"max_per_day": 1}}
    project = clinic.make_project(steps, **terms)
    graph = {"graph": "confirm_decline"}

    booked = clinic.tenant.book(project_id=project, **span("09:00", "10:00"), **graph)
    path = f"/bookings/{booked.data['id']}"
    confirmed = clinic.tenant.post(f"{path}/confirm", {})
    moved = clinic.tenant.post(f"{path}/reschedule", span("11:00", "12:00"))
    second = clinic.tenant.book(project_id=project, **span("13:00", "14:00"))

    assert [each.status for each in (booked, confirmed, moved, second)] == [201, 200, 200, 409]
    assert clinic.taken() == [("11:00-11:30", "Ada"), ("11:30-12:00", "Ada")]


def test_one_step_moves_within_its_gaps(clinic: Clinic) -> None:
    booking = clinic.book("09:00", "10:30").data["id"]
    path = f"/bookings/{booking}/reschedule"

    later = clinic.tenant.post(path, {"step": "check-up", "start": clock_time("10:15")})
    too_late = clinic.tenant.post(path, {"step": "check-up", "start": clock_time("10:45")})
    other = clinic.tenant.post(
        path, {"step": "check-up", "resources": {"check-up": clinic.ids["Ben"]}}
    )
    unknown = clinic.tenant.post(path, {"step": "x-ray", "start": clock_time("10:45")})

    assert [each.status for each in (later, too_late, other, unknown)] == [200, 409, 200, 422]
    assert [reason["text"] for reason in too_late.json["reasons"]] == [
        'The step "check-up" must start 0 to 60 minutes after the step before it.'
    ]
    assert clinic.taken() == [
        ("09:00-09:30", "Hanna"),
        ("09:00-09:30", "Room 1"),
        ("10:15-11:15", "Ben"),
    ]
    record = clinic.tenant.get(f"/bookings/{booking}?include=event").data
    assert record["event"]["end"] == clock_time("11:15")


def test_an_extended_hold_of_a_visit_keeps_each_step(clinic: Clinic) -> None:
    tenant = clinic.tenant
    tenant.set_public_limits()
    widget = tenant.widget()
    body = {"project_id": clinic.project, **span("09:00", "10:30")}
    hold = widget.post("/bookings/reserve", body).data["reservation_id"]
    clinic.close("Ada", "09:00", "09:30")
    clinic.close("Hanna", "09:30", "10:30")

    extended = widget.put("/bookings/reserve/extend", {"reservation_id": hold})

    assert (extended.status, extended.data["end"]) == (200, clock_time("10:30"))


def test_a_refused_move_offers_times_of_the_whole_visit(clinic: Clinic) -> None:
    booking = clinic.book("09:00", "10:30").data["id"]
    for name in ("Hanna", "Henk"):
        clinic.close(name, "12:00", "13:00")
    path = f"/bookings/{booking}/reschedule"

    refused = clinic.tenant.post(path, {"step": "cleaning", "start": clock_time("09:45")})
    taken = clinic.tenant.post(path, span("12:00", "13:30"))

    assert [each.status for each in (refused, taken)] == [409, 409]
    assert taken.json["code"] == "slot_taken"


def test_a_group_is_no_visit(clinic: Clinic) -> None:
    answer = clinic.book("09:00", "10:30", graph="group_owner", settings={"max_seats": 3})

    assert (answer.status, list(answer.json["errors"])) == (422, ["graph"])


def test_steps_of_a_request(clinic: Clinic) -> None:
    steps = [
        {"name": "cut", "length": "30 mins", "resources": clinic.of("Ada", "Ben")},
        {"name": "colour", "length": "30 mins", "resources": clinic.of("Hanna")},
        {
            "name": "dry",
            "length": "15 mins",
            "resources": clinic.of("Ben", "Ada"),
            "same_as": "cut",
        },
    ]
    clinic.close("Ada", "10:00", "10:15")
    body = {"steps": steps, "order": "given"}
    hours = {"from": clock_time("09:00"), "to": clock_time("10:15")}

    (slot,) = clinic.tenant.post("/availability", {**body, **hours}).data
    booked = clinic.tenant.book(**body, start=slot["start"], end=slot["end"])
    moved = clinic.tenant.post(f"/bookings/{booked.data['id']}/reschedule", span("11:00", "12:15"))

    assert (booked.status, moved.status) == (201, 200)
    assert clinic.taken() == [
        ("10:00-10:15", "Ada"),
        ("11:00-11:30", "Ben"),
        ("11:30-12:00", "Hanna"),
        ("12:00-12:15", "Ben"),
    ]


def test_steps_in_any_order(clinic: Clinic) -> None:
    steps = [
        {"name": "blood", "length": "30 mins", "resources": clinic.of("Hanna")},
        {"name": "x-ray", "length": "30 mins", "resources": clinic.of("Ada")},
    ]
    clinic.close("Hanna", "09:00", "09:30")
    hours = {"from": clock_time("09:00"), "to": clock_time("10:00")}

    given = clinic.tenant.post("/availability", {"steps": steps, **hours}).data
    (slot,) = clinic.tenant.post("/availability", {"steps": steps, "order": "any", **hours}).data

    assert given == []
    assert [step["name"] for step in slot["steps"]] == ["x-ray", "blood"]


def test_explain_shows_when_each_step_could_start(clinic: Clinic) -> None:
    for name in ("Ada", "Ben"):
        clinic.close(name, "09:30", "10:00")
    hours = {"from": clock_time("09:00"), "to": clock_time("11:00")}

    answer = clinic.tenant.post("/availability/explain", {"project_id": clinic.project, **hours})

    assert answer.json["steps"] == [
        {
            "name": "cleaning",
            "starts": [{"start": clock_time("09:00"), "end": f"{DAY}T10:30:01+00:00"}],
        },
        {
            "name": "check-up",
            "starts": [{"start": clock_time("10:00"), "end": f"{DAY}T10:00:01+00:00"}],
        },
    ]


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"steps": []}, "steps"),
        ({"steps": [{"name": "a", "length": "1 hour", "resources": []}] * 2}, "steps.0.resources"),
        ({"order": "random"}, "order"),
    ],
)
def test_wrong_steps_are_refused(clinic: Clinic, change: Any, path: str) -> None:
    answer = clinic.tenant.put(f"/projects/{clinic.project}", change)

    assert answer.status == 422
    assert path in answer.json["errors"]


@pytest.mark.parametrize(
    ("second", "path"),
    [
        ({"length": None}, "steps.1.length"),
        ({"resources": None}, "steps.1.resources"),
        ({"requires": [{"name": "a", "any_of": {"tags": ["t"]}}]}, "steps.1.requires"),
        ({"same_as": "check-up"}, "steps.1.same_as"),
        ({"name": "cleaning"}, "steps"),
        ({"gap": {"min": "2 hours", "max": "1 hour"}}, "steps.1.gap.max"),
        ({"resources": ["01a1f84a-95c0-8000-800d-abcfa11ac8c6"]}, "steps.1.resources.0"),
    ],
)
def test_a_wrong_step_is_refused(clinic: Clinic, second: Any, path: str) -> None:
    steps = [clinic.steps[0], {**clinic.steps[1], **second}]

    answer = clinic.tenant.put(f"/projects/{clinic.project}", {"steps": steps})

    assert (answer.status, list(answer.json["errors"])) == (422, [path])


def test_resources_and_requirements_exclude_steps(clinic: Clinic) -> None:
    path = f"/projects/{clinic.project}"
    requires = [{"name": "a", "any_of": clinic.of("Ada")}]

    answers = [
        clinic.tenant.put(path, {"resources": clinic.of("Ada")}),
        clinic.tenant.put(path, {"requires": requires}),
        clinic.tenant.put(path, {"availability": {"mode": "mutual"}}),
        clinic.tenant.put(path, {"steps": None, "requires": requires}),
    ]

    assert [each.status for each in answers] == [422, 422, 422, 200]
    assert clinic.tenant.get(path).data["resources"] == clinic.of("Ada")


def test_recipe_of_the_guide(tenant: Tenant) -> None:
    for tag, name in (("hygienist", "Hanna"), ("room", "Room"), ("dentist", "Ada")):
        tenant.make_resource(name, tags=[tag])
    answers = []
    project = ""
    for request in block_of_guide("json visit").strip().split("\n\n"):
        line, _, body = request.partition("\n")
        sent = json.loads(body.replace("<project id>", project))
        answers.append(tenant.post(line.removeprefix("POST /v2"), sent))
        if "projects" in line:
            project = answers[-1].data["id"]

    assert [answer.status for answer in answers] == [201, 200, 201]
    slot = answers[1].data[0]
    assert [step["name"] for step in slot["steps"]] == ["cleaning", "check-up"]
    assert Event.objects.filter(busy=True).count() == 3


def test_resources_of_another_app_are_unknown(clinic: Clinic, make_tenant: Any) -> None:
    foreign = make_tenant().make_resource("Eve")["id"]
    steps = [clinic.steps[0], {**clinic.steps[1], "resources": [foreign]}]
    times = span("09:00", "10:30")
    booking = clinic.book("12:00", "13:30")
    before = clinic.taken()
    path = f"/bookings/{booking.data['id']}/reschedule"

    answers = [
        clinic.tenant.put(f"/projects/{clinic.project}", {"steps": steps}),
        clinic.tenant.post("/availability", {"steps": steps}),
        clinic.tenant.book(steps=steps, **times),
        clinic.tenant.post("/bookings/reserve", {"steps": steps, **times}),
        clinic.book("09:00", "10:30", resources={"check-up": foreign}),
        clinic.tenant.post(path, {"resources": {"check-up": foreign}}),
        clinic.tenant.book(steps=[{**clinic.steps[0], "name": "a\0b"}, steps[1]], **times),
    ]

    assert [(each.status, list(each.json["errors"])) for each in answers[:6]] == [
        *[(422, ["steps.1.resources.0"])] * 4,
        *[(422, ["resources.check-up"])] * 2,
    ]
    assert answers[6].status in (400, 422)
    assert clinic.taken() == before


def test_query_count_is_constant(clinic: Clinic) -> None:
    tenant = clinic.tenant
    counts = []
    for number in (2, 12):
        people = [tenant.make_resource(f"{number}-{each}")["id"] for each in range(number)]
        steps = [clinic.steps[0], {**clinic.steps[1], "resources": people}]
        body = {"project_id": clinic.make_project(steps)}
        start = f"{6 + number // 2:02}"
        times = span(f"{start}:00", f"{start}:30")
        tenant.book(**body, start=times["start"], end=clock_time(f"{int(start) + 1:02}:30"))
        with Queries(connection) as found:
            offered = tenant.post("/availability", body)
            booked = tenant.book(
                **body,
                start=clock_time(f"{int(start) + 8:02}:00"),
                end=clock_time(f"{int(start) + 9:02}:30"),
            )
        assert (offered.status, booked.status) == (200, 201)
        counts.append(len(found))

    assert counts[0] == counts[1], counts


def test_pages_of_a_customer_name_everybody_of_the_visit(clinic: Clinic) -> None:
    booked = clinic.book("09:00", "10:30", resources={"hygienist": clinic.ids["Henk"]})
    booking = Booking.objects.get(id=booked.data["id"])

    facts = dict(booking_facts(booking, "customer"))

    assert facts["With"] == "Henk, Room 1, Ada"
    assert facts["Steps"] == "09:00 – 09:30 cleaning (Henk, Room 1)\n09:30 – 10:30 check-up (Ada)"
