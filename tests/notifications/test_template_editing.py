"""What every kind of mail says: whole subjects, whole texts."""

import re
from html import escape, unescape
from typing import Any

import pytest
from django.conf import settings

from bookings.pages.action_links import action_url
from notifications.mail import SLUGS, Letter, compose_mail
from tests.notifications.mails import BOOKING_ID, html_of, make_letter

pytestmark = pytest.mark.usefixtures("clock")

BERLIN = "Monday, 23 November 2026, 09:00 – 09:30 (Europe/Berlin)"
OLD = "Friday, 20 November 2026, 15:00 – 15:30 (Europe/Berlin)"
MOVED = {"old_start": "2026-11-20T14:00:00+00:00", "old_end": "2026-11-20T14:30:00+00:00"}
CUSTOMERS = f"""\
What:     Check-up
When:     {BERLIN}
Where:    Harbour Street 5
With:     Ada Lovelace
Details:  Bring your card."""
CUSTOMERS_MOVED = f"""\
What:      Check-up
New time:  {BERLIN}
Old time:  {OLD}
Where:     Harbour Street 5
With:      Ada Lovelace
Details:   Bring your card."""
OWNERS = f"""\
What:      Check-up
When:      {BERLIN}
Where:     Harbour Street 5
Resource:  Ada Lovelace
Customer:  Marty McFly
           marty@example.com
           +1 555 0100
Details:   Bring your card."""
OWNERS_MOVED = OWNERS.replace("When:    ", "New time:").replace(
    "\nWhere:", f"\nOld time:  {OLD}\nWhere:", 1
)
HELLO = "Hello Marty McFly,"
SHORT = "Mon 23 Nov, 09:00"
OPEN = f"Open the booking: {settings.PUBLIC_URL}/admin/bookings/booking/{BOOKING_ID}/change/"
CHOICE = "Confirm:\n<confirm>\n\nDecline:\n<decline>"
CANCEL = "Cancel the booking:\n<cancel_by_customer>"
MAP = "Show on a map: https://www.openstreetmap.org/search?query=Harbour+Street+5"
CALENDARS = (
    """\
Calendar file: <calendar>
Google Calendar: https://calendar.google.com/calendar/render?action=TEMPLATE&text=Check-up\
&dates=20261123T080000Z%2F20261123T083000Z&location=Harbour+Street+5
Outlook: https://outlook.live.com/calendar/0/deeplink/compose?path=%2Fcalendar%2Faction%2Fcompose\
&rru=addevent&subject=Check-up&startdt=2026-11-23T08%3A00%3A00Z&enddt=2026-11-23T08%3A30%3A00Z\
&location=Harbour+Street+5
Microsoft 365: https://outlook.office.com/calendar/0/deeplink/compose\
?path=%2Fcalendar%2Faction%2Fcompose\
&rru=addevent&subject=Check-up&startdt=2026-11-23T08%3A00%3A00Z&enddt=2026-11-23T08%3A30%3A00Z\
&location=Harbour+Street+5
"""
    + MAP
)
REASSIGNED = {"resources": ["Dr. Berg", "Room 2"], "old_resources": ["Dr. Holm"]}
CUSTOMERS_REASSIGNED = f"""\
What:        Check-up
When:        {BERLIN}
Where:       Harbour Street 5
With:        Dr. Berg, Room 2
Instead of:  Dr. Holm
Details:     Bring your card."""
OWNERS_REASSIGNED = f"""\
What:        Check-up
When:        {BERLIN}
Where:       Harbour Street 5
Resource:    Dr. Berg, Room 2
Instead of:  Dr. Holm
Customer:    Marty McFly
             marty@example.com
             +1 555 0100
Details:     Bring your card."""
SORRY = "> We are ill.\n>\n> Sorry!"
ILL = {"message": "We are ill.\n\nSorry!"}

