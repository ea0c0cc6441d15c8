"""What a move mails: by whether the time, the resource or both changed; and the former resource."""

import json
import re
from datetime import datetime
from html import unescape
from typing import Any, NamedTuple

import pytest
import vobject

from bookings.pages.formatting import date_words, short_start_words, span_words
from common.time.instants import find_zone
from notifications.models import Delivery, Suppression
from notifications.outbox.dispatcher import run_dispatcher
from tests.bookings.booking_drafts import act, booking_of
from tests.bookings.group_world import ANN, BOB, make_group, seat_in
from tests.bookings.test_requirements import Practice
from tests.delivery_faults import delivery_faults
from tests.notifications.test_dispatcher import book, hook, soon, states
from tests.sinks import HookSink, Mail, MailSink
from tests.world import Tenant, hours

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]

ORGANIZER = "mailto:bookings@localhost"


class Entry(NamedTuple):
    """An entry for the calendar: METHOD, booking, SEQUENCE, start, attendees, organizer."""

    method: str
    booking: str
    sequence: str
    start: datetime
    attendees: list[str]
    organizer: str


@pytest.fixture
def holm(tenant: Tenant) -> Any:
    return tenant.make_resource("Dr. Holm", email="holm@example.com", timezone="Europe/Berlin")


@pytest.fixture
def berg(tenant: Tenant) -> Any:
    return tenant.make_resource("Dr. Berg", email="berg@example.com", timezone="Europe/Berlin")


@pytest.fixture
def booking(tenant: Tenant, holm: Any, mails: MailSink) -> Any:
    """A booking of Dr. Holm whose confirmations have been read."""
    made = book(tenant, resource=holm, what="Check-up")
    read(mails)
    return made


def read(mails: MailSink) -> dict[str, Mail]:
    """Send what is due; return the mails by address."""
    run_dispatcher("email")
    run_dispatcher("email")
    found = {mail.to[0]: mail for mail in mails.mails}
    assert len(found) == len(mails.mails)
    mails.mails.clear()
    return found


def move(tenant: Tenant, booking: Any, start: datetime, **given: Any) -> None:
    times = {"start": start.isoformat(), "end": (start + hours(1)).isoformat()}
    answer = tenant.post(f"/bookings/{booking['id']}/reschedule", {**times, **given})
    assert answer.status == 200, answer.json


def short_when(start: datetime) -> str:
    return short_start_words(start.astimezone(find_zone("Europe/Berlin")), all_day=False)


def when(start: datetime) -> str:
    return span_words(start, start + hours(1), "Europe/Berlin")


def text_of(mail: Mail) -> list[str]:
    """The paragraphs of the plain text, without addresses of links."""
    text = mail.text.replace("\r\n", "\n").rstrip("\n")
    return re.sub(r"https?://\S+", "<url>", text).split("\n\n")


def html_of(mail: Mail) -> list[str]:
    """What is read in the HTML: heading, paragraphs, labels and values."""
    html = mail.message.get_body(("html",)).get_content().replace("\r\n", "\n")
    found = re.findall(r"<(?:h1|p|th|td class=\"value\")[^>]*>(.*?)</(?:h1|p|th|td)>", html, re.S)
    return [
        unescape(re.sub(r"<[^>]*>", "", each)).replace("\n", " ")
        for each in found
        if "<a " not in each
    ]


def entries_of(mail: Mail) -> list[Entry]:
    found = []
    for part in mail.message.walk():
        if part.get_content_type() == "text/calendar":
            calendar = vobject.readOne(part.get_content())
            found += [
                Entry(
                    calendar.method.value,
                    booking_of(each.uid.value),
                    each.sequence.value,
                    each.dtstart.value,
                    [f"{one.cn_param}, {one.value}" for one in each.contents.get("attendee", [])],
                    each.organizer.value,
                )
                for each in calendar.vevent_list
            ]
    return found


HOLM, BERG = "Dr. Holm, mailto:holm@example.com", "Dr. Berg, mailto:berg@example.com"
MARTY = "Marty McFly, mailto:marty@example.com"
LINKS = "Calendar file: <url>\nGoogle Calendar: <url>\nOutlook: <url>\nMicrosoft 365: <url>"
CANCEL = "Cancel the booking:\n<url>"


