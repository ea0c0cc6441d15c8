"""/calendars of other providers: connect, look at, let go of (docs/external-calendars.md)."""

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from availability.models import Calendar, Event
from external_calendars.credentials import credentials_of
from external_calendars.models import Connection, ExternalObject, Feed, WrittenEvent
from external_calendars.providers.base import (
    FINAL_ERRORS,
    PROVIDER_ERRORS,
    CalendarAccess,
    ProviderError,
)
from external_calendars.services import FIELDS, FIND_SECONDS, MAX_CONNECTED
from tests.external_calendars.fake_provider import FakeCalendarServer, fake_caldav, feeds
from tests.queries import Queries
from tests.world import NOW, STAMP, Answer, Caller, Tenant, at

__all__ = ["fake_caldav", "feeds"]

pytestmark = pytest.mark.usefixtures("clock")

WORK = "https://dav.example.com/calendars/ada/work/"
HOME = "https://dav.example.com/calendars/ada/home/"
FEED = "https://feeds.example.com:8443/private-5ecret/basic.ics"
SPAN = {"start": "2026-11-23T09:00:00Z", "end": "2026-11-23T10:00:00Z"}
LATER = {"start": "2026-11-24T09:00:00Z", "end": "2026-11-24T10:00:00Z"}


def record(calendar: Any, resource: Any, **given: Any) -> dict[str, Any]:
    """A connected calendar that has not been looked at yet."""
    return {
        "id": calendar["id"],
        "resource_id": resource["id"],
        "name": "Work",
        "description": "",
        "backgroundcolor": "",
        "foregroundcolor": "",
        "provider": "caldav",
        "provider_id": WORK,
        "provider_access": "writer",
        "provider_primary": True,
        "provider_sync": True,
        "grant_id": None,
        "account": None,
        "synced_at": None,
        "problem": None,
        "progress": None,
        "unread": 0,
        "created_at": STAMP,
        "updated_at": STAMP,
        **given,
    }


def connect(tenant: Caller, resource: Any, address: str = WORK, **given: Any) -> Answer:
    body = {
        "resource_id": resource["id"],
        "provider": "caldav",
        "address": address,
        "username": "ada",
        "password": "correct horse",
        **given,
    }
    return tenant.post("/calendars", body)


def subscribe(tenant: Tenant, resource: Any, address: str = FEED, **given: Any) -> Answer:
    body = {"resource_id": resource["id"], "provider": "ics", "address": address, **given}
    return tenant.post("/calendars", body)


def make_read(calendar_id: str, uid: str = "one", **given: Any) -> Event:
    """An event that a worker has read there."""
    calendar = Calendar.objects.get(id=calendar_id)
    ExternalObject.objects.create(connection=calendar.connection, href=uid, uid=uid)
    return Event.objects.create(
        app_id=calendar.app_id,
        calendar=calendar,
        resource_id=calendar.resource_id,
        what="Dentist",
        provider_id=uid,
        start=at("2026-11-25 09:00"),
        end=at("2026-11-25 10:00"),
        **given,
    )


# --- POST -----------------------------------------------------------------------------------------
def test_connect_a_calendar(tenant: Tenant, fake_caldav: FakeCalendarServer) -> None:
    resource = tenant.make_resource()
    fake_caldav.put("https://dav.example.com/", at=WORK, invites=True)

    answer = connect(tenant, resource, "dav.example.com")

    expected = record(answer.data, resource)
    assert (answer.status, answer.json) == (201, {"data": expected})
    assert tenant.get(f"/calendars/{answer.data['id']}").data == expected
    assert fake_caldav.asked == [CalendarAccess("https://dav.example.com/", "ada", "correct horse")]
    assert fake_caldav.deadlines == [FIND_SECONDS]
    kept = Connection.objects.get()
    assert (str(kept.calendar_id), kept.username) == (expected["id"], "ada")
    assert credentials_of(kept) == CalendarAccess(WORK, "ada", "correct horse")
    assert (kept.next_at, kept.mark, kept.failures) == (NOW, {}, 0)
    assert kept.calendar.provider_invites is True


def test_record_of_a_feed_hides_its_url(tenant: Tenant, feeds: FakeCalendarServer) -> None:
    resource = tenant.make_resource()
    feeds.put(FEED, "Holidays\r\nand  more\x07")

    answer = subscribe(tenant, resource, FEED.replace("https", "webcal"))

    values = {
        "name": "Holidays and more",
        "provider": "ics",
        "provider_id": "https://feeds.example.com:8443",
        "provider_access": "reader",
        "provider_primary": False,
    }
    assert answer.json == {"data": record(answer.data, resource, **values)}
    assert feeds.asked == [CalendarAccess(FEED)]
    assert credentials_of(Connection.objects.get()) == CalendarAccess(FEED)


