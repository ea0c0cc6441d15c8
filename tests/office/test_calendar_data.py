"""What the calendar reads and writes: its JSON views."""

import json
import uuid
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from apps_config.models import Account
from availability.models import Calendar
from bookings.models import Booking
from tests.bookings.group_world import make_group, seat_in
from tests.office.conftest import WORKDAYS, logged_in, member_of
from tests.queries import Queries
from tests.world import BERLIN, Tenant

pytestmark = pytest.mark.usefixtures("clock")

WEEK = {"start": "2026-11-23", "end": "2026-11-30"}
EVENTS = "/admin/calendar/events"
NEW = "/admin/calendar/bookings"


@pytest.fixture
def ada(tenant: Tenant) -> Any:
    return tenant.make_resource("Ada", timezone=BERLIN, availability_constraints=WORKDAYS)


@pytest.fixture
def editor(tenant: Tenant) -> Client:
    return logged_in(member_of(tenant, "editor"))


@pytest.fixture
def viewer(tenant: Tenant) -> Client:
    return logged_in(member_of(tenant, "viewer"))


@pytest.fixture
def stranger(make_tenant: Any) -> Client:
    return logged_in(member_of(make_tenant(), "owner"))


def read(client: Client, *resources: Any, **given: str) -> Any:
    ids = ",".join(resource["id"] for resource in resources)
    return client.get(EVENTS, {**WEEK, "resources": ids, **given})


def post(client: Client, path: str, body: Any) -> Any:
    return client.post(path, json.dumps(body), content_type="application/json")


def move(client: Client, booking_id: str, **body: Any) -> Any:
    return post(client, f"{NEW}/{booking_id}/move", body)


def book(tenant: Tenant, resource: Any, start: str, end: str, **given: Any) -> Any:
    answer = tenant.book(resource_id=resource["id"], start=start, end=end, **given)
    assert answer.status == 201, answer.json
    return answer.data


def error_of(answer: Any) -> Any:
    body = answer.json()
    return answer.status_code, {key: body[key] for key in body if key != "request_id"}


# --- What is shown --------------------------------------------------------------------------------
def test_whole_booking_event(tenant: Tenant, ada: Any, editor: Client) -> None:
    booking = book(tenant, ada, "2026-11-24 10:00:00", "2026-11-24 10:30:00")
    event_id = Booking.objects.get().event_id

    answer = read(editor, ada)

    assert answer.status_code == 200
    assert answer.json()["data"]["events"] == [
        {
            "id": f"event-{event_id}",
            "resourceIds": [ada["id"]],
            "start": "2026-11-24T10:00:00",
            "end": "2026-11-24T10:30:00",
            "title": "Meeting · Marty McFly",
            "classNames": ["is-confirmed"],
            "startEditable": True,
            "durationEditable": True,
            "extendedProps": {
                "start": "2026-11-24T10:00:00",
                "end": "2026-11-24T10:30:00",
                "time": "Tue 24 Nov 2026, 10:00 to 10:30",
                "resource": "Ada",
                "state": "confirmed",
                "words": "confirmed",
                "url": f"/admin/bookings/booking/{booking['id']}/change/",
                "booking": booking["id"],
            },
        }
    ]
    assert answer.json()["data"]["cut"] is False


def shown(answer: Any) -> list[tuple[Any, ...]]:
    return [
        (one["title"], one["extendedProps"]["words"], one["start"], one["startEditable"])
        for one in answer.json()["data"]["events"]
    ]


def test_bookings_show_taken_places_of_the_capacity(tenant: Tenant, editor: Client) -> None:
    """Touching, nested, cancelled ones, a hold; one of a resource without capacity."""
    pool = tenant.make_resource("Pool", timezone=BERLIN, capacity=12)
    room = tenant.make_resource("Room", timezone=BERLIN)
    day = "2026-11-24"
    for start, end in (("09", "12"), ("10", "11"), ("11", "12"), ("13", "14"), ("15", "16")):
        book(tenant, pool, f"{day} {start}:00:00", f"{day} {end}:00:00")
    gone = book(tenant, pool, f"{day} 10:00:00", f"{day} 11:00:00")
    tenant.put(f"/bookings/{gone['id']}/cancel")
    book(tenant, room, f"{day} 10:00:00", f"{day} 11:00:00")
    hold = {"start": f"{day} 13:30:00", "end": f"{day} 14:30:00", "reservation_time": 60}
    assert tenant.post("/bookings/reserve", {**hold, "resource_id": pool["id"]}).status == 201

    found = shown(read(editor, pool, room))

    assert sorted((start[11:13], title, state) for title, state, start, _ in found) == [
        ("09", "Meeting · Marty McFly (2 of 12 places)", "confirmed"),
        ("10", "Meeting · Marty McFly", "cancelled"),
        ("10", "Meeting · Marty McFly", "confirmed"),
        ("10", "Meeting · Marty McFly (2 of 12 places)", "confirmed"),
        ("11", "Meeting · Marty McFly (2 of 12 places)", "confirmed"),
        ("13", "Held", "hold"),
        ("13", "Meeting · Marty McFly (2 of 12 places)", "confirmed"),
        ("15", "Meeting · Marty McFly (1 of 12 places)", "confirmed"),
    ]


