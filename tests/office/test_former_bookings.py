"""A search without an upcoming booking says what became of the others."""

import re
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.db import connection
from django.urls import reverse
from django.utils import timezone

from apps_config.models import Account, Membership
from availability.models import Event
from bookings.models import Booking, StateChange
from bookings.pages.formatting import day_and_time, short_date_words, short_day_words, time_words
from tests.office.conftest import Enter
from tests.office.test_command_search import results
from tests.queries import Queries
from tests.world import Tenant

LIST = reverse("admin:bookings_booking_changelist")
# The links below "No upcoming booking".
FORMER = re.compile(r'<a class="office-link" href="/admin/bookings/booking/[^"]+">([^<]+)</a></li>')
MARTY = {"name": "Marty McFly", "email": "marty@example.com"}


@pytest.fixture
def ada(tenant: Tenant) -> Any:
    return tenant.make_resource("Ada")


def book(tenant: Tenant, ada: Any, days: int, what: str = "Check-up", **given: Any) -> Booking:
    start = (timezone.now() + timedelta(days=days)).replace(hour=9, minute=0, second=0)
    times = {"start": start.isoformat(), "end": (start + timedelta(minutes=30)).isoformat()}
    values = {"customer": MARTY, "what": what, **times, **given}
    made = tenant.book(resource_id=ada["id"], **values).data
    return Booking.objects.select_related("event").get(id=made["id"])


def cancel(booking: Booking, *, ago: int = 0, **by: str) -> None:
    booking.state, booking.completed = "cancelled", True
    booking.save()
    StateChange.objects.create(
        booking=booking,
        app=booking.app,
        from_state="confirmed",
        to_state="cancelled",
        action="cancel",
        created_at=timezone.now() - timedelta(days=ago),
        **by,
    )


def when(booking: Booking) -> str:
    start = booking.event.start
    is_this_year = start.year == timezone.now().year
    day = short_day_words(start) if is_this_year else short_date_words(start)
    return day_and_time(day, time_words(start))


def search(client: Any, term: str = "marty") -> list[str]:
    page = client.get(LIST, {"tab": "upcoming", "q": term})
    assert page.status_code == 200
    html = page.content.decode()
    assert ("No upcoming booking</h2>" in html) == (FORMER.search(html) is not None)
    return [unescape(words) for words in FORMER.findall(html)]


@pytest.mark.parametrize(
    ("by", "ago", "ending"),
    [
        ({"source": "admin", "actor": "me"}, 1, "by you, yesterday"),
        ({"source": "admin", "actor": "me"}, 0, "by you, today"),
        ({"source": "admin", "actor": "bob@example.com"}, 1, "by bob@example.com, yesterday"),
        ({"source": "link", "actor": "customer"}, 0, "by the customer, today"),
        ({"source": "link", "actor": "owner"}, 0, "by the owner, today"),
        ({"source": "widget", "actor": ""}, 0, "by the customer, today"),
        ({"source": "timer", "actor": ""}, 0, "automatically, today"),
        ({"source": "calendar", "actor": "Work"}, 0, "in a connected calendar, today"),
        ({"source": "mcp", "actor": "mcp:server key 0193a4c2"}, 0, "by an agent, today"),
        ({"source": "api", "actor": ""}, 0, "via API, today"),
    ],
)
def test_cancelled_booking_says_by_whom_and_when(
    tenant: Tenant, ada: Any, enter: Enter, by: dict[str, str], ago: int, ending: str
) -> None:
    booking = book(tenant, ada, 3)
    client = enter(tenant, Membership.VIEWER)
    me = Account.objects.get(email__startswith="viewer@").email
    cancel(booking, ago=ago, source=by["source"], actor=me if by["actor"] == "me" else by["actor"])

    found = search(client)

    words = f"Cancelled: Marty McFly – Check-up, {when(booking)} ({ending})"
    assert found == [words]
    state = f"Booking, cancelled ({ending})"
    assert [kind for _, kind in results(client, "marty")][:2] == [
        "Customer, marty@example.com",
        state,
    ]


def test_past_bookings_follow_the_latest_first(tenant: Tenant, ada: Any, enter: Enter) -> None:
    old, cancelled = book(tenant, ada, 4, "Cleaning"), book(tenant, ada, 3)
    Event.objects.filter(pk=old.event_id).update(
        start=timezone.now() - timedelta(days=2), end=timezone.now() - timedelta(days=1)
    )
    old.event.refresh_from_db()
    cancel(cancelled, source="api", actor="")

    assert search(enter(tenant, Membership.VIEWER)) == [
        f"Cancelled: Marty McFly – Check-up, {when(cancelled)} (via API, today)",
        f"Past: Marty McFly – Cleaning, {when(old)}",
    ]


def test_nothing_former_beside_an_upcoming_booking(tenant: Tenant, ada: Any, enter: Enter) -> None:
    cancel(book(tenant, ada, 3), source="api", actor="")
    book(tenant, ada, 4)

    assert search(enter(tenant, Membership.VIEWER)) == []


def test_bookings_of_other_apps_and_persons_are_not_named(
    tenant: Tenant, ada: Any, enter: Enter
) -> None:
    cancel(book(tenant, ada, 3), source="api", actor="")

    assert search(enter(Tenant("other"), Membership.OWNER)) == []
    assert search(enter(tenant, Membership.VIEWER), "biff") == []


def test_query_count_is_constant(tenant: Tenant, ada: Any, enter: Enter) -> None:
    client, counts = enter(tenant, Membership.VIEWER), []
    search(client)
    for number in (1, 4):
        for each in range(number):
            cancel(book(tenant, ada, 10 * number + each), source="api", actor="")
        with Queries(connection) as queries:
            found = search(client)
        counts.append(len(queries))

    assert (len(found), counts) == (3, [counts[0]] * 2)


def test_enter_in_the_search_opens_the_next_booking(tenant: Tenant, ada: Any, enter: Enter) -> None:
    book(tenant, ada, 3)
    book(tenant, ada, 5, "Later")

    kinds = [kind for _, kind in results(enter(tenant), "marty")]

    assert kinds == ["Booking, confirmed", "Customer, marty@example.com", "Booking, confirmed"]