def test_mails_of_a_new_resource(tenant: Tenant, berg: Any, booking: Any, mails: MailSink) -> None:
    start = soon()

    move(tenant, booking, start, resource_id=berg["id"])
    found = read(mails)

    assert set(found) == {"marty@example.com", "berg@example.com", "holm@example.com"}
    marty, new, old = (found[f"{name}@example.com"] for name in ("marty", "berg", "holm"))
    assert [mail.subject for mail in (marty, new, old)] == [
        f"Now with Dr. Berg: {short_when(start)}",
        f"Now with Dr. Berg: {short_when(start)}",
        f"Moved to Dr. Berg: {short_when(start)}",
    ]
    owners = [
        "What:        Check-up",
        f"When:        {when(start)}",
        "Resource:    Dr. Berg",
        "Instead of:  Dr. Holm",
        "Customer:    Marty McFly",
        "             marty@example.com",
    ]
    assert text_of(marty) == [
        "Your booking is now with Dr. Berg",
        "Hello Marty McFly,",
        "The time is unchanged.",
        "\n".join(
            [
                "What:        Check-up",
                f"When:        {when(start)}",
                "With:        Dr. Berg",
                "Instead of:  Dr. Holm",
            ]
        ),
        CANCEL,
        LINKS,
        tenant.app.name,
    ]
    assert text_of(new) == [
        "A booking is now with Dr. Berg",
        "Hello,",
        "The booking of Marty McFly was moved. The time is unchanged.",
        "\n".join(owners),
        "Open the booking: <url>",
        tenant.app.name,
    ]
    assert text_of(old) == [
        "A booking was moved to Dr. Berg",
        "Hello,",
        "The booking of Marty McFly is no longer with Dr. Holm.",
        "\n".join(owners),
        "Open the booking: <url>",
        tenant.app.name,
    ]
    assert html_of(marty) == [
        "Your booking is now with Dr. Berg",
        "Hello Marty McFly,",
        "The time is unchanged.",
        *("What", "Check-up", "When", when(start)),
        *("With", "Dr. Berg", "Instead of", "Dr. Holm"),
    ]
    assert html_of(old) == [
        "A booking was moved to Dr. Berg",
        "Hello,",
        "The booking of Marty McFly is no longer with Dr. Holm.",
        *("What", "Check-up", "When", when(start)),
        *("Resource", "Dr. Berg", "Instead of", "Dr. Holm"),
        *("Customer", "Marty McFly marty@example.com"),
    ]
    about = (booking["id"], "1", start)
    assert entries_of(marty) == [Entry("REQUEST", *about, [MARTY], ORGANIZER)]
    assert entries_of(new) == [Entry("REQUEST", *about, [BERG, MARTY], ORGANIZER)]
    assert entries_of(old) == [Entry("CANCEL", *about, [HOLM, MARTY], ORGANIZER)]
    assert states(booking=booking["id"])[2:] == [
        ("email", "reassigned", "customer", "delivered"),
        ("email", "reassigned", "owner", "delivered"),
        ("email", "unassigned", "owner", "delivered"),
    ]
    assert delivery_faults() == []


def test_mails_of_a_new_time(tenant: Tenant, booking: Any, mails: MailSink) -> None:
    start, later = soon(), soon() + hours(3)

    move(tenant, booking, later)
    found = read(mails)

    assert {to: mail.subject for to, mail in found.items()} == {
        "marty@example.com": f"New time: Check-up, {short_when(later)}",
        "holm@example.com": f"New time: Marty McFly, {short_when(later)}",
    }
    rows = [
        "What:      Check-up",
        f"New time:  {when(later)}",
        f"Old time:  {when(start)}",
        "With:      Dr. Holm",
    ]
    assert text_of(found["marty@example.com"])[:4] == [
        "Your booking has a new time",
        "Hello Marty McFly,",
        "Please note the new time.",
        "\n".join(rows),
    ]


