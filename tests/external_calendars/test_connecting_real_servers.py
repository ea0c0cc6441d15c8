"""Calendars of real servers, connected over the API; and our own feed, read by our own reader."""

from datetime import UTC, datetime
from typing import Any

import pytest

from external_calendars.credentials import credentials_of
from external_calendars.models import Connection
from external_calendars.providers import PROVIDERS
from external_calendars.providers.base import PROVIDER_ERRORS, CalendarAccess
from tests.external_calendars.front import Answer, Front
from tests.external_calendars.servers import PASSWORD, READER, CalendarServer
from tests.external_calendars.stored_objects import NOTHING_STORED, Stored
from tests.external_calendars.test_feed import SPAN, fetch, make_feed
from tests.sinks import Call
from tests.world import BERLIN, Tenant

WINDOW = (datetime(2026, 10, 1, tzinfo=UTC), datetime(2027, 12, 1, tzinfo=UTC))


def body(resource: Any, access: CalendarAccess, **given: Any) -> dict[str, Any]:
    return {"resource_id": resource["id"], "provider": "caldav", **access._asdict(), **given}


# --- CalDAV ---------------------------------------------------------------------------------------
def test_server_url_is_enough_to_connect(tenant: Tenant, server: CalendarServer) -> None:
    resource, collection = tenant.make_resource(), server.make_calendar()
    access = collection.access._replace(address=server.url)

    answer = tenant.post("/calendars", body(resource, access))
    tried = tenant.post(f"/calendars/{answer.data['id']}/test").data

    shown = {key: answer.data[key] for key in ("provider_id", "provider_access")}
    assert (answer.status, shown) == (
        201,
        {"provider_id": collection.url, "provider_access": "writer"},
    )
    assert answer.data["name"].lower() == "home"
    assert credentials_of(Connection.objects.get()) == collection.access
    assert (tried["ok"], tried["access"], tried["problem"]) == (True, "writer", None)


def test_connect_errors_are_sentences(tenant: Tenant, radicale: CalendarServer) -> None:
    resource, collection = tenant.make_resource(), radicale.make_calendar()
    access = collection.access
    radicale.make_calendar(collection.user, "work")
    wrong = {
        "unauthorized": access._replace(password="wrong"),
        "several_calendars": access._replace(address=radicale.url),
        "unreachable": access._replace(address="http://127.0.0.1:9/"),
        "address_refused": access._replace(address="http://10.0.0.1/"),
    }

    answers = {code: tenant.post("/calendars", body(resource, one)) for code, one in wrong.items()}

    assert {code: answer.json.get("problem") for code, answer in answers.items()} == {
        code: code for code in wrong
    }
    assert {answer.status for answer in answers.values()} == {422}
    assert answers["unauthorized"].json["errors"] == {"password": [PROVIDER_ERRORS["unauthorized"]]}
    (several,) = answers["several_calendars"].json["errors"]["address"]
    assert several.startswith(PROVIDER_ERRORS["several_calendars"])
    for name in ("home", "work"):
        assert f"{radicale.url}{radicale.home(collection.user)}{name}/" in several
    assert not Connection.objects.exists()


def test_read_only_calendar_cannot_be_primary(tenant: Tenant, radicale: CalendarServer) -> None:
    resource, collection = tenant.make_resource(), radicale.make_calendar()
    access = CalendarAccess(collection.url, READER, PASSWORD)

    refused = tenant.post("/calendars", body(resource, access, provider_primary=True))
    read = tenant.post("/calendars", body(resource, access))

    assert (refused.status, refused.json["problem"]) == (422, "no_write_access")
    assert (read.data["provider_access"], read.data["provider_primary"]) == ("reader", False)


# --- Our own feed ---------------------------------------------------------------------------------
class Mirror:
    """A web server with a copy of a feed: `show()` takes another copy."""

    def __init__(self, front: Front, path: str) -> None:
        self.front, self.path = front, path
        self.address = f"{front.url}/v2{path}"
        self.show()

    def show(self) -> None:
        shown = fetch(self.path)
        kept = {name: shown.headers[name] for name in ("ETag", "Content-Type", "Cache-Control")}

        def answer(call: Call) -> Answer:
            if call.headers.get("if-none-match") == kept["ETag"]:
                return Answer(304, headers=kept)
            return Answer(200, shown.content, kept)

        self.front.answer = answer


@pytest.mark.usefixtures("clock")
def test_published_feed_can_be_subscribed(tenant: Tenant, fake: Front) -> None:
    ada, bob = tenant.make_resource("Ada", BERLIN), tenant.make_resource("Bob", BERLIN)
    calendar = ada["calendars"][0]["id"]
    booking = tenant.book(calendar_id=calendar, what="Check-up; a, b", **SPAN).data["id"]
    tenant.make_event(calendar, "2026-12-24", "2026-12-27", what="Holiday", all_day=True)
    mirror = Mirror(fake, make_feed(tenant, calendar))
    subscribed = {"resource_id": bob["id"], "provider": "ics", "address": mirror.address}

    made = tenant.post("/calendars", subscribed)
    access = credentials_of(Connection.objects.get())
    feed = PROVIDERS["ics"]
    first = feed.list_changes(access, {}, NOTHING_STORED, deadline=5)
    again = feed.list_changes(access, first.mark, NOTHING_STORED, deadline=5)
    tenant.post(f"/bookings/{booking}/cancel")
    mirror.show()
    changed = feed.list_changes(access, first.mark, Stored(first.changed), deadline=5)

    assert (made.status, made.data["name"], made.data["provider_id"]) == (
        201,
        "Bookings",
        fake.url,
    )
    assert (len(first.changed), first.is_whole) == (2, True)
    assert (dict(again.changed), list(again.gone), again.mark) == ({}, [], first.mark)
    (gone,) = changed.gone
    assert (gone in first.changed, dict(changed.changed)) == (True, {})
