"""Calendar entries in mails, read by another library (RFC 5545, RFC 5546)."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
import vobject

from notifications.mail import SLUGS, compose_mail
from tests.notifications.mails import (
    BOOKING_ID,
    calendar_of,
    make_app,
    make_event,
    make_letter,
    sent,
)

pytestmark = pytest.mark.usefixtures("clock")

REQUESTS = {
    "confirmed_customer",
    "confirmed_owner",
    "rescheduled_customer",
    "rescheduled_owner",
    "reassigned_customer",
    "reassigned_owner",
    "updated_customer",
    "updated_owner",
    "conference_customer",
    "conference_owner",
}
CANCELS = {
    "cancelled_customer",
    "cancelled_owner",
    "cancelled_by_customer_owner",
    "cancelled_by_customer_customer",
    "unassigned_owner",
}


def read(text: str) -> Any:
    """The entry, after a look at its lines: CRLF, at most 75 octets, each a property."""
    lines = text.split("\r\n")
    assert lines.pop() == ""
    assert all(0 < len(line.encode()) <= 75 for line in lines)
    assert all(line.startswith(" ") or line[0].isalpha() for line in lines)
    assert not set(text.replace("\r\n", "")) & {chr(code) for code in range(32)}
    calendar = vobject.readOne(text)
    calendar.validate(raiseException=True)
    return calendar


def values_of(calendar: Any) -> dict[str, Any]:
    """name -> value of the calendar's and its event's properties; people with their parameters."""
    found: dict[str, Any] = {}
    for line in [*calendar.lines(), *calendar.vevent.lines()]:
        value = line.value
        if line.name in ("ATTENDEE", "ORGANIZER"):
            value = (value, {name: line.params[name][0] for name in sorted(line.params)})
        if line.name == "ATTENDEE":
            found.setdefault("ATTENDEE", []).append(value)
        else:
            assert line.name not in found
            found[line.name] = value
    return found


MARTY = (
    "mailto:marty@example.com",
    {"CN": "Marty McFly", "PARTSTAT": "ACCEPTED", "ROLE": "REQ-PARTICIPANT", "RSVP": "FALSE"},
)
ADA = (
    "mailto:ada@example.com",
    {"CN": "Ada Lovelace", "PARTSTAT": "ACCEPTED", "ROLE": "CHAIR", "RSVP": "FALSE"},
)
WHOLE = {
    "PRODID": "-//Scheduling and booking service//EN",
    "VERSION": "2.0",
    "CALSCALE": "GREGORIAN",
    "METHOD": "REQUEST",
    "UID": f"{BOOKING_ID}@127.0.0.1",
    "SEQUENCE": "0",
    "DTSTAMP": datetime(2026, 11, 20, 9, 30, tzinfo=UTC),
    "DTSTART": datetime(2026, 11, 23, 8, tzinfo=UTC),
    "DTEND": datetime(2026, 11, 23, 8, 30, tzinfo=UTC),
    "SUMMARY": "Check-up",
    "LOCATION": "Harbour Street 5",
    "DESCRIPTION": "Bring your card.",
    "STATUS": "CONFIRMED",
    "TRANSP": "OPAQUE",
    "ORGANIZER": ("mailto:bookings@localhost", {"CN": "Harbour Dental"}),
    "ATTENDEE": [MARTY],
}


def test_whole_calendar_entry() -> None:
    calendar = calendar_of(compose_mail(make_letter("confirmed_customer")))

    assert values_of(read(calendar)) == WHOLE


def test_owner_is_an_attendee() -> None:
    calendar = calendar_of(compose_mail(make_letter("confirmed_owner", sequence=3)))

    assert values_of(read(calendar)) == WHOLE | {"ATTENDEE": [ADA, MARTY], "SEQUENCE": "3"}


def test_cancellation_entry() -> None:
    calendar = calendar_of(
        compose_mail(make_letter("cancelled_customer", from_state="confirmed", sequence=4))
    )

    changed = {"METHOD": "CANCEL", "STATUS": "CANCELLED", "SEQUENCE": "4"}
    assert values_of(read(calendar)) == WHOLE | changed


@pytest.mark.parametrize("from_state", ["initialized", "tentative", "confirmed", None])
@pytest.mark.parametrize("slug", SLUGS)
def test_mails_with_a_calendar_entry(slug: str, from_state: str | None) -> None:
    letter = make_letter(slug, from_state=from_state, state="confirmed")

    calendar = calendar_of(compose_mail(letter))

    method = None
    if slug in REQUESTS and (slug.startswith("confirmed") or from_state in ("confirmed", None)):
        method = "REQUEST"
    if slug in CANCELS and from_state == "confirmed":
        method = "CANCEL"
    assert (read(calendar).method.value if calendar else None) == method


@pytest.mark.parametrize(
    ("graph", "from_state", "method"),
    [
        ("instant_payment", "tentative", None),
        ("instant_payment", "paid", "CANCEL"),
        ("group_customer", "confirmed", "CANCEL"),
        ("group_owner", "tentative", "CANCEL"),
        ("instant", "initialized", None),
    ],
)
def test_cancellation_entry_only_of_live_bookings(
    graph: str, from_state: str, method: str | None
) -> None:
    letter = make_letter("cancelled_customer", graph=graph, from_state=from_state)

    calendar = calendar_of(compose_mail(letter))

    assert (read(calendar).method.value if calendar else None) == method


def test_sequence_increases() -> None:
    letters = [
        make_letter("confirmed_customer"),
        make_letter("rescheduled_customer", reschedules=1),
        make_letter("cancelled_customer", reschedules=1, from_state="confirmed"),
    ]

    found = [values_of(read(calendar_of(compose_mail(letter)))) for letter in letters]

    assert [one["SEQUENCE"] for one in found] == ["0", "1", "2"]
    assert len({one["UID"] for one in found}) == 1


def test_all_day_events_have_dates() -> None:
    event = make_event(
        "2026-03-28 23:00",
        "2026-03-30 22:00",
        all_day=True,
        start_date=date(2026, 3, 29),
        end_date=date(2026, 3, 31),
    )

    calendar = calendar_of(compose_mail(make_letter("confirmed_customer", event=event)))

    assert "DTSTART;VALUE=DATE:20260329\r\nDTEND;VALUE=DATE:20260331\r\n" in calendar
    found = values_of(read(calendar))
    assert (found["DTSTART"], found["DTEND"]) == (date(2026, 3, 29), date(2026, 3, 31))


def test_special_characters_round_trip(settings: Any) -> None:
    settings.SENDER_DOMAINS = frozenset({"xn--bcher-kva.example"})
    words = {
        "what": 'Über, "a; b" \\n ' + "ä" * 90,
        "where": "Room 1; left, then right",
        "description": "One, two;\nthree \\ four: «five»",
        "start": "2026-11-24T08:00:00+00:00",
        "end": "2026-11-24T09:00:00+00:00",
    }
    app = make_app(from_name='Dr. "Ada": Zähne; mehr', from_email="desk@bücher.example")

    calendar = calendar_of(compose_mail(make_letter("confirmed_customer", app=app, **words)))

    found = values_of(read(calendar))
    assert (found["SUMMARY"], found["LOCATION"]) == (words["what"], words["where"])
    assert found["DESCRIPTION"] == words["description"]
    assert found["DTSTART"] == datetime(2026, 11, 24, 8, tzinfo=UTC)
    # RFC 6868 writes the quotation marks of a parameter as ^'.
    assert found["ORGANIZER"] == (
        "mailto:desk@xn--bcher-kva.example",
        {"CN": "Dr. ^'Ada^': Zähne; mehr"},
    )


def test_empty_fields_and_wrong_addresses_are_omitted() -> None:
    letter = make_letter(
        "confirmed_customer",
        to=("marty@example.com",),
        customer={"email": "x@evil.example\r\nATTENDEE:mailto:y@evil.example"},
        where="",
        description="",
    )

    found = values_of(read(calendar_of(compose_mail(letter))))

    missing = {"LOCATION", "DESCRIPTION", "ATTENDEE"}
    assert found == {name: value for name, value in WHOLE.items() if name not in missing}


@pytest.mark.parametrize(
    ("slug", "alarms"),
    [
        ("confirmed_customer", [("DISPLAY", "Check-up", timedelta(minutes=-30))]),
        ("confirmed_owner", [("DISPLAY", "Check-up", timedelta(minutes=-30))]),
        ("cancelled_customer", []),
    ],
)
def test_alarm_of_the_entry(slug: str, alarms: list[Any]) -> None:
    event = read(calendar_of(compose_mail(make_letter(slug, from_state="confirmed")))).vevent

    found = [each for each in event.components() if each.name == "VALARM"]
    assert [
        (alarm.action.value, alarm.description.value, alarm.trigger.value) for alarm in found
    ] == alarms


@pytest.mark.parametrize(
    ("slug", "project", "where", "url"),
    [
        ("confirmed_customer", None, "Harbour Street 5", None),
        (
            "confirmed_customer",
            "Check-up",
            "Harbour Street 5",
            "http://127.0.0.1:8000/book/check-up",
        ),
        ("confirmed_owner", "Check-up", "Harbour Street 5", None),
        (
            "confirmed_owner",
            None,
            "https://meet.example.com/a?b=1",
            "https://meet.example.com/a?b=1",
        ),
        ("confirmed_customer", None, "https://meet.example.com/a b", None),
        ("confirmed_customer", None, "javascript:alert(1)", None),
    ],
)
def test_url_of_the_entry(
    slug: str, project: str | None, where: str, url: str | None, settings: Any
) -> None:
    settings.PUBLIC_URL = "http://127.0.0.1:8000"
    letter = make_letter(slug, project=project, where=where)
    if letter.booking.project:
        letter.booking.project.slug = "check-up"

    found = values_of(read(calendar_of(compose_mail(letter))))

    assert found.get("URL") == url


def test_entry_is_inline_and_attached() -> None:
    """As an alternative of the text, which offers yes and no, and as a file to be opened."""
    message = compose_mail(make_letter("confirmed_customer"))

    tree = [
        (part.get_content_type(), part.get_param("method"), part.get_filename())
        for part in sent(message).walk()
    ]
    assert tree == [
        ("multipart/mixed", None, None),
        ("multipart/alternative", None, None),
        ("text/plain", None, None),
        ("text/html", None, None),
        ("text/calendar", "REQUEST", None),
        ("application/ics", None, "invite.ics"),
    ]
    *_, inline, attached = sent(message).walk()
    assert inline.get_content().replace("\r\n", "\n") == calendar_of(message).replace("\r\n", "\n")
    assert attached.get_content() == calendar_of(message).encode()
    assert inline.get_content_charset() == "utf-8"