def test_secrets_are_encrypted_and_not_returned(
    tenant: Tenant, fake_caldav: FakeCalendarServer, feeds: FakeCalendarServer
) -> None:
    resource = tenant.make_resource()
    connect(tenant, resource, fake_caldav.put(WORK))
    subscribe(tenant, resource, feeds.put(FEED))

    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM external_calendars_connection")
        rows = str(cursor.fetchall())
        cursor.execute("SELECT * FROM availability_calendar")
        rows += str(cursor.fetchall())
    shown = tenant.get("/calendars").content + tenant.get("/resources?include=calendars").content

    assert len(tenant.get("/calendars").data) == 3
    for secret in ("correct horse", "5ecret"):
        assert (secret in rows, secret.encode() in shown) == (False, False)


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({"name": "Mine"}, {"name": "Mine"}),
        ({"description": "two\nlines", "backgroundcolor": "red"}, None),
        ({"provider_primary": False}, {"provider_primary": False}),
        ({"provider_primary": True}, {}),
        ({"username": None, "password": None}, {}),
        ({"provider_id": "x", "provider_access": "reader", "provider_sync": False}, {}),
    ],
)
def test_record_of_a_connected_calendar(
    tenant: Tenant,
    fake_caldav: FakeCalendarServer,
    given: dict[str, Any],
    shown: dict[str, Any] | None,
) -> None:
    resource = tenant.make_resource()
    fake_caldav.put(WORK)

    answer = connect(tenant, resource, **given)

    expected = record(answer.data, resource, **(given if shown is None else shown))
    assert (answer.status, answer.data) == (201, expected)


def test_calendar_name_defaults_to_that_of_the_server(
    tenant: Tenant, fake_caldav: FakeCalendarServer
) -> None:
    answer = connect(tenant, tenant.make_resource(), fake_caldav.put(WORK, " \n"))

    assert answer.data["name"] == "dav.example.com"


def test_first_writable_calendar_is_primary(
    tenant: Tenant, fake_caldav: FakeCalendarServer, feeds: FakeCalendarServer
) -> None:
    resource, other = tenant.make_resource("A"), tenant.make_resource("B")
    third = fake_caldav.put(f"{WORK}3")

    answers = [
        subscribe(tenant, resource, feeds.put(FEED)),
        connect(tenant, resource, fake_caldav.put(WORK)),
        connect(tenant, resource, fake_caldav.put(HOME)),
        connect(tenant, other, WORK),
        connect(tenant, resource, third, provider_primary=True),
    ]

    assert [answer.data["provider_primary"] for answer in answers] == [
        *(False, True, False),
        *(True, True),
    ]
    ids = [answer.data["id"] for answer in answers]
    primary = Calendar.objects.filter(provider_primary=True)
    assert {str(one) for one in primary.values_list("id", flat=True)} == {ids[3], ids[4]}


@pytest.mark.parametrize("code", PROVIDER_ERRORS)
def test_connect_error_is_at_its_field(
    tenant: Tenant, fake_caldav: FakeCalendarServer, code: str
) -> None:
    resource = tenant.make_resource()
    # Only of several calendars it is told which.
    detail = "Work, Home" if code == "several_calendars" else "not for everybody"
    fake_caldav.calendars[WORK] = ProviderError(code, status=500, detail=detail)

    answer = connect(tenant, resource)

    field = FIELDS.get(code, "address")
    text = detail if code == "several_calendars" else PROVIDER_ERRORS[code]
    assert (answer.status, answer.error) == (
        422,
        {
            "error": f"{field}: {text}",
            "code": "invalid",
            "errors": {field: [text]},
            "problem": code,
        },
    )
    assert (Calendar.objects.count(), Connection.objects.count()) == (1, 0)


def test_read_only_calendar_cannot_be_primary(
    tenant: Tenant, fake_caldav: FakeCalendarServer
) -> None:
    fake_caldav.put(WORK, may_write=False)

    answer = connect(tenant, tenant.make_resource(), provider_primary=True)

    assert (answer.status, answer.json["problem"], answer.json["errors"]) == (
        422,
        "no_write_access",
        {"provider_primary": [PROVIDER_ERRORS["no_write_access"]]},
    )