def test_mails_of_a_new_resource_and_time(
    tenant: Tenant, berg: Any, booking: Any, mails: MailSink
) -> None:
    start, later = soon(), soon() + hours(3)

    move(tenant, booking, later, resource_id=berg["id"])
    found = read(mails)

    marty, new, old = (found.pop(f"{name}@example.com") for name in ("marty", "berg", "holm"))
    assert found == {}
    assert [mail.subject for mail in (marty, new, old)] == [
        f"New time, Dr. Berg: {short_when(later)}",
        f"New time, Dr. Berg: {short_when(later)}",
        f"Moved to Dr. Berg: {short_when(start)}",
    ]
    times = ["New time", when(later), "Old time", when(start)]
    resources = ["Dr. Berg", "Instead of", "Dr. Holm"]
    customer = ["Customer", "Marty McFly marty@example.com"]
    assert html_of(marty) == [
        "Your booking has a new time and is now with Dr. Berg",
        *("Hello Marty McFly,", "Please note the new time."),
        *("What", "Check-up", *times, "With", *resources),
    ]
    assert html_of(new) == [
        "A booking has a new time and is now with Dr. Berg",
        *("Hello,", "The booking of Marty McFly was moved."),
        *("What", "Check-up", *times, "Resource", *resources, *customer),
    ]
    assert html_of(old) == [
        "A booking was moved to Dr. Berg",
        *("Hello,", "The booking of Marty McFly is no longer with Dr. Holm."),
        *("What", "Check-up", "When", when(start), "Resource", *resources, *customer),
    ]
    assert entries_of(new) == [
        Entry("REQUEST", booking["id"], "1", later, [BERG, MARTY], ORGANIZER)
    ]
    assert entries_of(old) == [Entry("CANCEL", booking["id"], "1", start, [HOLM, MARTY], ORGANIZER)]


def test_reschedule_without_changes_sends_no_mails(
    tenant: Tenant, booking: Any, mails: MailSink
) -> None:
    move(tenant, booking, soon())

    assert read(mails) == {}
    assert states(booking=booking["id"])[2:] == []


def test_two_reschedules_send_their_own_mails(
    tenant: Tenant, berg: Any, booking: Any, mails: MailSink
) -> None:
    """Both are made before the first mail leaves; each person is told of both, in order."""
    lee = tenant.make_resource("Dr. Lee", email="lee@example.com")
    start = soon()
    move(tenant, booking, start, resource_id=berg["id"])
    move(tenant, booking, start, resource_id=lee["id"])

    for _ in range(4):
        run_dispatcher("email")

    told = {
        to: [mail.subject.partition(":")[0] for mail in mails.mails if mail.to == [to]]
        for to in {mail.to[0] for mail in mails.mails}
    }
    assert told == {
        "marty@example.com": ["Now with Dr. Berg", "Now with Dr. Lee"],
        "holm@example.com": ["Moved to Dr. Berg"],
        "berg@example.com": ["Now with Dr. Berg", "Moved to Dr. Lee"],
        "lee@example.com": ["Now with Dr. Lee"],
    }
    methods = [
        (mail.to[0], entry.method, entry.sequence)
        for mail in mails.mails
        for entry in entries_of(mail)
        if mail.to != ["marty@example.com"]
    ]
    assert sorted(methods) == [
        ("berg@example.com", "CANCEL", "2"),
        ("berg@example.com", "REQUEST", "1"),
        ("holm@example.com", "CANCEL", "1"),
        ("lee@example.com", "REQUEST", "2"),
    ]


def test_confirmation_goes_to_the_originally_booked_resource(
    tenant: Tenant, holm: Any, berg: Any, mails: MailSink
) -> None:
    booking = book(tenant, resource=holm, what="Check-up")
    move(tenant, booking, soon(), resource_id=berg["id"])

    for _ in range(3):
        run_dispatcher("email")

    owners = [mail for mail in mails.mails if mail.to != ["marty@example.com"]]
    assert sorted((mail.to[0], mail.subject.partition(":")[0]) for mail in owners) == [
        ("berg@example.com", "Now with Dr. Berg"),
        ("holm@example.com", "Confirmed"),
        ("holm@example.com", "Moved to Dr. Berg"),
    ]


