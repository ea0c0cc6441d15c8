"""Export and erase the personal data in deliveries, together with that of their bookings."""

import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Length

from bookings.models import Customer
from bookings.pages.trusted_texts import has_untrusted_title
from bookings.privacy import Erasure, Person, PersonalData, personal_data_parts, redactor_of
from common.db.batching import iterate_batches, key_batches
from common.email_address import canonical_address
from common.messages import Message
from common.openapi.component_registry import Json
from common.time.instants import format_stamp
from notifications.awaited_links import AWAITS_LINKS, SENT_WITHOUT_LINK
from notifications.mail import EmailCopy
from notifications.mail.suppressions import erase_suppressions, export_suppressions
from notifications.models import CALL_BODY, Attempt, ChangeCalls, Delivery
from notifications.outbox.expansion import expand_changes_of
from notifications.outbox.sent_emails import erase_copies
from notifications.outbox.serializers import whole_delivery_record, with_detail_rows

SLICE = 100
ERASED = Message("The customer's data was erased.")
# Facts with free text. WRITTEN: those that always go if no customer of the booking remains.
TEXTS = ("what", "where", "message", "subject", "url")
WRITTEN = ("where", "message")
# Facts of ended e-mails that stay: ids of bookings and events, and what was sent.
WITHOUT_TEXTS = ("others", AWAITS_LINKS, SENT_WITHOUT_LINK)


# --- Handed out -----------------------------------------------------------------------------------
def export_deliveries(person: Person, booking_ids: Collection[uuid.UUID]) -> Iterator[Json]:
    """Yield the deliveries of the person's bookings, without mails to other customers."""
    for ids in key_batches(booking_ids, SLICE):
        theirs = person.customers().filter(booking__in=ids).values("id")
        rows = Delivery.objects.filter(Q(customer=None) | Q(customer__in=theirs), booking__in=ids)
        detailed = with_detail_rows(rows).prefetch_related("sent_emails")
        for batch in iterate_batches(detailed, SLICE):
            others = _others_of_mails(person, batch)
            yield from (_export_record(person, row, others) for row in batch)


def _export_record(
    person: Person, row: Delivery, others: Mapping[uuid.UUID | None, Sequence[Customer]]
) -> Json:
    """Return the record of GET /deliveries/:id, the facts from which a mail is composed, and what
    the mails to the person said.
    """
    content = {key: value for key, value in row.content.items() if key != "others"}
    record = whole_delivery_record(row, links=False) | {"content": content}
    if record["payload"]:
        record["payload"] = _without_others(person, record["payload"])
    copies = row.sent_emails.all() if row.customer_id else ()
    named = [each for copy in copies for each in others.get(copy.booking_id, ())]
    sent = [
        {"at": format_stamp(copy.sent_at), **EmailCopy.read(copy.content)._asdict()}
        for copy in copies
        if copy.content
    ]
    return record | ({"sent": redactor_of(named).cut(sent)} if sent else {})


def _others_of_mails(
    person: Person, rows: Iterable[Delivery]
) -> Mapping[uuid.UUID | None, Sequence[Customer]]:
    """Return the other customers of the bookings that the mails are about, by booking."""
    about = {copy.booking_id for row in rows if row.customer_id for copy in row.sent_emails.all()}
    found: dict[uuid.UUID | None, list[Customer]] = {booking: [] for booking in about}
    for customer in Customer.objects.filter(booking__in=about) if about else ():
        if not person.is_of(customer):
            found[customer.booking_id].append(customer)
    return found


def _without_others(person: Person, payload: dict[str, Any]) -> dict[str, Any]:
    """Return the stored record of a booking without its other customers."""
    theirs = [
        customer
        for customer in payload.get("customers", [])
        if canonical_address(customer["email"]) == person.address
    ]
    attributes = payload.get("attributes", {}) | {"customer": next(iter(theirs), None)}
    return payload | {"customers": theirs, "attributes": attributes}


# --- Emptied --------------------------------------------------------------------------------------
def erase_deliveries(erasure: Erasure) -> int:
    """Empty bodies, facts and responses; cancel deliveries that would still send personal data.

    If a worker is sending a cancelled delivery, the delivery loses its lease, and the worker's
    result is dropped.
    """
    expand_changes_of(erasure.bookings)
    rows = Delivery.objects.filter(booking__in=erasure.bookings)
    locked = rows.select_for_update(no_key=True).order_by("id")
    list(locked.values_list("id"))
    erase_copies(erasure.bookings)
    answered = Attempt.objects.filter(delivery=OuterRef("id")).exclude(excerpt="")
    shown = rows.defer("body")
    shown = shown.annotate(length=Length(CALL_BODY), was_answered=Exists(answered))
    return sum(_erase_contents(batch, erasure) for batch in iterate_batches(shown, SLICE))