BLANK_OR_MISSING = "This field may not be blank."
NO_ADDRESS = "Must be an http or https address."


@pytest.mark.parametrize(
    ("given", "errors"),
    [
        ({"provider": "google"}, {"grant_id": ["This field is required."]}),
        (
            {"provider": 5},
            {"provider": ["Must be one of service, caldav, ics, google, microsoft."]},
        ),
        ({"provider": None}, {"provider": ["This field may not be null."]}),
        ({"address": None}, {"address": ["This field may not be null."]}),
        ({"address": ""}, {"address": [BLANK_OR_MISSING]}),
        ({"address": "ftp://example.com"}, {"address": [NO_ADDRESS]}),
        (
            {"address": "https://ada:pw@example.com"},
            {"address": [NO_ADDRESS]},
        ),
        ({"address": "https://"}, {"address": [NO_ADDRESS]}),
        (
            {"address": "https://example.com/" + "x" * 2000},
            {"address": ["Ensure this field has no more than 2000 characters."]},
        ),
        ({"username": "a:b"}, {"username": ["May not contain a colon."]}),
        ({"username": 5}, {"username": ["Must be a string."]}),
        (
            {"password": "a\nb"},
            {"password": ["May not contain control characters or line breaks."]},
        ),
        ({"provider_primary": "yes"}, {"provider_primary": ["Must be true or false."]}),
        ({"name": ""}, {"name": [BLANK_OR_MISSING]}),
        ({"resource_id": str(uuid.uuid4())}, {"resource_id": ["There is no such resource."]}),
    ],
)
def test_wrong_values_are_refused(
    tenant: Tenant,
    fake_caldav: FakeCalendarServer,
    feeds: FakeCalendarServer,
    given: dict[str, Any],
    errors: dict[str, list[str]],
) -> None:
    answer = connect(tenant, tenant.make_resource(), **given)

    assert (answer.status, answer.json["code"], answer.json["errors"]) == (422, "invalid", errors)
    assert fake_caldav.asked == []


def test_address_is_required(tenant: Tenant, fake_caldav: FakeCalendarServer) -> None:
    body = {"resource_id": tenant.make_resource()["id"], "provider": "caldav"}

    answer = tenant.post("/calendars", body)

    assert (answer.status, answer.json["errors"]) == (422, {"address": ["This field is required."]})


def test_the_same_calendar_is_connected_once(
    tenant: Tenant, fake_caldav: FakeCalendarServer, feeds: FakeCalendarServer
) -> None:
    resource, other = tenant.make_resource("A"), tenant.make_resource("B")
    connect(tenant, resource, fake_caldav.put(WORK))
    subscribe(tenant, resource, feeds.put(FEED, "Holidays"))
    fake_caldav.put("https://dav.example.com/", at=WORK)

    answers = [
        connect(tenant, resource, "dav.example.com"),
        subscribe(tenant, resource),
        connect(tenant, other),
        subscribe(tenant, resource, feeds.put(f"{FEED}?other")),
    ]

    assert [answer.status for answer in answers] == [409, 409, 201, 201]
    assert [answer.error for answer in answers[:2]] == [
        {"error": f"This calendar is already connected as “{name}”.", "code": "already_exists"}
        for name in ("Work", "Holidays")
    ]


def test_number_of_calendars_per_resource_is_limited(
    tenant: Tenant, feeds: FakeCalendarServer
) -> None:
    resource = tenant.make_resource()
    addresses = [feeds.put(f"{FEED}?{number}") for number in range(MAX_CONNECTED + 1)]

    answers = [subscribe(tenant, resource, address) for address in addresses]
    tenant.delete(f"/calendars/{answers[0].data['id']}")
    again = subscribe(tenant, resource, addresses[-1])

    assert [answer.status for answer in answers] == [201] * MAX_CONNECTED + [422]
    assert answers[-1].json["errors"] == {
        "resource_id": [f"A resource has at most {MAX_CONNECTED} connected calendars."]
    }
    assert again.status == 201


def test_server_is_called_outside_transactions(
    tenant: Tenant, fake_caldav: FakeCalendarServer
) -> None:
    resource = tenant.make_resource()
    fake_caldav.put(WORK)
    key = {"Idempotency-Key": "once"}

    refused = connect_with(tenant, resource, key)
    calendar = connect(tenant, resource).data
    changed = tenant.put(f"/calendars/{calendar['id']}", {"password": "new"}, **key)
    own = tenant.post("/calendars", {"name": "Own", "resource_id": resource["id"]}, **key)
    again = tenant.post("/calendars", {"name": "Own", "resource_id": resource["id"]}, **key)

    text = "Not supported when connecting a calendar."
    for answer in (refused, changed):
        assert (answer.status, answer.json["errors"]) == (422, {"Idempotency-Key": [text]})
    assert len(fake_caldav.asked) == 1
    assert (own.status, again.content) == (201, own.content)


