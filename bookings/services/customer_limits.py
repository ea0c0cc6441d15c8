"""Limits of one customer's bookings in a project, counted by e-mail address.

The bookings are counted after their rows are written and before the transaction ends. The triggers
of AppCustomer lock the row of each address, so transactions of one customer count one after the
other.
"""

import uuid
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import date, datetime, timedelta
from typing import NamedTuple

from django.db.models import Case, QuerySet, When
from django.db.models.functions import Upper

from availability.booking_policies import limit_setting
from availability.core.zones import local_day
from availability.models import Hold, Project
from bookings.graphs import ENDED_EARLY
from bookings.models import AppCustomer, Booking, Customer, UnverifiedBooking
from bookings.services.errors import PolicyViolated

PER_DAY, OPEN = "max_per_customer_per_day", "max_open_per_customer"
TWO_DAYS = timedelta(days=2)  # more than a local day and the distance of two zones


class _CustomerBooking(NamedTuple):
    """A booking of an address, or one that waits for its code; `day`: of its start, local."""

    address: str
    id: uuid.UUID
    day: date


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
    addresses = {email.upper() for email in emails if email}
    if project and addresses:
        _check_open_bookings(project, addresses, now)
        _check_bookings_per_day(project, addresses, _starts_by_id(bookings), now)


def check_moved_bookings(
    project: Project | None, bookings: Sequence[Booking], *, now: datetime
) -> None:
    """Check the daily limit for bookings of `project` whose events have moved.

    Locks the customers, as the triggers do for a new booking. Raises PolicyViolated.
    """
    if project is None or limit_setting(project, PER_DAY) is None:
        return
    customers = Customer.objects.filter(booking__in=bookings).exclude(email="").order_by()
    addresses = set(customers.values_list(Upper("email"), flat=True))
    people = AppCustomer.objects.filter(app=project.app_id, address__in=addresses)
    list(people.select_for_update(no_key=True).order_by("address"))
    _check_bookings_per_day(project, addresses, _starts_by_id(bookings), now)


def check_unverified_booking(row: UnverifiedBooking, *, now: datetime) -> None:
    """Check the limits for a booking that waits for its code; its row and hold are written.

    Raises PolicyViolated.
    """
    event = row.group.event if row.group else Hold.objects.get(id=row.id)
    _check_open_bookings(row.project, {row.email.upper()}, now)
    _check_bookings_per_day(row.project, {row.email.upper()}, {row.id: event.start}, now)


def _starts_by_id(bookings: Sequence[Booking]) -> dict[uuid.UUID, datetime]:
    return {booking.id: booking.event.start for booking in bookings}


def _check_open_bookings(project: Project, addresses: Collection[str], now: datetime) -> None:
    most = limit_setting(project, OPEN)
    if most is None:
        return
    rows = _customer_rows(project, addresses)
    rows = rows.filter(booking__completed=False, booking__event__end__gt=now)
    found = rows.values_list("address", "booking").distinct()
    counts = Counter(address for address, _ in found)
    counts.update(row.email.upper() for row in _unverified_bookings(project, addresses, now))
    if any(count > most for count in counts.values()):
        raise PolicyViolated(OPEN, most)


def _check_bookings_per_day(
    project: Project,
    addresses: Collection[str],
    starts: dict[uuid.UUID, datetime],
    now: datetime,
) -> None:
    """Raise PolicyViolated if a day of the bookings `starts` has more than the limit."""
    most = limit_setting(project, PER_DAY)
    if most is None:
        return
    around = min(starts.values()) - TWO_DAYS, max(starts.values()) + TWO_DAYS
    entries = {
        *_booked_entries(project, addresses, around),
        *_unverified_entries(project, addresses, now),
    }
    counts = Counter((entry.address, entry.day) for entry in entries)
    ours = [entry for entry in entries if entry.id in starts]
    if any(counts[entry.address, entry.day] > most for entry in ours):
        raise PolicyViolated(PER_DAY, most)


def _booked_entries(
    project: Project, addresses: Collection[str], around: tuple[datetime, datetime]
) -> Iterator[_CustomerBooking]:
    rows = _customer_rows(project, addresses).exclude(booking__state__in=ENDED_EARLY)
    rows = rows.filter(booking__event__start__range=around)
    columns = ("booking", "booking__event__start", "booking__event__resource__timezone")
    for address, booking, start, zone in rows.values_list("address", *columns):
        yield _CustomerBooking(address, booking, _local_day(start, zone))


def _unverified_entries(
    project: Project, addresses: Collection[str], now: datetime
) -> Iterator[_CustomerBooking]:
    rows = {row.id: row for row in _unverified_bookings(project, addresses, now)}
    if not rows:
        return
    holds = Hold.objects.filter(id__in=rows)
    for row_id, start, zone in holds.values_list("id", "start", "resource__timezone"):
        yield _CustomerBooking(rows[row_id].email.upper(), row_id, _local_day(start, zone))
    for row in rows.values():
        if row.group:
            day = _local_day(row.group.event.start, row.group.event.resource.timezone)
            yield _CustomerBooking(row.email.upper(), row.id, day)


def _customer_rows(project: Project, addresses: Collection[str]) -> QuerySet:
    """Return the customers with these addresses, by the index on the address.

    A CASE compares the project, as no index serves it: otherwise PostgreSQL reads all bookings
    of a project that has grown since the last ANALYZE.
    """
    is_of_project = Case(When(booking__project=project, then=True), default=False)
    rows = Customer.objects.alias(is_of_project=is_of_project).annotate(address=Upper("email"))
    return rows.order_by().filter(
        app=project.app_id, address__in=addresses, is_of_project=True, booking__deleted_at=None
    )


def _unverified_bookings(
    project: Project, addresses: Collection[str], now: datetime
) -> QuerySet[UnverifiedBooking]:
    emails = [address.lower() for address in addresses]
    rows = UnverifiedBooking.objects.filter(app=project.app_id, email__in=emails, ended_at=None)
    rows = rows.filter(project=project, expires_at__gt=now)
    return rows.select_related("group__event__resource")


def _local_day(instant: datetime, zone: str) -> date:
    return local_day(int(instant.timestamp()), zone)