def test_events_of_every_kind(tenant: Tenant, ada: Any, editor: Client) -> None:
    """Bookings in every state, groups with their seats, events made by hand, holds; not what lies
    outside the range."""
    calendar = ada["calendars"][0]["id"]
    book(
        tenant, ada, "2026-11-23 09:00:00", "2026-11-23 10:00:00", graph="confirm_decline"
    )  # asked for
    gone = book(tenant, ada, "2026-11-24 09:00:00", "2026-11-24 10:00:00")
    tenant.put(f"/bookings/{gone['id']}/cancel")
    group = make_group(tenant, ada, start="2026-11-25 09:00:00", end="2026-11-25 10:00:00")
    seat_in(tenant, group)
    tenant.make_event(calendar, "2026-11-26 09:00:00", "2026-11-26 10:00:00", what="Congress")
    tenant.make_event(
        calendar, "2026-11-26 11:00:00", "2026-11-26 12:00:00", what="Lunch", busy=False
    )
    tenant.make_event(calendar, "2026-11-27", "2026-11-28", what="Away", all_day=True)
    hold = {"start": "2026-11-25 13:00:00", "end": "2026-11-25 14:00:00", "reservation_time": 60}
    assert tenant.post("/bookings/reserve", {**hold, "resource_id": ada["id"]}).status == 201
    book(tenant, ada, "2026-11-30 00:00:00", "2026-11-30 01:00:00")

    found = shown(read(editor, ada))

    assert sorted(found, key=lambda one: one[2]) == [
        ("Meeting · Marty McFly", "pending", "2026-11-23T09:00:00", True),
        ("Meeting · Marty McFly", "cancelled", "2026-11-24T09:00:00", False),
        ("Yoga (1 of 2)", "takes place", "2026-11-25T09:00:00", True),
        ("Held", "hold", "2026-11-25T13:00:00", False),
        ("Congress", "event", "2026-11-26T09:00:00", False),
        ("Lunch", "shown as free", "2026-11-26T11:00:00", False),
        ("Away", "event", "2026-11-27", False),
    ]


def test_expired_hold_is_not_shown(tenant: Tenant, ada: Any, editor: Client, clock: Any) -> None:
    hold = {"start": "2026-11-25 13:00:00", "end": "2026-11-25 14:00:00", "reservation_time": 60}
    tenant.post("/bookings/reserve", {**hold, "resource_id": ada["id"]})
    before = shown(read(editor, ada))

    clock.shift(60)

    assert (len(before), shown(read(editor, ada))) == (1, [])


def test_mutual_booking_is_shown_for_both_resources(
    tenant: Tenant, ada: Any, editor: Client
) -> None:
    bob = tenant.make_resource("Bob", timezone=BERLIN)
    project = tenant.make_project(ada["id"], bob["id"], availability={"mode": "mutual"})
    times = {"start": "2026-11-24 10:00:00", "end": "2026-11-24 11:00:00"}
    booking = tenant.book(project_id=project["id"], **times).data

    events = read(editor, ada, bob).json()["data"]["events"]

    assert [
        (
            event["extendedProps"]["resource"],
            event["extendedProps"]["booking"],
            event["startEditable"],
        )
        for event in events
    ] == [("Ada", booking["id"], True), ("Bob", booking["id"], False)]


def shades(answer: Any) -> list[tuple[str, str, str]]:
    return [
        (one["classNames"][0], one["start"], one["end"])
        for one in answer.json()["data"]["background"]
    ]


def test_closed_time_follows_the_rules(tenant: Tenant, ada: Any, editor: Client) -> None:
    book(tenant, ada, "2026-11-23 10:00:00", "2026-11-23 11:00:00")  # taken is not closed

    assert shades(read(editor, ada, start="2026-11-23", end="2026-11-25")) == [
        ("is-closed", "2026-11-23T00:00:00", "2026-11-23T09:00:00"),
        ("is-closed", "2026-11-23T17:00:00", "2026-11-24T09:00:00"),
        ("is-closed", "2026-11-24T17:00:00", "2026-11-25T00:00:00"),
    ]


