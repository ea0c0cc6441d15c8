"""Lock bookings, always in order of id: concurrent requests for several never deadlock."""

import uuid
from collections.abc import Collection, Sequence
from datetime import datetime

from django.db.models import Prefetch, QuerySet

from apps_config.models import App
from availability.models import Event
from availability.reserve.events import lock_project
from bookings.models import Booking
from common.errors import NotFound

# How many bookings of a series an action applies to.
THIS, FOLLOWING, ALL = SCOPES = ("this", "following", "all")


def lock_bookings(
    app: App, booking_ids: Collection[uuid.UUID], *, skip_locked: bool = False
) -> list[Booking]:
    """Lock the app's bookings of these ids that still exist; return them in order of id.

    Each comes with its event, the event's companions, its resource and its project. Three queries:
    after waiting for a lock, rows joined in the locking query would be stale. skip_locked: leave
    out bookings that another transaction has locked, instead of waiting.
    """
    bookings = Booking.objects.for_app(app).filter(id__in=booking_ids).order_by("id")
    locking = bookings.select_for_update(no_key=True, skip_locked=skip_locked)
    locked = list(locking.values_list("id", flat=True))
    if not locked:
        return []
    if skip_locked:
        bookings = bookings.filter(id__in=locked)
    rows = bookings.select_related("event__calendar", "resource", "project", "app")
    # In the order of the requirements: a move gives them their new resources in this order.
    rows_of_event = Event.objects.select_related("calendar").order_by("id")
    companions = Prefetch("event__companions", rows_of_event)
    return list(rows.prefetch_related(companions))


def lock_booking(app: App, booking_id: uuid.UUID) -> Booking:
    """Lock one booking. Raises NotFound."""
    for booking in lock_bookings(app, [booking_id]):
        return booking
    raise NotFound("Booking")


def lock_together(
    app: App,
    booking_id: uuid.UUID,
    *,
    scope: str = THIS,
    with_bulk: bool = False,
    only_resource: uuid.UUID | None = None,
    only_projects: Collection[uuid.UUID] | None = None,
) -> list[Booking]:
    """Lock the booking and its related bookings; return them ordered by start.

    scope: which bookings of its series. with_bulk: also those related by its bulk request.
    only_resource, only_projects: restrict related bookings to those that the key may see. Completed
    ones are omitted except for the named booking. Raises NotFound.
    """
    bookings = Booking.objects.for_app(app)
    named = (
        bookings.filter(id=booking_id).values_list("series_id", "bulk_id", "event__start").first()
    )
    if named is None:
        raise NotFound("Booking")
    ids = {booking_id, *_companions(bookings, *named, scope=scope, with_bulk=with_bulk)}
    found = [
        booking
        for booking in lock_bookings(app, ids)
        if booking.id == booking_id
        or not (
            booking.completed
            or (only_resource and booking.resource_id != only_resource)
            or (only_projects is not None and booking.project_id not in only_projects)
        )
    ]
    if all(booking.id != booking_id for booking in found):
        raise NotFound("Booking")
    return sorted(found, key=lambda booking: (booking.event.start, booking.id))


def _companions(
    bookings: QuerySet[Booking],
    series_id: uuid.UUID | None,
    bulk: uuid.UUID | None,
    start: datetime,
    *,
    scope: str,
    with_bulk: bool,
) -> set[uuid.UUID]:
    ids: set[uuid.UUID] = set()
    if series_id and scope != THIS:
        series = bookings.filter(series=series_id, completed=False)
        if scope == FOLLOWING:
            series = series.filter(event__start__gte=start)
        ids.update(series.values_list("id", flat=True))
    if bulk and with_bulk:
        ids.update(bookings.filter(bulk=bulk, completed=False).values_list("id", flat=True))
    return ids


def lock_paced_projects(bookings: Sequence[Booking]) -> None:
    """Lock the projects that limit how many bookings start within a time, before the resources."""
    paced = {
        booking.project_id
        for booking in bookings
        if booking.project and booking.project.availability.get("max_starts")
    }
    for project_id in sorted(filter(None, paced)):
        lock_project(project_id, exclusive=True)


def lock_seats(owners: Sequence[Booking]) -> list[Booking]:
    """Lock and return the seats of the groups among `owners` that are not completed.

    The owners must be locked, so that no seat is added meanwhile.
    """
    groups = [owner for owner in owners if owner.max_seats is not None]
    if not groups:
        return []
    seats = Booking.objects.filter(owner_booking__in=groups, completed=False)
    locked = lock_bookings(groups[0].app, list(seats.values_list("id", flat=True)))
    # A seat may have been cancelled while waiting for its lock.
    return [seat for seat in locked if not seat.completed]
