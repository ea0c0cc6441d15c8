"""Answers to invitations by e-mail (RFC 6047), given to `manage.py incoming_mail`."""

import io
import re
import sys
from collections.abc import Callable
from email.message import EmailMessage
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.management import call_command
from icalendar import Calendar

from bookings.models import Booking, Customer
from external_calendars.models import WrittenEvent
from notifications.outbox.dispatcher import run_dispatcher
from tests.bookings.group_world import ANN, BOB, make_group, seat_in
from tests.external_calendars.mirrored import connect
from tests.sinks import Mail, MailSink
from tests.world import Tenant

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]
MARTY, SERVER = "marty@example.com", "mx.bookings.example"
NINE = {"start": "2040-01-02T09:00:00Z", "end": "2040-01-02T10:00:00Z"}
TEN = {"start": "2040-01-02T10:00:00Z", "end": "2040-01-02T11:00:00Z"}
NO_BOOKING = "Ignored: no booking has this UID and a customer with this address."
ONE_ATTENDEE = "Ignored: the answer has not exactly one event with one attendee."
PASS = "dkim=pass header.d=example.com"
SIGNED = f"{SERVER}; {PASS} header.s=2026; spf=pass"


@pytest.fixture(autouse=True)
def _trusted_mail_server(settings: Any) -> None:
    settings.MAIL_AUTHSERV_ID = SERVER


@pytest.fixture
def give(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], str]:
    """give(content) -> what `manage.py incoming_mail` prints of the message, without the last line
    end.
    """

    def run(content: bytes) -> str:
        printed = io.StringIO()
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
        call_command("incoming_mail", stdout=printed)
        return printed.getvalue().removesuffix("\n")

    return run


def book(tenant: Tenant, *, guest_declines: str = "note", **given: Any) -> Any:
    """A booking of Marty at nine, in a project of its own."""
    ada = tenant.make_resource("Ada", email="ada@example.com")
    settings = {"guest_declines": guest_declines, "enforce_availability": False}
    project = tenant.make_project(ada["id"], settings=settings)
    who = {} if "customers" in given else {"customer": {"name": "Marty", "email": MARTY}}
    body = {"what": "Check-up", "project_id": project["id"], "graph": "instant"}
    answer = tenant.post("/bookings", {**body, **who, **NINE, **given})
    assert answer.status == 201, answer.json
    return answer.data


def uid_of(booking: Any) -> str:
    return f"{Booking.objects.get(id=booking['id']).calendar_uid}@localhost"


def make_reply(
    uid: str,
    answer: str = "DECLINED",
    *,
    attendee: str = MARTY,
    sender: str = f"Marty <{MARTY}>",
    sequence: int | None = 0,
    stamp: str = "20260101T100000Z",
    results: str | None = SIGNED,
    further: str = "",
) -> bytes:
    """A reply as calendar programs write it."""
    lines = [
        *("BEGIN:VCALENDAR", "PRODID:-//Example//EN", "VERSION:2.0", "METHOD:REPLY"),
        *("BEGIN:VEVENT", f"UID:{uid}", f"DTSTAMP:{stamp}", "DTSTART:20400102T090000Z"),
        *([f"SEQUENCE:{sequence}"] if sequence is not None else []),
        f'ATTENDEE;CN="Marty";PARTSTAT={answer}:mailto:{attendee}',
        *([further] if further else []),
        *("END:VEVENT", "END:VCALENDAR", ""),
    ]
    return wrap("\r\n".join(lines), sender=sender, results=results)


def wrap(
    calendar: str, *, sender: str = MARTY, results: str | None = None, method: str = "REPLY"
) -> bytes:
    message = EmailMessage()
    if results is not None:
        message["Authentication-Results"] = results
    message["From"], message["To"] = sender, "bookings@localhost"
    message["Subject"] = "Declined: Check-up"
    message.set_content("Marty has declined.")
    message.add_alternative(calendar.encode(), "text", "calendar", params={"method": method})
    return message.as_bytes()


def answers() -> list[tuple[str, str | None, str | None]]:
    rows = Customer.objects.order_by("email")
    return list(rows.values_list("email", "response", "response_source"))


