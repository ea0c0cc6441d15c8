"""Query connected calendars just before a booking reserves its time, if the project wants it.

One query for all candidate resources, outside of the transaction and its locks. The busy times
are then checked under the locks with everything else.
"""

import uuid
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta

from availability.reserve.events import TimeRequest
from availability.search.availability_query import ExternalBusy
from availability.search.live_freebusy import fetch_live_busy
from availability.search.queries import TimeSpan
from bookings.booking_target import BookingTarget
from common.db.calls_outside_transaction import resolve

# Bookings made at once share one query over at most this many seconds from the first start: a rule
# can reach ten years ahead, where live data seldom decides.
MAX_PREFETCH = int(timedelta(days=62).total_seconds())

# Resource id, span, ignore all-day events.
Question = tuple[uuid.UUID, TimeSpan, bool]


def needs_live_check(time_request: TimeRequest, target: BookingTarget) -> bool:
    """Return whether the project wants the check and the booking may not overlap busy time."""
    return time_request.is_guarded and target.checks_external


def fetch_live_busy_for(
    time_requests: Sequence[TimeRequest], resource_ids: Collection[uuid.UUID]
) -> ExternalBusy:
    """Return the live busy times by resource, cut to the spans of the time requests.

    One query for all, from the first start to the last end. Requests that begin more than 62 days
    after the first are not checked.
    """
    if not resource_ids:
        return {}
    first = min(time_request.span.start for time_request in time_requests)
    questions = [
        time_request.span
        for time_request in time_requests
        if time_request.span.start <= first + MAX_PREFETCH
    ]
    whole = TimeSpan(first, max(span.end for span in questions))
    terms = whole, time_requests[0].ignore_all_day
    answers = resolve(_fetch_busy_by_terms, [(resource_id, *terms) for resource_id in resource_ids])
    return {
        resource_id: inside
        for (resource_id, *_), spans in answers.items()
        if (inside := _inside(questions, spans))
    }


def _inside(requested: Sequence[TimeSpan], spans: Sequence[TimeSpan]) -> list[TimeSpan]:
    return [
        TimeSpan(max(start, span.start), min(end, span.end))
        for start, end in spans
        for span in requested
        if start < span.end and end > span.start
    ]


def _fetch_busy_by_terms(questions: Collection[Question]) -> Mapping[Question, Sequence[TimeSpan]]:
    """Return the live busy times for each question; one call per span for all its resources."""
    by_terms: dict[tuple[TimeSpan, bool], list[uuid.UUID]] = {}
    for resource_id, span, ignore_all_day in questions:
        by_terms.setdefault((span, ignore_all_day), []).append(resource_id)
    answers: dict[Question, Sequence[TimeSpan]] = {}
    for (span, ignore_all_day), resource_ids in by_terms.items():
        busy_times = fetch_live_busy(resource_ids, span, ignore_all_day=ignore_all_day)
        answers |= {
            (resource_id, span, ignore_all_day): busy_times.get(resource_id, ())
            for resource_id in resource_ids
        }
    return answers