def test_a_resource_with_the_same_address_keeps_its_entry(
    tenant: Tenant, booking: Any, mails: MailSink
) -> None:
    """A CANCEL would take the entry of the new resource out of the calendar that both use."""
    contact = {"settings": {"contact_email": "Holm@Example.com"}}
    assert tenant.put(f"/apps/{tenant.app.slug}", contact).status == 200
    room = tenant.make_resource("Room 1")

    move(tenant, booking, soon(), resource_id=room["id"])
    found = read(mails)

    assert set(found) == {"Holm@Example.com", "marty@example.com"}
    assert [entry.method for entry in entries_of(found["Holm@Example.com"])] == ["REQUEST"]
    skipped = Delivery.objects.get(kind="unassigned")
    assert (skipped.state, skipped.reason) == (
        "skipped",
        "The new resource has the same e-mail address.",
    )


def test_former_resource_without_usable_address_is_skipped(
    tenant: Tenant, booking: Any, berg: Any, mails: MailSink
) -> None:
    nobody = tenant.make_resource("Nobody")
    Suppression.objects.create(
        app=tenant.app, address="holm@example.com", reason="bounced", created_at=soon()
    )

    move(tenant, booking, soon(), resource_id=nobody["id"])
    read(mails)
    move(tenant, booking, soon(), resource_id=berg["id"])
    found = read(mails)

    assert set(found) == {"marty@example.com", "berg@example.com"}
    rows = Delivery.objects.filter(kind="unassigned").order_by("id")
    assert [(row.state, row.reason) for row in rows] == [
        ("skipped", "E-mails to this address bounced"),
        ("skipped", "The recipient has no e-mail address."),
    ]


def test_disabled_emails_are_skipped(
    tenant: Tenant, booking: Any, berg: Any, mails: MailSink
) -> None:
    tenant.put(f"/apps/{tenant.app.slug}", {"settings": {"disableEmail": True}})

    move(tenant, booking, soon(), resource_id=berg["id"])

    assert read(mails) == {}
    assert [state for *_, state in states(booking=booking["id"])[2:]] == ["skipped"] * 3


def test_unconfirmed_request_has_no_cancellation_entry(
    tenant: Tenant, holm: Any, berg: Any, mails: MailSink
) -> None:
    booking = book(tenant, resource=holm, what="Check-up", graph="confirm_decline")
    read(mails)

    move(tenant, booking, soon(), resource_id=berg["id"])
    found = read(mails)

    assert {to: entries_of(mail) for to, mail in found.items()} == {
        "marty@example.com": [],
        "berg@example.com": [],
        "holm@example.com": [],
    }
    choices = ["Confirm:\n<url>", "Decline:\n<url>"]
    assert text_of(found["berg@example.com"])[4:6] == choices
    assert text_of(found["holm@example.com"])[4:] == ["Open the booking: <url>", tenant.app.name]


def test_custom_template_of_a_reassignment(
    tenant: Tenant, booking: Any, berg: Any, mails: MailSink
) -> None:
    subject = "{{ resource }} takes over from {{ old_resource }}"
    for slug in ("reassigned_customer", "unassigned_owner"):
        assert tenant.put(f"/templates/{slug}", {"subject": subject}).status == 200
    tenant.put("/templates/rescheduled_customer", {"subject": "New time"})

    move(tenant, booking, soon(), resource_id=berg["id"])
    found = read(mails)

    subjects = [found[f"{name}@example.com"].subject for name in ("marty", "holm")]
    assert subjects == ["Dr. Berg takes over from Dr. Holm"] * 2


def test_mails_of_a_changed_second_resource(tenant: Tenant, mails: MailSink) -> None:
    practice = Practice(tenant)
    start = soon()
    booking = book(
        tenant, start, project_id=practice.project["id"], resource={"id": None}, what="Check-up"
    )
    read(mails)

    move(tenant, booking, start, resource_id=practice.ids["Room 2"])
    found = read(mails)

    ada, new, old = (found.pop(f"{name}@example.com") for name in ("ada", "room2", "room1"))
    assert found == {}  # customers are not told of the room
    for mail in (ada, new):
        rows = html_of(mail)
        assert rows[0] == "A booking is now with Ada, Room 2"
        assert rows[rows.index("Resource") :][:4] == [
            *("Resource", "Ada, Room 2", "Instead of", "Room 1")
        ]
    assert html_of(old)[0] == "A booking was moved to Room 2"
    assert [(each.method, each.attendees[0]) for each in map(only_entry, (ada, new, old))] == [
        ("REQUEST", "Ada, mailto:ada@example.com"),
        ("REQUEST", "Room 2, mailto:room2@example.com"),
        ("CANCEL", "Room 1, mailto:room1@example.com"),
    ]
    assert delivery_faults() == []