def state_of(booking: Any) -> str:
    return Booking.objects.get(id=booking["id"]).state


UNANSWERED = [(MARTY, None, None)]
DECLINED = [(MARTY, "declined", "mail")]


# --- Answers --------------------------------------------------------------------------------------
def test_answer_to_a_sent_invitation_is_stored(
    tenant: Tenant, mails: MailSink, give: Callable[[bytes], str]
) -> None:
    """The UID and the SEQUENCE are those of the file in the e-mail."""
    booking = book(tenant)
    run_dispatcher("email")
    event = invitation_in(next(mail for mail in mails.mails if mail.to == [MARTY]))

    said = give(make_reply(str(event["UID"]), "ACCEPTED", sequence=int(event["SEQUENCE"])))

    assert said == f"{MARTY} answers: accepted."
    assert answers() == [(MARTY, "accepted", "mail")]
    (customer,) = tenant.get(f"/bookings/{booking['id']}").data["customers"]
    assert customer["responded_at"] == "2026-01-01T10:00:00+0000"


def invitation_in(mail: Mail) -> Any:
    """The event of the calendar file in an e-mail."""
    part = next(part for part in mail.message.walk() if part.get_content_type() == "text/calendar")
    return Calendar.from_ical(part.get_payload(decode=True)).walk("VEVENT")[0]


def test_address_is_compared_in_any_spelling(tenant: Tenant, give: Callable[[bytes], str]) -> None:
    uid = uid_of(book(tenant))

    said = give(make_reply(uid.upper(), "TENTATIVE", attendee="MARTY@Example.com"))

    assert said == f"{MARTY} answers: tentative."
    assert answers() == [(MARTY, "tentative", "mail")]


def test_repeated_answer_changes_nothing(tenant: Tenant, give: Callable[[bytes], str]) -> None:
    reply = make_reply(uid_of(book(tenant)), "ACCEPTED")

    said = [give(reply) for _ in range(2)]

    assert said == [
        f"{MARTY} answers: accepted.",
        f"Ignored: the answer of {MARTY} is stored already.",
    ]


def test_answers_that_arrive_in_the_wrong_order(
    tenant: Tenant, give: Callable[[bytes], str]
) -> None:
    uid = uid_of(book(tenant))

    give(make_reply(uid, "ACCEPTED", stamp="20260101T110000Z"))
    said = give(make_reply(uid, "DECLINED", stamp="20260101T100000Z"))

    assert said.startswith(f"Ignored: the answer of {MARTY} is older")
    assert answers() == [(MARTY, "accepted", "mail")]


def test_answer_to_the_former_time_is_ignored(
    tenant: Tenant, mails: MailSink, give: Callable[[bytes], str]
) -> None:
    booking = book(tenant)
    assert tenant.post(f"/bookings/{booking['id']}/reschedule", TEN).status == 200
    run_dispatcher("email")
    sent = [invitation_in(mail) for mail in mails.mails if mail.to == [MARTY]]
    uid = uid_of(booking)

    # Without a SEQUENCE it is 0 (RFC 5545, 3.8.7.4).
    said = [give(make_reply(uid, sequence=sequence)) for sequence in (0, None, 1)]

    assert [int(event["SEQUENCE"]) for event in sent][-1] == 1
    assert [line.partition(" is older")[0] for line in said] == [
        f"Ignored: the answer of {MARTY}",
        f"Ignored: the answer of {MARTY}",
        f"{MARTY} answers: declined.",
    ]


def test_answer_from_the_future_is_of_now(tenant: Tenant, give: Callable[[bytes], str]) -> None:
    uid = uid_of(book(tenant))

    give(make_reply(uid, "ACCEPTED", stamp="20990101T100000Z"))
    give(make_reply(uid, "DECLINED", stamp="20990101T090000Z"))

    assert answers() == DECLINED


