"""How written bookings are shown and chosen: with the booking, in the log, in the settings."""

from typing import Any

import pytest
from django.db import connection

from availability.models import Calendar
from common.time.instants import format_stamp
from external_calendars.models import WrittenEvent
from external_calendars.providers.base import PROVIDER_ERRORS, ProviderError
from notifications.models import Delivery
from notifications.outbox.dispatcher import run_dispatcher
from tests.bookings.booking_drafts import uid_of
from tests.bookings.group_world import ANN, make_group, seat_in
from tests.external_calendars.mirrored import Memory, connect, make_due, write
from tests.external_calendars.test_mirror import (
    OTHER,
    _at_home,
    ada,
    book,
    fail_at,
    memory,
    move,
    span_of,
    times,
    work,
)
from tests.queries import Queries
from tests.world import Tenant

__all__ = ["_at_home", "ada", "memory", "work"]
pytestmark = pytest.mark.django_db(transaction=True)


def provider_event(tenant: Tenant, booking: Any) -> Any:
    return tenant.get(f"/bookings/{booking['id']}?include=provider_event").data["provider_event"]


# --- Bookings -------------------------------------------------------------------------------------
def test_provider_event_of_each_state(
    tenant: Tenant, ada: Any, work: Calendar, memory: Memory
) -> None:
    memory.before = fail_at("put", ProviderError("unreachable"))
    booking = book(tenant, ada)
    waiting = {
        "calendar_id": str(work.id),
        "provider": "caldav",
        "provider_id": f"{uid_of(booking)}@bookings.example.com",
        "state": "pending",
        "reason": None,
        "start": None,
        "end": None,
        "written_at": None,
    }
    assert provider_event(tenant, booking) == waiting
    write()
    assert provider_event(tenant, booking) == waiting | {"reason": PROVIDER_ERRORS["unreachable"]}

    memory.before = lambda call: None
    make_due()
    write()

    row = WrittenEvent.objects.get()
    assert row.written_at is not None
    assert provider_event(tenant, booking) == waiting | {
        "state": "written",
        "start": span_of(times())[0].isoformat(),
        "end": span_of(times())[1].isoformat(),
        "written_at": format_stamp(row.written_at),
    }
    path = f"/bookings/{booking['id']}?include=provider_event"
    answer = tenant.get(path, **{"Service-Timezone": "Asia/Tokyo"})
    assert answer.data["provider_event"]["start"].endswith("T18:00:00+09:00")


def test_provider_event_of_seat_moved_and_unwritten_booking(
    tenant: Tenant, ada: Any, work: Calendar, memory: Memory
) -> None:
    group = make_group(tenant, ada, **times())
    seat = seat_in(tenant, group, ANN)
    assert provider_event(tenant, seat) == provider_event(tenant, group)

    ben = tenant.make_resource("Ben")
    theirs = connect(ben, OTHER)
    booking = book(tenant, ada, **times(3))
    write()
    move(tenant, booking, resource_id=ben["id"])
    write()
    assert provider_event(tenant, booking)["calendar_id"] == str(theirs.id)

    request = book(tenant, ada, graph="confirm_decline", **times(5))
    assert provider_event(tenant, request) is None


def test_provider_event_is_one_query(
    tenant: Tenant, ada: Any, work: Calendar, memory: Memory
) -> None:
    counts = []
    for count in (1, 3):
        book(tenant, ada, recurrence=f"FREQ=DAILY;COUNT={count}", **times(count * 10))
        sizes = []
        for include in ("event", "event,provider_event"):
            with Queries(connection) as queries:
                tenant.get(f"/bookings?include={include}")
            sizes.append(len(queries))
        counts.append(sizes)

    assert counts[0] == counts[1]
    assert counts[0][1] - counts[0][0] == 1


# --- Deliveries -----------------------------------------------------------------------------------
def test_delivery_log_of_a_write(tenant: Tenant, ada: Any, work: Calendar, memory: Memory) -> None:
    booking = book(tenant, ada)
    run_dispatcher("email")
    write()

    listed = tenant.get("/deliveries?type=calendar")

    row = Delivery.objects.get(type="calendar")
    [attempt] = row.attempts.all()
    expected = {
        "id": str(row.id),
        "type": "calendar",
        "kind": "confirmed",
        "booking_id": booking["id"],
        "webhook_id": None,
        "recipient": None,
        "state": "delivered",
        "reason": None,
        "due_at": format_stamp(row.due_at),
        "next_at": None,
        "attempts": [
            {
                "at": format_stamp(attempt.at),
                "response_code": None,
                "seconds": attempt.seconds,
                "error": None,
                "excerpt": None,
            }
        ],
        "created_at": format_stamp(row.created_at),
        "updated_at": format_stamp(row.updated_at),
    }
    assert listed.data == [expected]
    assert tenant.get(f"/deliveries/{row.id}").data == expected | {"payload": None}
    assert len(tenant.get(f"/deliveries?booking={booking['id']}").data) == 3
    again = tenant.post(f"/deliveries/{row.id}/redeliver").data
    assert (again["state"], again["next_at"]) == ("scheduled", again["due_at"])
    assert tenant.get("/deliveries?type=calendars").status == 422


# --- The app's choice -----------------------------------------------------------------------------
@pytest.mark.parametrize("value", ["warn", "follow"])
def test_external_edits_setting(tenant: Tenant, value: str) -> None:
    path = f"/apps/{tenant.app.slug}"

    kept = tenant.put(path, {"settings": {"external_edits": value}})
    gone = tenant.put(path, {"settings": {"external_edits": None}})

    assert kept.data["settings"] == {"disable_emails": False, "external_edits": value}
    assert gone.data["settings"] == {"disable_emails": False}


def test_wrong_external_edits_are_refused(tenant: Tenant) -> None:
    answer = tenant.put(f"/apps/{tenant.app.slug}", {"settings": {"external_edits": "ignore"}})

    assert (answer.status, answer.json["errors"]) == (
        422,
        {"settings.external_edits": ["Must be one of warn, follow."]},
    )