def test_closed_time_in_another_zone(tenant: Tenant, ada: Any, editor: Client) -> None:
    answer = read(editor, ada, start="2026-11-23", end="2026-11-24", zone="America/New_York")

    assert shades(answer) == [
        ("is-closed", "2026-11-23T00:00:00", "2026-11-23T03:00:00"),
        ("is-closed", "2026-11-23T11:00:00", "2026-11-24T00:00:00"),
    ]


@pytest.mark.parametrize("zone", [{}, {"zone": "America/New_York"}])
def test_stale_calendar_closes_time_if_set(
    tenant: Tenant, ada: Any, editor: Client, zone: dict[str, str]
) -> None:
    """As /availability/explain and "Why not?" have it; what is booked is drawn all the same."""
    bob = tenant.make_resource("Bob", timezone=BERLIN, availability_constraints=WORKDAYS)
    book(tenant, ada, "2026-11-23 10:00:00", "2026-11-23 11:00:00")
    calendar = Calendar.objects.create(
        app=tenant.app, resource_id=ada["id"], name="Work", provider="caldav"
    )
    days = {"start": "2026-11-23", "end": "2026-11-24", **zone}
    warned = read(editor, ada, bob, **days).json()["data"]

    tenant.put(f"/apps/{tenant.app.slug}", {"settings": {"stale_calendars": "block"}})
    answer = read(editor, ada, bob, **days)
    found = answer.json()["data"]
    told = tenant.post(
        "/availability/explain",
        {"resources": [ada["id"]], "from": "2026-11-23 00:00:00", "to": "2026-11-24 00:00:00"},
    ).data[0]["segments"]

    of_bob = [one for one in warned["background"] if one["resourceIds"] == [bob["id"]]]
    assert (len(warned["background"]), len(of_bob), warned["late"]) == (4, 2, [])
    assert found["background"] == [
        {
            "display": "background",
            "resourceIds": [ada["id"]],
            "start": "2026-11-23T00:00:00",
            "end": "2026-11-24T00:00:00",
            "classNames": ["is-closed"],
        },
        *of_bob,
    ]
    assert found["late"] == [
        {
            "resource": "Ada",
            "text": 'The external calendar "Work" has never synced.',
            "url": f"/admin/availability/calendar/{calendar.pk}/change/",
        }
    ]
    assert {found["late"][0]["text"]} == {
        reason["text"]
        for segment in told
        for reason in segment["reasons"]
        if reason["type"] == "calendar"
    }
    assert (found["events"], len(found["events"])) == (warned["events"], 1)


def test_a_day_of_23_hours_and_one_of_25(tenant: Tenant, ada: Any, editor: Client) -> None:
    spring = shades(read(editor, ada, start="2030-03-31", end="2030-04-01"))
    autumn = shades(read(editor, ada, start="2030-10-27", end="2030-10-28"))

    assert spring == [
        ("is-closed", "2030-03-31T00:00:00", "2030-03-31T02:00:00"),
        ("is-closed", "2030-03-31T03:00:00", "2030-04-01T00:00:00"),
        ("is-skipped", "2030-03-31T02:00:00", "2030-03-31T03:00:00"),
    ]
    assert autumn == [
        ("is-closed", "2030-10-27T00:00:00", "2030-10-27T03:00:00"),
        ("is-closed", "2030-10-27T02:00:00", "2030-10-28T00:00:00"),
    ]


def test_times_are_in_the_zone_of_each_resource(tenant: Tenant, ada: Any, editor: Client) -> None:
    eve = tenant.make_resource("Eve", timezone="America/New_York")
    instant = {"start": "2026-11-24T12:00:00Z", "end": "2026-11-24T13:00:00Z"}
    for one in (ada, eve):
        book(tenant, one, **instant)

    own = [one["start"] for one in read(editor, ada, eve).json()["data"]["events"]]
    asked = read(editor, ada, eve, zone="Asia/Kolkata").json()["data"]["events"]

    assert sorted(own) == ["2026-11-24T07:00:00", "2026-11-24T13:00:00"]
    assert [one["start"] for one in asked] == ["2026-11-24T17:30:00"] * 2


@pytest.mark.parametrize("count", [1, 3, pytest.param(30, marks=pytest.mark.deep)])
def test_query_count_is_constant(tenant: Tenant, ada: Any, editor: Client, count: int) -> None:
    others = [tenant.make_resource(f"Bob {number}", timezone=BERLIN) for number in range(4)]
    chosen = [ada, *others][: min(count, 5)]
    for number in range(count):
        hour = f"2026-11-2{3 + number // 10} {9 + number % 10:02}"
        book(tenant, chosen[number % len(chosen)], f"{hour}:00:00", f"{hour}:30:00")

    with Queries(connection) as queries:
        answer = read(editor, *chosen)

    assert len(answer.json()["data"]["events"]) == count
    assert len(queries) == QUERIES, [query["sql"][:200] for query in queries]