def test_answers_for_seats(tenant: Tenant, give: Callable[[bytes], str]) -> None:
    """The e-mail names the seat's UID; the entry of a calendar server, the group's."""
    ada = tenant.make_resource("Ada")
    group = make_group(tenant, ada, **NINE)
    seats = [seat_in(tenant, group, who) for who in (ANN, BOB)]

    give(make_reply(uid_of(seats[0]), "ACCEPTED", attendee=ANN["email"]))
    give(make_reply(uid_of(group), "DECLINED", attendee=BOB["email"]))
    strange = give(make_reply(uid_of(seats[0]), "DECLINED", attendee=BOB["email"]))

    assert answers() == [
        (ANN["email"], "accepted", "mail"),
        (BOB["email"], "declined", "mail"),
    ]
    assert strange == NO_BOOKING


def test_answer_with_the_uid_of_a_connected_calendar(
    tenant: Tenant, give: Callable[[bytes], str]
) -> None:
    """A provider that makes its own UIDs: the files in e-mails have them."""
    booking = book(tenant)
    event = Booking.objects.get(id=booking["id"]).event
    calendar = connect({"id": str(event.resource_id)})
    WrittenEvent.objects.create(event=event, calendar=calendar, uid="5k2a@google.com")

    said = [
        give(make_reply("5k2a@google.com")),
        give(make_reply("5k2a@google.com", attendee="eve@example.com")),
        give(make_reply("other@google.com")),
    ]

    assert said == [f"{MARTY} answers: declined.", NO_BOOKING, NO_BOOKING]
    assert answers() == DECLINED


def test_answer_to_a_finished_booking(tenant: Tenant, give: Callable[[bytes], str]) -> None:
    booking = book(tenant)
    tenant.put(f"/bookings/{booking['id']}/cancel")

    said = give(make_reply(uid_of(booking)))

    assert said == f"Ignored: the booking that {MARTY} answers is over."
    assert answers() == UNANSWERED


# --- What cancels ---------------------------------------------------------------------------------
def test_verified_answer_cancels_once(tenant: Tenant, give: Callable[[bytes], str]) -> None:
    booking = book(tenant, guest_declines="cancel")
    reply = make_reply(uid_of(booking))

    said = [give(reply) for _ in range(2)]

    assert said == [
        f"{MARTY} answers: declined. The booking is cancelled.",
        f"Ignored: the booking that {MARTY} answers is over.",
    ]
    logs = tenant.get(f"/bookings/{booking['id']}?include=logs").data["logs"]
    assert [(log["action"], log["actor"], log["source"]) for log in logs[1:]] == [
        ("response", "customer", "mail"),
        ("cancel_by_customer", "customer", "mail"),
    ]


VERIFIED = [
    SIGNED,
    f"{SERVER.upper()} 1; spf=fail; dkim=fail header.d=other.example;"
    " dkim=pass (2048-bit key; unprotected) header.d=Example.COM header.i=@example.com",
    f"{SERVER};\r\n\tdkim=pass header.s=a header.d=example.com",
]
UNVERIFIED = {
    "no header": None,
    "another server": "mx.elsewhere.example; dkim=pass header.d=example.com",
    "another server that begins the same": f"{SERVER}.evil.example; dkim=pass header.d=example.com",
    "none": f"{SERVER}; none",
    "dkim fails": f"{SERVER}; dkim=fail header.d=example.com",
    "spf alone": f"{SERVER}; spf=pass smtp.mailfrom=marty@example.com",
    "another domain": f"{SERVER}; dkim=pass header.d=evil.example header.i=@example.com",
    "a domain that ends the same": f"{SERVER}; dkim=pass header.d=ample.com",
    "a subdomain": f"{SERVER}; dkim=pass header.d=mail.example.com",
    "the top level": f"{SERVER}; dkim=pass header.d=com",
    "in a comment": f"{SERVER}; dkim=fail (; {PASS})",
    "in a quoted string": f'{SERVER}; spf=pass smtp.mailfrom="; {PASS} ;"@example.org',
    "in an escaped string": f'{SERVER}; spf=pass smtp.mailfrom="\\"; {PASS} ;"@example.org',
    "in another result": f"{SERVER}; arc=pass; x=dkim=pass header.d=example.com",
}


