"""One booking as bare INSERTs, through create_booking and by POST /bookings, in turn.

python -m benchmarks.create_booking_vs_inserts PORT, in the environment of the service that answers
on this port: prints seconds per booking.
"""

import json
import sqlite3
import sys
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from statistics import median
from typing import Any

import django
import psycopg
from django.conf import settings

django.setup()

from django.db import connection  # noqa: E402

from apps_config.models import App  # noqa: E402
from availability.models import Calendar  # noqa: E402
from availability.reserve.events import EventDetails  # noqa: E402
from benchmarks.booking_creation import body_of  # noqa: E402
from benchmarks.fill import make_app  # noqa: E402
from benchmarks.stage import HttpClient  # noqa: E402
from bookings.booking_target import BookingTarget  # noqa: E402
from bookings.graphs import GRAPHS  # noqa: E402
from bookings.models import Booking, BookingNotification, Customer, StateChange  # noqa: E402
from bookings.services import Actor, NewBooking, create_booking  # noqa: E402
from common.db.ids import new_id  # noqa: E402
from notifications.models import Delivery  # noqa: E402

ROUNDS, PER_ROUND = 9, 60
START = datetime(2031, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
REMINDERS = [
    {
        "type": "email",
        "recipient": "customer",
        "when_type": "before",
        "when_unit": "mins",
        "when_time": minutes,
    }
    for minutes in (60, 15)
]
# The database numbers changes; the bare rows use numbers of their own, which are far higher.
CUSTOMER = {"name": "Marty McFly", "email": "marty@example.com", "meta": {}}


def make_with_service(calendar: Calendar, app: App, number: int) -> None:
    now = datetime.now(UTC)
    new = NewBooking(
        start=START + HOUR * number,
        end=START + HOUR * (number + 1),
        details=EventDetails(what="Meeting"),
        graph=GRAPHS["instant"],
        action="confirm",
        customers=[CUSTOMER],
        notifications=REMINDERS,
    )
    target = BookingTarget(app=app, project=None, calendar=calendar, now=now)
    create_booking(new, target=target, actor=Actor("bench", "api"), now=now)


def statements_of(booking: Booking) -> list[tuple[str, list[Any]]]:
    """Return the INSERTs of a booking's rows, with values for the database's own driver."""
    rows = [booking.event, booking, *booking.customers.all()]
    change = booking.logs.get()
    rows += [*booking.event_notifications.all(), change]
    rows += booking.deliveries.order_by("number")
    mark = "%s" if connection.vendor == "postgresql" else "?"
    return [insert_of(row, mark) for row in rows]


def insert_of(row: Any, mark: str) -> tuple[str, list[Any]]:
    fields = [field for field in row._meta.concrete_fields if field is not row._meta.auto_field]
    columns = ", ".join(f'"{field.column}"' for field in fields)
    marks = ", ".join([mark] * len(fields))
    values = [field.get_db_prep_save(getattr(row, field.attname), connection) for field in fields]
    return f"INSERT INTO {row._meta.db_table} ({columns}) VALUES ({marks})", values


class Bare:
    """Repeats one booking's INSERTs with new ids and times, on the driver's own connection."""

    def __init__(self, booking: Booking) -> None:
        children = (*booking.customers.all(), *booking.logs.all(), *booking.deliveries.all())
        keyed = (booking.event, booking, *children)
        self.ids = {row.id for row in keyed}
        self.times = {booking.event.start: 0, booking.event.end: 1}
        self.statements = statements_of(booking)
        options = settings.DATABASES["default"]
        if connection.vendor == "postgresql":
            self.driver = psycopg.connect(
                host=options["HOST"],
                port=options["PORT"],
                user=options["USER"],
                dbname=options["NAME"],
            )
        else:
            self.driver = sqlite3.connect(options["NAME"], isolation_level=None)
            self.driver.executescript("PRAGMA journal_mode=WAL;PRAGMA synchronous=NORMAL;")

    def make(self, number: int) -> None:
        fresh = {self.raw(old): self.raw(new_id()) for old in self.ids}
        for old, later in self.times.items():
            fresh[self.raw(old)] = self.raw(START + HOUR * (number + later))
        if connection.vendor == "sqlite":
            self.driver.execute("BEGIN IMMEDIATE")
        for sql, values in self.statements:
            self.driver.execute(sql, [self.fresh(value, fresh) for value in values])
        if connection.vendor == "sqlite":
            self.driver.execute("COMMIT")
        else:
            self.driver.commit()

    def raw(self, value: Any) -> Any:
        """Return the value as the driver expects it."""
        if connection.vendor == "postgresql":
            return value
        return value.hex if isinstance(value, uuid.UUID) else value.strftime("%Y-%m-%d %H:%M:%S")

    def fresh(self, value: Any, fresh: dict[Any, Any]) -> Any:
        return fresh.get(value, value) if isinstance(value, (str, uuid.UUID, datetime)) else value


def post_booking(client: HttpClient, filled: dict[str, Any], number: int) -> None:
    body = body_of(filled["resources"][0], number)
    client.call("POST", "/bookings", body, status=201)


def time_round(make: Callable[[int], None], numbers: Any) -> float:
    start = time.perf_counter()
    for _ in range(PER_ROUND):
        make(next(numbers))
    return (time.perf_counter() - start) / PER_ROUND


def main() -> None:
    filled, resources = make_app("creation", 4)
    app = App.objects.get(id=filled["app"])
    calendar = resources[0].calendars.select_related("resource").get()
    numbers = count()
    make_with_service(calendar, app, next(numbers))
    bare = Bare(Booking.objects.select_related("event").get())
    runs: dict[str, Callable[[int], None]] = {
        "bare": bare.make,
        "service": lambda number: make_with_service(calendar, app, number),
        "http": partial(post_booking, HttpClient(int(sys.argv[1]), filled["key"]), filled),
    }
    times: dict[str, list[float]] = {name: [] for name in runs}
    for make in runs.values():
        time_round(make, numbers)
    for _ in range(ROUNDS):
        for name, make in runs.items():
            times[name].append(time_round(make, numbers))
    check_rows()
    print(json.dumps({name: median(found) for name, found in times.items()} | filled))


def check_rows() -> None:
    """Check that both ways wrote the same number of rows of every kind."""
    bookings = Booking.objects.count()
    assert Customer.objects.count() == StateChange.objects.count() == bookings
    assert BookingNotification.objects.count() == 2 * bookings
    assert Delivery.objects.count() == 4 * bookings


if __name__ == "__main__":
    main()