def only_entry(mail: Mail) -> Entry:
    (entry,) = entries_of(mail)
    return entry


def practice_booking(tenant: Tenant, mails: MailSink, **room: Any) -> tuple[Practice, Any]:
    """A booking of Ada and Room 1; room: further keys of the requirement."""
    practice = Practice(tenant)
    requires = [practice.requires[0], {**practice.requires[1], **room}]
    tenant.put(f"/projects/{practice.project['id']}", {"requires": requires})
    given = {"project_id": practice.project["id"], "resource": {"id": None}, "what": "Check-up"}
    booking = book(tenant, soon(), **given)
    read(mails)
    return practice, booking


def replace(tenant: Tenant, booking: Any, **resources: str) -> None:
    answer = tenant.post(f"/bookings/{booking['id']}/reschedule", {"resources": resources})
    assert answer.status == 200, answer.json


def headings(mails: MailSink) -> dict[str, str]:
    return {to.partition("@")[0]: html_of(mail)[0] for to, mail in read(mails).items()}


def test_customers_are_told_of_shown_requirements(tenant: Tenant, mails: MailSink) -> None:
    practice, booking = practice_booking(tenant, mails, shown=True)

    replace(tenant, booking, room=practice.ids["Room 2"])
    of_room = headings(mails)
    replace(tenant, booking, dentist=practice.ids["Ben"])
    of_dentist = headings(mails)

    assert of_room == {
        "marty": "Your booking is now with Ada, Room 2",
        "ada": "A booking is now with Ada, Room 2",
        "room2": "A booking is now with Ada, Room 2",
        "room1": "A booking was moved to Room 2",
    }
    assert of_dentist == {
        "marty": "Your booking is now with Ben, Room 2",
        "ben": "A booking is now with Ben, Room 2",
        "ada": "A booking was moved to Ben",
    }


def test_mails_of_a_new_time_and_a_hidden_resource(tenant: Tenant, mails: MailSink) -> None:
    practice, booking = practice_booking(tenant, mails)

    move(tenant, booking, soon() + hours(2), resources={"room": practice.ids["Room 2"]})

    assert headings(mails) == {
        "marty": "Your booking has a new time",
        "ada": "A booking has a new time and is now with Ada, Room 2",
        "room2": "A booking has a new time and is now with Ada, Room 2",
        "room1": "A booking was moved to Room 2",
    }


def test_resource_that_joined_is_told_of_later_changes(tenant: Tenant, mails: MailSink) -> None:
    """Others of a booking's further resources have no entry that would have to follow."""
    practice, booking = practice_booking(tenant, mails)
    replace(tenant, booking, room=practice.ids["Room 2"])
    read(mails)

    move(tenant, booking, soon() + hours(3))
    moved = read(mails)
    act(tenant, booking, "cancel")
    cancelled = read(mails)

    assert [
        {to.partition("@")[0]: (entry.method, entry.sequence) for to, entry in entries.items()}
        for entries in (
            {to: only_entry(mail) for to, mail in found.items()} for found in (moved, cancelled)
        )
    ] == [
        dict.fromkeys(("marty", "ada", "room2"), ("REQUEST", "2")),
        dict.fromkeys(("marty", "ada", "room2"), ("CANCEL", "3")),
    ]