@pytest.mark.parametrize("results", VERIFIED, ids=range(len(VERIFIED)))
def test_ways_to_verify_the_sender(
    tenant: Tenant, give: Callable[[bytes], str], results: str
) -> None:
    booking = book(tenant, guest_declines="cancel")
    folded = re.sub(r"\r\n\t", " ", results)

    give(make_reply(uid_of(booking), results=folded))

    assert state_of(booking) == "cancelled_by_customer"


@pytest.mark.parametrize("results", UNVERIFIED.values(), ids=UNVERIFIED.keys())
def test_unverified_answer_is_noted(
    tenant: Tenant, give: Callable[[bytes], str], results: str | None
) -> None:
    booking = book(tenant, guest_declines="cancel")

    said = give(make_reply(uid_of(booking), results=results))

    assert said == f"{MARTY} answers: declined. The sender is not verified."
    assert (answers(), state_of(booking)) == (DECLINED, "confirmed")


def test_without_the_setting_no_answer_is_verified(
    tenant: Tenant, give: Callable[[bytes], str], settings: Any
) -> None:
    settings.MAIL_AUTHSERV_ID = ""
    booking = book(tenant, guest_declines="cancel")

    give(make_reply(uid_of(booking), results="; dkim=pass header.d=example.com"))

    assert (answers(), state_of(booking)) == (DECLINED, "confirmed")


@pytest.mark.parametrize(
    "sender",
    [
        "colleague@example.com",
        f"{MARTY}, colleague@example.com",
        f"{MARTY} <colleague@example.com>",
        "",
    ],
)
def test_other_sender_of_the_same_domain_is_not_verified(
    tenant: Tenant, give: Callable[[bytes], str], sender: str
) -> None:
    booking = book(tenant, guest_declines="cancel")

    give(make_reply(uid_of(booking), sender=sender))

    assert (answers(), state_of(booking)) == (DECLINED, "confirmed")


def test_second_from_is_not_verified(tenant: Tenant, give: Callable[[bytes], str]) -> None:
    booking = book(tenant, guest_declines="cancel")

    give(b"From: colleague@example.com\r\n" + make_reply(uid_of(booking)))

    assert (answers(), state_of(booking)) == (DECLINED, "confirmed")


def test_only_the_topmost_header_of_the_server_counts(
    tenant: Tenant, give: Callable[[bytes], str]
) -> None:
    """A sender writes such headers too; the mail server adds its own above them."""
    booking = book(tenant, guest_declines="cancel")
    failed = f"Authentication-Results: {SERVER}; dkim=fail header.d=example.com\n".encode()
    other = b"Authentication-Results: mx.elsewhere.example; dkim=fail\n"

    noted = give(other + failed + make_reply(uid_of(booking), "TENTATIVE"))
    state = state_of(booking)
    cancelled = give(other + make_reply(uid_of(booking)))

    assert (noted, state) == (
        f"{MARTY} answers: tentative. The sender is not verified.",
        "confirmed",
    )
    assert cancelled == f"{MARTY} answers: declined. The booking is cancelled."


# --- Hostile messages -----------------------------------------------------------------------------
def test_answer_needs_uid_and_address_of_one_booking(
    tenant: Tenant, give: Callable[[bytes], str], make_tenant: Any
) -> None:
    booking = book(tenant)
    other = book(make_tenant(), customers=[{"name": "Eve", "email": "eve@example.com"}])

    said = [
        give(make_reply(uid_of(booking), attendee="eve@example.com")),
        give(make_reply(uid_of(other), attendee=MARTY)),
        give(make_reply(f"{booking['id']}@localhost")),
        give(make_reply("00000000-0000-4000-8000-000000000000@localhost")),
    ]

    assert said == [NO_BOOKING] * 4
    assert [response for _, response, _ in answers()] == [None, None]


