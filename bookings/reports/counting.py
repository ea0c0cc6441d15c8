"""Count bookings per day for reports: a task replaces the rows of the days that have changed.

For each app: (1) request the days of the bookings that have changed since the last time, by
`updated_at`; (2) count the requested days anew, at most DAYS_AT_ONCE in a transaction; (3) store
the open hours of the days that are over. Each step is a transaction under the lock of the app's
ReportState, so workers can share the apps, and a run can end after any step.
"""

import logging
import uuid
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta
from functools import reduce
from operator import or_
from typing import Any

from celery.exceptions import SoftTimeLimitExceeded
from django.db import transaction
from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Subquery, Sum, Value
from django.db.models.functions import Coalesce, TruncDate

from apps_config.models import App
from availability.models import VISIT, Resource
from bookings.graphs import GRAPHS, INITIALIZED, STATES
from bookings.models import (
    Booking,
    Customer,
    DailyTotal,
    OpenDay,
    RecountRequest,
    ReportState,
    StateChange,
)
from bookings.reports.columns import ENDED_EARLY, LEADS, OUTCOMES
from bookings.reports.open_hours import MAX_DAYS, find_open_seconds
from bookings.reports.recounts import earlier_customers, request_recounts
from common.db.batching import iterate_batches
from common.db.sql import no_statement_timeout
from common.db.updated_at import all_written_until
from common.errors import is_outage
from common.time.instants import find_zone, local_date, local_midnight

logger = logging.getLogger(__name__)

APPS_AT_ONCE = 500
DAYS_AT_ONCE = 31
REQUESTS_AT_ONCE = 1000
OPEN_DAYS_AT_ONCE = 20_000  # days times resources
PAUSE = timedelta(minutes=30)  # between two counts of an app
DAY = timedelta(days=1)

KEPT = reduce(
    or_,
    (
        Q(graph=graph.name, state__in=[state for state in STATES if graph.takes_place(state)])
        for graph in GRAPHS.values()
    ),
)
KEY = ("day", "resource_id", "project_id", "source")
GROUPED = ("on", "of", "for_project", "source")  # the same, as annotations
Key = tuple[date, uuid.UUID, uuid.UUID | None, str]
Totals = defaultdict[Key, dict[str, int]]


def count_reports(*, now: datetime) -> Iterator[None]:
    """Count the changes of all apps; yields after each transaction. One app's error is logged."""
    until = all_written_until()
    _add_missing_states()
    due = Q(counted_until=None) | Q(counted_until__lt=until - PAUSE)
    for states in iterate_batches(ReportState.objects.filter(due), APPS_AT_ONCE):
        for state in states:
            try:
                yield from count_app(state.pk, until=until, now=now)
            except SoftTimeLimitExceeded:
                raise
            except Exception as error:
                if is_outage(error):
                    raise
                logger.exception("the reports of the app %s are not counted", state.pk)


def count_app(app_id: uuid.UUID, *, until: datetime, now: datetime) -> Iterator[None]:
    """Count the app's changes before `until`; yields after each transaction.

    Ends at once if another worker counts the app.
    """
    with no_statement_timeout(), transaction.atomic():
        state = _lock_state(app_id)
        if state is None:
            return
        _request_changed_days(state, until)
    yield
    while _recount_days(app_id):
        yield
    while _store_open_days(app_id, now):
        yield


def _add_missing_states() -> None:
    known = ReportState.objects.filter(app=OuterRef("pk"))
    missing = App.objects.filter(~Exists(known)).order_by().values_list("pk", flat=True)
    ReportState.objects.bulk_create(
        [ReportState(app_id=app_id) for app_id in missing], APPS_AT_ONCE, ignore_conflicts=True
    )


def _lock_state(app_id: uuid.UUID) -> ReportState | None:
    rows = ReportState.objects.select_for_update(skip_locked=True, of=("self",))
    return rows.select_related("app").filter(app=app_id).first()


