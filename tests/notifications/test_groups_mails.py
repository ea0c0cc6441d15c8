"""What groups tell, and whom: mails, calls and reminders of owners' bookings and of seats."""

from typing import Any

import pytest

from notifications.models import Delivery
from notifications.outbox.dispatcher import run_dispatcher
from notifications.webhooks.services import create_webhook
from tests.bookings.booking_drafts import act, booking_of
from tests.bookings.group_world import ANN, BOB, make_group, seat_in
from tests.delivery_faults import delivery_faults
from tests.notifications.test_dispatcher import reminder, soon, states
from tests.sinks import HookSink, Mail, MailSink
from tests.world import Tenant, hours

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("expanded_calls")]

REMINDERS = [
    reminder(mins=60),
    reminder(mins=30, recipient="owner"),
    reminder("webhook", mins=20, url="https://example.com/door"),
]


@pytest.fixture
def ada(tenant: Tenant) -> Any:
    return tenant.make_resource("Ada", email="ada@example.com")


@pytest.fixture
def group(tenant: Tenant, ada: Any) -> Any:
    start = soon(hours=48)
    times = {"start": start.isoformat(), "end": (start + hours(1)).isoformat()}
    return make_group(tenant, ada, event_notifications=REMINDERS, **times)


def take_seat(tenant: Tenant, group: Any, customer: Any) -> Any:
    return seat_in(tenant, group, customer, event_notifications=REMINDERS)


def kinds(booking: Any, **only: Any) -> list[tuple[str, str]]:
    """(kind, recipient) of each delivery about a booking, in the order of planning."""
    return [(kind, recipient) for _, kind, recipient, _ in states(booking=booking["id"], **only)]


def open_reminders(booking: Any) -> list[tuple[str, str]]:
    return [
        (type_, recipient)
        for type_, _, recipient, _ in states(
            booking=booking["id"], kind="reminder", state="scheduled"
        )
    ]


def calendars(mails: list[Mail]) -> list[tuple[str, str, str, str]]:
    """(to, METHOD, booking, SEQUENCE) of each mail with an entry for the calendar."""
    found = []
    for mail in mails:
        for part in mail.message.walk():
            if part.get_content_type() == "text/calendar":
                lines = dict(
                    line.split(":", 1)
                    for line in part.get_content().replace("\r\n ", "").splitlines()
                )
                booking = booking_of(lines["UID"])
                found.append((mail.to[0], lines["METHOD"], booking, lines["SEQUENCE"]))
    return sorted(found)


def test_group_reminders_go_to_owner_and_seat_customers(tenant: Tenant, group: Any) -> None:
    seat = take_seat(tenant, group, ANN)

    assert kinds(group) == [("reminder", "owner")]
    assert kinds(seat) == [
        ("confirmed", "customer"),
        ("confirmed", "owner"),
        ("reminder", "customer"),
        ("reminder", ""),
    ]
    assert open_reminders(seat) == [("email", "customer"), ("webhook", "")]
    assert delivery_faults() == []


def test_cancelled_group_mails_each_customer_and_owner_once(
    tenant: Tenant, group: Any, mails: MailSink
) -> None:
    seats = [take_seat(tenant, group, customer) for customer in (ANN, BOB)]
    run_dispatcher("email")
    mails.mails.clear()

    act(tenant, group, "cancel", {"cancel": {"message": "We are ill."}})
    run_dispatcher("email")

    assert sorted((mail.to[0], "We are ill." in mail.text) for mail in mails.mails) == [
        ("ada@example.com", True),
        ("ann@example.com", True),
        ("bob@example.com", True),
    ]
    assert [kinds(seat, kind="cancelled_by_owner") for seat in seats] == [
        [("cancelled_by_owner", "customer")]
    ] * 2
    assert kinds(group, kind="cancelled") == [("cancelled", "owner")]
    assert [open_reminders(seat) for seat in (group, *seats)] == [[]] * 3
    assert delivery_faults() == []


