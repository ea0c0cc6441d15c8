"""Limits of one customer's bookings in a project, counted by mailbox (`limit_key`).

The bookings are counted after their rows are written and before the transaction ends. A lock lets
transactions of one customer count one after the other.
"""

import uuid
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import date, datetime, timedelta
from typing import NamedTuple

from django.db.models import Case, QuerySet, When

from availability.core.zones import local_day
from availability.models import Hold, Project
from availability.reserve.policies import limit_setting
from bookings.graphs import ENDED_EARLY
from bookings.models import Booking, Customer, UnverifiedBooking
from bookings.services.errors import PolicyViolated
from common.db.sql import wait_for_turn
from common.email_address import limit_key

PER_DAY, OPEN = "max_per_customer_per_day", "max_open_per_customer"
TWO_DAYS = timedelta(days=2)  # more than a local day and the distance of two zones


class _CustomerBooking(NamedTuple):
    """A booking of a mailbox, or one that waits for its code; `day`: of its start, local.

    quantity: the units or seats, each of which counts.
    """

    limit_key: str
    id: uuid.UUID
    day: date
    quantity: int


def check_new_bookings(
    project: Project | None,
    bookings: Sequence[Booking],
    emails: Iterable[str],
    *,
    now: datetime,
) -> None:
    """Check the limits for new bookings of `project`, which are written with their customers.

    Raises PolicyViolated.
    """
    keys = {limit_key(email) for email in emails if email}
    if project and keys:
        _check_open_bookings(project, keys, now)
        _check_bookings_per_day(project, keys, _starts_by_id(bookings), now)


def check_moved_bookings(
    project: Project | None, bookings: Sequence[Booking], *, now: datetime
) -> None:
    """Check the daily limit for bookings of `project` whose events have moved.

    Raises PolicyViolated.
    """
    if project is None or limit_setting(project, PER_DAY) is None:
        return
    customers = Customer.objects.filter(booking__in=bookings).exclude(limit_key="").order_by()
    keys = set(customers.values_list("limit_key", flat=True))
    _check_bookings_per_day(project, keys, _starts_by_id(bookings), now)


def check_unverified_booking(row: UnverifiedBooking, *, now: datetime) -> None:
    """Check the limits for a booking that waits for its code; its row and hold are written.

    Raises PolicyViolated.
    """
    event = row.group.event if row.group else Hold.objects.get(id=row.id)
    _check_open_bookings(row.project, {row.limit_key}, now)
    _check_bookings_per_day(row.project, {row.limit_key}, {row.id: event.start}, now)


def _starts_by_id(bookings: Sequence[Booking]) -> dict[uuid.UUID, datetime]:
    return {booking.id: booking.event.start for booking in bookings}


def _lock_customers(project: Project, keys: Collection[str]) -> None:
    """Wait for the transactions that count the same customers' bookings.

    Not the rows of AppCustomer: two addresses of one mailbox have two of them.
    """
    for key in sorted(keys):  # in one order, so that two transactions do not wait for each other
        wait_for_turn(f"customer {project.id} {key}")


def _check_open_bookings(project: Project, keys: Collection[str], now: datetime) -> None:
    most = limit_setting(project, OPEN)
    if most is None:
        return
    _lock_customers(project, keys)
    rows = _customer_rows(project, keys)
    rows = rows.filter(booking__completed=False, booking__event__end__gt=now)
    found = rows.values_list("limit_key", "booking", "booking__quantity").distinct()
    counts: Counter[str] = Counter()
    for key, _, quantity in found:
        counts[key] += quantity or 1
    for row in _unverified_bookings(project, keys, now):
        counts[row.limit_key] += row.quantity or 1
    if any(count > most for count in counts.values()):
        raise PolicyViolated(OPEN, most)


def _check_bookings_per_day(
    project: Project,
    keys: Collection[str],
    starts: dict[uuid.UUID, datetime],
    now: datetime,
) -> None:
    """Raise PolicyViolated if a day of the bookings `starts` has more than the limit."""
    most = limit_setting(project, PER_DAY)
    if most is None:
        return
    _lock_customers(project, keys)
    around = min(starts.values()) - TWO_DAYS, max(starts.values()) + TWO_DAYS
    entries = {
        *_booked_entries(project, keys, around),
        *_unverified_entries(project, keys, now),
    }
    counts: Counter[tuple[str, date]] = Counter()
    for entry in entries:
        counts[entry.limit_key, entry.day] += entry.quantity
    ours = [entry for entry in entries if entry.id in starts]
    if any(counts[entry.limit_key, entry.day] > most for entry in ours):
        raise PolicyViolated(PER_DAY, most)


def _booked_entries(
    project: Project, keys: Collection[str], around: tuple[datetime, datetime]
) -> Iterator[_CustomerBooking]:
    rows = _customer_rows(project, keys).exclude(booking__state__in=ENDED_EARLY)
    rows = rows.filter(booking__event__start__range=around)
    of_event = ("booking__event__start", "booking__event__resource__timezone")
    columns = ("limit_key", "booking", *of_event, "booking__quantity")
    for key, booking, start, zone, quantity in rows.values_list(*columns):
        yield _CustomerBooking(key, booking, _local_day(start, zone), quantity or 1)


def _unverified_entries(
    project: Project, keys: Collection[str], now: datetime
) -> Iterator[_CustomerBooking]:
    rows = {row.id: row for row in _unverified_bookings(project, keys, now)}
    if not rows:
        return
    holds = Hold.objects.filter(id__in=rows)
    for row_id, start, zone in holds.values_list("id", "start", "resource__timezone"):
        row = rows[row_id]
        yield _CustomerBooking(row.limit_key, row_id, _local_day(start, zone), row.quantity or 1)
    for row in rows.values():
        if row.group:
            day = _local_day(row.group.event.start, row.group.event.resource.timezone)
            yield _CustomerBooking(row.limit_key, row.id, day, row.quantity or 1)


def _customer_rows(project: Project, keys: Collection[str]) -> QuerySet:
    """Return the customers with these limit keys, by their index.

    A CASE compares the project, as no index serves it: otherwise PostgreSQL reads all bookings
    of a project that has grown since the last ANALYZE.
    """
    is_of_project = Case(When(booking__project=project, then=True), default=False)
    rows = Customer.objects.alias(is_of_project=is_of_project)
    return rows.order_by().filter(
        app=project.app_id, limit_key__in=keys, is_of_project=True, booking__deleted_at=None
    )


def _unverified_bookings(
    project: Project, keys: Collection[str], now: datetime
) -> QuerySet[UnverifiedBooking]:
    rows = UnverifiedBooking.objects.filter(app=project.app_id, limit_key__in=keys, ended_at=None)
    rows = rows.filter(project=project, expires_at__gt=now)
    return rows.select_related("group__event__resource")


def _local_day(instant: datetime, zone: str) -> date:
    return local_day(int(instant.timestamp()), zone)