# --- Which days -----------------------------------------------------------------------------------
def _request_changed_days(state: ReportState, until: datetime) -> None:
    """Request the days of the bookings changed before `until`: all days at the first time, and if
    the app has another zone.
    """
    zone, days = state.app.default_timezone, set[date]()
    bookings = Booking.objects.for_app(state.app).filter(updated_at__lt=until)
    if state.zone != zone:
        counted = DailyTotal.objects.filter(app=state.app).order_by()
        days.update(counted.values_list("day", flat=True).distinct())
    elif state.read_until:
        bookings = bookings.filter(updated_at__gte=state.read_until)
    start = TruncDate("event__start", tzinfo=find_zone(zone))
    days.update(bookings.order_by().values_list(start, flat=True).distinct())
    request_recounts(state.app_id, (local_midnight(day, zone) for day in days))
    state.zone, state.read_until = zone, until
    state.save(update_fields=["zone", "read_until"])


def _recount_days(app_id: uuid.UUID) -> bool:
    """Count the first requested days anew; return whether there were any."""
    with transaction.atomic():
        state = _lock_state(app_id)
        if state is None:
            return False
        rows = RecountRequest.objects.filter(app=app_id).order_by("at", "id")
        requests = {
            key: local_date(at, state.zone)
            for key, at in rows.values_list("id", "at")[:REQUESTS_AT_ONCE]
        }
        days = sorted(set(requests.values()))[:DAYS_AT_ONCE]
        if not days:
            state.counted_until = state.read_until
            state.save(update_fields=["counted_until"])
            return False
        for first, last in _stretches(days):
            _replace_totals(app_id, first, last, state.zone)
        done = [key for key, day in requests.items() if day <= days[-1]]
        RecountRequest.objects.filter(id__in=done).delete()
        return True


def _stretches(days: Sequence[date]) -> Iterator[tuple[date, date]]:
    """Yield the first and the last of consecutive days."""
    first = last = days[0]
    for day in days[1:]:
        if day > last + DAY:
            yield first, last
            first = day
        last = day
    yield first, last


# --- Counts ---------------------------------------------------------------------------------------
def _replace_totals(app_id: uuid.UUID, first: date, last: date, zone: str) -> None:
    totals = count_days(app_id, first, last, zone)
    DailyTotal.objects.filter(app=app_id, day__range=(first, last)).delete()
    DailyTotal.objects.bulk_create(
        [
            DailyTotal(app_id=app_id, **dict(zip(KEY, key, strict=True)), **values)
            for key, values in totals.items()
        ],
        batch_size=1000,
    )


def count_days(app_id: uuid.UUID, first: date, last: date, zone: str) -> Totals:
    """Return the totals of the bookings that start on these days, from the bookings themselves."""
    totals: Totals = defaultdict(lambda: defaultdict(int))
    bookings = (
        Booking.objects.for_app(app_id)
        # By the calendars' index: that of the start has the events of all apps.
        .filter(event__calendar__resource__app=app_id)
        .filter(event__start__gte=local_midnight(first, zone))
        .filter(event__start__lt=local_midnight(last + DAY, zone))
        .exclude(state=INITIALIZED)
    )
    people = Customer.objects.filter(booking__in=bookings).exclude(address="")
    keyed = _with_key(bookings, "", zone)
    for rows in (
        _counts(keyed),
        _booked(keyed, "event"),
        _booked(keyed, "event__companions"),
        _customers(_with_key(people, "booking__", zone)),
    ):
        for row in rows:
            key = tuple(row.pop(name) for name in GROUPED)
            for name, value in row.items():
                number = value.total_seconds() if isinstance(value, timedelta) else value
                totals[key][name] += int(number or 0)
    return totals