QUERIES = 12
PAGE_QUERIES = 11


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"start": "2026-11-23", "end": "2026-11-23"}, "end"),
        ({"start": "2026-11-23", "end": "2027-01-05"}, "end"),
        ({"start": "soon"}, "start"),
        ({"end": ""}, "end"),
        ({"zone": "Mars/Olympus"}, "zone"),
    ],
)
def test_wrong_query_parameters_are_refused(
    ada: Any, editor: Client, given: dict[str, str], path: str
) -> None:
    answer = read(editor, ada, **given)

    assert (answer.status_code, list(answer.json()["errors"])) == (422, [path])


# --- Whose ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("ids", ["", "x", str(uuid.UUID(int=7)), ",".join(["0" * 32] * 11)])
def test_unknown_resource_is_404(editor: Client, ids: str) -> None:
    assert editor.get(EVENTS, {**WEEK, "resources": ids}).status_code == 404


def test_members_of_other_apps_get_404(tenant: Tenant, ada: Any, stranger: Client) -> None:
    booking = book(tenant, ada, "2026-11-24 10:00:00", "2026-11-24 10:30:00")
    times = {"start": "2026-11-24T11:00", "end": "2026-11-24T12:00"}

    answers = [
        read(stranger, ada),
        stranger.get("/admin/calendar/", {"resources": ada["id"]}),
        stranger.get("/admin/calendar/", {"app": tenant.app.slug}),
        move(stranger, booking["id"], **times),
        post(stranger, NEW, {"resource_id": ada["id"], "what": "Theft", **times}),
    ]

    assert [answer.status_code for answer in answers] == [404] * 5
    page = stranger.get("/admin/calendar/").content.decode()
    assert (ada["id"] in page, tenant.app.slug in page) == (False, False)
    assert Booking.objects.get().event.start.isoformat() == "2026-11-24T09:00:00+00:00"


def test_resources_of_two_apps_are_404(tenant: Tenant, make_tenant: Any, ada: Any) -> None:
    other = make_tenant().make_resource("Eve")
    staff = logged_in(Account.objects.create_superuser("staff@example.com", "x" * 12))

    answers = [read(staff, ada), read(staff, other), read(staff, ada, other)]

    assert [answer.status_code for answer in answers] == [200, 200, 404]


def test_staff_without_permission_get_403(tenant: Tenant, ada: Any) -> None:
    account = Account.objects.create_user("clerk@example.com", "x" * 12, is_staff=True)

    assert read(logged_in(account), ada).status_code == 403


def test_viewer_reads_but_cannot_change(tenant: Tenant, ada: Any, viewer: Client) -> None:
    booking = book(tenant, ada, "2026-11-24 10:00:00", "2026-11-24 10:30:00")
    times = {"start": "2026-11-24T11:00", "end": "2026-11-24T12:00"}

    answers = [
        move(viewer, booking["id"], **times),
        post(viewer, NEW, {"resource_id": ada["id"], **times}),
    ]

    assert [answer.status_code for answer in answers] == [403, 403]
    assert [one["startEditable"] for one in read(viewer, ada).json()["data"]["events"]] == [False]
    assert "New booking</button>" not in viewer.get("/admin/calendar/").content.decode()


@pytest.mark.parametrize("path", [NEW, f"{NEW}/{uuid.UUID(int=1)}/move"])
def test_changes_need_a_csrf_token(tenant: Tenant, editor: Client, path: str) -> None:
    checked = Client(enforce_csrf_checks=True)
    checked.cookies = editor.cookies

    assert editor.get(path).status_code == 405
    assert post(checked, path, {}).status_code == 403


def test_anonymous_request_is_redirected_to_log_in(client: Client, ada: Any) -> None:
    assert read(client, ada).status_code == 302


# --- Moving ---------------------------------------------------------------------------------------
def test_reschedule_keeps_the_length_and_is_logged(
    tenant: Tenant, ada: Any, editor: Client
) -> None:
    booking = book(tenant, ada, "2026-11-24 10:00:00", "2026-11-24 10:45:00")

    answer = move(editor, booking["id"], start="2026-11-25T14:00:00")

    assert answer.json() == {
        "data": {
            "start": "2026-11-25T14:00:00+01:00",
            "end": "2026-11-25T14:45:00+01:00",
            "text": "Wed 25 Nov 2026, 14:00 to 14:45",
            "resource": "",
            "was": {
                "start": "2026-11-24T09:00:00+00:00",
                "end": "2026-11-24T09:45:00+00:00",
                "resource_id": ada["id"],
            },
        }
    }
    step = Booking.objects.get().logs.last()
    assert (step.action, step.actor, step.source) == (
        "reschedule",
        f"editor@{tenant.app.slug}.example.com",
        "admin",
    )