# slug -> facts, subject, paragraphs of the text.
SAID: dict[str, tuple[dict[str, Any], str, list[str]]] = {
    "tentative_owner": (
        {},
        f"Request: Marty McFly, {SHORT}",
        [
            "New booking request",
            "Hello,",
            "Marty McFly requested this time. Confirm to accept.",
            OWNERS,
            CHOICE,
            OPEN,
        ],
    ),
    "tentative_customer": (
        {},
        f"Requested: Check-up, {SHORT}",
        [
            "We have received your request",
            HELLO,
            "Your request is not confirmed yet. You will get an e-mail with the decision.",
            CUSTOMERS,
            CANCEL,
            MAP,
        ],
    ),
    "confirmed_customer": (
        {},
        f"Confirmed: Check-up, {SHORT}",
        [
            "Your booking is confirmed",
            HELLO,
            "We look forward to seeing you. An invitation for your calendar is attached.",
            CUSTOMERS,
            CANCEL,
            CALENDARS,
        ],
    ),
    "confirmed_owner": (
        {},
        f"Confirmed: Marty McFly, {SHORT}",
        [
            "A booking is confirmed",
            "Hello,",
            "Marty McFly has booked this time. An invitation for your calendar is attached.",
            OWNERS,
            OPEN,
        ],
    ),
    "declined_customer": (
        ILL,
        f"Declined: Check-up, {SHORT}",
        [
            "Your request could not be accepted",
            HELLO,
            "Sorry, this time is not possible. You can request another time.",
            SORRY,
            CUSTOMERS,
        ],
    ),
    "cancelled_customer": (
        ILL,
        f"Cancelled: Check-up, {SHORT}",
        [
            "Your booking was cancelled",
            HELLO,
            "Sorry, your booking can't take place.",
            SORRY,
            CUSTOMERS,
        ],
    ),
    "cancelled_owner": (
        {},
        f"Cancelled: Marty McFly, {SHORT}",
        [
            "A booking was cancelled",
            "Hello,",
            "The booking of Marty McFly was cancelled.",
            OWNERS,
            OPEN,
        ],
    ),
    "cancelled_by_customer_owner": (
        {},
        f"Cancelled by Marty McFly: {SHORT}",
        [
            "A customer has cancelled",
            "Hello,",
            "Marty McFly has cancelled this booking. The time is free again.",
            OWNERS,
            OPEN,
        ],
    ),
    "cancelled_by_customer_customer": (
        {},
        f"Cancelled: Check-up, {SHORT}",
        [
            "Your booking is cancelled",
            HELLO,
            "You have cancelled this booking. You do not need to do anything else.",
            CUSTOMERS,
        ],
    ),
    "unpaid_customer": (
        {},
        f"Not booked: Check-up, {SHORT}",
        [
            "Your booking was not paid in time",
            HELLO,
            "The time is no longer reserved. You can book again.",
            CUSTOMERS,
        ],
    ),
    "rescheduled_customer": (
        MOVED,
        f"New time: Check-up, {SHORT}",
        [
            "Your booking has a new time",
            HELLO,
            "Please note the new time.",
            CUSTOMERS_MOVED,
            CANCEL,
            CALENDARS,
        ],
    ),
    "rescheduled_owner": (
        MOVED,
        f"New time: Marty McFly, {SHORT}",
        [
            "A booking has a new time",
            "Hello,",
            "The booking of Marty McFly was moved.",
            OWNERS_MOVED,
            OPEN,
        ],
    ),
    "reassigned_customer": (
        REASSIGNED,
        f"Now with Dr. Berg, Room 2: {SHORT}",
        [
            "Your booking is now with Dr. Berg, Room 2",
            HELLO,
            "The time is unchanged.",
            CUSTOMERS_REASSIGNED,
            CANCEL,
            CALENDARS,
        ],
    ),
    "reassigned_owner": (
        REASSIGNED,
        f"Now with Dr. Berg, Room 2: {SHORT}",
        [
            "A booking is now with Dr. Berg, Room 2",
            "Hello,",
            "The booking of Marty McFly was moved. The time is unchanged.",
            OWNERS_REASSIGNED,
            OPEN,
        ],
    ),
    "unassigned_owner": (
        REASSIGNED,
        f"Moved to Dr. Berg, Room 2: {SHORT}",
        [
            "A booking was moved to Dr. Berg, Room 2",
            "Hello,",
            "The booking of Marty McFly is no longer with Dr. Holm.",
            OWNERS_REASSIGNED,
            OPEN,
        ],
    ),
    "updated_customer": (
        {},
        f"Updated: Check-up, {SHORT}",
        [
            "Your booking was updated",
            HELLO,
            "Please note the new details. The time is unchanged.",
            CUSTOMERS,
            CANCEL,
            CALENDARS,
        ],
    ),
    "updated_owner": (
        {},
        f"Updated: Marty McFly, {SHORT}",
        [
            "A booking was updated",
            "Hello,",
            "The booking of Marty McFly has new details. The time is unchanged.",
            OWNERS,
            OPEN,
        ],
    ),
    "conference_customer": (
        {},
        f"Video call: Check-up, {SHORT}",
        [
            "The link for your video call",
            HELLO,
            "Open the link when your booking begins.",
            CUSTOMERS,
            CANCEL,
            CALENDARS,
        ],
    ),
    "conference_owner": (
        {},
        f"Video call: Marty McFly, {SHORT}",
        [
            "The link for a video call",
            "Hello,",
            "The link for the booking of Marty McFly is ready.",
            OWNERS,
            OPEN,
        ],
    ),
    "new_times_customer": (
        {},
        f"New time needed: Check-up, {SHORT}",
        [
            "Please choose another time",
            HELLO,
            "Sorry, your booking can't take place at this time.",
            CUSTOMERS,
            CANCEL,
        ],
    ),
    "message_customer": (
        {},
        f"Message: Check-up, {SHORT}",
        [
            "A message about your booking",
            HELLO,
            "Your booking stays as it is.",
            CUSTOMERS,
            CANCEL,
            CALENDARS,
        ],
    ),
    "reminder_customer": (
        {},
        f"Reminder: Check-up, {SHORT}",
        [
            "Reminder of your booking",
            HELLO,
            "Here are the details of your booking.",
            CUSTOMERS,
            CANCEL,
            CALENDARS,
        ],
    ),
    "reminder_owner": (
        {"subject": "Tomorrow: {{ what }}"},
        "Tomorrow: {{ what }}",
        [
            "Reminder of a booking",
            "Hello,",
            "Here are the details of the booking with Marty McFly.",
            OWNERS,
            OPEN,
        ],
    ),
}


