"""What should have left by now, and why not: late for want of a worker, or held back by rule."""

from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef, Q, QuerySet

from bookings.models import Booking
from notifications.models import Delivery, Endpoint
from notifications.queue import mails_that_wait, writes_that_wait

# When a breaker's pause is over, one call probes the server: so long it may take.
PROBE = timedelta(minutes=1)


def is_held(now: datetime) -> Q:
    """Of a due delivery: its server's breaker is open, or an earlier one has to leave first.

    The earlier one is due itself, or waits for its next try: nothing late is hidden behind it.
    """
    paused = Endpoint.objects.filter(address=OuterRef("endpoint"), open_until__gt=now - PROBE)
    calls = Q(type__in=(Delivery.WEBHOOK, Delivery.CALENDAR))
    return calls & Exists(paused) | mails_that_wait() | writes_that_wait(now)


def late_deliveries(now: datetime) -> QuerySet[Delivery]:
    """Those that a worker should have taken, the most overdue first."""
    return Delivery.objects.overdue(now).exclude(is_held(now))


def oldest_late(kind: str, now: datetime) -> datetime | None:
    """Since when the longest waiting delivery of a type has been late; None: none is."""
    rows = late_deliveries(now).filter(type=kind)
    return rows.values_list("next_at", flat=True).first()


def oldest_uncompleted(now: datetime) -> datetime | None:
    """Since when the longest waiting booking should have been completed; None: none waits."""
    due = Booking.objects.filter(completes_at__lte=now, deleted_at=None).order_by("completes_at")
    return due.values_list("completes_at", flat=True).first()


def seconds_since(moment: datetime | None, now: datetime) -> float:
    """0 where there is no moment, or it lies ahead."""
    return max(0.0, (now - moment).total_seconds()) if moment else 0.0
