"""GET /bookings/:id and what `include` adds (sections 2 and 5)."""

from typing import Any

import pytest

from tests.bookings.booking_drafts import MARTY, NINE, answered, entry, links, shown, span
from tests.world import BERLIN, STAMP, Tenant, clock_at_now

pytestmark = pytest.mark.usefixtures("clock")

REMINDER = {
    "type": "webhook",
    "settings": {"url": "https://example.com/x", "method": "put", "expected_response_code": 204},
    "when": {"type": "after", "unit": "days", "time": 1},
}
TIMES = shown("09:00", "10:00")


class BookingScene:
    """A booking with everything, and the records of what belongs to it."""

    def __init__(self, tenant: Tenant) -> None:
        self.tenant = tenant
        booking_scene = tenant.post_resource("Ada", BERLIN, email="ada@example.com")
        self.resource = tenant.get(f"/resources/{booking_scene['id']}").data
        self.calendar = booking_scene["calendars"][0]
        second = tenant.post_resource("Bob")
        self.second = tenant.get(f"/resources/{second['id']}").data
        self.project = tenant.post_project(
            booking_scene["id"],
            second["id"],
            availability={"length": "1 hour"},
            booking={"what": "Check-up"},
            settings={"max_per_day": 9},
            ui={"theme": "dark"},
            meta={"branch": 1},
        )
        self.booking = tenant.post(
            "/bookings",
            {
                **NINE,
                "project_id": self.project["id"],
                "resource_id": booking_scene["id"],
                "where": "Room 2",
                "description": "Words",
                "participants": ["bob@example.com"],
                "customers": [
                    {**MARTY, "phone": "1", "age": 17},
                    {"name": "Doc", "email": "doc@example.com"},
                ],
                "meta": {"a": [1]},
                "event_notifications": [REMINDER],
            },
        ).data
        self.path = f"/bookings/{self.booking['id']}"

    def record(self, ids: Any) -> dict[str, Any]:
        """Every include; ids of event and customers are those of `ids`."""
        customers = [
            {
                "id": ids["customers"][0]["id"],
                "external_id": None,
                **MARTY,
                "phone": "1",
                "voip": "",
                "timezone": "",
                "meta": {"age": 17},
                **{"response": "needs_action", "responded_at": None, "source": None},
            },
            {
                "id": ids["customers"][1]["id"],
                "external_id": None,
                "name": "Doc",
                "email": "doc@example.com",
                "phone": "",
                "voip": "",
                "timezone": "",
                "meta": {},
                **{"response": "needs_action", "responded_at": None, "source": None},
            },
        ]
        details = {
            **TIMES,
            "what": "Check-up",
            "where": "Room 2",
            "description": "Words",
            "calendar_id": self.calendar["id"],
            "participants": ["bob@example.com"],
        }
        names = (
            *("id", "slug", "name", "availability", "booking", "customer_fields", "ui"),
            *("settings", "meta", "created_at", "updated_at"),
        )
        project = {name: self.project[name] for name in names}
        return {
            "attributes": {
                "event_info": {**details, "invite": True},
                "customer": customers[0],
                "settings": {"allow_double_bookings": False, "enforce_availability": True},
                "group_booking": None,
            },
            "event": {
                "id": ids["event"]["id"],
                **details,
                "allDay": False,
                "rsvp": "",
                "busy": True,
                "provider_id": None,
                "created_at": STAMP,
                "updated_at": STAMP,
            },
            "calendar": self.calendar,
            "resource": self.resource,
            "user": self.resource,
            "resources": [self.resource],
            "customers": customers,
            "project": project,
            "meta": {"a": [1]},
            "outcome": None,
            "quantity": 1,
            "party_size": None,
            "place": None,
            "conference": None,
            "logs": [
                {
                    "from_state": "initialized",
                    "to_state": "confirmed",
                    "action": "confirm",
                    "actor": ids["logs"][0]["actor"],
                    "source": "api",
                    "message": "",
                    "created_at": STAMP,
                }
            ],
            "available_actions": ["cancel", "cancel_by_customer", "complete"],
            "customer_action_links": links(self.booking),
            "event_notifications": [REMINDER],
            "owner_booking": None,
            "seats": None,
            "bulked_bookings": [],
            "series": None,
            "provider_event": None,
            "resource.calendars": {**self.resource, "calendars": [self.calendar]},
            "project.resources": {**project, "resources": [self.resource, self.second]},
        }


