"""Audit of deliveries: every planned delivery is stored, or was purged by retention.

  created = the sum of all states + purged

Each rule selects the rows that break it, in one statement and thus one snapshot.

An audit since a time reads the changes since then with all their deliveries, deliveries that are
open or ended since then, and live bookings. Since EVER, it reads all rows.
"""

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from django.db.models import (
    CharField,
    Count,
    Exists,
    F,
    IntegerField,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Sum,
    Value,
)
from django.db.models.functions import Coalesce

from apps_config.models import EventNotification
from bookings.graphs import CUSTOMER, OWNER
from bookings.models import Booking, BookingNotification, Customer
from common.ids import least_id
from notifications.models import Attempt, ChangeCalls, Delivery, Plan
from notifications.outbox.overdue import overdue_deliveries

# An expired lease this old should have been taken over by another worker.
LOST_AFTER = timedelta(minutes=10)
FINAL = tuple(state for state in Delivery.STATES if state not in Delivery.OPEN)
EVER = datetime(1970, 1, 1, tzinfo=UTC)
PLANNED, UNPLANNED, PURGED = "planned", "unplanned", "purged"


class Span(NamedTuple):
    """What is audited: rows `since` a time; with a delay of more than `overdue`, if not zero."""

    since: datetime
    now: datetime
    overdue: timedelta


class AuditRule(NamedTuple):
    """`broken(span)` selects the rows that break the rule; their `columns` are shown."""

    fault: str
    columns: tuple[str, ...]
    broken: Callable[[Span], QuerySet]


def count_column(rows: QuerySet) -> Coalesce:
    counted = rows.order_by().annotate(_one=Value(1)).values("_one").annotate(count=Count("pk"))
    return Coalesce(Subquery(counted.values("count")), 0, output_field=IntegerField())


def count_deliveries(since: datetime) -> dict[str, int]:
    """Return the number of deliveries by state, and planned, unplanned (tests, notices), purged, of
    changes since then.

    One statement, because deliveries would be planned between two.
    """
    planned, unplanned = _planned_since(since), _unplanned_since(since)
    plans = _plans_since(since)

    def one(name: str, rows: QuerySet, total: Sum | Count) -> QuerySet:
        named = rows.order_by().annotate(_name=Value(name, output_field=CharField()))
        return named.values_list("_name").annotate(_count=total)

    states = [
        rows.order_by().values_list("state").annotate(_count=Count("id"))
        for rows in (planned, unplanned)
    ]
    rows = states[0].union(
        states[1],
        one(PLANNED, plans, Sum("planned")),
        one(PURGED, plans, Sum("purged")),
        one(UNPLANNED, unplanned, Count("id")),
        all=True,
    )
    counts = Counter[str]()
    for name, count in rows:
        counts[name] += count or 0
    names = (*Delivery.STATES, PLANNED, UNPLANNED, PURGED)
    return {name: counts[name] for name in names}


def _planned_since(since: datetime) -> QuerySet[Delivery]:
    return Delivery.objects.filter(change__gte=least_id(since))


def _unplanned_since(since: datetime) -> QuerySet[Delivery]:
    return Delivery.objects.filter(change=None, id__gte=least_id(since))


def _plans_since(since: datetime) -> QuerySet[Plan]:
    return Plan.objects.filter(change__gte=least_id(since))


def _open_or_ended_since(since: datetime) -> QuerySet[Delivery]:
    if since == EVER:
        return Delivery.objects.all()
    return Delivery.objects.filter(Q(next_at__isnull=False) | Q(finished_at__gte=since))


# --- The rules ------------------------------------------------------------------------------------
def _plans_with_wrong_count(span: Span) -> QuerySet:
    there = count_column(Delivery.objects.filter(change=OuterRef("change")))
    return _plans_since(span.since).annotate(there=there).exclude(planned=F("there") + F("purged"))


def _planned_by_nobody(span: Span) -> QuerySet:
    plan = Plan.objects.filter(change=OuterRef("change"))
    return _planned_since(span.since).filter(~Exists(plan))


def _final_without_end(span: Span) -> QuerySet:
    traces = Q(finished_at=None) | Q(next_at__isnull=False) | Q(lease_token__isnull=False)
    return _open_or_ended_since(span.since).filter(traces, state__in=FINAL)


def _open_without_next_attempt(span: Span) -> QuerySet:
    traces = Q(next_at=None) | Q(finished_at__isnull=False)
    traces |= Q(state=Delivery.SCHEDULED, lease_token__isnull=False)
    traces |= Q(state=Delivery.SENDING, lease_token=None)
    return _open_or_ended_since(span.since).filter(traces, state__in=Delivery.OPEN)