def connect_with(tenant: Tenant, resource: Any, headers: dict[str, str]) -> Answer:
    body = {"resource_id": resource["id"], "provider": "caldav", "address": WORK}
    return tenant.post("/calendars", body, **headers)


# --- Who may --------------------------------------------------------------------------------------
def test_resource_key_connects_its_own_calendars(
    tenant: Tenant, fake_caldav: FakeCalendarServer
) -> None:
    ada = tenant.make_resource("Ada", email="ada@example.com")
    bob = tenant.make_resource("Bob")
    fake_caldav.put(WORK)
    caller = Caller(ada["api_token"], "ada@example.com")

    own, foreign = connect(caller, ada), connect(caller, bob)

    assert (own.status, foreign.status) == (201, 422)
    assert foreign.json["errors"] == {"resource_id": ["There is no such resource."]}
    path = f"/calendars/{own.data['id']}"
    assert caller.post(f"{path}/test").status == 200
    assert caller.post(f"{path}/disconnect").status == 200


@pytest.mark.parametrize(
    ("method", "end"),
    [
        ("POST", "/test"),
        ("POST", "/sync"),
        ("POST", "/disconnect"),
        ("POST", "/feed"),
        ("DELETE", "/feed"),
    ],
)
def test_permissions_of_each_role(
    tenant: Tenant,
    make_tenant: Callable[..., Tenant],
    fake_caldav: FakeCalendarServer,
    method: str,
    end: str,
) -> None:
    bob = tenant.make_resource("Bob", email="bob@example.com")
    calendar = connect(tenant, tenant.make_resource(), fake_caldav.put(WORK)).data
    path = f"/calendars/{calendar['id']}{end}"
    if method == "DELETE":
        tenant.post(path)
    callers = {
        "widget": tenant.widget(),
        "viewer": tenant.member("viewer@example.com", "viewer"),
        "stranger": make_tenant(),
        "another resource": Caller(bob["api_token"], "bob@example.com"),
        "editor": tenant.member("editor@example.com", "editor"),
    }

    statuses = {name: caller.call(method, path).status for name, caller in callers.items()}

    done = {"POST/feed": 201, "DELETE/feed": 204}.get(f"{method}{end}", 200)
    assert statuses == {
        "widget": 403,
        "viewer": 200 if end == "/test" else 403,
        "stranger": 404,
        "another resource": 404,
        "editor": done,
    }


@pytest.mark.parametrize("end", ["test", "sync", "disconnect"])
def test_sync_and_test_of_a_service_calendar_are_refused(tenant: Tenant, end: str) -> None:
    calendar = tenant.post_resource()["calendars"][0]

    answer = tenant.post(f"/calendars/{calendar['id']}/{end}")

    text = "This calendar is not connected to a provider."
    assert (answer.status, answer.json["errors"]) == (422, {"calendar_id": [text]})
    assert tenant.get(f"/calendars/{calendar['id']}").data == calendar


# --- PUT ------------------------------------------------------------------------------------------
def stop(calendar: Any, problem: str = "unauthorized", **values: Any) -> None:
    """As a worker leaves it that was refused."""
    stopped = {"problem": problem, "problem_since": NOW, "failures": 1, "next_at": None}
    Connection.objects.filter(calendar=calendar["id"]).update(**stopped, **values)


def test_new_password_clears_the_problem_and_keeps_events(
    tenant: Tenant, fake_caldav: FakeCalendarServer, clock: Any
) -> None:
    resource = tenant.make_resource()
    calendar = connect(tenant, resource, fake_caldav.put(WORK)).data
    event = make_read(calendar["id"])
    stop(calendar, mark={"sync-token": "7"})
    Calendar.objects.filter(id=calendar["id"]).update(synced_at=NOW)
    path = f"/calendars/{calendar['id']}"
    before = tenant.get(path).data
    clock.shift(60)

    answer = tenant.put(path, {"password": "better"})

    problem = {"code": "unauthorized", "text": PROVIDER_ERRORS["unauthorized"], "since": STAMP}
    assert before == record(
        calendar, resource, provider_sync=False, problem=problem, synced_at=STAMP
    )
    moved = {"updated_at": "2026-11-20T09:31:00+0000"}
    assert (answer.status, answer.data) == (
        200,
        record(calendar, resource, synced_at=STAMP, **moved),
    )
    kept = Connection.objects.get()
    assert credentials_of(kept) == CalendarAccess(WORK, "ada", "better")
    assert (kept.mark, kept.failures, kept.next_at) == (
        {"sync-token": "7"},
        0,
        at("2026-11-20 09:31"),
    )
    assert Event.objects.filter(id=event.id).exists()
    assert ExternalObject.objects.count() == 1


