"""Place, move and free events: lock, check, write. The only doors through which time is taken.

Every function runs inside the caller's transaction. The lock on the resource's row orders all
who want its time; the database's own guard on exclusive events is the net below (migration 0002).
"""

import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from django.db import IntegrityError, connection, transaction
from django.db.models import Q

from availability.core.explain import Reason
from availability.core.intervals import clip, normalise
from availability.enforcement import without_moment
from availability.models import Calendar, Event
from availability.reading import Span, aware, taken_rows, to_datetime
from availability.search import (
    Bookable,
    Elsewhere,
    Query,
    find_reasons,
    read_obstacles,
    search_first_slots,
)
from availability.terms import Terms
from scheduling.api.changes import transaction_start
from scheduling.api.errors import Refusal
from scheduling.api.instants import LAST_YEAR, format_instant
from scheduling.api.sql import among, insert_rows, raw_id, read_id, update_rows

CONFLICTS_NAMED = 10
ALTERNATIVES = 3
ALTERNATIVES_WITHIN = timedelta(days=14)
LAST_INSTANT = datetime(LAST_YEAR, 12, 31, 23, 59, 59, tzinfo=UTC)


class SlotTaken(Refusal):
    """The time breaks no rule but overlaps what blocks the resource."""

    code = "slot_taken"

    def __init__(self, conflicts: Sequence[tuple[datetime, datetime]] = ()) -> None:
        spans = [render_span(start, end) for start, end in conflicts]
        super().__init__("The time is taken.", conflicts=spans, alternatives=[])


class NotAvailable(Refusal):
    """The rules of the resource or the project exclude the time."""

    code = "not_available"

    def __init__(self, reasons: Sequence[Reason]) -> None:
        super().__init__("The time is not available.", reasons=[], alternatives=[])
        self.reasons = reasons


def render_span(start: datetime, end: datetime) -> dict[str, str]:
    return {"start": format_instant(start), "end": format_instant(end)}


@dataclass(frozen=True, slots=True)
class Claim:
    """What a booking wants of a resource's time.

    blocks: it keeps others out. exclusive: it wants the time alone, so what blocks refuses it.
    rules: the project's own values where they are enforced. ignore_all_day: all-day events are
    no obstacle (the project says so). now: when others' holds still have to last. holds: those
    that keep the time for this very claim. is_in_time: notice, past and booking window were judged
    when its hold was made. elsewhere: what other calendars have just said takes the time of
    resources, of which there is no row here yet.
    """

    start: datetime
    end: datetime
    blocks: bool
    exclusive: bool
    now: datetime
    rules: Query | None = None
    ignore_all_day: bool = False
    holds: Collection[uuid.UUID] = ()
    is_in_time: bool = False
    elsewhere: Elsewhere = field(default_factory=dict)

    @property
    def span(self) -> Span:
        return Span(int(self.start.timestamp()), int(self.end.timestamp()))

    @property
    def is_guarded(self) -> bool:
        """Whether the database's guard covers its event."""
        return self.blocks and self.exclusive


class Details(NamedTuple):
    """What an event says beside its time."""

    what: str
    where: str = ""
    description: str = ""
    participants: list[str] = []
    invite: bool = True


_LOCK = """
SELECT id FROM availability_resource WHERE id {among} AND deleted_at IS NULL
ORDER BY id FOR NO KEY UPDATE
"""
_FIND = "SELECT id FROM availability_resource WHERE id {among} AND deleted_at IS NULL"
_FIND_CALENDARS = """
SELECT calendar.id FROM availability_resource AS resource
JOIN availability_calendar AS calendar ON calendar.resource_id = resource.id
WHERE calendar.id {among} AND calendar.deleted_at IS NULL AND resource.deleted_at IS NULL
ORDER BY resource.id
"""
# First the resource, then its calendar, as a deletion takes them: without a lock on the calendar
# PostgreSQL would judge it by how it was before the wait for the resource.
_LOCK_CALENDARS = _FIND_CALENDARS + "FOR NO KEY UPDATE OF resource FOR SHARE OF calendar"


def lock_resources(resource_ids: Collection[uuid.UUID]) -> list[uuid.UUID]:
    """Take the resources' rows, in the order of their ids: two who want several never deadlock.

    Returns those that still exist. SQLite's transaction is alone already.
    """
    sql, params = among(resource_ids)
    statement = _LOCK if connection.vendor == "postgresql" else _FIND
    with connection.cursor() as cursor:
        cursor.execute(statement.format(among=sql), params)
        return [read_id(row[0]) for row in cursor.fetchall()]