def test_mails_of_a_mutual_booking_with_a_new_second_resource(
    tenant: Tenant, holm: Any, berg: Any, mails: MailSink
) -> None:
    lee = tenant.make_resource("Dr. Lee", email="lee@example.com")
    project = tenant.make_project(holm["id"], berg["id"], availability={"mode": "mutual"})
    booking = book(tenant, project_id=project["id"], resource={"id": None}, what="Check-up")
    read(mails)

    replace(tenant, booking, **{berg["id"]: lee["id"]})

    assert headings(mails) == {
        "marty": "Your booking is now with Dr. Holm, Dr. Lee",
        "holm": "A booking is now with Dr. Holm, Dr. Lee",
        "lee": "A booking is now with Dr. Holm, Dr. Lee",
        "berg": "A booking was moved to Dr. Lee",
    }


def test_further_resources_are_told_at_their_own_address_once(
    tenant: Tenant, mails: MailSink
) -> None:
    practice, booking = practice_booking(tenant, mails)
    for name in ("Ada", "Room 1"):
        tenant.put(f"/resources/{practice.ids[name]}", {"email": None})
    tenant.put(f"/apps/{tenant.app.slug}", {"settings": {"contact_email": "Room2@Example.com"}})

    replace(tenant, booking, room=practice.ids["Room 2"])

    assert headings(mails) == {"Room2": "A booking is now with Ada, Room 2"}
    skipped = Delivery.objects.filter(state="skipped").order_by("number")
    assert [(row.kind, row.reason) for row in skipped] == [
        ("reassigned", "Another e-mail to this address is about the same move."),
        ("unassigned", "The recipient has no e-mail address."),
    ]


# --- Webhooks -------------------------------------------------------------------------------------
def test_webhooks_are_told_of_a_new_resource_by_the_kind_they_name(
    tenant: Tenant, holm: Any, berg: Any, booking: Any, hooks: HookSink
) -> None:
    kinds = {
        "/all": [],
        "/reassigned": ["booking.reassigned"],
        "/both": ["booking.reassigned", "booking.rescheduled"],
        "/rescheduled": ["booking.rescheduled"],
        "/confirmed": ["booking.confirmed"],
    }
    for path, named in kinds.items():
        hook(tenant, hooks, path, kinds=named)
    start = soon()

    move(tenant, booking, start, resource_id=berg["id"])
    run_dispatcher("webhook")
    of_resource = calls_of(hooks)
    move(tenant, booking, start + hours(1), resource_id=holm["id"])
    run_dispatcher("webhook")
    of_both = calls_of(hooks)

    assert of_resource == {
        "/all": "booking.rescheduled",
        "/reassigned": "booking.reassigned",
        "/both": "booking.reassigned",
        "/rescheduled": "booking.rescheduled",
    }
    assert of_both == dict.fromkeys(("/all", "/both", "/rescheduled"), "booking.rescheduled")


def test_call_says_the_former_resources(tenant: Tenant, mails: MailSink, hooks: HookSink) -> None:
    practice, booking = practice_booking(tenant, mails)
    hook(tenant, hooks, "/hook", kinds=["booking.reassigned"])
    before = tenant.get(f"/bookings/{booking['id']}").data["event"]

    replace(tenant, booking, room=practice.ids["Room 2"])
    run_dispatcher("webhook")

    change = json.loads(hooks.calls[0].body)["change"]
    ada, room = ({"id": practice.ids[name], "name": name} for name in ("Ada", "Room 1"))
    assert (change["kind"], change["action"]) == ("booking.reassigned", "reassign")
    assert change["previous"] == {
        "start": before["start"],
        "end": before["end"],
        "resource_id": practice.ids["Ada"],
        "resources": [{**ada, "requirement": "dentist"}, {**room, "requirement": "room"}],
    }


def calls_of(hooks: HookSink) -> dict[str, str]:
    """The kind that each webhook is told, as in the header and in the body."""
    found = {call.path: call.headers["service-event"] for call in hooks.calls}
    assert list(found.values()) == [json.loads(call.body)["change"]["kind"] for call in hooks.calls]
    hooks.calls.clear()
    return found