def with_links(text: str, letter: Letter) -> str:
    return re.sub(
        r"<(\w+)>", lambda found: action_url(letter.booking, found[1], letter.ends_at), text
    )


def test_every_kind_has_a_test_case() -> None:
    assert tuple(SAID) == SLUGS


@pytest.mark.parametrize("slug", SLUGS)
def test_subject_and_text_of_each_kind(slug: str) -> None:
    facts, subject, paragraphs = SAID[slug]
    letter = make_letter(slug, **facts)

    message = compose_mail(letter)

    assert message.subject == subject
    assert message.body == with_links("\n\n".join([*paragraphs, "Harbour Dental"]) + "\n", letter)


@pytest.mark.parametrize("slug", SLUGS)
def test_html_equals_the_text(slug: str) -> None:
    facts, _, paragraphs = SAID[slug]
    letter = make_letter(slug, **facts)

    html = html_of(compose_mail(letter))

    heading, greeting, sentence, *_ = paragraphs
    assert f">{heading}</h1>" in html
    assert (f">{greeting}</p>" in html, f">{escape(sentence)}</p>" in html) == (True, True)
    assert "Monday, 23 November 2026, 09:00 – 09:30 (Europe/Berlin)</td>" in html
    links = [unescape(link) for link in re.findall(r'href="([^"]*)"', html)]
    assert links == re.findall(r"https?://\S+$", compose_mail(letter).body, re.MULTILINE)
    assert "{{" not in html
    assert re.findall(r"<(?:script|link|img|iframe|form)|@import|url\(", html) == []


@pytest.mark.parametrize(
    ("recipient", "subject", "heading", "sentence"),
    [
        (
            "customer",
            f"New time, Dr. Berg, Room 2: {SHORT}",
            "Your booking has a new time and is now with Dr. Berg, Room 2",
            "Please note the new time.",
        ),
        (
            "owner",
            f"New time, Dr. Berg, Room 2: {SHORT}",
            "A booking has a new time and is now with Dr. Berg, Room 2",
            "The booking of Marty McFly was moved.",
        ),
    ],
)
def test_reschedule_mail_names_new_time_and_resource(
    recipient: str, subject: str, heading: str, sentence: str
) -> None:
    message = compose_mail(make_letter(f"rescheduled_{recipient}", **MOVED, **REASSIGNED))

    paragraphs = message.body.split("\n\n")
    assert (message.subject, paragraphs[0], paragraphs[2]) == (subject, heading, sentence)
    label = "With:    " if recipient == "customer" else "Resource:"
    assert paragraphs[3].splitlines()[1:6] == [
        f"New time:    {BERLIN}",
        f"Old time:    {OLD}",
        "Where:       Harbour Street 5",
        f"{label}    Dr. Berg, Room 2",
        "Instead of:  Dr. Holm",
    ]
    html = html_of(message)
    assert [f">{heading}</h1>" in html, f">{sentence}</p>" in html] == [True, True]
    assert ">Instead of</th>" in html


