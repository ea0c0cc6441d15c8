"""Hold a time for a booking in progress: place, extend, release and use holds.

A hold blocks until its `expires_at`, without a worker: busy-time queries (search_queries.py) skip
expired holds. Changes of one hold are serialised by the lock on its main row; competing bookings
and holds by the lock on the resource.
"""

import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.db.models.functions import Coalesce

from apps_config.models import App
from availability.core.busy_items import BusyItem, fully_booked_items
from availability.core.intervals import Span
from availability.core.matching import WHOLE, Stretch
from availability.models import VISIT, Event, Hold, Project
from availability.reserve.events import (
    CONFLICTS_NAMED,
    Place,
    SlotTaken,
    TimeRequest,
    lock_resources,
    raise_longest_buffer,
)
from availability.search.queries import TimeSpan, fetch_busy_events
from common.db.batching import delete_in_batches
from common.db.sql import insert_rows, wait_for_turn
from common.errors import NotFound, RateLimited, Refusal
from common.messages import Message
from common.time.instants import to_datetime

DEFAULT_SECONDS = 30
MAX_SECONDS = 3600
OPEN_PER_ADDRESS = 5  # of a widget key
WIDGET_EXTENSIONS = 1
KEPT_FOR = timedelta(days=1)
PURGE_SLICE = 5000


class HoldExpired(Refusal):
    """The hold was used or released, or has expired."""

    code = "hold_expired"

    def __init__(self) -> None:
        super().__init__(Message("The hold has expired or was already used."))


class ExtensionsUsed(Refusal):
    """A public page has extended the hold as often as it may."""

    code = "policy"

    def __init__(self, limit: int) -> None:
        super().__init__(
            "The policy max_extensions does not allow this.", policy="max_extensions", limit=limit
        )


def hold_seconds(project: Project | None) -> int:
    """The default duration of a hold of the project, or of no project."""
    return (project and project.reservation_time) or DEFAULT_SECONDS


def find_hold(
    app: App, reservation_id: uuid.UUID, *, resource_id: uuid.UUID | None = None
) -> Hold | None:
    """The app's hold with this id, with its resource, project and companions. Two queries.

    `resource_id`: only if the hold is on that resource and no other.
    """
    holds = Hold.objects.filter(app=app, id=reservation_id, main=None)
    if resource_id:
        others = Hold.objects.filter(main=OuterRef("id")).exclude(resource_id=resource_id)
        holds = holds.filter(~Exists(others), resource_id=resource_id)
    return holds.select_related("resource", "project").prefetch_related("companions").first()


def with_companions(hold: Hold) -> list[Hold]:
    """The rows of the hold, one per resource or unit, the main one first."""
    return [hold, *hold.companions.all()]


def held_span(hold: Hold) -> tuple[datetime, datetime]:
    """Return the time of the hold: from the first to the last step of a visit."""
    rows = with_companions(hold) if hold.step else [hold]
    return min(row.start for row in rows), max(row.end for row in rows)


def hold_stretches(hold: Hold) -> list[tuple[Hold, Stretch]]:
    """Return the rows of the hold, each with its stretch of the held time."""
    start, end = held_span(hold)
    return [
        (
            row,
            WHOLE
            if (row.start, row.end) == (start, end) and not row.step
            else Stretch(
                int((row.start - start).total_seconds()),
                int((row.end - row.start).total_seconds()),
                is_step=bool(row.step),
            ),
        )
        for row in with_companions(hold)
    ]


def write_hold(
    time_request: TimeRequest,
    *,
    app: App,
    project: Project | None,
    places: Sequence[Place],
    seconds: int,
    client_address: str = "",
) -> Hold:
    """Write a hold of the request's time in each place, or of several units in one, for `seconds`;
    returns the main row.

    The caller holds the locks on the resources and has checked the time request under them.
    """
    main, *others = [
        Hold(
            app=app,
            resource_id=place.calendar.resource_id,
            project=project,
            start=span.start,
            end=span.end,
            requirement=place.requirement,
            step=place.step,
            **time_request.stored_buffers,
            expires_at=time_request.now + timedelta(seconds=seconds),
            client_address=client_address,
            created_at=time_request.now,
        )
        for place in places
        if place.step != VISIT
        for span in [time_request.of_stretch(place.stretch)]
        for _ in range(time_request.quantity)
    ]
    for other in others:
        other.main = main
    raise_longest_buffer([place.calendar.resource_id for place in places], [time_request])
    insert_rows([main, *others])
    return main


def check_open_holds(
    app: App,
    client_address: str,
    *,
    others: Callable[[], Iterable[datetime]],
    now: datetime,
) -> None:
    """Raise RateLimited, until the first hold expires, if an address has too many open holds.

    Each unit counts. others: returns the expiries of its holds of seats, each of which counts, too.
    Call it in the transaction that places the next hold: a lock serialises requests of one address.
    """
    wait_for_turn(f"holds {app.id} {client_address}")
    open_holds = Hold.objects.filter(
        Q(main=None) | Q(main__resource=F("resource")),
        app=app,
        client_address=client_address,
        used_at=None,
        expires_at__gt=now,
    )
    ends = [*open_holds.order_by().values_list("expires_at", flat=True), *others()]
    if len(ends) >= OPEN_PER_ADDRESS:
        wait = (min(ends) - now).total_seconds()
        raise RateLimited(wait, "Too many open holds from this address.")


