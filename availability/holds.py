"""Hold a time while its booking is being made: place, extend, release and use holds.

A hold blocks until its `expires_at`, and no worker is needed for its end: whoever asks what blocks
(reading.py) asks for holds that still last. All that happens to one hold queues at the lock of its
main row; a booking or a hold that wants its time queues at the lock of the resource.
"""

import uuid
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timedelta

from django.db import connection, transaction
from django.db.models import F, Q, QuerySet

from apps_config.models import App
from availability.models import Event, Hold, Project
from availability.placement import (
    CONFLICTS_NAMED,
    Claim,
    SlotTaken,
    check_claim,
    lock_resources,
)
from scheduling.api.errors import NotFound, RateLimited, Refusal
from scheduling.api.slices import delete_in_slices
from scheduling.api.sql import insert_rows

DEFAULT_SECONDS = 30
MOST_SECONDS = 3600
OPEN_PER_ADDRESS = 5  # by widget keys
WIDGET_EXTENSIONS = 1
KEPT_FOR = timedelta(days=1)
PURGE_SLICE = 5000


class HoldExpired(Refusal):
    """The hold was used, given back, or it lapsed."""

    code = "hold_expired"

    def __init__(self) -> None:
        super().__init__("The hold was used already, or it has lapsed.")


class ExtensionsUsed(Refusal):
    """A public page may extend a hold only so often."""

    code = "policy"

    def __init__(self, limit: int) -> None:
        super().__init__(
            "The policy max_extensions does not allow this.", policy="max_extensions", limit=limit
        )


def hold_seconds(project: Project | None) -> int:
    """How long a hold of the project (or of none) lasts unless the request says so."""
    return (project and project.reservation_time) or DEFAULT_SECONDS


def find_hold(
    app: App, reservation_id: uuid.UUID, *, resource_id: uuid.UUID | None = None
) -> Hold | None:
    """The app's hold of that id, with its resource, project and companions: two queries.

    `resource_id`: only if it holds the time of that resource and of no other.
    """
    holds = Hold.objects.filter(app=app, id=reservation_id, main=None)
    if resource_id:
        holds = holds.filter(resource_id=resource_id, companions=None)
    return holds.select_related("resource", "project").prefetch_related("companions").first()


def with_companions(hold: Hold) -> list[Hold]:
    """A row for each resource, the main one first."""
    return [hold, *hold.companions.all()]


def place_hold(
    claim: Claim,
    *,
    app: App,
    project: Project | None,
    resource_ids: Sequence[uuid.UUID],
    seconds: int,
    client_address: str = "",
) -> Hold:
    """Check the claim on every resource and keep the time for so many seconds.

    Returns the row of the first resource. The caller holds the locks of the resources. Raises
    NotAvailable or SlotTaken; then nothing was written.
    """
    check_claim(claim, resource_ids)
    main, *others = [
        Hold(
            app=app,
            resource_id=resource_id,
            project=project,
            start=claim.start,
            end=claim.end,
            expires_at=claim.now + timedelta(seconds=seconds),
            client_address=client_address,
            created_at=claim.now,
        )
        for resource_id in resource_ids
    ]
    for other in others:
        other.main = main
    insert_rows([main, *others])
    return main


def check_open_holds(app: App, client_address: str, *, now: datetime) -> None:
    """Raise RateLimited, until the first lapses, where an address has as many holds as it may.

    Inside the transaction that places the next one: requests of one address wait for each other.
    """
    if connection.vendor == "postgresql":  # SQLite's transaction is alone already
        with connection.cursor() as cursor:
            cursor.execute(_TAKE_TURN, [f"holds {app.id} {client_address}"])
    open_holds = Hold.objects.filter(
        app=app, client_address=client_address, main=None, used_at=None, expires_at__gt=now
    )
    ends = list(open_holds.order_by("expires_at").values_list("expires_at", flat=True))
    if len(ends) >= OPEN_PER_ADDRESS:
        wait = (ends[0] - now).total_seconds()
        raise RateLimited(wait, "Too many open holds from this address.")


_TAKE_TURN = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"


def extend_hold(
    hold: Hold, *, seconds: int, now: datetime, max_extensions: int | None = None
) -> Hold:
    """Let it last so many seconds from now.

    Raises HoldExpired, ExtensionsUsed, NotFound; SlotTaken where an event or another hold has
    taken the time since. The resources are locked, so that nobody takes it meanwhile.
    """
    with transaction.atomic():
        resource_ids = [row.resource_id for row in with_companions(hold)]
        lock_resources(resource_ids)
        locked = _lock_lasting(hold, now)
        if max_extensions is not None and locked.extensions >= max_extensions:
            raise ExtensionsUsed(max_extensions)
        if conflicts := _taken_since(hold, resource_ids, now):
            raise SlotTaken(conflicts)
        hold.expires_at = now + timedelta(seconds=seconds)
        _rows_of(hold).update(expires_at=hold.expires_at, extensions=F("extensions") + 1)
    return hold


def _taken_since(
    hold: Hold, resource_ids: Collection[uuid.UUID], now: datetime
) -> list[tuple[datetime, datetime]]:
    """What blocks the hold's time and was made, or moved there, since the hold was made.

    What was there before is no conflict: the hold was made to overlap it.
    """
    events = Event.objects.filter(
        busy=True, resource_id__in=resource_ids, updated_at__gte=hold.created_at
    ).overlapping(hold.start, hold.end)
    if hold.project and hold.project.availability.get("ignore_all_day_events"):
        events = events.filter(all_day=False)
    holds = Hold.objects.filter(
        resource_id__in=resource_ids,
        start__lt=hold.end,
        end__gt=hold.start,
        used_at=None,
        expires_at__gt=now,
        created_at__gte=hold.created_at,
    ).exclude(id__in=[row.id for row in with_companions(hold)])
    spans = [rows.order_by().values_list("id", "start", "end") for rows in (events, holds)]
    taken = spans[0].union(spans[1], all=True).order_by("start", "end")
    return [(start, end) for _, start, end in taken[:CONFLICTS_NAMED]]


def release_hold(hold: Hold, *, now: datetime) -> None:
    """Give the time back: as if it had lapsed when it was made. Raises HoldExpired, NotFound."""
    with transaction.atomic():
        _lock_lasting(hold, now, released_is_gone=True)
        _rows_of(hold).update(expires_at=F("created_at"))


def use_hold(hold: Hold, *, now: datetime) -> None:
    """Use it up for the booking that is made in this transaction. Raises HoldExpired, NotFound."""
    _lock_lasting(hold, now)
    _rows_of(hold).update(used_at=now)


def _lock_lasting(hold: Hold, now: datetime, *, released_is_gone: bool = False) -> Hold:
    """The main row as it is under its lock. Raises HoldExpired where it holds nothing any more."""
    locked = Hold.objects.select_for_update(no_key=True).filter(id=hold.id).first()
    if locked is None or (released_is_gone and locked.is_released):
        raise NotFound("Hold")
    if locked.used_at or locked.expires_at <= now:
        raise HoldExpired
    return locked


def _rows_of(hold: Hold) -> QuerySet[Hold]:
    return Hold.objects.filter(Q(id=hold.id) | Q(main=hold))


def purge_lapsed(*, now: datetime) -> Iterator[int]:
    """Delete what lapsed a day ago, used or not, a slice at a time; yields how many holds each had.

    All rows of a hold end at the same time, and go together.
    """
    lapsed = Hold.objects.filter(expires_at__lte=now - KEPT_FOR, main=None)
    yield from delete_in_slices(lapsed, "expires_at", PURGE_SLICE, referring="main")