def test_moved_group_moves_reminders_once(tenant: Tenant, group: Any, mails: MailSink) -> None:
    seats = [take_seat(tenant, group, customer) for customer in (ANN, BOB)]
    run_dispatcher("email")
    mails.mails.clear()
    start = soon(hours=72)

    tenant.post(
        f"/bookings/{group['id']}/reschedule",
        {"start": start.isoformat(), "end": (start + hours(1)).isoformat()},
    )
    run_dispatcher("email")

    assert sorted(mail.to[0] for mail in mails.mails) == [
        *("ada@example.com", "ann@example.com", "bob@example.com")
    ]
    assert open_reminders(group) == [("email", "owner")]
    assert [open_reminders(seat) for seat in seats] == [
        [("email", "customer"), ("webhook", "")]
    ] * 2
    due = Delivery.objects.filter(kind="reminder", state="scheduled")
    assert sorted((start - one.due_at).total_seconds() / 60 for one in due) == [
        *(20, 20, 30, 60, 60)
    ]
    assert delivery_faults() == []


def test_cancelled_seat_cancels_its_reminders(tenant: Tenant, group: Any) -> None:
    gone, kept = (take_seat(tenant, group, customer) for customer in (ANN, BOB))

    act(tenant, gone, "cancel_by_customer")

    assert open_reminders(gone) == []
    assert open_reminders(kept) == [("email", "customer"), ("webhook", "")]
    assert open_reminders(group) == [("email", "owner")]
    assert kinds(gone, kind="cancelled_by_customer") == [
        *(("cancelled_by_customer", "owner"), ("cancelled_by_customer", "customer"))
    ]
    assert delivery_faults() == []


def test_webhooks_get_each_seat(tenant: Tenant, group: Any, hooks: HookSink) -> None:
    create_webhook(app=tenant.app, given={"url": hooks.url(), "graph": "group_customer"})
    seats = [take_seat(tenant, group, customer) for customer in (ANN, BOB)]

    act(tenant, group, "cancel")

    assert [kinds(seat, type="webhook", state="scheduled") for seat in seats] == [
        [("confirmed", ""), ("cancelled_by_owner", "")]
    ] * 2
    assert kinds(group, type="webhook") == []
    assert delivery_faults() == []


def test_calendar_entries_of_owner_and_customers(
    tenant: Tenant, group: Any, mails: MailSink
) -> None:
    """A seat that is cancelled does not take the group out of the owner's calendar; its SEQUENCE
    rises with each change of the group and of its seats."""
    ann, bob = (take_seat(tenant, group, customer) for customer in (ANN, BOB))
    act(tenant, bob, "cancel_by_customer")
    start = soon(hours=72)
    times = {"start": start.isoformat(), "end": (start + hours(1)).isoformat()}
    tenant.post(f"/bookings/{group['id']}/reschedule", times)
    tenant.put(f"/bookings/{group['id']}", {"where": "Room 2"})
    cyd = take_seat(tenant, group, {"name": "Cyd", "email": "cyd@example.com"})
    act(tenant, group, "cancel")
    for _ in range(4):
        run_dispatcher("email")

    entries = calendars(mails.mails)
    assert [entry for entry in entries if entry[0] != "ada@example.com"] == [
        ("ann@example.com", "CANCEL", ann["id"], "3"),
        ("ann@example.com", "REQUEST", ann["id"], "0"),
        ("ann@example.com", "REQUEST", ann["id"], "1"),
        ("ann@example.com", "REQUEST", ann["id"], "2"),
        ("bob@example.com", "CANCEL", bob["id"], "1"),
        ("bob@example.com", "REQUEST", bob["id"], "0"),
        ("cyd@example.com", "CANCEL", cyd["id"], "1"),
        ("cyd@example.com", "REQUEST", cyd["id"], "0"),
    ]
    # Ann, Bob; the move and the new place; Cyd; the cancellation.
    assert [entry for entry in entries if entry[0] == "ada@example.com"] == [
        ("ada@example.com", "CANCEL", group["id"], "9"),
        *(
            ("ada@example.com", "REQUEST", group["id"], number)
            for number in ("1", "2", "4", "6", "8")
        ),
    ]


def test_mail_about_several_seats_says_their_number_and_place(
    tenant: Tenant, ada: Any, mails: MailSink
) -> None:
    start = soon(hours=48)
    times = {"start": start.isoformat(), "end": (start + hours(1)).isoformat()}
    settings = {"places": {"stalls": 8, "balcony": 4}, "max_seats": None}
    group = make_group(tenant, ada, settings=settings, **times)
    seat_in(tenant, group, ANN, quantity=2, place="balcony")

    run_dispatcher("email")

    (mail,) = [mail for mail in mails.mails if "ann@example.com" in mail.to]
    assert "2 × Yoga (balcony)" in mail.text
