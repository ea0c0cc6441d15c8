"""The share of a day that holds of public callers may keep.

A public key costs nothing, and a hold keeps a time from everybody else: without a limit, strangers
could close a calendar for as long as they repeat their requests. So a project takes no further
public hold while the public holds on its resources, also those of other projects, keep more than a
fifth of the time that it offers on a day. One hold of each project is always possible. Likewise,
seats that are held or wait for a code are at most a fifth of a group's seats, or one.
"""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import QuerySet

from apps_config.models import App
from apps_config.public_limits import HELD_SHARE, LIMITS, LimitReached
from availability.models import Hold
from availability.search.availability_query import AvailabilityQuery, load_project_resources
from availability.search.engine import free_seconds
from bookings.booking_target import BookingTarget
from bookings.models import Booking
from bookings.services.seat_counts import held_seats, unverified_seats
from common.db.sql import wait_for_turn
from common.time.instants import format_instant, local_date, local_midnight

DAY = timedelta(days=1)
SHARE = LIMITS[HELD_SHARE].default  # per cent
Span = tuple[datetime, datetime]


def check_held_share(hold: Hold, target: BookingTarget, *, now: datetime) -> None:
    """Check the share with a hold that was written in this transaction.

    Raises LimitReached, until the first of the other holds expires.
    """
    # Of two transactions that hold times, the later one sees the other's hold.
    wait_for_turn(f"held share {hold.app_id}")
    day = _local_day(hold)
    offer = _offer(target, day)
    rows = list(_public_holds(hold.app, {each.id for each in offer.resources}, day, now))
    others = [
        row
        for row in rows
        if row.project_id == hold.project_id and hold.id not in (row.id, row.main_id)
    ]
    if not others:
        return
    held = sum((min(row.end, day[1]) - max(row.start, day[0])).total_seconds() for row in rows)
    offered = free_seconds(replace(offer, without=[row.id for row in rows]))
    if held * 100 > offered * SHARE:
        wait = min(row.expires_at for row in others) - now
        raise LimitReached(HELD_SHARE, wait.total_seconds())


def _local_day(hold: Hold) -> Span:
    """The day on which the hold starts, in the zone of its resource."""
    zone = hold.resource.timezone
    day = local_date(hold.start, zone)
    return local_midnight(day, zone), local_midnight(day + DAY, zone)


def _public_holds(
    app: App, resource_ids: Collection[UUID], day: Span, now: datetime
) -> QuerySet[Hold]:
    """The lasting public holds on the resources, with a part of the day."""
    rows = Hold.objects.filter(app=app, resource_id__in=resource_ids).exclude(client_address="")
    return rows.filter(used_at=None, expires_at__gt=now, start__lt=day[1], end__gt=day[0])


def _offer(target: BookingTarget, day: Span) -> AvailabilityQuery:
    """The query for the free time of the day, of all the project's resources."""
    rules, project = target.policies, target.project
    start, end = map(format_instant, day)
    return replace(
        rules,
        resources=load_project_resources(target.app, project, now=target.now)
        if project
        else target.rules.resources,
        terms=replace(rules.terms, earliest=start, latest=end),
        bounds=rules.own,
    )


def check_held_seats(group: Booking, quantity: int, *, now: datetime) -> None:
    """Check the share before more seats of the locked group are held or wait for a code.

    Raises LimitReached, until the first of the other seats is free again.
    """
    public_holds = held_seats(group, now).exclude(client_address="")
    others = [
        *unverified_seats(group, now).values_list("expires_at", "quantity"),
        *public_holds.values_list("expires_at", "quantity"),
    ]
    held = quantity + sum(seats or 1 for _, seats in others)
    if others and held * 100 > (group.max_seats or 0) * SHARE:
        raise LimitReached(HELD_SHARE, (min(end for end, _ in others) - now).total_seconds())