def test_undo_of_a_reschedule(tenant: Tenant, ada: Any, editor: Client) -> None:
    booking = book(tenant, ada, "2026-11-24 10:00:00", "2026-11-24 10:45:00")
    was = move(editor, booking["id"], start="2026-11-25T14:00:00").json()["data"]["was"]

    assert move(editor, booking["id"], **was).status_code == 200
    assert Booking.objects.get().event.start.isoformat() == "2026-11-24T09:00:00+00:00"


def test_reschedule_to_another_resource_in_its_zone(
    tenant: Tenant, ada: Any, editor: Client
) -> None:
    eve = tenant.make_resource("Eve", timezone="America/New_York")
    booking = book(tenant, ada, "2026-11-24 10:00:00", "2026-11-24 10:45:00")

    answer = move(editor, booking["id"], start="2026-11-25T14:00:00", resource_id=eve["id"])

    assert answer.json()["data"]["start"] == "2026-11-25T14:00:00-05:00"
    assert str(Booking.objects.get().resource_id) == eve["id"]


def test_reschedule_to_a_foreign_resource_is_refused(
    tenant: Tenant, make_tenant: Any, ada: Any, editor: Client
) -> None:
    other = make_tenant().make_resource("Eve")
    booking = book(tenant, ada, "2026-11-24 10:00:00", "2026-11-24 10:45:00")

    answer = move(editor, booking["id"], start="2026-11-25T14:00", resource_id=other["id"])

    assert error_of(answer) == (
        422,
        {
            "error": "resource_id: There is no such resource.",
            "code": "invalid",
            "errors": {"resource_id": ["There is no such resource."]},
        },
    )


def test_taken_time_offers_alternatives(tenant: Tenant, ada: Any, editor: Client) -> None:
    book(tenant, ada, "2026-11-24 10:00:00", "2026-11-24 11:00:00", what="Other")
    booking = book(tenant, ada, "2026-11-24 13:00:00", "2026-11-24 14:00:00")

    answer = move(editor, booking["id"], start="2026-11-24T10:30:00", zone="Europe/London")

    # 10:30 in London is 11:30 in Berlin, which is free; 09:30 there is taken.
    assert answer.status_code == 200
    answer = move(editor, booking["id"], start="2026-11-24T09:30:00", zone="Europe/London")
    status, body = error_of(answer)
    assert (status, body["code"], body["conflicts"]) == (
        409,
        "slot_taken",
        [
            {
                "start": "2026-11-24T09:00:00+00:00",
                "end": "2026-11-24T10:00:00+00:00",
                "text": "Tue 24 Nov 2026, 09:00 to 10:00",
                "day": "Tuesday, 24 November 2026",
                "clock": "09:00",
                "wall_start": "2026-11-24T09:00:00",
                "wall_end": "2026-11-24T10:00:00",
            }
        ],
    )
    assert [one["text"] for one in body["alternatives"]] == [
        "Tue 24 Nov 2026, 11:30 to 12:30",
        "Tue 24 Nov 2026, 12:30 to 13:30",
        "Tue 24 Nov 2026, 13:30 to 14:30",
    ]
    assert Booking.objects.get(id=booking["id"]).event.start.isoformat()[11:16] == "10:30"


def test_rule_of_a_refused_time_is_named(tenant: Tenant, ada: Any, editor: Client) -> None:
    project = tenant.make_project(ada["id"])
    booking = book(
        tenant, ada, "2026-11-24 10:00:00", "2026-11-24 11:00:00", project_id=project["id"]
    )

    status, body = error_of(move(editor, booking["id"], start="2026-11-24T20:00:00"))

    assert (status, body["code"]) == (409, "not_available")
    assert [reason["text"] for reason in body["reasons"]] == [
        "Outside the resource's opening hours: 09:00 to 17:00."
    ]
    assert body["alternatives"][0]["text"] == "Wed 25 Nov 2026, 09:00 to 10:00"


def test_skipped_time_is_refused(tenant: Tenant, ada: Any, editor: Client) -> None:
    booking = book(tenant, ada, "2030-03-30 10:00:00", "2030-03-30 11:00:00")

    answer = move(editor, booking["id"], start="2030-03-31T02:30:00")

    assert (answer.status_code, list(answer.json()["errors"])) == (422, ["start"])


def test_end_in_the_repeated_hour(tenant: Tenant, ada: Any, editor: Client) -> None:
    booking = book(tenant, ada, "2030-10-27T02:45:00+02:00", "2030-10-27T02:50:00+02:00")

    answer = move(editor, booking["id"], start="2030-10-27T02:45:00", end="2030-10-27T02:30:00")

    found = answer.json()["data"]
    assert (found["start"], found["end"]) == (
        "2030-10-27T02:45:00+02:00",
        "2030-10-27T02:30:00+01:00",
    )


