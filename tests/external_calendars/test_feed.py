"""GET /calendars/:id/feed.ics: what any calendar program reads of a calendar."""

import uuid
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import icalendar
import pytest
import vobject
from django.db import connection
from django.test import Client

from apps_config import authentication
from apps_config.models import digest_secret
from availability.models import Calendar, Event
from common.limits.rate_limit import RateWindow
from external_calendars import published_feeds
from external_calendars.models import Feed
from tests.bookings.group_world import ANN, BOB, make_group, seat_in
from tests.queries import Queries
from tests.world import BERLIN, STAMP, Answer, Tenant, at

pytestmark = pytest.mark.usefixtures("clock")

NOT_FOUND = {"error": "Calendar not found.", "code": "not_found", "model": "Calendar"}
SPAN = {"start": "2026-11-23T09:00:00Z", "end": "2026-11-23T10:00:00Z"}
COURSE = {"start": "2026-11-26T09:00:00Z", "end": "2026-11-26T10:00:00Z"}
LATER = {"start": "2026-11-24T09:00:00Z", "end": "2026-11-24T10:00:00Z"}


def make_feed(tenant: Tenant, calendar_id: str, **body: Any) -> str:
    """Its path below /v2, with the token."""
    url = tenant.post(f"/calendars/{calendar_id}/feed", body).data["url"]
    return url.removeprefix("http://127.0.0.1:8000/v2")


def fetch(path: str, method: str = "GET", **headers: str) -> Answer:
    """As a calendar program does: without a key."""
    return Answer(Client().generic(method, f"/v2{path}", headers=headers))


def entries(path: str) -> dict[str, icalendar.Event]:
    """By what they are."""
    found = icalendar.Calendar.from_ical(fetch(path).content)
    return {str(event["SUMMARY"]): event for event in found.walk("VEVENT")}


# --- Its address ----------------------------------------------------------------------------------
def test_create_shows_the_address_once(tenant: Tenant) -> None:
    calendar = tenant.make_resource()["calendars"][0]["id"]

    answer = tenant.post(f"/calendars/{calendar}/feed")

    token = answer.data["token"]
    url = f"http://127.0.0.1:8000/v2/calendars/{calendar}/feed.ics?token={token}"
    made = {"url": url, "token": token, "details": False}
    assert (answer.status, answer.json) == (201, {"data": made})
    assert len(token) == 43
    assert Feed.objects.get().token_hash == digest_secret(token)


def test_new_address_ends_the_old_one(tenant: Tenant) -> None:
    calendar = tenant.make_resource()["calendars"][0]["id"]

    first, second = make_feed(tenant, calendar), make_feed(tenant, calendar)

    assert [fetch(path).status for path in (first, second)] == [404, 200]


def test_delete_ends_the_address(tenant: Tenant) -> None:
    calendar = tenant.make_resource()["calendars"][0]["id"]
    path = make_feed(tenant, calendar)

    answers = [tenant.delete(f"/calendars/{calendar}/feed") for _ in range(2)]

    assert (answers[0].status, answers[0].content) == (204, b"")
    assert (answers[1].status, answers[1].error) == (
        404,
        {"error": "Feed not found.", "code": "not_found", "model": "Feed"},
    )
    assert fetch(path).status == 404


def test_wrong_addresses_get_equal_responses(
    tenant: Tenant, make_tenant: Callable[..., Tenant], clock: Any
) -> None:
    resource, other = tenant.make_resource(), tenant.make_resource("B")
    calendar, foreign = resource["calendars"][0]["id"], make_tenant()
    body = {"name": "Second", "resource_id": resource["id"]}
    removed = tenant.post("/calendars", body).data["id"]
    paths = [make_feed(tenant, removed)]
    tenant.delete(f"/calendars/{removed}")
    paths.append(make_feed(tenant, other["calendars"][0]["id"]))
    tenant.delete(f"/resources/{other['id']}")
    archived = make_tenant()
    paths.append(make_feed(archived, archived.make_resource()["calendars"][0]["id"]))
    archived.member("owner@example.com").delete(f"/apps/{archived.app.slug}")
    token = make_feed(tenant, calendar).partition("=")[2]
    theirs = foreign.make_resource()["calendars"][0]["id"]
    make_feed(foreign, theirs)
    paths += [
        f"/calendars/{calendar}/feed.ics",
        f"/calendars/{calendar}/feed.ics?token=",
        f"/calendars/{calendar}/feed.ics?token={token[:-1]}",
        f"/calendars/{calendar}/feed.ics?token={token}A",
        f"/calendars/{calendar}/feed.ics?token={digest_secret(token)}",
        f"/calendars/{theirs}/feed.ics?token={token}",
        f"/calendars/{uuid.uuid4()}/feed.ics?token={token}",
    ]

    answers = [fetch(path) for path in paths]

    assert [(answer.status, answer.error) for answer in answers] == [(404, NOT_FOUND)] * len(paths)
    assert fetch(f"/calendars/{calendar}/feed.ics?token={token}").status == 200