FAULTS = {
    "foreign UID": (("UID:{uid}", "UID:abc@example.com"), NO_BOOKING.removeprefix("Ignored: ")),
    "no UID": (("UID:{uid}", "X-UID:1"), "the answer has no UID."),
    "several attendees": (
        ("END:VEVENT", f"ATTENDEE;PARTSTAT=DECLINED:mailto:{MARTY}\r\nEND:VEVENT"),
        ONE_ATTENDEE.removeprefix("Ignored: "),
    ),
    "several events": (
        ("END:VCALENDAR", "BEGIN:VEVENT\r\nUID:1\r\nEND:VEVENT\r\nEND:VCALENDAR"),
        ONE_ATTENDEE.removeprefix("Ignored: "),
    ),
    "several calendars": (
        ("BEGIN:VCALENDAR", "BEGIN:VCALENDAR\r\nEND:VCALENDAR\r\nBEGIN:VCALENDAR"),
        "the calendar in the message is no answer (METHOD:REPLY).",
    ),
    "another method": (
        ("METHOD:REPLY", "METHOD:COUNTER"),
        "the calendar in the message is no answer (METHOD:REPLY).",
    ),
    "no answer": (
        ("PARTSTAT=DECLINED", "PARTSTAT=NEEDS-ACTION"),
        "the attendee has neither accepted nor declined.",
    ),
    "no address": (
        (f"mailto:{MARTY}", "urn:uuid:1"),
        "the attendee has no e-mail address.",
    ),
    "nested events": (
        ("BEGIN:VEVENT", "BEGIN:VEVENT\r\n" * 200),
        "the answer can't be read. The text is nested too deeply.",
    ),
    "no calendar": (
        ("BEGIN:VCALENDAR", "BEGIN:NOTHING"),
        "the answer can't be read. ",
    ),
    "huge": (
        ("END:VEVENT", "COMMENT:" + "x" * 300_000 + "\r\nEND:VEVENT"),
        "the answer is too long.",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_unusable_answer_changes_nothing(
    tenant: Tenant, give: Callable[[bytes], str], name: str
) -> None:
    (old, new), fault = FAULTS[name]
    uid = uid_of(book(tenant))
    text = (
        "BEGIN:VCALENDAR\r\nMETHOD:REPLY\r\nBEGIN:VEVENT\r\nUID:{uid}\r\nSEQUENCE:0\r\n"
        f"ATTENDEE;PARTSTAT=DECLINED:mailto:{MARTY}\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
    )
    assert text.count(old) == 1

    said = give(wrap(text.replace(old, new).replace("{uid}", uid)))

    assert said.startswith(f"Ignored: {fault}")
    assert "\n" not in said
    assert answers() == UNANSWERED


def test_answer_in_a_forwarded_message_is_ignored(
    tenant: Tenant, give: Callable[[bytes], str]
) -> None:
    reply = make_reply(uid_of(book(tenant)))
    forwarded = EmailMessage()
    forwarded["From"] = MARTY
    forwarded.set_content("See below.")
    content = forwarded.as_bytes() + b"\n"
    outer = (
        b"From: " + MARTY.encode() + b"\nMIME-Version: 1.0\n"
        b'Content-Type: multipart/mixed; boundary="b"\n\n--b\nContent-Type: message/rfc822\n\n'
        + reply
        + b"\n--b\n"
        + content
        + b"--b--\n"
    )

    said = give(outer)

    assert said == (
        "Ignored: this is no report of a failed delivery and no answer to an invitation."
    )
    assert answers() == UNANSWERED


HOSTILE = {
    "nested multiparts": b"".join(
        b'Content-Type: multipart/mixed; boundary="b%d"\r\n\r\n--b%d\r\n' % (depth, depth)
        for depth in range(5000)
    ),
    "nested messages": b"Content-Type: message/rfc822\r\n\r\n" * 5000,
    "many parts": b"MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n"
    + b"--b\r\nContent-Type: text/plain\r\n\r\nx\r\n" * 20_000,
    "an empty answer": b"Content-Type: text/calendar; method=REPLY\r\n\r\n",
    "bytes": b'Content-Type: text/calendar; method="REPLY"\r\n\r\n' + bytes(range(256)) * 100,
    "bad encoding": b"Content-Type: text/calendar; method=REPLY\r\n"
    b"Content-Transfer-Encoding: base64\r\n\r\n!!!!",
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_message_is_ignored_in_one_line(
    db: None, give: Callable[[bytes], str], content: bytes
) -> None:
    said = give(content)

    assert said.startswith("Ignored: ")
    assert "\n" not in said