def test_start_in_the_repeated_hour_is_kept(tenant: Tenant, ada: Any, editor: Client) -> None:
    booking = book(tenant, ada, "2030-10-27T02:30:00+01:00", "2030-10-27T03:00:00+01:00")

    answer = move(editor, booking["id"], start="2030-10-27T02:30:00", end="2030-10-27T03:30:00")

    found = answer.json()["data"]
    assert (found["start"], found["end"]) == (
        "2030-10-27T02:30:00+01:00",
        "2030-10-27T03:30:00+01:00",
    )


def test_completed_booking_cannot_be_moved(tenant: Tenant, ada: Any, editor: Client) -> None:
    booking = book(tenant, ada, "2026-11-24 10:00:00", "2026-11-24 11:00:00")
    tenant.put(f"/bookings/{booking['id']}/cancel")

    answer = move(editor, booking["id"], start="2026-11-25T10:00:00")

    assert (answer.status_code, answer.json()["code"]) == (409, "action_not_allowed")


@pytest.mark.parametrize("body", [b"[]", b"{", b'{"start": 1, "start": 2}'])
def test_malformed_body_is_refused(tenant: Tenant, ada: Any, editor: Client, body: bytes) -> None:
    booking = book(tenant, ada, "2026-11-24 10:00:00", "2026-11-24 11:00:00")
    path = f"{NEW}/{booking['id']}/move"

    answer = editor.post(path, body, content_type="application/json")

    assert (answer.status_code, answer.json()["code"]) == (400, "malformed")


# --- Booking --------------------------------------------------------------------------------------
MARTY = {"name": "Marty McFly", "email": "marty@example.com", "phone": "555"}


def test_new_booking_is_created_by_the_account(tenant: Tenant, ada: Any, editor: Client) -> None:
    body = {
        "resource_id": ada["id"],
        "start": "2026-11-24T10:00",
        "end": "2026-11-24T10:30",
        "what": "Check-up",
        "graph": "confirm_decline",
        "customer": MARTY,
    }

    answer = post(editor, NEW, body)

    booking = Booking.objects.get()
    step = booking.logs.get()
    assert answer.json() == {
        "data": {
            "id": str(booking.id),
            "state": "tentative",
            "url": f"/admin/bookings/booking/{booking.id}/change/",
            "text": "Tue 24 Nov 2026, 10:00 to 10:30",
            "count": 1,
            "skipped": [],
        }
    }
    assert (step.actor, step.source) == (f"editor@{tenant.app.slug}.example.com", "admin")
    assert list(booking.customers.values_list("name", "email", "phone")) == [
        ("Marty McFly", "marty@example.com", "555")
    ]


def test_project_rules_apply_unless_waived(tenant: Tenant, ada: Any, editor: Client) -> None:
    project = tenant.make_project(ada["id"], booking={"what": "Check-up"})
    body = {
        "resource_id": ada["id"],
        "project_id": project["id"],
        "start": "2026-11-28T10:00",
        "end": "2026-11-28T11:00",
        "customer": MARTY,
    }

    refused = post(editor, NEW, body)
    made = post(editor, NEW, body | {"settings": {"enforce_availability": False}})

    assert (refused.status_code, refused.json()["code"]) == (409, "not_available")
    assert refused.json()["alternatives"][0]["wall_start"] == "2026-11-30T09:00:00"
    assert made.status_code == 200
    assert Booking.objects.get().event.what == "Check-up"


def test_errors_are_at_their_fields(tenant: Tenant, ada: Any, editor: Client) -> None:
    wrong = {
        "resource_id": ada["id"],
        "start": "2026-11-24T10:00",
        "end": "2026-11-24T10:30",
        "what": "Check-up",
        "customer": {"name": "", "email": "nobody", "phone": ""},
    }

    answer = post(editor, NEW, wrong)
    gap = post(editor, NEW, wrong | {"start": "2030-03-31T02:30"})

    assert (answer.status_code, sorted(answer.json()["errors"])) == (
        422,
        ["customer.email", "customer.name"],
    )
    assert (gap.status_code, list(gap.json()["errors"])) == (422, ["start"])
    assert not Booking.objects.exists()


def test_times_in_the_zone_of_the_viewer(tenant: Tenant, ada: Any, editor: Client) -> None:
    body = {
        "resource_id": ada["id"],
        "start": "2026-11-24T10:00",
        "end": "2026-11-24T10:30",
        "zone": "America/New_York",
        "what": "Check-up",
        "customer": MARTY,
    }

    assert post(editor, NEW, body).json()["data"]["text"] == "Tue 24 Nov 2026, 10:00 to 10:30"
    assert Booking.objects.get().event.start.isoformat() == "2026-11-24T15:00:00+00:00"


