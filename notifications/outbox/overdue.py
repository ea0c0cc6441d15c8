"""Overdue deliveries and bookings: late for lack of a worker, not held back by rule."""

from datetime import datetime, timedelta

from django.db.models import Exists, Min, OuterRef, Q, QuerySet, Subquery

from bookings.models import Booking
from notifications.models import ChangeCalls, Delivery, Endpoint
from notifications.outbox.lanes import in_lane_of_outer_query, waiting_lanes
from notifications.outbox.leases import waits_for_earlier_mail, writes_held_by_order

# After a breaker's pause one call probes the server and may take this long.
PROBE = timedelta(minutes=1)


def is_held(now: datetime) -> Q:
    """Match due deliveries whose breaker is open or that wait for an earlier delivery.

    The earlier delivery is overdue itself or waits for its retry, so a missing worker is always
    noticed.
    """
    paused = Endpoint.objects.filter(address=OuterRef("endpoint"), open_until__gt=now - PROBE)
    calls = Q(type__in=(Delivery.WEBHOOK, Delivery.CALENDAR))
    return calls & Exists(paused) | waits_for_earlier_mail() | writes_held_by_order(now)


def overdue_deliveries(now: datetime) -> QuerySet[Delivery]:
    """Return deliveries that a worker should have claimed, the most overdue first."""
    return Delivery.objects.overdue(now).exclude(is_held(now))


def oldest_overdue(kind: str, now: datetime) -> datetime | None:
    """Return since when the oldest overdue delivery of the type is due; None: none is overdue.

    The calls of a change are due, too, that no worker has expanded to deliveries.
    """
    rows = in_lane_of_outer_query(overdue_deliveries(now).filter(type=kind))
    since = Subquery(rows.values("next_at")[:1])
    times = [
        waiting_lanes(kind, now).aggregate(oldest=Min(since))["oldest"],
        ChangeCalls.objects.oldest_pending() if kind == Delivery.WEBHOOK else None,
    ]
    return min(filter(None, times), default=None)


def oldest_uncompleted(now: datetime) -> datetime | None:
    """Return since when the oldest uncompleted booking is due for completion; None: none is."""
    due = Booking.objects.filter(completes_at__lte=now, deleted_at=None).order_by("completes_at")
    return due.values_list("completes_at", flat=True).first()


def seconds_since(moment: datetime | None, now: datetime) -> float:
    """Return the seconds since `moment`; 0 if it is None or in the future."""
    return max(0.0, (now - moment).total_seconds()) if moment else 0.0