def test_mails_of_a_group_with_a_new_resource(
    tenant: Tenant, holm: Any, berg: Any, mails: MailSink
) -> None:
    start = soon()
    times = {"start": start.isoformat(), "end": (start + hours(1)).isoformat()}
    group = make_group(tenant, holm, **times)
    seats = [seat_in(tenant, group, customer) for customer in (ANN, BOB)]
    read_all(mails)

    move(tenant, group, start, resource_id=berg["id"])
    found = read(mails)

    assert {to: mail.subject for to, mail in found.items()} == {
        "ann@example.com": f"Now with Dr. Berg: {short_when(start)}",
        "bob@example.com": f"Now with Dr. Berg: {short_when(start)}",
        "berg@example.com": f"Now with Dr. Berg: {short_when(start)}",
        "holm@example.com": f"Moved to Dr. Berg: {short_when(start)}",
    }
    methods = {
        to: [(entry.method, entry.booking, entry.sequence) for entry in entries_of(mail)]
        for to, mail in found.items()
    }
    assert methods == {
        "ann@example.com": [("REQUEST", seats[0]["id"], "1")],
        "bob@example.com": [("REQUEST", seats[1]["id"], "1")],
        "berg@example.com": [("REQUEST", group["id"], "3")],
        "holm@example.com": [("CANCEL", group["id"], "3")],
    }


def read_all(mails: MailSink) -> None:
    run_dispatcher("email")
    run_dispatcher("email")
    mails.mails.clear()


def test_series_reassignment_sends_one_mail_per_person(
    tenant: Tenant, holm: Any, berg: Any, mails: MailSink
) -> None:
    start = soon()
    first = book(tenant, start, resource=holm, what="Check-up", recurrence="FREQ=WEEKLY;COUNT=3")
    read(mails)
    series = tenant.get(f"/bookings/{first['id']}?include=series").data["series"]
    made = [each["booking_id"] for each in series["occurrences"]]
    later = start + hours(1)

    move(tenant, first, later, resource_id=berg["id"], scope="all")
    found = read(mails)

    starts = [start + hours(7 * 24 * week) for week in range(3)]
    new, old = (
        [(method, each, "1", at + shift) for each, at in zip(made, starts, strict=True)]
        for method, shift in (("PUBLISH", hours(1)), ("CANCEL", hours(0)))
    )
    assert {to: [entry[:4] for entry in entries_of(mail)] for to, mail in found.items()} == {
        "marty@example.com": new,
        "berg@example.com": new,
        "holm@example.com": old,
    }
    rows = html_of(found["holm@example.com"])
    assert (rows[rows.index("When") + 1], rows[rows.index("Repeats") + 1]) == (
        when(start),
        f"3 times, until {date_words(starts[-1].astimezone(find_zone('Europe/Berlin')))}",
    )


def test_series_with_several_resources_mails_each(
    tenant: Tenant, holm: Any, berg: Any, mails: MailSink
) -> None:
    """One occurrence is with another dentist already; the whole series moves to a third."""
    lee = tenant.make_resource("Dr. Lee", email="lee@example.com")
    start = soon()
    first = book(tenant, start, resource=holm, what="Check-up", recurrence="FREQ=WEEKLY;COUNT=3")
    series = tenant.get(f"/bookings/{first['id']}?include=series").data["series"]
    made = [each["booking_id"] for each in series["occurrences"]]
    move(tenant, {"id": made[1]}, start + hours(7 * 24), resource_id=berg["id"])
    read_all(mails)

    move(tenant, first, start, resource_id=lee["id"], scope="all")
    found = read(mails)

    new = [("PUBLISH", made[0], "1"), ("PUBLISH", made[1], "2"), ("PUBLISH", made[2], "1")]
    assert {to: [entry[:3] for entry in entries_of(mail)] for to, mail in found.items()} == {
        "marty@example.com": new,
        "lee@example.com": new,
        "holm@example.com": [("CANCEL", made[0], "1"), ("CANCEL", made[2], "1")],
        "berg@example.com": [("CANCEL", made[1], "2")],
    }
    assert found["marty@example.com"].subject.startswith("Now with Dr. Lee: ")


def test_cancellation_mails_only_the_current_resource(
    tenant: Tenant, booking: Any, berg: Any, mails: MailSink
) -> None:
    move(tenant, booking, soon(), resource_id=berg["id"])
    read(mails)

    act(tenant, booking, "cancel")

    assert set(read(mails)) == {"marty@example.com", "berg@example.com"}