WHOLE = (
    "attributes",
    "event",
    "calendar",
    "resource",
    "customers",
    "project",
    "meta",
    "outcome",
    "quantity",
    "party_size",
    "place",
    "conference",
    "available_actions",
    "customer_action_links",
    "event_notifications",
)
INCLUDES = (
    *WHOLE,
    *("user", "resources", "logs", "resource.calendars", "project.resources"),
    *("owner_booking", "seats", "bulked_bookings", "series", "provider_event"),
)


def key_of(include: str) -> str:
    return include.partition(".")[0]


@pytest.fixture(scope="module")
def booking_scene_once(module_transaction: None) -> BookingScene:
    with clock_at_now():
        return BookingScene(Tenant("records"))


@pytest.fixture
def booking_scene(db: None, booking_scene_once: BookingScene) -> BookingScene:
    return booking_scene_once


def test_whole_record(booking_scene: BookingScene) -> None:
    answer = booking_scene.tenant.get(booking_scene.path)

    records = booking_scene.record(
        booking_scene.tenant.get(f"{booking_scene.path}?include=logs").data
    )
    expected = entry(booking_scene.booking, "confirmed", **{name: records[name] for name in WHOLE})
    assert (answer.status, answer.json) == (200, {"data": expected})


@pytest.mark.matrix
@pytest.mark.parametrize("include", INCLUDES)
def test_each_include_in_record_listing_and_update(
    booking_scene: BookingScene, include: str
) -> None:
    """On the single record, in the listing, and in the answers of PUT."""
    records = booking_scene.record(
        booking_scene.tenant.get(f"{booking_scene.path}?include=logs").data
    )
    wanted = {key_of(include): records[include]}

    single = booking_scene.tenant.get(f"{booking_scene.path}?include={include}")
    others = [
        booking_scene.tenant.get(f"/bookings?include={include}").data,
        [booking_scene.tenant.put(f"{booking_scene.path}?include={include}", {}).data],
    ]

    expected = {name: records[name] for name in WHOLE} | wanted
    assert single.data == entry(booking_scene.booking, "confirmed", **expected)
    assert others == [
        [entry(booking_scene.booking, "confirmed", **wanted)],
        [answered(booking_scene.booking, "confirmed", **wanted)],
    ]


@pytest.mark.parametrize("include", INCLUDES)
@pytest.mark.matrix
def test_each_include_of_a_new_booking(booking_scene: BookingScene, include: str) -> None:
    """In the answer of POST it is as GET shows it."""
    body = {
        "project_id": booking_scene.project["id"],
        "resource_id": booking_scene.resource["id"],
        "what": "Cleaning",
        "customer": MARTY,
        "event_notifications": [REMINDER],
        **span("11:00", "12:00"),
    }

    answer = booking_scene.tenant.post(f"/bookings?include={include}", body)

    shown_later = booking_scene.tenant.get(f"/bookings/{answer.data['id']}?include={include}").data
    key = key_of(include)
    assert (answer.status, answer.json) == (
        201,
        {"data": answered(answer.data, "confirmed", **{key: shown_later[key]})},
    )


def test_all_includes_at_once(booking_scene: BookingScene) -> None:
    names = ",".join(INCLUDES)

    listed = booking_scene.tenant.get(f"/bookings?include={names}, meta,,meta ").data

    records = booking_scene.record(listed[0])
    expected = {key_of(name): records[name] for name in INCLUDES}
    assert listed == [entry(booking_scene.booking, "confirmed", **expected)]


def test_a_booking_without_a_project(tenant: Tenant) -> None:
    resource = tenant.make_resource()["id"]
    booking = tenant.book(resource_id=resource, **NINE).data

    answers = [
        tenant.get(f"/bookings/{booking['id']}?include={include}").data["project"]
        for include in ("project", "project.resources")
    ]

    assert answers == [None, None]


