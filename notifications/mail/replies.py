"""Read answers to invitations from e-mails (iMIP, RFC 6047), and store them.

A reply counts only for the UID of a booking's entry, which is random and known to its customers
alone, and only for the address of one of these customers. Anybody may write any sender into an
e-mail. So a reply cancels nothing unless the operator's own mail server has verified the sender's
domain by DKIM.
"""

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from email.message import Message
from typing import NamedTuple

from django.db.models import Q, QuerySet

from bookings.graphs import CUSTOMER
from bookings.models import Customer
from bookings.services import Actor, Answer, record_response
from bookings.services.responses import CANCELLED, ENDED, NOTED, OLDER, UNCHANGED, Invitation
from common.email_address import canonical_address, is_address
from common.ical.components import (
    UnreadableCalendar,
    all_values,
    first_value,
    keyword_value,
    read_components,
    sequence_of,
)
from common.ical.occurrences import attendee_address
from notifications.mail.provider_entries import provider_entries
from notifications.mail.sender_check import is_sender_verified

RESPONSES = {
    "ACCEPTED": Customer.ACCEPTED,
    "TENTATIVE": Customer.TENTATIVE,
    "DECLINED": Customer.DECLINED,
}
ANSWERED_BY_MAIL = Actor(CUSTOMER, Customer.MAIL)
MAX_PARTS = 100
MAX_OPEN = 200  # bookings of one address
MAX_CALENDAR = 256 * 2**10  # bytes
RESULTS = {
    NOTED: "{address} answers: {response}.",
    CANCELLED: "{address} answers: {response}. The booking is cancelled.",
    UNCHANGED: "Ignored: the answer of {address} is stored already.",
    OLDER: "Ignored: the answer of {address} is older than the booking's time or the last answer.",
    ENDED: "Ignored: the booking that {address} answers is over.",
}


class BadReply(Exception):
    """The message is a reply that can't be used; the text is a sentence for the operator."""


class Reply(NamedTuple):
    """One attendee's answer: the entry's UID, a canonical address, a value of RESPONSES, the
    SEQUENCE of the answered invitation, and when the answer was given (None: unknown).
    """

    uid: str
    address: str
    response: str
    sequence: int
    at: datetime | None


def record_reply(message: Message, *, now: datetime) -> list[str] | None:
    """Store the answer in the message; return a sentence for each customer whom it is about, or one
    about why it is ignored. None: the message is no reply to an invitation.
    """
    content = find_reply(message)
    if content is None:
        return None
    try:
        reply = read_reply(content)
    except BadReply as fault:
        return [f"Ignored: {fault}"]
    customers = _customers_of(reply)
    if not customers:
        return ["Ignored: no booking has this UID and a customer with this address."]
    is_verified = is_sender_verified(message, reply.address)
    return [_record(reply, customer, is_verified, now) for customer in customers]


def _record(reply: Reply, customer: Customer, is_verified: bool, now: datetime) -> str:
    booking, group = customer.booking, customer.booking.owner_booking
    is_group = group is not None and group.calendar_uid == _calendar_uid(reply.uid)
    result = record_response(
        app=booking.app,
        customer=customer,
        answer=Answer(reply.response, min(reply.at or now, now), may_cancel=is_verified),
        actor=ANSWERED_BY_MAIL,
        now=now,
        invitation=Invitation(group.id if group and is_group else booking.id, reply.sequence),
    )
    sentence = RESULTS[result].format(address=reply.address, response=reply.response)
    return sentence if is_verified or result != NOTED else f"{sentence} The sender is not verified."


def _customers_of(reply: Reply) -> list[Customer]:
    """Return the customers who have the address, of the booking or of a group's seats."""
    rows = Customer.objects.filter(address=reply.address, booking__deleted_at=None)
    rows = rows.select_related("booking__app", "booking__event", "booking__owner_booking")
    if own_uid := _calendar_uid(reply.uid):
        of_group = Q(booking__owner_booking__calendar_uid=own_uid)
        found = rows.filter(Q(booking__calendar_uid=own_uid) | of_group)
        return list(found.order_by("booking", "id"))
    return _customers_by_provider_uid(rows, reply.uid)


def _customers_by_provider_uid(rows: QuerySet[Customer], uid: str) -> list[Customer]:
    """Return the customers of open bookings whose entry has this UID at a provider."""
    newest = rows.filter(booking__completed=False).order_by("-booking", "-id")[:MAX_OPEN]
    customers = list(reversed(newest))
    bookings = [customer.booking for customer in customers]
    entries = [of_provider(bookings) for of_provider in provider_entries]
    return [
        customer
        for customer in customers
        if any(each.provider_uid(customer.booking) == uid for each in entries)
    ]


def _calendar_uid(text: str) -> uuid.UUID | None:
    """Return the `calendar_uid` in a UID that this service has made."""
    try:
        return uuid.UUID(text.partition("@")[0])
    except ValueError:
        return None


# --- The message ----------------------------------------------------------------------------------
def find_reply(message: Message) -> bytes | None:
    """Return the message's iCalendar part with METHOD:REPLY; None if it has none.

    Forwarded messages in the message are not searched: somebody else has sent them.
    """
    for part in _message_parts(message):
        is_reply = str(part.get_param("method", "")).upper() == "REPLY"
        if part.get_content_type() == "text/calendar" and is_reply:
            content = part.get_payload(decode=True)
            return content if isinstance(content, bytes) else b""
    return None


def _message_parts(message: Message) -> Iterator[Message]:
    """Yield the message and its parts, the first MAX_PARTS, in order."""
    waiting = [message]
    for _ in range(MAX_PARTS):
        if not waiting:
            return
        part = waiting.pop()
        yield part
        inside = part.get_payload() if part.get_content_maintype() == "multipart" else ()
        if isinstance(inside, list):
            waiting += [each for each in reversed(inside) if isinstance(each, Message)]


def read_reply(content: bytes) -> Reply:
    """Return the answer in an iCalendar text with METHOD:REPLY. Raises BadReply.

    RFC 5546, 3.2.3: one attendee, who answers.
    """
    if len(content) > MAX_CALENDAR:
        raise BadReply("the answer is too long.")
    try:
        calendars = read_components(
            content.decode("utf-8", "replace"), further=("METHOD", "DTSTAMP")
        )
    except UnreadableCalendar as error:
        raise BadReply(f"the answer can't be read. {error}") from error
    events = [event for calendar in calendars for event in calendar.walk("VEVENT")]
    if len(calendars) != 1 or keyword_value(calendars[0], "METHOD") != "REPLY":
        raise BadReply("the calendar in the message is no answer (METHOD:REPLY).")
    if len(events) != 1 or len(attendees := all_values(events[0], "ATTENDEE")) != 1:
        raise BadReply("the answer has not exactly one event with one attendee.")
    event, attendee = events[0], attendees[0]
    response = RESPONSES.get(str(getattr(attendee, "params", {}).get("PARTSTAT", "")).upper())
    if response is None:
        raise BadReply("the attendee has neither accepted nor declined.")
    address = canonical_address(attendee_address(attendee))
    if not is_address(address):
        raise BadReply("the attendee has no e-mail address.")
    sequence = max(sequence_of(event), 0)
    uid = str(first_value(event, "UID") or "").strip()
    if not uid:
        raise BadReply("the answer has no UID.")
    return Reply(uid, address, response, sequence, _instant(first_value(event, "DTSTAMP")))


def _instant(stamp: object) -> datetime | None:
    moment = getattr(stamp, "dt", None)
    if isinstance(moment, datetime) and moment.tzinfo:
        return moment.astimezone(UTC).replace(microsecond=0)
    return None
