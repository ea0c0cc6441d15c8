"""The links of video calls in feeds and in events at providers."""

from typing import Any

import pytest
from django.utils import timezone

from bookings.models import Booking
from bookings.services import store_conference_link
from external_calendars.models import WrittenEvent
from external_calendars.providers import PROVIDERS
from notifications.models import Delivery
from tests.bookings.booking_drafts import uid_of
from tests.external_calendars.mirrored import Memory, connect, events_of, write
from tests.external_calendars.test_feed import entries, make_feed
from tests.external_calendars.test_mirror import act, book, move, times
from tests.world import Tenant

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]

TEMPLATE = {"provider": "template", "template": "https://video.example/{booking_id}"}
LINK = "https://meet.google.example/abc-defg-hij"
MARTY = "Marty McFly\nmarty@example.com\n+1 555 0100"
FREE = {"enforce_availability": False}


@pytest.fixture(autouse=True)
def _at_home(settings: Any) -> None:
    settings.PUBLIC_URL = "http://127.0.0.1:8000"


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Memory:
    """In the place of CalDAV."""
    provider = Memory()
    monkeypatch.setitem(PROVIDERS, "caldav", provider)
    return provider


@pytest.fixture
def ada(tenant: Tenant) -> Any:
    return tenant.make_resource("Ada", email="ada@example.com")


def make_project(tenant: Tenant, *resources: Any, conference: Any, **given: Any) -> str:
    ids = [each["id"] for each in resources]
    return tenant.make_project(*ids, settings={"conference": conference}, **given)["id"]


def shown(event: Any) -> list[str]:
    """LOCATION, DESCRIPTION, URL and CONFERENCE."""
    return [str(event.get(name, "")) for name in ("LOCATION", "DESCRIPTION", "URL", "CONFERENCE")]


# --- Feeds ----------------------------------------------------------------------------------------
def test_feed_with_details_has_the_link(tenant: Tenant, ada: Any) -> None:
    project_id = make_project(tenant, ada, conference=TEMPLATE)
    booking = book(tenant, ada, project_id=project_id, what="Call", settings=FREE)
    link = f"https://video.example/{booking['id']}"
    calendar = ada["calendars"][0]["id"]

    with_details = shown(entries(make_feed(tenant, calendar, details=True))["Call: Marty McFly"])
    without = shown(entries(make_feed(tenant, calendar))["Call"])

    assert with_details == [link, f"{MARTY}\n\n{link}", link, link]
    assert without == ["", "", "", ""]


def test_feed_of_a_request_has_no_link(tenant: Tenant, ada: Any) -> None:
    project_id = make_project(tenant, ada, conference=TEMPLATE)
    graph = "confirm_decline"
    booking = book(tenant, ada, project_id=project_id, what="Call", graph=graph, settings=FREE)
    path = make_feed(tenant, ada["calendars"][0]["id"], details=True)

    before = shown(entries(path)["Call: Marty McFly"])[2:]
    act(tenant, booking, "confirm")
    after = shown(entries(path)["Call: Marty McFly"])[2:]

    assert (before, after) == (["", ""], [f"https://video.example/{booking['id']}"] * 2)


def test_feed_of_a_companion_has_the_link(tenant: Tenant, ada: Any) -> None:
    bob = tenant.make_resource("Bob")
    terms = {"mode": "mutual"}
    project_id = make_project(tenant, ada, bob, conference=TEMPLATE, availability=terms)
    answer = tenant.book(project_id=project_id, what="Call", settings=FREE, **times())
    path = make_feed(tenant, bob["calendars"][0]["id"], details=True)

    link = f"https://video.example/{answer.data['id']}"
    assert shown(entries(path)["Call: Marty McFly"])[2:] == [link, link]


# --- Events at providers --------------------------------------------------------------------------
def path_of(booking: Any) -> str:
    return f"/ada/work/{uid_of(booking)}@127.0.0.1.ics"


def test_written_event_has_the_link(tenant: Tenant, ada: Any, memory: Memory) -> None:
    connect(ada)
    project_id = make_project(tenant, ada, conference=TEMPLATE)
    booking = book(tenant, ada, project_id=project_id, settings=FREE)
    write()
    link = f"https://video.example/{booking['id']}"
    [event] = events_of(memory.text(path_of(booking)))
    made = shown(event)[:2]

    move(tenant, booking)
    write()

    [event] = events_of(memory.text(path_of(booking)))
    assert made == [link, f"{link}\n\n{MARTY}"]
    assert shown(event)[:2] == made


def test_written_event_keeps_its_place(tenant: Tenant, ada: Any, memory: Memory) -> None:
    connect(ada)
    project_id = make_project(tenant, ada, conference=TEMPLATE)
    texts = {"where": "Hall 1", "description": "Bring your card."}
    booking = book(tenant, ada, project_id=project_id, settings=FREE, **texts)
    write()

    [event] = events_of(memory.text(path_of(booking)))
    link = f"https://video.example/{booking['id']}"
    assert shown(event)[:2] == ["Hall 1", f"Bring your card.\n\n{link}\n\n{MARTY}"]


def test_link_is_written_only_to_calendars_that_did_not_make_it(
    tenant: Tenant, ada: Any, memory: Memory
) -> None:
    bob = tenant.make_resource("Bob")
    connect(ada, provider="google")
    connect(bob)
    terms = {"mode": "mutual"}
    project_id = make_project(tenant, ada, bob, conference={"provider": "meet"}, availability=terms)
    booking = tenant.book(project_id=project_id, settings=FREE, **times()).data
    row = Booking.objects.get(id=booking["id"])
    Delivery.objects.filter(type="calendar").update(
        state="delivered", next_at=None, finished_at=timezone.now()
    )

    companion = row.event.companions.get()
    assert store_conference_link(companion.id, LINK, now=timezone.now()) is True

    planned = Delivery.objects.filter(type="calendar", state="scheduled")
    assert [each.content["event_id"] for each in planned] == [str(companion.id)]
    write()
    href = WrittenEvent.objects.get(event=companion).href
    [event] = events_of(memory.text(href))
    assert shown(event)[:2] == [LINK, f"{LINK}\n\nMarty McFly\nmarty@example.com"]