def test_new_address_replaces_the_synced_events(
    tenant: Tenant, fake_caldav: FakeCalendarServer, clock: Any
) -> None:
    resource = tenant.make_resource()
    calendar = connect(tenant, resource, fake_caldav.put(WORK)).data
    read = make_read(calendar["id"])
    booking = tenant.book(calendar_id=calendar["id"], **SPAN).data
    booked = Event.objects.get(bookings=booking["id"])
    assert WrittenEvent.objects.get().event == booked
    Connection.objects.update(mark={"ctag": "1"})
    fake_caldav.put(HOME, "Home", may_write=False)

    answer = tenant.put(f"/calendars/{calendar['id']}", {"address": HOME, "name": "New"})

    values = {"provider_id": HOME, "provider_access": "reader", "provider_primary": False}
    assert answer.data == record(calendar, resource, name="New", **values)
    assert list(Event.objects.all()) == [booked]
    assert read.id not in Event.objects.values_list("id", flat=True)
    assert (ExternalObject.objects.count(), WrittenEvent.objects.count()) == (0, 0)
    assert Connection.objects.get().mark == {}


def test_stored_password_is_not_sent_to_another_server(
    tenant: Tenant, fake_caldav: FakeCalendarServer, clock: Any
) -> None:
    resource = tenant.make_resource()
    calendar = connect(tenant, resource, fake_caldav.put(WORK)).data
    other = fake_caldav.put("https://elsewhere.example.com/ada/")
    path = f"/calendars/{calendar['id']}"
    before = tenant.get(path).data

    refused = tenant.put(path, {"address": other})
    kept = tenant.get(path).data
    taken = tenant.put(path, {"address": other, "password": "another"})

    sentence = "Enter the password again: the address is on another server."
    assert (refused.status, refused.json["errors"]) == (422, {"password": [sentence]})
    assert kept == before
    assert (taken.status, taken.data["provider_id"]) == (200, other)


def test_refused_update_changes_nothing(tenant: Tenant, fake_caldav: FakeCalendarServer) -> None:
    resource = tenant.make_resource()
    calendar = connect(tenant, resource, fake_caldav.put(WORK)).data
    stop(calendar)
    fake_caldav.calendars[WORK] = ProviderError("unauthorized")
    path = f"/calendars/{calendar['id']}"
    before = tenant.get(path).data

    answer = tenant.put(path, {"password": "wrong", "name": "New"})

    assert (answer.status, answer.json["problem"]) == (422, "unauthorized")
    assert tenant.get(path).data == before
    assert credentials_of(Connection.objects.get()).password == "correct horse"


def test_update_is_refused_as_a_whole(tenant: Tenant, fake_caldav: FakeCalendarServer) -> None:
    resource = tenant.make_resource()
    calendar = connect(tenant, resource, fake_caldav.put(WORK), provider_primary=False).data
    fake_caldav.put(HOME, may_write=False)
    path = f"/calendars/{calendar['id']}"

    answer = tenant.put(path, {"address": HOME, "name": "New", "provider_primary": True})
    before = tenant.get(path).data
    fake_caldav.put(HOME)
    again = tenant.put(path, {"address": HOME, "name": "New", "provider_primary": True})

    assert (answer.status, answer.json["problem"]) == (422, "no_write_access")
    assert before == calendar
    values = {"name": "New", "provider_id": HOME, "provider_primary": True}
    assert again.data == record(calendar, resource, **values)


def test_address_of_a_connected_calendar_is_refused(
    tenant: Tenant, fake_caldav: FakeCalendarServer
) -> None:
    resource = tenant.make_resource()
    connect(tenant, resource, fake_caldav.put(WORK))
    second = connect(tenant, resource, fake_caldav.put(HOME)).data

    taken = tenant.put(f"/calendars/{second['id']}", {"address": WORK})
    same = tenant.put(f"/calendars/{second['id']}", {"address": HOME})

    assert (taken.status, taken.json["code"], same.status) == (409, "already_exists", 200)