def test_unknown_query_parameters_are_refused(tenant: Tenant) -> None:
    path = make_feed(tenant, tenant.make_resource()["calendars"][0]["id"])

    answers = [fetch(f"{path}&{query}") for query in ("zone=UTC", "token=x")]

    assert [(answer.status, list(answer.json["errors"])) for answer in answers] == [
        (422, ["zone"]),
        (422, ["token"]),
    ]


def test_address_is_rate_limited(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make_feed(tenant, tenant.make_resource()["calendars"][0]["id"])
    monkeypatch.setattr(authentication, "request_rates", RateWindow(2))

    answers = [fetch(path) for _ in range(3)]

    assert [answer.status for answer in answers] == [200, 200, 429]
    assert answers[2].error == {"error": "Too many requests.", "code": "rate_limited"}
    assert answers[2].headers["Retry-After"] == "60"


# --- What stands in it ----------------------------------------------------------------------------
def test_whole_feed(tenant: Tenant, settings: Any) -> None:
    settings.PUBLIC_URL = "https://booking.example.com"
    resource = tenant.make_resource(timezone=BERLIN)
    calendar = resource["calendars"][0]["id"]
    event = tenant.make_event(
        calendar, SPAN["start"], SPAN["end"], what="Congress; all, of us", where="Hall 2"
    )
    url = tenant.post(f"/calendars/{calendar}/feed").data["url"]

    answer = fetch(url.removeprefix("https://booking.example.com/v2"), Accept="text/calendar")

    lines = [
        "BEGIN:VCALENDAR",
        "VERSION:2.0",
        "PRODID:-//Scheduling and booking service//EN",
        "CALSCALE:GREGORIAN",
        "METHOD:PUBLISH",
        "NAME:Bookings",
        "X-WR-CALNAME:Bookings",
        "REFRESH-INTERVAL;VALUE=DURATION:PT15M",
        "X-PUBLISHED-TTL:PT15M",
        "BEGIN:VEVENT",
        f"UID:{event['id']}@booking.example.com",
        "DTSTAMP:20261120T093000Z",
        "CREATED:20261120T093000Z",
        "LAST-MODIFIED:20261120T093000Z",
        "DTSTART:20261123T090000Z",
        "DTEND:20261123T100000Z",
        "SUMMARY:Congress\\; all\\, of us",
        "LOCATION:Hall 2",
        "STATUS:CONFIRMED",
        "TRANSP:OPAQUE",
        "END:VEVENT",
        "END:VCALENDAR",
        "",
    ]
    assert answer.content.decode().split("\r\n") == lines
    assert (answer.status, answer.headers["Content-Type"]) == (200, "text/calendar; charset=utf-8")
    assert answer.headers["Cache-Control"] == "private, no-cache"
    assert answer.headers["Content-Length"] == str(len(answer.content))


def test_each_kind_of_event(tenant: Tenant, clock: Any) -> None:
    resource = tenant.make_resource(timezone=BERLIN)
    calendar = resource["calendars"][0]["id"]
    days = {"all_day": True, "what": "Holiday"}
    tenant.make_event(calendar, "2026-12-24", "2026-12-27", **days)
    tenant.make_event(calendar, SPAN["start"], SPAN["end"], what="Free", busy=False)
    text = "Bring:\n- a “pass”; \\N\n- " + "é" * 200
    tenant.make_event(calendar, LATER["start"], LATER["end"], what="Long", description=text)
    tenant.book(calendar_id=calendar, what="Booked", **SPAN)
    asked = {"graph": "confirm_decline", "start": "2026-11-25 09:00", "end": "2026-11-25 10:00"}
    tenant.book(calendar_id=calendar, what="Asked", **asked)
    group = {"graph": "group_owner", "settings": {"max_seats": 5}}
    tenant.book(calendar_id=calendar, what="Course", **{**group, **COURSE})
    path = make_feed(tenant, calendar)

    found = entries(path)
    read = vobject.readOne(fetch(path).content.decode())

    assert {name: str(event["TRANSP"]) for name, event in found.items()} == {
        "Holiday": "OPAQUE",
        "Free": "TRANSPARENT",
        "Long": "OPAQUE",
        "Booked": "OPAQUE",
        "Asked": "TRANSPARENT",
        "Course": "OPAQUE",
    }
    assert found["Holiday"].decoded("DTSTART") == date(2026, 12, 24)
    assert found["Holiday"].decoded("DTEND") == date(2026, 12, 27)
    assert found["Booked"].decoded("DTSTART") == at("2026-11-23 09:00")
    assert {name for name, event in found.items() if event["STATUS"] == "TENTATIVE"} == {"Asked"}
    assert str(found["Long"]["DESCRIPTION"]) == text
    by_name = {one.summary.value: one for one in read.vevent_list}
    assert by_name.keys() == found.keys()
    assert by_name["Long"].description.value == text
    assert by_name["Holiday"].dtend.value == date(2026, 12, 27)
    for line in fetch(path).content.split(b"\r\n"):
        assert len(line) <= 75


@pytest.mark.parametrize("action", ["cancel", "cancel_by_customer", "decline"])
def test_cancelled_bookings_are_not_in_the_feed(tenant: Tenant, action: str) -> None:
    calendar = tenant.make_resource()["calendars"][0]["id"]
    booked = {"graph": "confirm_decline", "calendar_id": calendar}
    booking = tenant.book(what="Off", **booked, **SPAN).data["id"]
    tenant.book(what="On", **booked, **LATER)
    tenant.book(calendar_id=calendar, what="Draft", action="create", **LATER)
    path = make_feed(tenant, calendar)
    before = entries(path).keys()

    tenant.post(f"/bookings/{booking}/{action}")

    assert (before, entries(path).keys()) == ({"Off", "On"}, {"On"})


def test_mutual_booking_is_in_the_feed_of_each_resource(tenant: Tenant) -> None:
    ada, bob = tenant.make_resource("Ada"), tenant.make_resource("Bob")
    project = tenant.make_project(ada["id"], bob["id"], availability={"mode": "mutual"})
    booking = tenant.book(
        project_id=project["id"], settings={"enforce_availability": False}, **SPAN
    ).data["id"]
    paths = [make_feed(tenant, resource["calendars"][0]["id"]) for resource in (ada, bob)]

    before = [len(entries(path)) for path in paths]
    tenant.post(f"/bookings/{booking}/cancel")
    after = [len(entries(path)) for path in paths]

    assert (before, after) == ([1, 1], [0, 0])


def test_window_of_the_feed(tenant: Tenant) -> None:
    calendar = tenant.make_resource()["calendars"][0]["id"]
    midnight = datetime(2026, 11, 20, tzinfo=UTC)
    first, last = midnight - timedelta(days=31), midnight + timedelta(days=400)
    for start, end, what in (
        (first - timedelta(hours=1), first, "Before"),
        (first - timedelta(hours=1), first + timedelta(seconds=1), "Earliest"),
        (last - timedelta(seconds=1), last, "Latest"),
        (last, last + timedelta(hours=1), "After"),
    ):
        tenant.make_event(calendar, start.isoformat(), end.isoformat(), what=what)

    assert list(entries(make_feed(tenant, calendar))) == ["Earliest", "Latest"]


def test_number_of_events_is_limited(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    calendar = tenant.make_resource()["calendars"][0]["id"]
    for hour in range(4):
        day = f"2026-11-23T{hour:02}:00:00Z", f"2026-11-23T{hour:02}:30:00Z"
        tenant.make_event(calendar, *day, what=f"At {hour}")
    monkeypatch.setattr(published_feeds, "MAX_EVENTS", 3)

    assert list(entries(make_feed(tenant, calendar))) == ["At 0", "At 1", "At 2"]


# --- Customers ------------------------------------------------------------------------------------
ZOE = {"name": "Zoe Baker", "email": "zoe@example.com", "phone": "+1 555 0101"}


def titles_and_texts(path: str) -> list[tuple[str, str]]:
    found = icalendar.Calendar.from_ical(fetch(path).content)
    return [
        (str(event["SUMMARY"]), str(event.get("DESCRIPTION", ""))) for event in found.walk("VEVENT")
    ]


def test_customers_are_shown_only_with_details(tenant: Tenant) -> None:
    calendar = tenant.make_resource()["calendars"][0]["id"]
    given = {"calendar_id": calendar, "what": "Check-up", "description": "Bring your card."}
    tenant.book(customer=ZOE, **given, **SPAN)

    found = [
        titles_and_texts(make_feed(tenant, calendar, **body))
        for body in ({}, {"details": False}, {"details": True})
    ]

    contact = "Zoe Baker\nzoe@example.com\n+1 555 0101"
    assert found == [
        [("Check-up", "Bring your card.")],
        [("Check-up", "Bring your card.")],
        [("Check-up: Zoe Baker", f"Bring your card.\n\n{contact}")],
    ]


def test_customers_of_groups_and_of_companions_are_shown(tenant: Tenant) -> None:
    ada, bob = tenant.make_resource("Ada"), tenant.make_resource("Bob")
    project = tenant.make_project(ada["id"], bob["id"], availability={"mode": "mutual"})
    settings = {"enforce_availability": False}
    tenant.book(project_id=project["id"], customer=ZOE, what="Both", settings=settings, **SPAN)
    group = make_group(tenant, ada, max_seats=3, what="Course", **COURSE)
    seats = [seat_in(tenant, group, person) for person in (ANN, BOB, ZOE)]
    cancelled = tenant.put(f"/bookings/{seats[2]['id']}/cancel_by_customer")
    mine, theirs = (
        titles_and_texts(make_feed(tenant, each["calendars"][0]["id"], details=True))
        for each in (ada, bob)
    )

    contact = "Zoe Baker\nzoe@example.com\n+1 555 0101"
    assert cancelled.status == 200
    assert mine == [
        ("Both: Zoe Baker", contact),
        ("Course", "\n\n".join(f"{each['name']}\n{each['email']}" for each in (ANN, BOB))),
    ]
    assert theirs == [("Both: Zoe Baker", contact)]


def test_etag_depends_on_shown_customers(tenant: Tenant) -> None:
    calendar = tenant.make_resource()["calendars"][0]["id"]
    booking = tenant.book(calendar_id=calendar, customer=ZOE, **SPAN).data
    path = make_feed(tenant, calendar, details=True)
    before = fetch(path).headers["ETag"]
    same = fetch(path, **{"If-None-Match": before}).status
    renamed = {"customer": {"name": "Zoe Cook"}}
    assert tenant.put(f"/bookings/{booking['id']}", renamed).status == 200
    changed = fetch(path, **{"If-None-Match": before}).status
    tenant.post("/customers/erase", {"email": ZOE["email"]})

    assert (same, changed) == (304, 200)
    assert titles_and_texts(path) == [("Meeting", "")]


def test_customers_take_one_more_query(tenant: Tenant) -> None:
    calendar = tenant.make_resource()["calendars"][0]["id"]
    path = make_feed(tenant, calendar, details=True)
    counts = []
    for hour in range(3):
        day = {"start": f"2026-11-23T0{hour}:00:00Z", "end": f"2026-11-23T0{hour}:30:00Z"}
        assert tenant.book(calendar_id=calendar, customer=ZOE, **day).status == 201
        with Queries(connection) as queries:
            fetch(path)
        counts.append(len(queries))

    assert counts == [counts[0]] * 3


@pytest.mark.parametrize("details", ["yes", 1, None, []])
def test_details_are_true_or_false(tenant: Tenant, details: Any) -> None:
    calendar = tenant.make_resource()["calendars"][0]["id"]

    answer = tenant.post(f"/calendars/{calendar}/feed", {"details": details})

    assert (answer.status, list(answer.json["errors"])) == (422, ["details"])
    assert not Feed.objects.exists()


# --- Asked again ----------------------------------------------------------------------------------
def test_unchanged_feed_is_304(tenant: Tenant, clock: Any) -> None:
    calendar = tenant.make_resource()["calendars"][0]["id"]
    tenant.make_event(calendar, SPAN["start"], SPAN["end"])
    path = make_feed(tenant, calendar)
    first = fetch(path)
    clock.shift(60)

    again = fetch(path, **{"If-None-Match": first.headers["ETag"]})
    weak = fetch(path, **{"If-None-Match": f"W/{first.headers['ETag']}"})
    other = fetch(path, **{"If-None-Match": '"another"'})

    assert first.headers["ETag"].startswith('"')
    for answer in (again, weak):
        kept = {name: answer.headers[name] for name in ("ETag", "Cache-Control")}
        assert (answer.status, answer.content) == (304, b"")
        assert kept == {name: first.headers[name] for name in kept}
    assert (other.status, other.content) == (200, first.content)


def test_every_change_changes_the_etag(tenant: Tenant, clock: Any) -> None:
    resource = tenant.make_resource()
    calendar = resource["calendars"][0]["id"]
    path = make_feed(tenant, calendar)
    tags = [fetch(path).headers["ETag"]]

    def note() -> None:
        tags.append(fetch(path).headers["ETag"])

    event = tenant.make_event(calendar, SPAN["start"], SPAN["end"])["id"]
    note()
    clock.shift(1)
    tenant.put(f"/events/{event}", {"what": "Other"})
    note()
    tenant.delete(f"/events/{event}")
    booking = tenant.book(calendar_id=calendar, graph="confirm_decline", **SPAN).data["id"]
    note()
    tenant.post(f"/bookings/{booking}/confirm")
    note()
    clock.shift(1)
    tenant.post(f"/bookings/{booking}/reschedule", LATER)
    note()
    tenant.put(f"/calendars/{calendar}", {"name": "Renamed"})
    note()

    assert len(set(tags)) == len(tags) == 7


@pytest.mark.parametrize(
    ("name", "value"), [("LINE", 60), ("REFRESH", "PT1H"), ("PRODUCT", "Other"), ("ESCAPES", {})]
)
def test_other_format_version_changes_the_etag(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch, name: str, value: Any
) -> None:
    """A newer service may write the same events otherwise."""
    path = make_feed(tenant, tenant.make_resource()["calendars"][0]["id"])
    before = fetch(path)
    assert fetch(path).headers["ETag"] == before.headers["ETag"]

    monkeypatch.setattr(published_feeds, name, value)

    assert fetch(path).headers["ETag"] != before.headers["ETag"]


def test_head_has_headers_without_body(tenant: Tenant) -> None:
    calendar = tenant.make_resource()["calendars"][0]["id"]
    tenant.make_event(calendar, SPAN["start"], SPAN["end"])
    path = make_feed(tenant, calendar)

    head, whole = fetch(path, "HEAD"), fetch(path)

    assert (head.status, head.content) == (200, b"")
    for name in ("ETag", "Cache-Control", "Content-Type"):
        assert head.headers[name] == whole.headers[name]


def test_query_count_is_constant(tenant: Tenant) -> None:
    resource = tenant.make_resource()
    calendar = Calendar.objects.get(id=resource["calendars"][0]["id"])
    path = make_feed(tenant, str(calendar.id))
    counts = []
    for number in (1, 200):
        Event.objects.bulk_create(
            Event(
                app=tenant.app,
                calendar=calendar,
                resource_id=resource["id"],
                what=f"{number}",
                start=at("2026-11-23 09:00") + timedelta(hours=hour),
                end=at("2026-11-23 10:00") + timedelta(hours=hour),
            )
            for hour in range(number)
        )
        with Queries(connection) as queries:
            fetch(path)
        counts.append(len(queries))

    assert counts == [3, 3]


def test_deleted_calendar_has_no_feed(tenant: Tenant) -> None:
    resource = tenant.make_resource()
    body = {"name": "Second", "resource_id": resource["id"]}
    calendar = tenant.post("/calendars", body).data
    make_feed(tenant, calendar["id"])

    tenant.delete(f"/calendars/{calendar['id']}")

    assert (calendar["created_at"], Feed.objects.count()) == (STAMP, 0)


def test_booking_of_several_units_is_one_entry_with_the_number(tenant: Tenant) -> None:
    bikes = tenant.make_resource("Bikes", capacity=3)
    tenant.book(resource_id=bikes["id"], what="Ride", quantity=3, **SPAN)

    path = make_feed(tenant, bikes["calendars"][0]["id"], details=True)

    assert list(entries(path)) == ["3 × Ride: Marty McFly"]
