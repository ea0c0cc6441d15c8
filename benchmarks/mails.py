"""CPU time of a dispatcher for the two mails of a booking (P20): python -m benchmarks.mails

Prints seconds as JSON, in the environment of a service whose EMAIL_URL is another process.
"""

import gc
import json
import sys
import time
from datetime import UTC, datetime, timedelta
from statistics import median

import django

django.setup()

from django.utils import timezone  # noqa: E402

from availability.models import Resource  # noqa: E402
from availability.reserve.events import EventDetails  # noqa: E402
from benchmarks.fill import make_app  # noqa: E402
from bookings.booking_target import BookingTarget  # noqa: E402
from bookings.graphs import GRAPHS  # noqa: E402
from bookings.services import Actor, NewBooking, create_booking  # noqa: E402
from notifications.outbox import dispatcher  # noqa: E402

ROUNDS = 7
FIRST = datetime(2031, 1, 1, tzinfo=UTC)


def make_booking(resource: Resource, number: int) -> None:
    now, start = timezone.now(), FIRST + timedelta(hours=number)
    new = NewBooking(
        start=start,
        end=start + timedelta(hours=1),
        details=EventDetails(what="Meeting"),
        graph=GRAPHS["instant"],
        action="confirm",
        customers=[{"name": "Marty McFly", "email": f"m{number}@example.com", "meta": {}}],
    )
    calendar = resource.calendars.get()
    target = BookingTarget(app=resource.app, project=None, calendar=calendar, now=now)
    create_booking(new, target=target, actor=Actor("bench", "api"), now=now)


def cpu_seconds_per_booking(bookings: int) -> float:
    """Return the median CPU time, of all threads, for one booking's confirmations."""
    _, (resource,) = make_app("mails", 1)
    Resource.objects.update(email="owner@example.com")
    times = []
    for first in range(0, ROUNDS * bookings, bookings):
        for number in range(first, first + bookings):
            make_booking(resource, number)
        began = time.process_time()
        sent = dispatcher.run_dispatcher("email")
        times.append((time.process_time() - began) / bookings)
        assert sent == 2 * bookings, sent
    return median(times)


if __name__ == "__main__":
    dispatcher.LINGER = 0
    gc.collect()
    gc.freeze()  # as the worker does
    print(json.dumps(cpu_seconds_per_booking(int(sys.argv[1]))))