def test_unreadable_secrets_are_required_again(
    tenant: Tenant, fake_caldav: FakeCalendarServer, settings: Any
) -> None:
    calendar = connect(tenant, tenant.make_resource(), fake_caldav.put(WORK)).data
    path = f"/calendars/{calendar['id']}"
    settings.ENCRYPTION_KEYS = ["another key that is long enough to be one of ours"]

    tried = tenant.post(f"{path}/test").data
    half = tenant.put(path, {"password": "new"})
    whole = tenant.put(path, {"address": WORK, "password": "new"})

    assert (tried["ok"], tried["problem"]) == (False, "secret_unreadable")
    assert (half.status, half.json["problem"]) == (422, "secret_unreadable")
    assert (whole.status, fake_caldav.asked[-1]) == (200, CalendarAccess(WORK, "ada", "new"))


def test_primary_calendar_can_be_changed(
    tenant: Tenant, fake_caldav: FakeCalendarServer, feeds: FakeCalendarServer
) -> None:
    resource = tenant.make_resource()
    first = connect(tenant, resource, fake_caldav.put(WORK)).data["id"]
    second = connect(tenant, resource, fake_caldav.put(HOME)).data["id"]
    feed = subscribe(tenant, resource, feeds.put(FEED)).data["id"]
    asked = len(fake_caldav.asked)

    answers = [
        tenant.put(f"/calendars/{one}", {"provider_primary": is_primary})
        for one, is_primary in ((second, True), (feed, True), (second, False))
    ]

    assert [answer.status for answer in answers] == [200, 422, 200]
    assert answers[0].data["provider_primary"] is True
    assert answers[1].json["problem"] == "no_write_access"
    assert not Calendar.objects.filter(provider_primary=True).exists()
    assert tenant.get(f"/calendars/{first}").data["provider_primary"] is False
    assert len(fake_caldav.asked) == asked


@pytest.mark.parametrize(
    "given",
    [{"address": WORK}, {"username": "ada"}, {"password": "x"}, {"provider_primary": True}],
)
def test_connection_fields_of_a_service_calendar_are_refused(
    tenant: Tenant, fake_caldav: FakeCalendarServer, given: dict[str, Any]
) -> None:
    calendar = tenant.post_resource()["calendars"][0]

    answer = tenant.put(f"/calendars/{calendar['id']}", {"name": "New", **given})

    text = "This calendar is not connected to a provider."
    assert (answer.status, answer.json["errors"]) == (422, {"calendar_id": [text]})
    assert tenant.get(f"/calendars/{calendar['id']}").data == calendar


# --- Test, sync -----------------------------------------------------------------------------------
def test_successful_test_changes_nothing(tenant: Tenant, fake_caldav: FakeCalendarServer) -> None:
    calendar = connect(tenant, tenant.make_resource(), fake_caldav.put(WORK)).data
    stop(calendar)
    path = f"/calendars/{calendar['id']}"
    before = tenant.get(path).data

    answer = tenant.post(f"{path}/test")

    expected = {
        "ok": True,
        "problem": None,
        "text": "The calendar can be used.",
        "access": "writer",
        "seconds": answer.data["seconds"],
    }
    assert (answer.status, answer.json) == (200, {"data": expected})
    assert tenant.get(path).data == before
    assert fake_caldav.asked[-1] == CalendarAccess(WORK, "ada", "correct horse")


@pytest.mark.parametrize("code", sorted(FINAL_ERRORS | {"unreachable"}))
def test_failed_test_shows_the_problem(
    tenant: Tenant, fake_caldav: FakeCalendarServer, code: str
) -> None:
    calendar = connect(tenant, tenant.make_resource(), fake_caldav.put(WORK)).data
    fake_caldav.calendars[WORK] = ProviderError(code)

    answer = tenant.post(f"/calendars/{calendar['id']}/test")

    seconds = answer.data.pop("seconds")
    assert seconds >= 0
    assert (answer.status, answer.data) == (
        200,
        {"ok": False, "problem": code, "text": PROVIDER_ERRORS[code], "access": None},
    )


def test_test_reports_lost_write_access(tenant: Tenant, fake_caldav: FakeCalendarServer) -> None:
    calendar = connect(tenant, tenant.make_resource(), fake_caldav.put(WORK)).data
    fake_caldav.put(WORK, may_write=False)

    tried = tenant.post(f"/calendars/{calendar['id']}/test").data

    assert (tried["ok"], tried["problem"], tried["access"]) == (False, "no_write_access", "reader")


