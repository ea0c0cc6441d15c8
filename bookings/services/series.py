"""Make a series: a booking for each occurrence of a rule, on one resource (or all, if mutual)."""

import random
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction

from availability.batches import Verdict, judge_claims, only
from availability.enforcement import first_calendars
from availability.models import Calendar, Event
from availability.placement import (
    NO_RESOURCE,
    Claim,
    NotAvailable,
    SlotTaken,
    guarded_transaction,
    keep_project,
    lock_calendars,
    render_span,
)
from availability.search import Bookable, Query
from bookings.models import Booking, Series
from bookings.places import Place
from bookings.recurrence import Recurrence, RecurrenceError, Times, expand_recurrence
from bookings.services.asking import ask_about, is_asked
from bookings.services.create import NewBooking, new_row, write_bookings
from bookings.services.history import Actor
from scheduling.api.errors import Invalid
from scheduling.api.sql import insert_rows

FAIL, SKIP = ON_CONFLICT = ("fail", "skip")


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSeries(NewBooking):
    """A booking and its repetitions; `on_conflict` says what becomes of those that can't be had:
    they `fail` the whole, or are left out."""

    rule: Recurrence
    on_conflict: str = FAIL


@dataclass(frozen=True, slots=True)
class _Choice:
    """Resources that would be booked together, the occurrences there, and what speaks against
    each."""

    resources: Sequence[Bookable]
    times: Sequence[Times]
    verdicts: Sequence[Verdict]

    @property
    def conflicts(self) -> int:
        return sum(verdict is not None for verdict in self.verdicts)


def create_series(new: NewSeries, *, place: Place, actor: Actor, now: datetime) -> Booking:
    """Make the series or leave nothing behind; returns the first booking made.

    All occurrences go to the same resource: the first, by the project's mode, that is free for
    all of them, else the one with the fewest conflicts. Raises SlotTaken or NotAvailable with
    every occurrence in conflict; Invalid for a rule that can't be used.
    """
    _ask_first(new, place)
    with guarded_transaction():
        if place.project and not keep_project(place.project.id):
            raise Invalid.at("project_id", "There is no such project any more.")
        candidates = place.choices(enforced=new.enforce_availability)
        refusal: SlotTaken | NotAvailable = NotAvailable([NO_RESOURCE])
        for choice in _choices(new, place, candidates):
            try:
                # A refused try gives its locks back, as one booking's does.
                with transaction.atomic():
                    return _create_at(choice, candidates, new, place, actor, now)
            except (SlotTaken, NotAvailable) as error:
                refusal = error
        raise refusal


def _ask_first(new: NewSeries, place: Place) -> None:
    """Let the place know what other calendars have at the times of the occurrences."""
    if not is_asked(_claim(new, place, (new.start, new.end)), place):
        return
    choices = _choices(new, place, place.choices(enforced=new.enforce_availability))
    if not choices:
        return
    resource_ids = {resource.id for choice in choices for resource in choice.resources}
    times = _expand(new, choices[0].resources[0].zone)
    place.elsewhere = ask_about([_claim(new, place, one) for one in times], resource_ids)


def _choices(new: NewSeries, place: Place, candidates: Query) -> list[_Choice]:
    """What comes in question, the best first; looked at without a lock."""
    resources = list(candidates.resources)
    if not resources:
        return []
    groups = [resources] if place.mode == "mutual" else [[resource] for resource in resources]
    if place.mode == "roundrobin_random":
        random.shuffle(groups)
    if len(groups) == 1:
        return [_Choice(groups[0], (), ())]  # there is nothing to choose; it is judged under lock
    choices = [_judge(group, candidates, new, place) for group in groups]
    choices.sort(key=lambda choice: choice.conflicts)
    free = [choice for choice in choices if not choice.conflicts]
    return free or choices[:1]


def _judge(
    resources: Sequence[Bookable], candidates: Query, new: NewSeries, place: Place
) -> _Choice:
    """The occurrences on the first resource's wall clock, each with the first refusal."""
    times = _expand(new, resources[0].zone)
    claims = [_claim(new, place, one) for one in times]
    judged = judge_claims(claims, only(candidates, [resource.id for resource in resources]))
    verdicts = [
        next((verdict for verdict in column if verdict), None)
        for column in zip(*judged.values(), strict=True)
    ]
    return _Choice(resources, times, verdicts)


