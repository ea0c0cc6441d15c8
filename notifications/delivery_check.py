"""Check that the outbox is complete: each booking that entered a state in the last day has its
e-mails, and each live booking has its reminders, once.

Calls are not checked, except reminders: nothing stores which webhooks wanted a change.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Count, Exists, F, IntegerField, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce

from apps_config.models import EventNotification
from bookings.graphs import CUSTOMER, OWNER
from bookings.models import Booking, BookingNotification, Customer, StateChange
from common.db.ids import least_id
from notifications.merged_mails import MERGED_KINDS
from notifications.models import Delivery
from notifications.personal_data import ERASED
from notifications.planning import MAILS, mail_recipients

CHECKED = timedelta(days=1)
# Between the first and the last id of the changes of one request.
LONGEST_REQUEST = timedelta(hours=1)
# The newest changes, and the bookings that end next, that one check reads.
MAX_CHECKED = 10_000


def find_delivery_faults(now: datetime, *, limit: int = MAX_CHECKED) -> list[str]:
    """Return a line for each missing e-mail, and for each live booking with a wrong number of
    reminders: `change 01a2...: no e-mail to the owner`.

    Six queries. Reads up to `limit` changes and `limit` bookings.
    """
    return [*_missing_mails(now, limit), *_wrong_reminders(limit)]


# --- E-mails --------------------------------------------------------------------------------------
class _Change(NamedTuple):
    id: UUID
    state: str
    created_at: datetime
    graph: str
    series: UUID | None
    owner_booking: UUID | None
    has_customers: bool

    def recipients(self) -> Iterator[str]:
        for recipient in mail_recipients(self.graph, self.state):
            # The booking of a group's owner may tell the owner for all seats.
            is_told = recipient == OWNER and self.owner_booking is not None
            is_nobody = recipient == CUSTOMER and not self.has_customers
            if not is_told and not is_nobody:
                yield recipient

    def together(self) -> Any:
        """Return what the changes have in common that share an e-mail: those of a series."""
        return (self.series, self.state, self.created_at) if self.series else self.id


def _missing_mails(now: datetime, limit: int) -> Iterator[str]:
    changes = _newest_changes(now, limit)
    if not changes:
        return
    first = least_id(changes[-1].created_at - LONGEST_REQUEST)
    mails = Delivery.objects.filter(change__gte=first, type=Delivery.EMAIL)
    mailed = set(mails.exclude(kind=Delivery.REMINDER).values_list("change", "recipient"))
    carriers = mails.filter(kind__in=MERGED_KINDS, content__has_key="others")
    for recipient, content in carriers.values_list("recipient", "content"):
        mailed |= {(UUID(other["change_id"]), recipient) for other in content["others"]}
    told = {
        (change.together(), recipient)
        for change in changes
        for recipient in change.recipients()
        if (change.id, recipient) in mailed
    }
    for change in changes:
        for recipient in change.recipients():
            if (change.together(), recipient) not in told:
                yield f"change {change.id}: no e-mail to the {recipient}"


def _newest_changes(now: datetime, limit: int) -> list[_Change]:
    """Return the changes to a state that is mailed, the newest first; of a series all or none."""
    since = now - CHECKED
    rows = StateChange.objects.filter(
        id__gte=least_id(since - LONGEST_REQUEST), created_at__gte=since, to_state__in=MAILS
    ).exclude(from_state=F("to_state"))
    booking = "booking__graph", "booking__series", "booking__owner_booking"
    has_customers = Exists(Customer.objects.filter(booking=OuterRef("booking")))
    values = rows.order_by("-id").values_list(
        "id", "to_state", "created_at", *booking, has_customers
    )
    changes = [_Change(*row) for row in values[:limit]]
    if len(changes) < limit:
        return changes
    return [change for change in changes if change.created_at > changes[-1].created_at]


# --- Reminders ------------------------------------------------------------------------------------
def _wrong_reminders(limit: int) -> Iterator[str]:
    """One statement for each kind, so that a booking and its reminders are of one snapshot."""
    next_ones = Booking.objects.filter(completes_at__isnull=False, deleted_at=None)
    next_ones = next_ones.order_by("completes_at", "id")[:limit]
    bookings = Booking.objects.filter(pk__in=next_ones.values("pk"))
    customers = Customer.objects.filter(booking__in=next_ones.values("pk"))
    email = {"type": EventNotification.EMAIL}
    yield from _wrong_counts("call", bookings, {"type": EventNotification.WEBHOOK}, {})
    to_owner = {**email, "recipient": OWNER}
    yield from _wrong_counts("e-mail to the owner", bookings, to_owner, {"recipient": OWNER})
    each = {"customer": OuterRef("id")}
    to_customer = {**email, "recipient": CUSTOMER}
    yield from _wrong_counts("e-mail to a customer", customers, to_customer, each)


def _wrong_counts(
    what: str, rows: QuerySet, wanted: Mapping[str, str], planned: Mapping[str, Any]
) -> Iterator[str]:
    """Compare the event notifications `wanted` with the reminders `planned` for each row, which is
    a booking or a customer.
    """
    booking = "id" if rows.model is Booking else "booking"
    moves = "reschedules" if rows.model is Booking else "booking__reschedules"
    notifications = BookingNotification.objects.filter(booking=OuterRef(booking), **wanted)
    reminders = Delivery.objects.filter(
        ~Q(state=Delivery.CANCELLED) | Q(reason=ERASED),
        kind=Delivery.REMINDER,
        booking=OuterRef(booking),
        version=OuterRef(moves),
        type=wanted["type"],
        **planned,
    )
    counted = rows.annotate(
        wanted=_count_subquery(notifications), planned=_count_subquery(reminders)
    )
    wrong = counted.exclude(wanted=F("planned")).order_by(booking, "id")
    for id, count, expected in wrong.values_list(booking, "planned", "wanted"):
        yield f"booking {id}: {count} reminders instead of {expected} ({what})"


def _count_subquery(rows: QuerySet) -> Coalesce:
    counted = rows.order_by().annotate(_one=Value(1)).values("_one").annotate(count=Count("pk"))
    return Coalesce(Subquery(counted.values("count")), 0, output_field=IntegerField())