def lock_calendars(calendars: Collection[Calendar]) -> bool:
    """Take the rows of the calendars' resources, in the order of `lock_resources`.

    False where a calendar or its resource has been deleted meanwhile.
    """
    ids = {calendar.id for calendar in calendars}
    sql, params = among(ids)
    statement = _LOCK_CALENDARS if connection.vendor == "postgresql" else _FIND_CALENDARS
    with connection.cursor() as cursor:
        cursor.execute(statement.format(among=sql), params)
        return len(cursor.fetchall()) == len(ids)


_FIND_PROJECT = "SELECT 1 FROM availability_project WHERE id = %s AND deleted_at IS NULL"


def keep_project(project_id: uuid.UUID) -> bool:
    """Have its deletion wait for the end of the transaction; False where it came first.

    Taken before the locks of resources. Those who keep a project do not wait for each other.
    """
    share = " FOR SHARE" if connection.vendor == "postgresql" else ""
    with connection.cursor() as cursor:
        cursor.execute(_FIND_PROJECT + share, [raw_id(project_id)])
        return cursor.fetchone() is not None


def check_claim(
    claim: Claim, resource_ids: Sequence[uuid.UUID], *, without: Collection[uuid.UUID] = ()
) -> None:
    """Raise NotAvailable or SlotTaken where the claim can't have the time of every resource.

    `without`: the events that have it already; they and the claim's holds are not in its way.
    """
    without = [*without, *claim.holds]
    if claim.rules:
        rules = without_moment(claim.rules) if claim.is_in_time else claim.rules
        _check_rules(claim, rules, resource_ids, without)
    if claim.is_guarded and (conflicts := find_conflicts(claim, resource_ids, without)):
        raise SlotTaken(conflicts)


def _check_rules(
    claim: Claim, rules: Query, resource_ids: Sequence[uuid.UUID], without: Collection[uuid.UUID]
) -> None:
    resources = [resource for resource in rules.resources if resource.id in resource_ids]
    obstacles = read_obstacles(
        rules, resources, claim.span, without=without, against_events=claim.exclusive
    )
    for resource in resources:
        _raise_for(claim, resource, find_reasons(rules, resource, claim.span, obstacles), without)


def _raise_for(
    claim: Claim, resource: Bookable, reasons: list[Reason], without: Collection[uuid.UUID]
) -> None:
    """A time that only overlaps breaks no rule: that is SlotTaken, of whatever state."""
    if not reasons:
        return
    if all(reason.type in ("event", "hold", "buffer") for reason in reasons) and (
        conflicts := find_conflicts(claim, [resource.id], without)
    ):
        raise SlotTaken(conflicts)
    raise NotAvailable(reasons)


def find_conflicts(
    claim: Claim, resource_ids: Sequence[uuid.UUID], without: Collection[uuid.UUID] = ()
) -> list[tuple[datetime, datetime]]:
    """The first events and holds that block the resources and overlap the claim; where none does,
    what is elsewhere, and of that no more than lies inside the claim."""
    taken, params = taken_rows(
        resource_ids,
        claim.span,
        now=claim.now,
        ignore_all_day=claim.ignore_all_day,
        without=without,
    )
    with connection.cursor() as cursor:
        cursor.execute(taken + _IN_ORDER, [*params, CONFLICTS_NAMED])
        found = [(aware(start), aware(end)) for _, start, end in cursor.fetchall()]
    return found or _conflicts_elsewhere(claim, resource_ids)


def _conflicts_elsewhere(
    claim: Claim, resource_ids: Sequence[uuid.UUID]
) -> list[tuple[datetime, datetime]]:
    spans = [span for one in resource_ids for span in claim.elsewhere.get(one, ())]
    inside = clip(normalise(spans), *claim.span)
    return [(to_datetime(start), to_datetime(end)) for start, end in inside[:CONFLICTS_NAMED]]


_IN_ORDER = ' ORDER BY start, "end" LIMIT %s'


@contextmanager
def guarded_transaction() -> Iterator[None]:
    """A transaction in which the database's refusal of an overlap is SlotTaken."""
    try:
        with transaction.atomic():
            yield
    except IntegrityError as error:
        # The PostgreSQL constraint and the SQLite triggers carry the same name.
        if "slot_taken" not in str(error):
            raise
        raise SlotTaken() from error