# --- The page -------------------------------------------------------------------------------------
@pytest.mark.parametrize("count", [1, 3, 60])
def test_query_count_of_the_page_is_constant(tenant: Tenant, editor: Client, count: int) -> None:
    resources = [tenant.make_resource(f"Room {number:02}") for number in range(count)]
    for resource in resources[:3]:
        tenant.make_project(resource["id"], name=resource["name"])
    editor.get("/admin/calendar/")

    with Queries(connection) as queries:
        page = editor.get("/admin/calendar/").content.decode()

    assert len(queries) == PAGE_QUERIES, [query["sql"][:200] for query in queries]
    assert [resource["id"] in page for resource in resources[:3]] == [True] * min(count, 3)
    assert ("find them by name" in page) is (count > 51)


def test_page_remembers_the_chosen_resources(tenant: Tenant, editor: Client) -> None:
    ada, bob = (tenant.make_resource(name) for name in ("Ada", "Bob"))

    first = editor.get("/admin/calendar/").context["chosen"]
    editor.get("/admin/calendar/", {"resources": f"{bob['id']},{ada['id']}"})
    later = editor.get("/admin/calendar/").context["chosen"]

    assert [one.name for one in first] == ["Ada", "Bob"]
    assert [one.name for one in later] == ["Bob", "Ada"]


def test_the_first_visit_shows_ten_resources_of_one_app(
    tenant: Tenant, make_tenant: Any, enter: Any
) -> None:
    for number in range(12):
        tenant.make_resource(f"Room {number:02}")
    other = make_tenant(slug="zoo", name="Zoo")
    other.make_resource("Aquarium")

    chosen = enter().get("/admin/calendar/").context["chosen"]

    assert [row.name for row in chosen] == [f"Room {number:02}" for number in range(10)]


SUNDAY, COMING = "2026-11-29 13:00:00+00:00", "2026-11-30"


@pytest.mark.parametrize(
    ("now", "times", "state", "opens"),
    [
        (SUNDAY, None, "", COMING),
        (SUNDAY, ("12:00", "13:00"), "", COMING),  # is over: 14:00 in Berlin
        (SUNDAY, ("13:30", "14:30"), "", ""),
        (SUNDAY, ("20:00", "21:00"), "", ""),
        (SUNDAY, ("20:00", "21:00"), "cancel", COMING),
        ("2026-11-28 22:59:59+00:00", None, "", ""),
        ("2026-11-28 23:00:00+00:00", None, "", COMING),
        ("2026-11-29 23:00:00+00:00", None, "", ""),
    ],
)
def test_sunday_without_bookings_opens_the_next_week(
    tenant: Tenant,
    ada: Any,
    clock: Any,
    now: str,
    times: tuple[str, str] | None,
    state: str,
    opens: str,
) -> None:
    if times:
        booking = book(tenant, ada, *(f"2026-11-29 {time}:00" for time in times))
        if state:
            tenant.put(f"/bookings/{booking['id']}/{state}")
    clock.move_to(now, tick=False)

    page = logged_in(member_of(tenant, "viewer")).get("/admin/calendar/").context["page"]

    assert page["nextWeek"] == opens


# --- Free times of a new booking ------------------------------------------------------------------
TIMES = "/admin/calendar/free-times"


def free(client: Client, resource: Any, **given: str) -> Any:
    answer = client.get(TIMES, {"resource_id": resource["id"], "start": "2026-11-24", **given})
    assert answer.status_code == 200, answer.content
    found = answer.json()["data"]
    return found["length"], [
        f"{span['day'].split(', ')[1]}, {span['clock']}" for span in found["times"]
    ]