def _delivered_without_success(span: Span) -> QuerySet:
    success = Attempt.objects.filter(delivery=OuterRef("id"), outcome=Attempt.OK)
    rows = _open_or_ended_since(span.since)
    return rows.filter(~Exists(success), state=Delivery.DELIVERED)


def _lost_while_sending(span: Span) -> QuerySet:
    return Delivery.objects.filter(state=Delivery.SENDING, next_at__lt=span.now - LOST_AFTER)


def _overdue(span: Span) -> QuerySet:
    late = span.now - span.overdue
    rows = overdue_deliveries(span.now).filter(state=Delivery.SCHEDULED, next_at__lt=late)
    return rows if span.overdue else rows.none()


def _not_expanded(span: Span) -> QuerySet:
    late = span.now - span.overdue
    rows = ChangeCalls.objects.pending().filter(waiting_since__lt=late)
    return rows if span.overdue else rows.none()


def _with_unknown_state_or_type(span: Span) -> QuerySet:
    rows = _open_or_ended_since(span.since)
    return rows.exclude(state__in=Delivery.STATES, type__in=Delivery.TYPES)


def _live_bookings() -> QuerySet:
    """Return the live bookings, not yet completed: their reminders must exist."""
    return Booking.objects.filter(completes_at__isnull=False, deleted_at=None).order_by("id")


def _reminders(booking: str, version: str) -> QuerySet:
    return Delivery.objects.filter(
        kind=Delivery.REMINDER, booking=OuterRef(booking), version=OuterRef(version)
    )


def _wrong_reminder_call_counts(span: Span) -> QuerySet:
    wanted = BookingNotification.objects.filter(booking=OuterRef("id"))
    return (
        _live_bookings()
        .annotate(
            wanted=count_column(wanted.filter(type=EventNotification.WEBHOOK)),
            there=count_column(_reminders("id", "reschedules").filter(type=Delivery.WEBHOOK)),
        )
        .exclude(wanted=F("there"))
    )


def _wrong_owner_reminder_counts(span: Span) -> QuerySet:
    wanted = BookingNotification.objects.filter(booking=OuterRef("id"), recipient=OWNER)
    there = _reminders("id", "reschedules").filter(type=Delivery.EMAIL, recipient=OWNER)
    return (
        _live_bookings()
        .annotate(
            wanted=count_column(wanted.filter(type=EventNotification.EMAIL)),
            there=count_column(there),
        )
        .exclude(wanted=F("there"))
    )


def _wrong_customer_reminder_counts(span: Span) -> QuerySet:
    wanted = BookingNotification.objects.filter(
        booking=OuterRef("booking"), recipient=CUSTOMER, type=EventNotification.EMAIL
    )
    there = _reminders("booking", "booking__reschedules").filter(
        type=Delivery.EMAIL, customer=OuterRef("id")
    )
    return (
        Customer.objects.filter(booking__in=_live_bookings().order_by())
        .annotate(wanted=count_column(wanted), there=count_column(there))
        .exclude(wanted=F("there"))
        .order_by("booking", "id")
    )


_STANDING = ("id", "state", "next_at", "finished_at", "lease_token")
AUDIT_RULES = (
    AuditRule(
        "wrong number of deliveries",
        ("change", "planned", "purged", "there"),
        _plans_with_wrong_count,
    ),
    AuditRule("delivery of a change without a plan", ("id", "change", "state"), _planned_by_nobody),
    AuditRule("unknown state or type", ("id", "state", "type"), _with_unknown_state_or_type),
    AuditRule("final, but without an end", _STANDING, _final_without_end),
    AuditRule("open, but without a next attempt", _STANDING, _open_without_next_attempt),
    AuditRule("delivered without a successful attempt", ("id",), _delivered_without_success),
    AuditRule("lost while sending", ("id", "type", "next_at", "tries"), _lost_while_sending),
    AuditRule("overdue", ("id", "type", "next_at", "tries"), _overdue),
    AuditRule("calls not expanded to deliveries", ("change", "waiting_since"), _not_expanded),
    AuditRule(
        "calls not exactly once",
        ("id", "reschedules", "wanted", "there"),
        _wrong_reminder_call_counts,
    ),
    AuditRule(
        "reminders of the owner not exactly once",
        ("id", "reschedules", "wanted", "there"),
        _wrong_owner_reminder_counts,
    ),
    AuditRule(
        "reminders of a customer not exactly once",
        ("id", "booking", "wanted", "there"),
        _wrong_customer_reminder_counts,
    ),
)
