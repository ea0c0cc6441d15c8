"""Invitations over Cyrus, which carries them from one user's calendar to another's."""

from typing import Any

import pytest
from django.utils import timezone

from availability.models import Calendar, Resource
from external_calendars.models import Connection, WrittenEvent
from external_calendars.services import connect_calendar
from tests.external_calendars.mirrored import events_of, write
from tests.external_calendars.servers import CYRUS_DOMAIN, CalendarServer, Collection
from tests.external_calendars.test_mirror import _at_home, book
from tests.external_calendars.test_mirror_servers import text_of
from tests.world import Tenant

__all__ = ["_at_home"]
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def home(cyrus: CalendarServer) -> Collection:
    return cyrus.make_calendar()


@pytest.fixture
def zoe(cyrus: CalendarServer) -> Collection:
    """The calendar of another user, into which the server writes what she is invited to."""
    return cyrus.make_calendar(name="Default")


@pytest.fixture
def desk(tenant: Tenant) -> Any:
    """A resource whose address is not that of the calendar's account."""
    return tenant.make_resource("Harbour Dental", email="desk@harbour.example")


@pytest.fixture
def work(desk: Any, home: Collection) -> Calendar:
    return connect_calendar(
        resource=Resource.objects.get(id=desk["id"]),
        provider="caldav",
        access=home.access,
        given={},
        now=timezone.now(),
    )


def address_of(collection: Collection) -> str:
    return f"{collection.user}@{CYRUS_DOMAIN}"


def customer(collection: Collection) -> dict[str, str]:
    return {"name": "Zoe", "email": address_of(collection)}


def inbox_of(collection: Collection) -> list[str]:
    """The methods of the messages in a user's Inbox."""
    inbox = Collection(
        collection.server, collection.user, f"{collection.server.home(collection.user)}Inbox/"
    )
    texts = [inbox.get(name) or "" for name in inbox.names()]
    return [line for text in texts for line in text.splitlines() if line.startswith("METHOD:")]


def test_guest_is_invited_by_the_account(
    tenant: Tenant, desk: Any, work: Calendar, home: Collection, zoe: Collection
) -> None:
    booking = book(tenant, desk, customer=customer(zoe))
    write()

    [event] = events_of(text_of(home, booking))
    assert str(event["ORGANIZER"]) == f"mailto:{address_of(home)}"
    # Delivered: she is a user of the same server. 1.1 is of a message on its way to another one.
    assert WrittenEvent.objects.get().invitations == {address_of(zoe): "1.2"}
    assert Connection.objects.get().last_write_invited is True
    assert inbox_of(zoe) == ["METHOD:REQUEST"]
    assert [str(event["SUMMARY"]) for event in events_of(zoe.get(zoe.names()[0]) or "")] == [
        "Meeting"
    ]


def test_server_invites_nobody_for_a_foreign_organizer(
    tenant: Tenant, desk: Any, work: Calendar, home: Collection, zoe: Collection
) -> None:
    """The account's addresses are not known, so that the organizer is the resource."""
    Connection.objects.update(user_addresses=[])
    booking = book(tenant, desk, customer=customer(zoe))
    write()

    [event] = events_of(text_of(home, booking))
    assert str(event["ORGANIZER"]) == "mailto:desk@harbour.example"
    assert WrittenEvent.objects.get().invitations == {address_of(zoe): ""}
    assert Connection.objects.get().last_write_invited is False
    assert inbox_of(zoe) == []