def extend_hold(
    hold: Hold, *, seconds: int, now: datetime, max_extensions: int | None = None
) -> Hold:
    """Extend a hold to `seconds` from now.

    Raises HoldExpired, ExtensionsUsed, NotFound; SlotTaken if an event or another hold has taken
    the time since. Locks the resources, so that the time can't be taken concurrently.
    """
    with transaction.atomic():
        resource_ids = [row.resource_id for row in with_companions(hold)]
        lock_resources(resource_ids)
        locked = _lock_lasting(hold, now)
        if max_extensions is not None and locked.extensions >= max_extensions:
            raise ExtensionsUsed(max_extensions)
        if conflicts := _blocking_spans_since(hold, resource_ids, now):
            raise SlotTaken(conflicts)
        hold.expires_at = now + timedelta(seconds=seconds)
        _rows_of(hold).update(expires_at=hold.expires_at, extensions=F("extensions") + 1)
    return hold


def _blocking_spans_since(
    hold: Hold, resource_ids: Collection[uuid.UUID], now: datetime
) -> list[tuple[datetime, datetime]]:
    """Spans that block the hold's time and were written since the hold was placed.

    Older ones do not conflict: the hold was allowed to overlap them. Of a resource with a capacity
    above 1, the times at which it has too few free units, one of them taken since.
    """
    own = [row.id for row in with_companions(hold)]
    rows = with_companions(hold)
    start, end = min(row.start for row in rows), max(row.end for row in rows)
    quantity = 1 if hold.step else len(own) // len(set(resource_ids))
    events = Event.objects.filter(
        busy=True, resource_id__in=resource_ids, updated_at__gte=hold.created_at
    ).overlapping(start, end)
    holds = Hold.objects.filter(
        resource_id__in=resource_ids,
        start__lt=end,
        end__gt=start,
        used_at=None,
        expires_at__gt=now,
        created_at__gte=hold.created_at,
    ).exclude(id__in=own)
    ids = (events.values_list("id"), holds.values_list(Coalesce("main", "id")))
    since = {row[0] for row in ids[0].order_by().union(ids[1].order_by(), all=True)}
    if not since:
        return []
    project = hold.project
    found = fetch_busy_events(
        resource_ids,
        TimeSpan(int(start.timestamp()), int(end.timestamp())),
        now=now,
        ignore_all_day=bool(project and project.availability.get("ignore_all_day_events")),
        without=own,
    )
    spans = sorted(
        span
        for row in rows
        for span in _blocked_since(found.get(row.resource_id, []), since, quantity)
        if to_datetime(span[0]) < row.end and to_datetime(span[1]) > row.start
    )
    return [(to_datetime(start), to_datetime(end)) for start, end in spans[:CONFLICTS_NAMED]]


def _blocked_since(
    items: Sequence[BusyItem], since: Collection[uuid.UUID | None], quantity: int
) -> list[Span]:
    new = [item for item in items if item.id in since]
    return [
        busy_item.span
        for busy_item in fully_booked_items(items, quantity)
        if busy_item in new
        or (
            busy_item.type == "capacity"
            and any(item.start < busy_item.end and item.end > busy_item.start for item in new)
        )
    ]


def release_hold(hold: Hold, *, now: datetime) -> None:
    """Release a hold: sets `expires_at` to `created_at`. Raises HoldExpired, NotFound."""
    with transaction.atomic():
        _lock_lasting(hold, now, released_is_gone=True)
        _rows_of(hold).update(expires_at=F("created_at"))


def release_holds_of_project(project: Project, *, now: datetime) -> None:
    """Release the lasting holds of a project that is being deleted; its row is locked, so that no
    hold is added meanwhile.
    """
    open_holds = Hold.objects.filter(project=project, used_at=None, expires_at__gt=now)
    open_holds.update(expires_at=F("created_at"))


def use_hold(hold: Hold, *, now: datetime) -> None:
    """Mark a hold as used by the booking of this transaction. Raises HoldExpired, NotFound."""
    _lock_lasting(hold, now)
    _rows_of(hold).update(used_at=now)


def _lock_lasting(hold: Hold, now: datetime, *, released_is_gone: bool = False) -> Hold:
    """Lock the main row. Raises NotFound if it does not exist, HoldExpired if it no longer holds
    time.
    """
    locked = Hold.objects.select_for_update(no_key=True).filter(id=hold.id).first()
    if locked is None or (released_is_gone and locked.is_released):
        raise NotFound("Hold")
    if locked.used_at or locked.expires_at <= now:
        raise HoldExpired
    return locked


def _rows_of(hold: Hold) -> QuerySet[Hold]:
    return Hold.objects.filter(Q(id=hold.id) | Q(main=hold))


def purge_lapsed(*, now: datetime) -> Iterator[int]:
    """Delete holds that expired a day ago, used or not, in batches; yields the size of each.

    All rows of a hold expire at the same time and are deleted together.
    """
    lapsed = Hold.objects.filter(expires_at__lte=now - KEPT_FOR, main=None)
    yield from delete_in_batches(lapsed, "expires_at", PURGE_SLICE, referring="main")