@pytest.mark.parametrize(
    ("include", "unknown"),
    [
        ("everything", "everything"),
        ("meta,everything,else", "everything"),
        ("calendar.resource", "calendar.resource"),
        ("resource.availability_constraints", "resource.availability_constraints"),
        ("customers.meta", "customers.meta"),
        ("Meta", "Meta"),
    ],
)
def test_unknown_includes(booking_scene: BookingScene, include: str, unknown: str) -> None:
    answers = [
        booking_scene.tenant.get(f"{path}?include={include}")
        for path in (booking_scene.path, "/bookings")
    ]

    assert [(answer.status, answer.json["errors"]) for answer in answers] == [
        (422, {"include": [f"{unknown} can't be included."]})
    ] * 2


@pytest.mark.parametrize(
    ("header", "times"),
    [
        ({}, TIMES),
        (
            {"Service-Timezone": BERLIN},
            {"start": "2026-11-23T10:00:00+01:00", "end": "2026-11-23T11:00:00+01:00"},
        ),
        (
            {"Timekit-Timezone": "America/New_York"},
            {"start": "2026-11-23T04:00:00-05:00", "end": "2026-11-23T05:00:00-05:00"},
        ),
    ],
)
def test_times_are_in_the_requested_zone(
    booking_scene: BookingScene, header: dict[str, str], times: dict[str, str]
) -> None:
    """Stamps stay in UTC."""
    answers = [
        booking_scene.tenant.get(booking_scene.path, **header).data,
        booking_scene.tenant.get("/bookings?include=attributes,event", **header).data[0],
        booking_scene.tenant.put(
            f"{booking_scene.path}?include=attributes,event", {}, **header
        ).data,
    ]

    for answer in answers:
        info, event = answer["attributes"]["event_info"], answer["event"]
        assert {key: info[key] for key in times} == times
        assert {key: event[key] for key in times} == times
        assert answer["created_at"] == event["created_at"] == STAMP


@pytest.mark.parametrize("prefix", ["Service", "Timekit"])
def test_timestamp_format_headers_are_ignored(booking_scene: BookingScene, prefix: str) -> None:
    """The headers of that API that ask for one are taken and change nothing."""
    names = ("InputTimestampFormat", "OutputTimestampFormat")
    headers = {f"{prefix}-{name}": "m/d/Y h:ia" for name in names}

    answers = [
        booking_scene.tenant.get(booking_scene.path, **headers),
        booking_scene.tenant.put(booking_scene.path, {}, **headers),
    ]

    assert [(answer.status, answer.json) for answer in answers] == [
        (200, booking_scene.tenant.get(booking_scene.path).json),
        (200, {"data": answered(booking_scene.booking, "confirmed")}),
    ]


def test_deleted_resource_and_project_are_shown_with_their_booking(
    tenant: Tenant, clock: Any
) -> None:
    """A booking of the past keeps its resource, calendar and project."""
    resource = tenant.post_resource("Ada")
    project = tenant.post_project(resource["id"])
    booking = tenant.book(project_id=project["id"], **NINE).data
    tenant.put(f"/bookings/{booking['id']}/cancel")
    tenant.delete(f"/projects/{project['id']}")
    tenant.delete(f"/resources/{resource['id']}")

    found = tenant.get(f"/bookings/{booking['id']}?include=project.resources").data

    assert (found["resource"]["name"], found["calendar"]["name"]) == ("Ada", "Bookings")
    assert (found["project"]["name"], found["project"]["resources"]) == ("Check-up", [])


def test_removed_calendars_are_not_included(tenant: Tenant, clock: Any) -> None:
    resource = tenant.post_resource()
    clock.shift(1)
    second = tenant.post("/calendars", {"name": "B", "resource_id": resource["id"]}).data
    booking = tenant.book(resource_id=resource["id"], **NINE).data
    tenant.delete(f"/calendars/{second['id']}")

    found = tenant.get(f"/bookings/{booking['id']}?include=resource.calendars").data

    assert found["resource"]["calendars"] == resource["calendars"]
