"""Ask other calendars just before a booking takes its time, where its project wants that.

Asked are the resources that come in question by what is known here, in one go, outside of the
transaction and its locks. What they say is judged under the locks with everything else.
"""

import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from availability.outside import ask_outside
from availability.placement import Claim, NotAvailable, SlotTaken, choose_free
from availability.reading import Span
from availability.search import Elsewhere
from bookings.places import Place
from scheduling.api.beforehand import answers_of

# Of many bookings at once one question asks for so much, from the first start: a rule can reach
# ten years ahead, and what is that far off is seldom decided by the last few minutes.
ASKED_AHEAD = int(timedelta(days=62).total_seconds())

# Of whom, when, and whether what fills whole days is left aside.
Question = tuple[uuid.UUID, Span, bool]


def is_asked(claim: Claim, place: Place) -> bool:
    """Whether other calendars have a say: the project wants it, and the booking keeps others out
    and may not overlap."""
    return claim.is_guarded and place.asks_outside


def ask_for(claim: Claim, place: Place) -> Claim:
    """The claim with what other calendars have at its time."""
    if not is_asked(claim, place):
        return claim
    elsewhere = ask_about([claim], _resources_for(claim, place))
    return replace(claim, elsewhere=elsewhere)


def _resources_for(claim: Claim, place: Place) -> Collection[uuid.UUID]:
    if place.calendar:
        return [place.calendar.resource_id, *place.others]
    if place.holds:
        return place.held_ids
    choices = place.choices(enforced=claim.rules is not None)
    if place.mode == "mutual":
        return [resource.id for resource in choices.resources]
    try:
        return [resource.id for resource in choose_free(claim, choices)]
    except (SlotTaken, NotAvailable):
        return ()  # refused under the locks, with alternatives


def ask_about(claims: Sequence[Claim], resource_ids: Collection[uuid.UUID]) -> Elsewhere:
    """What takes the time of the claims elsewhere, no more of it than lies inside them.

    One question for all of them, from the first start to the last end; claims that begin more than
    62 days after the first are not asked about.
    """
    if not resource_ids:
        return {}
    first = min(claim.span.start for claim in claims)
    asked = [claim.span for claim in claims if claim.span.start <= first + ASKED_AHEAD]
    whole = Span(first, max(span.end for span in asked))
    terms = whole, claims[0].ignore_all_day
    answers = answers_of(_ask_by_terms, [(resource_id, *terms) for resource_id in resource_ids])
    return {
        resource_id: inside
        for (resource_id, *_), spans in answers.items()
        if (inside := _inside(asked, spans))
    }


def _inside(asked: Sequence[Span], spans: Sequence[Span]) -> list[Span]:
    return [
        Span(max(start, span.start), min(end, span.end))
        for start, end in spans
        for span in asked
        if start < span.end and end > span.start
    ]


def _ask_by_terms(questions: Collection[Question]) -> Mapping[Question, Sequence[Span]]:
    """Each question with what takes the time elsewhere; of all resources at once."""
    by_terms: dict[tuple[Span, bool], list[uuid.UUID]] = {}
    for resource_id, *terms in questions:
        by_terms.setdefault(tuple(terms), []).append(resource_id)
    answers: dict[Question, Sequence[Span]] = {}
    for (span, ignore_all_day), resource_ids in by_terms.items():
        found = ask_outside(resource_ids, span, ignore_all_day=ignore_all_day)
        answers |= {(one, span, ignore_all_day): found.get(one, ()) for one in resource_ids}
    return answers