def test_free_times_of_a_day_and_project(tenant: Tenant, ada: Any, editor: Client) -> None:
    project = tenant.make_project(ada["id"], availability={"length": "30 minutes"})
    book(tenant, ada, "2026-11-24 09:00:00", "2026-11-24 16:00:00")

    whole = editor.get(TIMES, {"resource_id": ada["id"], "start": "2026-11-24"}).json()["data"]
    through = free(editor, ada, project_id=project["id"], length="3600")
    later = free(editor, ada, start="2026-11-25T15:30", length="1800")
    closed = free(editor, ada, start="2026-11-28T03:00", closed="1")
    elsewhere = free(editor, ada, zone="Asia/Kolkata", start="2026-11-25T15:30")

    assert whole["times"][0] == {
        "start": "2026-11-24T15:00:00+00:00",
        "end": "2026-11-24T16:00:00+00:00",
        "text": "Tue 24 Nov 2026, 16:00 to 17:00",
        "day": "Tuesday, 24 November 2026",
        "clock": "16:00",
        "wall_start": "2026-11-24T16:00:00",
        "wall_end": "2026-11-24T17:00:00",
    }
    assert (whole["length"], len(whole["times"])) == (3600, 8)
    assert (through[0], through[1][:3]) == (
        1800,
        [
            "24 November 2026, 16:00",
            "24 November 2026, 16:30",
            "25 November 2026, 09:00",
        ],
    )
    assert (later[0], later[1][:2]) == (
        1800,
        ["25 November 2026, 15:30", "25 November 2026, 16:00"],
    )
    assert (closed[0], closed[1][0]) == (3600, "28 November 2026, 03:00")
    assert elsewhere[1][0] == "25 November 2026, 15:30"


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"start": "soon"}, "start"),
        ({"start": "2030-02-30"}, "start"),
        ({"start": "2030-03-31T02:30"}, "start"),
        ({"start": "\0"}, "start"),
        ({"length": "0"}, "length"),
        ({"length": "9" * 400}, "length"),
        ({"length": "-60"}, "length"),
        ({"zone": "Mars/Olympus"}, "zone"),
        ({"project_id": "x"}, "project_id"),
        ({"resource_id": "x"}, "resource_id"),
    ],
)
def test_wrong_query_of_free_times_is_refused(
    ada: Any, editor: Client, given: dict[str, str], path: str
) -> None:
    asked = {"resource_id": ada["id"], "start": "2026-11-24", **given}

    answer = editor.get(TIMES, asked)

    assert (answer.status_code, list(answer.json()["errors"])) == (422, [path])


def test_permissions_of_free_times(
    tenant: Tenant, make_tenant: Any, ada: Any, editor: Client, viewer: Client, stranger: Client
) -> None:
    other = make_tenant()
    foreign = other.make_project(other.make_resource("Eve")["id"])
    asked = {"resource_id": ada["id"], "start": "2026-11-24"}

    answers = [
        viewer.get(TIMES, asked),
        stranger.get(TIMES, asked),
        editor.get(TIMES, asked | {"project_id": foreign["id"]}),
        editor.get(TIMES, asked | {"start": "2199-12-31T23:59"}),
    ]

    assert [answer.status_code for answer in answers] == [403, 404, 404, 200]
    assert answers[-1].json()["data"]["times"] == []


def test_free_times_of_a_project_with_requirements(
    tenant: Tenant, ada: Any, editor: Client
) -> None:
    room = tenant.make_resource("Room", timezone=BERLIN, availability_constraints=WORKDAYS)
    requires = [
        {"name": "person", "any_of": [ada["id"]]},
        {"name": "room", "any_of": [room["id"]]},
    ]
    project = tenant.post("/projects", {"name": "X-ray", "requires": requires}).data
    book(tenant, room, "2026-11-24 09:00:00", "2026-11-24 16:00:00")
    other = tenant.make_resource("Other", timezone=BERLIN)

    _, found = free(editor, ada, project_id=project["id"])
    refused = editor.get(
        TIMES, {"resource_id": other["id"], "project_id": project["id"], "start": "2026-11-24"}
    )

    assert found[:2] == ["24 November 2026, 16:00", "25 November 2026, 09:00"]
    assert (refused.status_code, list(refused.json()["errors"])) == (422, ["resource_id"])


# --- Days of a month ------------------------------------------------------------------------------
def test_day_is_closed_if_all_resources_are_closed(
    tenant: Tenant, ada: Any, editor: Client
) -> None:
    always: list[Any] = []
    eve = tenant.make_resource("Eve", timezone="America/New_York", availability_constraints=always)
    month = {"start": "2026-10-26", "end": "2026-12-07"}

    alone = read(editor, ada, **month).json()["data"]["closed_days"]
    together = read(editor, ada, eve, **month).json()["data"]["closed_days"]

    weekends = ["2026-10-31", "2026-11-01", "2026-11-07", "2026-11-08", "2026-11-14", "2026-11-15"]
    assert alone[:6] == weekends
    assert (len(alone), together) == (12, [])


def test_booking_and_hold_of_several_units_are_one_entry_each(
    tenant: Tenant, editor: Client
) -> None:
    bikes = tenant.make_resource("Bikes", timezone=BERLIN, capacity=5)
    book(tenant, bikes, "2026-11-24 10:00:00", "2026-11-24 11:00:00", quantity=3)
    held = {"start": "2026-11-24 10:00:00", "end": "2026-11-24 11:00:00", "quantity": 2}
    tenant.post("/bookings/reserve", {"resource_id": bikes["id"], **held})

    titles = [title for title, *_ in shown(read(editor, bikes))]

    assert titles[0] == "3 × Meeting · Marty McFly (5 of 5 places)"
    assert len(titles) == 2
