"""The share of a day that holds of public callers may keep.

A public key costs nothing, and a hold keeps a time from everybody else: without a limit, strangers
could close a calendar for as long as they repeat their requests. So all public holds of a project
together keep at most a fifth of the time that it offers on a day, over all of its resources. One
hold is always possible.
"""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import QuerySet

from apps_config.public_limits import HELD_SHARE, LIMITS, LimitReached
from availability.models import Hold
from availability.search import AvailabilityQuery, free_seconds, load_project_resources
from bookings.booking_target import BookingTarget
from common.instants import format_instant, local_date, local_midnight
from common.sql import wait_for_turn

DAY = timedelta(days=1)
Span = tuple[datetime, datetime]


def check_held_share(hold: Hold, target: BookingTarget, *, now: datetime) -> None:
    """Check the share with a hold that was written in this transaction.

    Raises LimitReached, until the first of the other holds expires.
    """
    # Of two transactions that hold times of a project, the later one sees the other's hold.
    wait_for_turn(f"held share {hold.project_id or hold.resource_id}")
    day = _local_day(hold)
    rows = list(_public_holds(hold, day, now))
    others = [row for row in rows if hold.id not in (row.id, row.main_id)]
    if not others:
        return
    held = sum((min(row.end, day[1]) - max(row.start, day[0])).total_seconds() for row in rows)
    offered = free_seconds(_offer(target, day, without=[row.id for row in rows]))
    if held * 100 > offered * LIMITS[HELD_SHARE].default:
        wait = min(row.expires_at for row in others) - now
        raise LimitReached(HELD_SHARE, wait.total_seconds())


def _local_day(hold: Hold) -> Span:
    """The day on which the hold starts, in the zone of its resource."""
    zone = hold.resource.timezone
    day = local_date(hold.start, zone)
    return local_midnight(day, zone), local_midnight(day + DAY, zone)


def _public_holds(hold: Hold, day: Span, now: datetime) -> QuerySet[Hold]:
    """The rows of all lasting public holds of the project, or of the resource without one, with a
    part of the day.
    """
    rows = Hold.objects.filter(project=hold.project_id, app=hold.app_id).exclude(client_address="")
    rows = rows.filter(used_at=None, expires_at__gt=now, start__lt=day[1], end__gt=day[0])
    return rows if hold.project_id else rows.filter(resource=hold.resource_id)


def _offer(target: BookingTarget, day: Span, *, without: Collection[UUID]) -> AvailabilityQuery:
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
        without=without,
    )