def _with_key(rows: QuerySet[Any], booking: str, zone: str) -> QuerySet[Any]:
    """Annotate what the rows are grouped by, but for the resource; booking: the path to it."""
    log = StateChange.objects.filter(booking=OuterRef(f"{booking}pk")).order_by("id")
    return rows.annotate(
        on=TruncDate(f"{booking}event__start", tzinfo=find_zone(zone)),
        for_project=F(f"{booking}project_id"),
        # Empty: the booking was written without the services.
        source=Coalesce(Subquery(log.values("source")[:1]), Value("")),
    ).order_by()


def _counts(bookings: QuerySet[Booking]) -> QuerySet[Booking, dict[str, Any]]:
    """Bookings by state, outcome and lead time. A group's owner books nothing: its seats do."""
    conditions = {
        "kept": KEPT,
        **{column: Q(state__in=states) for column, states in ENDED_EARLY.items()},
        **{outcome: Q(outcome=outcome) for outcome in OUTCOMES},
        **{column: _made_before_start(*days) for column, days in LEADS.items()},
    }
    rows = bookings.filter(max_seats=None).annotate(of=F("resource_id"))
    return rows.values(*GROUPED).annotate(
        bookings=Count("pk"),
        lead_seconds=Sum(F("event__start") - F("created_at"), filter=_made_before_start(0)),
        **{name: Count("pk", filter=condition) for name, condition in conditions.items()},
    )


def _made_before_start(least: int | None, less_than: int | None = None) -> Q:
    """Match the bookings made at least and less than so many days before their start."""
    condition = Q()
    if least is not None:
        condition &= Q(created_at__lte=F("event__start") - least * DAY)
    if less_than is not None:
        condition &= Q(created_at__gt=F("event__start") - less_than * DAY)
    return condition


def _booked(bookings: QuerySet[Booking], event: str) -> QuerySet[Booking, dict[str, Any]]:
    """The booked time of the resource of `event`. Seats share the time of their group's owner."""
    rows = bookings.filter(KEPT, **{"owner_booking": None, f"{event}__isnull": False})
    rows = rows.exclude(event__step=VISIT) if event == "event" else rows
    rows = rows.annotate(of=F(f"{event}__resource_id"))
    span = F(f"{event}__end") - F(f"{event}__start")
    return rows.values(*GROUPED).annotate(booked_seconds=Sum(span))


def _customers(customers: QuerySet[Customer]) -> QuerySet[Customer, dict[str, Any]]:
    rows = customers.alias(is_returning=Exists(earlier_customers()))
    return (
        rows.annotate(of=F("booking__resource_id"))
        .values(*GROUPED)
        .annotate(
            new_customers=Count("pk", filter=Q(is_returning=False)),
            returning_customers=Count("pk", filter=Q(is_returning=True)),
        )
    )


# --- Open hours -----------------------------------------------------------------------------------
def _store_open_days(app_id: uuid.UUID, now: datetime) -> bool:
    """Store the open hours of the next days that are over; return whether there were any.

    At the first time, of the last 53 weeks at most.
    """
    with transaction.atomic():
        state = _lock_state(app_id)
        if state is None:
            return False
        yesterday = local_date(now, state.zone) - DAY
        first = state.open_until + DAY if state.open_until else yesterday - (MAX_DAYS - 1) * DAY
        if first > yesterday:
            return False
        resources = Resource.objects.for_app(app_id).order_by("id").values_list("id", flat=True)
        ids = list(resources)
        days = max(1, OPEN_DAYS_AT_ONCE // max(1, len(ids)))
        last = min(yesterday, first + (days - 1) * DAY)
        seconds = find_open_seconds(state.app, ids, first, last, state.zone, now=now)
        OpenDay.objects.bulk_create(
            [
                OpenDay(app_id=app_id, day=day, resource_id=resource_id, seconds=number)
                for (resource_id, day), number in seconds.items()
            ],
            batch_size=1000,
            ignore_conflicts=True,  # of another zone's days
        )
        state.open_until = last
        state.save(update_fields=["open_until"])
        return True