def test_sync_makes_the_calendar_due(tenant: Tenant, fake_caldav: FakeCalendarServer) -> None:
    resource = tenant.make_resource()
    calendar = connect(tenant, resource, fake_caldav.put(WORK)).data
    stop(calendar)

    answer = tenant.post(f"/calendars/{calendar['id']}/sync")

    problem = {"code": "unauthorized", "text": PROVIDER_ERRORS["unauthorized"], "since": STAMP}
    assert (answer.status, answer.json) == (
        200,
        {"data": record(calendar, resource, problem=problem)},
    )
    assert Connection.objects.get().next_at == NOW


def test_sync_request_keeps_a_running_sync(tenant: Tenant, fake_caldav: FakeCalendarServer) -> None:
    resource = tenant.make_resource()
    calendar = connect(tenant, resource, fake_caldav.put(WORK)).data
    ends, token = at("2026-11-20 09:31"), uuid.uuid4()
    Connection.objects.update(next_at=ends, lease_token=token, done=100, total=5000)

    answer = tenant.post(f"/calendars/{calendar['id']}/sync")

    progress = {"done": 100, "total": 5000}
    assert answer.data == record(calendar, resource, progress=progress)
    kept = Connection.objects.get()
    assert (kept.next_at, kept.lease_token) == (ends, token)


def test_count_of_unreadable_objects(
    tenant: Tenant, fake_caldav: FakeCalendarServer, clock: Any
) -> None:
    resource = tenant.post_resource()
    calendar = connect(tenant, resource, fake_caldav.put(WORK)).data
    Connection.objects.update(unread=3)

    listed = {one["id"]: one for one in tenant.get("/calendars").data}

    own = resource["calendars"][0]
    assert listed == {calendar["id"]: record(calendar, resource, unread=3), own["id"]: own}
    assert own["unread"] == 0


# --- Let go ---------------------------------------------------------------------------------------
def test_disconnected_calendar_keeps_its_bookings(
    tenant: Tenant, fake_caldav: FakeCalendarServer, clock: Any
) -> None:
    resource = tenant.make_resource()
    calendar = connect(tenant, resource, fake_caldav.put(WORK, invites=True)).data
    make_read(calendar["id"])
    booking = tenant.book(calendar_id=calendar["id"], **SPAN).data
    booked = Event.objects.get(bookings=booking["id"])
    assert WrittenEvent.objects.get().event == booked
    tenant.post(f"/calendars/{calendar['id']}/feed")
    path = f"/calendars/{calendar['id']}"

    answer = tenant.post(f"{path}/disconnect")

    expected = record(
        calendar,
        resource,
        provider="service",
        provider_id=None,
        provider_access=None,
        provider_primary=False,
        provider_sync=False,
    )
    assert (answer.status, answer.json) == (200, {"data": expected})
    assert tenant.get(path).data == expected
    assert list(Event.objects.all()) == [booked]
    left = [model.objects.count() for model in (Connection, ExternalObject, WrittenEvent, Feed)]
    assert left == [0, 0, 0, 0]
    assert tenant.make_event(calendar["id"], **LATER)["calendar_id"] == calendar["id"]
    assert connect(tenant, resource).status == 201


def test_delete_removes_secrets_and_synced_events(
    tenant: Tenant, fake_caldav: FakeCalendarServer
) -> None:
    resource = tenant.make_resource()
    calendar = connect(tenant, resource, fake_caldav.put(WORK)).data
    make_read(calendar["id"], busy=True)
    tenant.post(f"/calendars/{calendar['id']}/feed")
    booking = tenant.book(calendar_id=calendar["id"], **SPAN).data
    path = f"/calendars/{calendar['id']}"

    used = tenant.delete(path)
    tenant.post(f"/bookings/{booking['id']}/cancel")
    removed = tenant.delete(path)

    assert (used.status, used.error) == (
        409,
        {"error": "The calendar has bookings that are not completed.", "code": "in_use"},
    )
    assert (removed.status, removed.content, tenant.get(path).status) == (204, b"", 404)
    left = [model.objects.count() for model in (Connection, ExternalObject, Feed)]
    assert left == [0, 0, 0]
    assert [event.bookings.count() for event in Event.objects.all()] == [1]
    # Whoever asks for the booking still sees where it stood.
    shown = tenant.get(f"/bookings/{booking['id']}").data["calendar"]
    assert (shown["id"], shown["provider_sync"]) == (calendar["id"], False)
    assert connect(tenant, resource).data["provider_primary"] is True