def place_event(
    claim: Claim,
    *,
    calendars: Sequence[Calendar],
    details: Details,
    project_id: uuid.UUID | None,
) -> Event:
    """Check the claim on every calendar's resource, and write the event with its companions.

    The first calendar gets the event, each other one a companion. The caller holds the locks.
    Raises NotAvailable or SlotTaken; then nothing was written.
    """
    check_claim(claim, [calendar.resource_id for calendar in calendars])
    main, *others = [
        Event(
            calendar=calendar,
            resource_id=calendar.resource_id,
            project_id=project_id,
            start=claim.start,
            end=claim.end,
            busy=claim.blocks,
            exclusive=claim.is_guarded,
            **details._asdict(),
        )
        for calendar in calendars
    ]
    for other in others:
        other.main = main
    insert_rows([main, *others])
    return main


def write_claims(claims: Sequence[tuple[Event, Claim]]) -> None:
    """Give events and their companions the times that their claims were checked for.

    The caller holds the locks on the old and the new resources. Two statements: several are freed
    first, since the database's guard must not find one at its new time and another at its old one.
    """
    rows = []
    for event, claim in claims:
        for row in with_companions(event):
            row.start, row.end = claim.start, claim.end
            row.busy, row.exclusive = claim.blocks, claim.is_guarded
            rows.append(row)
    if len(claims) > 1:
        Event.objects.filter(id__in=[row.id for row in rows]).update(exclusive=False)
    update_rows(rows, ["start", "end", "calendar", "resource", "busy", "exclusive", "updated_at"])


def free_events(events: Sequence[Event]) -> None:
    """Let go of their time; the events stay in their calendars."""
    if not events:
        return
    ids = [event.id for event in events]
    Event.objects.filter(Q(id__in=ids) | Q(main__in=ids)).update(
        busy=False, exclusive=False, updated_at=transaction_start()
    )
    for event in events:
        event.busy = event.exclusive = False


# What an event says, beside its time.
EVENT_WORDS = ("what", "where", "description")


def describe_event(event: Event, words: Mapping[str, str]) -> None:
    """Give an event and its companions other words; without any only their copies are renewed."""
    rows = Event.objects.filter(Q(id=event.id) | Q(main=event))
    event.updated_at = transaction_start()
    rows.update(**words, updated_at=event.updated_at)
    for name, value in words.items():
        setattr(event, name, value)


def with_companions(event: Event) -> list[Event]:
    """The event and its companions: what never stands in its own way."""
    return [event, *event.companions.all()]


def choose_free(claim: Claim, candidates: Query) -> list[Bookable]:
    """Of a project's resources those that are free for the claim, in their order; two queries.

    Looks without a lock: the caller locks its choice and checks again. Raises what stands in the
    way where none is free.
    """
    candidates = replace(candidates, elsewhere=claim.elsewhere)
    resources = candidates.resources
    obstacles = read_obstacles(candidates, resources, claim.span, against_events=claim.exclusive)
    refused = {
        resource.id: find_reasons(candidates, resource, claim.span, obstacles)
        for resource in resources
    }
    free = [resource for resource in resources if not refused[resource.id]]
    if free:
        return free
    # Where one resource breaks no rule and is only taken, that is the nearer truth.
    for resource in sorted(resources, key=lambda one: _breaks_rule(refused[one.id])):
        _raise_for(claim, resource, refused[resource.id], ())
    raise NotAvailable([NO_RESOURCE])


NO_RESOURCE = Reason("limit", "project", (), None, "The project has no resources.")


def _breaks_rule(reasons: Sequence[Reason]) -> bool:
    return any(reason.type not in ("event", "hold") for reason in reasons)


def find_alternatives(
    claim: Claim, resources: Sequence[Bookable], *, mode: str, now: datetime
) -> list[dict[str, str]]:
    """Up to three next free spans of the claim's length within 14 days, by the rules that hold.

    Worked out after the refusal has been rolled back. Without enforced rules only what blocks
    counts. Looked for from the wanted start on, never in the past.
    """
    length = claim.span.end - claim.span.start
    earliest = max(claim.start, now)
    latest = min(earliest + ALTERNATIVES_WITHIN, LAST_INSTANT)
    terms = claim.rules.terms if claim.rules else Terms(ignore_all_day_events=claim.ignore_all_day)
    wanted = replace(
        terms,
        length=length if terms.length is None else terms.length,
        earliest=format_instant(earliest),
        latest=format_instant(latest),
    )
    query = Query(
        resources=resources if claim.rules else [one.without_rules() for one in resources],
        terms=wanted if claim.rules else replace(wanted, length=length),
        now=now,
        project_id=claim.rules.project_id if claim.rules else None,
        bounds=claim.rules.own if claim.rules else None,
        elsewhere=claim.elsewhere,
    )
    mode = "mutual" if mode == "mutual" else "exclusive"
    slots = search_first_slots(query, mode=mode, count=ALTERNATIVES)
    return [render_span(to_datetime(start), to_datetime(end)) for start, end, _ in slots]