# --- Buttons --------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("slug", "graph", "state", "actions"),
    [
        ("tentative_owner", "confirm_decline", "tentative", ["confirm", "decline"]),
        ("tentative_owner", "confirm_decline", "confirmed", []),
        ("tentative_owner", "instant_payment", "tentative", []),
        ("tentative_customer", "confirm_decline", "tentative", ["cancel_by_customer"]),
        ("tentative_customer", "confirm_decline", "declined", []),
        ("confirmed_customer", "instant", "confirmed", ["cancel_by_customer"]),
        ("confirmed_customer", "instant", "completed", []),
        ("confirmed_customer", "instant_payment", "paid", ["cancel_by_customer"]),
        ("confirmed_customer", "group_customer", "confirmed", ["cancel_by_customer"]),
        ("confirmed_owner", "instant", "confirmed", []),
        ("rescheduled_owner", "confirm_decline", "tentative", ["confirm", "decline"]),
        ("rescheduled_owner", "confirm_decline", "confirmed", []),
        ("rescheduled_customer", "instant", "confirmed", ["cancel_by_customer"]),
        ("reassigned_owner", "confirm_decline", "tentative", ["confirm", "decline"]),
        ("reassigned_customer", "instant", "confirmed", ["cancel_by_customer"]),
        ("unassigned_owner", "confirm_decline", "tentative", []),
        ("reminder_customer", "instant", "confirmed", ["cancel_by_customer"]),
        ("reminder_owner", "instant", "confirmed", []),
        ("cancelled_customer", "instant", "confirmed", []),
    ],
)
def test_mails_offer_allowed_actions(slug: str, graph: str, state: str, actions: list[str]) -> None:
    html = html_of(compose_mail(make_letter(slug, graph=graph, state=state)))

    prefix = f"/v2/bookings/{BOOKING_ID}/external_action/"
    assert re.findall(rf"{prefix}(\w+)\?signature", html) == actions


@pytest.mark.parametrize(
    ("slug", "given", "offered"),
    [
        ("tentative_customer", {"state": "tentative"}, True),
        ("confirmed_customer", {"graph": "instant"}, True),
        ("confirmed_customer", {"graph": "instant_payment", "state": "paid"}, True),
        ("rescheduled_customer", {"reschedules": 19, **MOVED}, True),
        ("reminder_customer", {}, True),
        ("confirmed_customer", {"project": None}, False),
        ("confirmed_customer", {"graph": "group_customer"}, False),
        ("confirmed_customer", {"state": "completed"}, False),
        ("confirmed_customer", {"times": 3, "until": "2026-12-07T08:00:00+00:00"}, False),
        ("cancelled_customer", {}, False),
        ("confirmed_owner", {}, False),
    ],
)
def test_mails_offer_reschedule_for_project_bookings(
    slug: str, given: dict[str, Any], offered: bool
) -> None:
    letter = make_letter(slug, **{"project": "Check-up", **given})

    message = compose_mail(letter)

    link = action_url(letter.booking, "reschedule", letter.ends_at)
    choice = f"Choose another time:\n{link}\n\nCancel the booking:\n"
    assert (choice in message.body) is offered
    assert (f"/book/bookings/{BOOKING_ID}/reschedule" in html_of(message)) is offered


def test_mails_offer_no_actions_after_the_end(clock: Any) -> None:
    letter = make_letter("reminder_customer")
    clock.move_to(letter.ends_at)

    message = compose_mail(letter)

    assert ("external_action" in message.body, "external_action" in html_of(message)) == (
        False,
        False,
    )


# --- Facts ----------------------------------------------------------------------------------------
def test_values_of_the_change_override_the_booking() -> None:
    message = compose_mail(
        make_letter(
            "cancelled_customer",
            start="2026-11-24T10:00:00+00:00",
            end="2026-11-24T11:00:00+00:00",
            what="Cleaning",
            where="",
            description="",
        )
    )

    when = "Tuesday, 24 November 2026, 11:00 – 12:00 (Europe/Berlin)"
    assert message.subject == "Cancelled: Cleaning, Tue 24 Nov, 11:00"
    assert message.body.split("\n\n")[3:] == [
        f"What:  Cleaning\nWhen:  {when}\nWith:  Ada Lovelace",
        "Harbour Dental\n",
    ]


def test_owner_mail_names_all_customers() -> None:
    letter = make_letter("confirmed_owner")
    second = type(letter.customers[0])(name="Doc Brown", email="doc@example.com")
    letter = Letter(
        **{name: getattr(letter, name) for name in Letter.__slots__}
        | {"customers": [*letter.customers, second]}
    )

    message = compose_mail(letter)

    assert message.subject == "Confirmed: Marty McFly, D…, Mon 23 Nov, 09:00"
    assert "Customer:  Doc Brown\n           doc@example.com\n" in message.body


def test_lines_of_a_description_are_kept() -> None:
    description = "One\r\nTwo\u2028\n\nThree"

    message = compose_mail(make_letter("confirmed_customer", description=description))

    assert "Details:  One\n          Two\n\n          Three\n" in message.body
    assert "One<br>\nTwo<br>\n<br>\n<br>\nThree</td>" in html_of(message)