def _erase_contents(rows: Sequence[Any], erasure: Erasure) -> int:
    """Erase the data in the rows; return how many rows changed."""
    mails = {row.id for row in rows if _is_mail_to(row, erasure)}
    carriers = mails | _calls_with_data(rows, erasure)
    bodies = {row.id for row in rows if row.id in carriers and row.length}
    answers = {row.id for row in rows if row.id in carriers and row.was_answered}
    facts = [row for row in rows if _empty_content(row, erasure)]
    blank = [row.id for row in facts if not row.content]
    ends = {
        row.id for row in rows if row.id in carriers and _would_send_personal_data(row, row.length)
    }
    Delivery.objects.filter(id__in=bodies).update(body="")
    changes = {row.change_id for row in rows if row.id in bodies and row.webhook_id}
    ChangeCalls.objects.filter(change__in=changes - {None}).update(body="")
    Delivery.objects.filter(id__in=blank).update(content={})
    Delivery.objects.bulk_update([row for row in facts if row.content], ["content"])
    Attempt.objects.filter(delivery__in=answers).update(excerpt="")
    Delivery.objects.filter(id__in=answers).update()
    Delivery.objects.filter(id__in=ends).update(
        state=Delivery.CANCELLED,
        reason=ERASED,
        next_at=None,
        finished_at=erasure.now,
        lease_token=None,
    )
    return len(bodies | answers | ends | {row.id for row in facts})


def _is_mail_to(row: Delivery, erasure: Erasure) -> bool:
    return row.customer_id in erasure.customers.get(row.booking_id, ())


def _calls_with_data(rows: Sequence[Delivery], erasure: Erasure) -> set[uuid.UUID]:
    """Return the ids of the calls with the person's data.

    These are all calls about the person's bookings, since a body names every customer, and other
    calls whose body contains the person's data.
    """
    calls = [row for row in rows if row.type == Delivery.WEBHOOK]
    theirs = {row.id for row in calls if row.booking_id in erasure.customers}
    others = [row.id for row in calls if row.id not in theirs]
    bodies = Delivery.objects.filter(id__in=others).values_list("id", "booking", CALL_BODY)
    named = {
        each_body for each_body, booking, body in bodies if erasure.marks[booking].are_in(body)
    }
    return theirs | named


def _would_send_personal_data(row: Delivery, length: int) -> bool:
    """Return whether the open delivery would still send the person's data.

    True for mails, and for calls whose body is stored or being rendered. The body of another call
    is rendered after the erasure, from the emptied booking.
    """
    written = row.type == Delivery.EMAIL or length or row.state == Delivery.SENDING
    return bool(written) and not row.is_final


def _empty_content(row: Delivery, erasure: Erasure) -> bool:
    """Empty the personal data in the facts; return whether they changed."""
    before = row.content
    is_bare = row.booking_id in erasure.bare
    has_left = row.type == Delivery.EMAIL and row.is_final and is_bare
    if has_left or _is_mail_to(row, erasure):
        row.content = {key: value for key, value in before.items() if key in WITHOUT_TEXTS}
        return row.content != before
    removed = {
        *(_written_facts(row, erasure) if is_bare else ()),
        *(["former"] if row.is_final else ()),
    }
    marks = erasure.marks[row.booking_id]
    row.content = {
        key: marks.cut(value) if key in TEXTS else value
        for key, value in before.items()
        if not (value and key in removed)
    }
    return row.content != before


def _written_facts(row: Delivery, erasure: Erasure) -> Iterator[str]:
    """Yield the facts to remove if no customer of the booking remains: a mail without them takes
    the event's title and the template's subject.
    """
    yield from WRITTEN
    if row.booking_id and has_untrusted_title(erasure.bookings[row.booking_id]):
        yield "what"
    if row.content.get("subject") not in erasure.subjects:
        yield "subject"


personal_data_parts.register(PersonalData("deliveries", export_deliveries, erase_deliveries))
personal_data_parts.register(
    PersonalData("suppressions", export_suppressions, erase_person=erase_suppressions)
)
