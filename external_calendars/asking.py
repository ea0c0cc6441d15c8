"""The last question before a booking: what stands in a connected calendar right now?

Asked are calendars that could answer a moment ago, all at once, within three seconds in all. What
does not come in time is not known: the booking goes on by what the last look saw. Feeds are not
asked: they are fetched whole, and their servers publish late anyway.
"""

import logging
import time
import uuid
from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import NamedTuple

from django.utils import timezone

from availability.models import Event
from availability.outside import asks_outside
from availability.reading import Span, to_datetime
from external_calendars.access import access_of
from external_calendars.claims import LOOK
from external_calendars.models import Connection, WrittenEvent
from external_calendars.providers import PROVIDERS
from external_calendars.providers.base import NOT_ASKED, Access, Provider, Trouble
from external_calendars.reading import Unreadable, read_occurrences
from notifications.waking import ask_after_commit

logger = logging.getLogger(__name__)

SECONDS = 3.0
MOST_AT_ONCE = 16
# One that did not answer is left alone for so long, by this process: a request that makes a hundred
# bookings must not wait a hundred times.
PAUSE = 30.0
_silent_until: dict[uuid.UUID, float] = {}  # calendar -> on the monotonic clock


class Asked(NamedTuple):
    """One calendar with all that the question needs, so that its thread needs no database."""

    calendar_id: uuid.UUID
    resource_id: uuid.UUID
    provider: Provider
    access: Access
    zone: str
    address: str


class Busy(NamedTuple):
    """A stretch that takes the time of a resource, as one calendar says."""

    calendar_id: uuid.UUID
    resource_id: uuid.UUID
    uid: str
    span: Span


@asks_outside
def ask_calendars(
    resource_ids: Collection[uuid.UUID], span: Span, *, ignore_all_day: bool = False
) -> dict[uuid.UUID, list[Span]]:
    """By resource what its connected calendars have in `span`, but for what we wrote there.

    Four queries at most. A calendar that has something of which nothing was known here is looked
    at soon.
    """
    found = _without_own(_ask_all(list(_askable(resource_ids)), span, ignore_all_day))
    _look_soon(found, span)
    answers: dict[uuid.UUID, list[Span]] = {}
    for busy in found:
        answers.setdefault(busy.resource_id, []).append(busy.span)
    return answers


def _askable(resource_ids: Collection[uuid.UUID]) -> Iterable[Asked]:
    now = time.monotonic()
    connections = Connection.objects.filter(
        calendar__resource__in=resource_ids,
        calendar__deleted_at=None,
        calendar__provider__in=[name for name, one in PROVIDERS.items() if one.can_write],
    ).exclude(problem__in=NOT_ASKED)
    for connection in connections.select_related("calendar__resource"):
        calendar, resource = connection.calendar, connection.calendar.resource
        if _silent_until.get(calendar.id, now) > now:
            continue
        try:
            access = access_of(connection)
        except Trouble:
            continue  # the next look says so where it is seen
        yield Asked(
            calendar.id,
            resource.id,
            PROVIDERS[calendar.provider],
            access,
            resource.timezone,
            resource.email or "",
        )


def _ask_all(asked: Sequence[Asked], span: Span, ignore_all_day: bool) -> list[Busy]:
    """What those say that answer in time; a thread that hangs is left to its own end."""
    if not asked:
        return []
    ends = time.monotonic() + SECONDS
    threads = ThreadPoolExecutor(min(len(asked), MOST_AT_ONCE), "ask-calendars")
    questions = {threads.submit(_ask, one, span, ignore_all_day, ends): one for one in asked}
    wait(questions, SECONDS)
    threads.shutdown(wait=False, cancel_futures=True)
    found: list[Busy] = []
    for question, one in questions.items():
        answer = _answer_of(question, one)
        if answer is None:
            _leave_alone(one.calendar_id)
        else:
            found += answer
    return found


def _ask(asked: Asked, span: Span, ignore_all_day: bool, ends: float) -> list[Busy]:
    """One calendar's answer. Raises Trouble, Unreadable."""
    window = to_datetime(span.start), to_datetime(span.end)
    objects = asked.provider.objects_between(
        asked.access, *window, deadline=max(0.0, ends - time.monotonic())
    )
    return [
        Busy(
            asked.calendar_id,
            asked.resource_id,
            occurrence.uid,
            Span(int(occurrence.start.timestamp()), int(occurrence.end.timestamp())),
        )
        for one in objects
        for occurrence in read_occurrences(
            one.text, zone=asked.zone, window=window, address=asked.address
        )
        if occurrence.busy and not (ignore_all_day and occurrence.all_day)
    ]


def _answer_of(question: "Future[list[Busy]]", asked: Asked) -> list[Busy] | None:
    """None where there is none."""
    if not question.done() or question.cancelled():
        logger.info("calendar %s did not answer in time", asked.calendar_id)
        return None
    try:
        return question.result()
    except (Trouble, Unreadable) as error:
        logger.info("calendar %s could not be asked: %s", asked.calendar_id, error)
    except Exception:
        logger.exception("calendar %s could not be asked", asked.calendar_id)
    return None


def _leave_alone(calendar_id: uuid.UUID) -> None:
    now = time.monotonic()
    for known, until in list(_silent_until.items()):
        if until <= now:
            _silent_until.pop(known, None)
    _silent_until[calendar_id] = now + PAUSE


def _without_own(found: Sequence[Busy]) -> list[Busy]:
    """Not what we wrote there: those bookings are known here. The copy of one that is cancelled may
    stand there for a little longer."""
    if not found:
        return []
    own = set(
        WrittenEvent.objects.filter(
            calendar__in={busy.calendar_id for busy in found}, uid__in={busy.uid for busy in found}
        ).values_list("calendar_id", "uid")
    )
    return [busy for busy in found if (busy.calendar_id, busy.uid) not in own]


def _look_soon(found: Sequence[Busy], span: Span) -> None:
    """Have the calendars looked at that know more than we do; one that is looked at just now, or
    waits for a person, is left as it is."""
    if not found:
        return
    events = Event.objects.filter(
        calendar__in={busy.calendar_id for busy in found}, busy=True
    ).overlapping(to_datetime(span.start), to_datetime(span.end))
    known = set(events.values_list("calendar_id", "provider_id"))
    news = {busy.calendar_id for busy in found if (busy.calendar_id, busy.uid) not in known}
    if news:
        now = timezone.now()
        Connection.objects.filter(calendar__in=news, lease_token=None, next_at__gt=now).update(
            next_at=now
        )
        ask_after_commit(LOOK)