def test_last_service_calendar_cannot_be_deleted(
    tenant: Tenant, fake_caldav: FakeCalendarServer
) -> None:
    resource = tenant.make_resource()
    connected = connect(tenant, resource, fake_caldav.put(WORK)).data["id"]

    own = tenant.delete(f"/calendars/{resource['calendars'][0]['id']}")
    other = tenant.delete(f"/calendars/{connected}")

    assert (own.status, own.json["code"], other.status) == (409, "in_use", 204)


# --- What stands in them --------------------------------------------------------------------------
def test_synced_events_are_read_only(tenant: Tenant, fake_caldav: FakeCalendarServer) -> None:
    calendar = connect(tenant, tenant.make_resource(), fake_caldav.put(WORK)).data["id"]
    event = make_read(calendar, uid="over-there@example.com")
    path = f"/events/{event.id}"

    shown = tenant.get(path).data
    made = tenant.post("/events", {"calendar_id": calendar, "what": "Mine", **SPAN})
    changed, removed = tenant.put(path, {"what": "Mine"}), tenant.delete(path)

    assert (shown["what"], shown["provider_id"]) == ("Dentist", "over-there@example.com")
    text = "This calendar is connected: change its events at the provider."
    assert (made.status, made.json["errors"]) == (422, {"calendar_id": [text]})
    for answer in (changed, removed):
        assert (answer.status, answer.error) == (
            409,
            {
                "error": "The event belongs to a connected calendar: change it at the provider.",
                "code": "in_use",
            },
        )
    assert tenant.get(path).data == shown


def test_booking_into_a_named_connected_calendar(
    tenant: Tenant, fake_caldav: FakeCalendarServer, feeds: FakeCalendarServer
) -> None:
    resource = tenant.make_resource()
    work = connect(tenant, resource, fake_caldav.put(WORK)).data["id"]
    feed = subscribe(tenant, resource, feeds.put(FEED)).data["id"]

    written = tenant.book(calendar_id=work, **SPAN)
    refused = tenant.book(calendar_id=feed, **LATER)

    assert tenant.get(f"/bookings/{written.data['id']}").data["calendar"]["id"] == work
    text = "This calendar is read-only: choose a writable calendar."
    assert (refused.status, refused.json["errors"]) == (422, {"calendar_id": [text]})


def test_bookings_default_to_the_first_service_calendar(
    tenant: Tenant, fake_caldav: FakeCalendarServer, clock: Any
) -> None:
    ada, bob = tenant.make_resource("Ada"), tenant.make_resource("Bob")
    own = {}
    for resource in (ada, bob):
        clock.shift(1)
        connect(tenant, resource, fake_caldav.put(f"{WORK}{resource['id']}"))
        clock.shift(1)
        body = {"name": "Own", "resource_id": resource["id"]}
        own[resource["id"]] = tenant.post("/calendars", body).data["id"]
        tenant.delete(f"/calendars/{resource['calendars'][0]['id']}")
    project = tenant.make_project(ada["id"], bob["id"], availability={"mode": "mutual"})

    named = tenant.book(resource_id=ada["id"], **SPAN).data["id"]
    tenant.post(f"/bookings/{named}/reschedule", {**LATER, "resource_id": bob["id"]})
    mutual = tenant.book(project_id=project["id"], **SPAN, settings={"enforce_availability": False})

    assert mutual.status == 201
    calendars = {str(event.calendar_id) for event in Event.objects.all()}
    assert calendars == set(own.values())
    assert Event.objects.count() == 3


def test_query_count_of_listings_is_constant(
    tenant: Tenant, fake_caldav: FakeCalendarServer
) -> None:
    paths = ("/calendars", "/resources?include=calendars", "/bookings?include=calendar")
    counts: list[list[int]] = []
    for number, name in enumerate("ABC"):
        resource = tenant.make_resource(name)
        calendar = connect(tenant, resource, fake_caldav.put(f"{WORK}{name}")).data["id"]
        tenant.book(calendar_id=calendar, **SPAN)
        if number != 1:
            counts.append([queries_of(tenant, path, number + 1) for path in paths])

    assert counts[0] == counts[1]


def queries_of(tenant: Tenant, path: str, rows: int) -> int:
    with Queries(connection) as queries:
        answer = tenant.get(path)
    assert len(answer.data) >= rows
    return len(queries)