def _expand(new: NewSeries, zone: str) -> list[Times]:
    try:
        return expand_recurrence(new.rule, new.start, new.end, zone)
    except RecurrenceError as error:
        raise Invalid.at("recurrence", str(error)) from error


def _claim(new: NewSeries, place: Place, times: Times) -> Claim:
    return place.claim(
        *times,
        blocks=new.graph.blocks(new.state, pending_blocks=place.pending_blocks),
        allow_double_bookings=new.allow_double_bookings,
        rules=place.rules if new.enforce_availability else None,
    )


def _create_at(
    choice: _Choice,
    candidates: Query,
    new: NewSeries,
    place: Place,
    actor: Actor,
    now: datetime,
) -> Booking:
    """Lock, look again, write."""
    calendars = _calendars_of(place, choice.resources)
    if not calendars or not lock_calendars(calendars):
        raise Invalid.at("resource_id", "There is no such resource any more.")
    choice = _judge(choice.resources, candidates, new, place)
    made = [
        times for times, verdict in zip(choice.times, choice.verdicts, strict=True) if not verdict
    ]
    if choice.conflicts and (new.on_conflict == FAIL or not made):
        raise _refusal(choice)
    series = Series(
        app=place.app,
        rrule=new.rule.text,
        skipped=[_skipped(*pair) for pair in _conflicts(choice)],
        created_at=now,
    )
    insert_rows([series])
    bookings = [
        new_row(
            new,
            event,
            place=place,
            now=now,
            end=event.end,
            series=series,
            allow_double_bookings=new.allow_double_bookings,
            enforce_availability=new.enforce_availability,
        )
        for event in _write_events(made, calendars, new, place)
    ]
    write_bookings(bookings, new, place=place, actor=actor, now=now)
    return bookings[0]


def _calendars_of(place: Place, resources: Sequence[Bookable]) -> list[Calendar]:
    if place.calendar:
        return [place.calendar]
    calendars: Mapping[uuid.UUID, Calendar] = first_calendars([one.id for one in resources])
    return [calendars[one.id] for one in resources if one.id in calendars]


def _write_events(
    times: Sequence[Times], calendars: Sequence[Calendar], new: NewSeries, place: Place
) -> list[Event]:
    """An event of each occurrence in the first calendar, with a companion in each other."""
    events, companions = [], []
    for start, end in times:
        claim = _claim(new, place, (start, end))
        main, *others = [
            Event(
                calendar=calendar,
                resource_id=calendar.resource_id,
                project_id=place.project.id if place.project else None,
                start=start,
                end=end,
                busy=claim.blocks,
                exclusive=claim.is_guarded,
                **new.details._asdict(),
            )
            for calendar in calendars
        ]
        for other in others:
            other.main = main
        events.append(main)
        companions += others
    insert_rows(events)
    insert_rows(companions)
    return events


# --- What could not be had ------------------------------------------------------------------------
def _conflicts(choice: _Choice) -> list[tuple[Times, SlotTaken | NotAvailable]]:
    pairs = zip(choice.times, choice.verdicts, strict=True)
    return [(times, verdict) for times, verdict in pairs if verdict]


def _skipped(times: Times, verdict: SlotTaken | NotAvailable) -> dict[str, str]:
    return {**render_span(*times), "reason": verdict.code}


def _refusal(choice: _Choice) -> SlotTaken | NotAvailable:
    """One for all: a rule that is broken is said before a time that is taken."""
    conflicts = _conflicts(choice)
    occurrences: list[Any] = [_skipped(*pair) for pair in conflicts]
    broken = [verdict for _, verdict in conflicts if isinstance(verdict, NotAvailable)]
    if broken:
        reasons = dict.fromkeys(reason for verdict in broken for reason in verdict.reasons)
        refusal: SlotTaken | NotAvailable = NotAvailable(list(reasons))
    else:
        refusal = SlotTaken()
        refusal.fields["conflicts"] = [
            span for _, verdict in conflicts for span in verdict.fields["conflicts"]
        ]
    refusal.fields["occurrences"] = occurrences
    return refusal
