"""Live free/busy check of connected calendars, just before a booking is made.

All calendars that were recently reachable are queried at once, for three seconds in total; those
of an account at Google or Microsoft one after another, and by one check at a time, because these
limit the requests of an account. If a calendar does not answer in time, the last sync counts. Feeds
are not queried: they are fetched whole, and their servers publish late anyway.
"""

import logging
import time
import uuid
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from datetime import timedelta
from typing import NamedTuple

from django.db.models import Q

from availability.models import Event
from availability.search.live_freebusy import freebusy_sources
from availability.search.queries import TimeSpan
from common.db.sql import database_now
from common.db.updated_at import TransactionStart
from common.ical.occurrences import UnreadableCalendar
from common.time.instants import to_datetime
from external_calendars.credentials import credentials_of
from external_calendars.models import Connection, Grant, WrittenEvent
from external_calendars.providers import PROVIDERS
from external_calendars.providers.base import NOT_ASKED, CalendarAccess, Provider, ProviderError
from external_calendars.sync.leases import SYNC_WAKEUP
from notifications.outbox.wakeup import wake_up_after_commit

logger = logging.getLogger(__name__)

SECONDS = 3.0
MAX_CONCURRENT = 16
# A calendar that did not answer is skipped for this many seconds, by this process: a request that
# makes a hundred bookings must not wait a hundred times.
PAUSE = 30.0
# Of one check of an account, longer than it takes; and until the next try to get it.
CHECK_LEASE, CHECK_PAUSE = timedelta(seconds=SECONDS + 2), 0.05
_silent_until: dict[uuid.UUID, float] = {}  # calendar id -> monotonic time


class FreebusyRequest(NamedTuple):
    """A query of one calendar with all it needs, so that its thread needs no database."""

    calendar_id: uuid.UUID
    resource_id: uuid.UUID
    grant_id: uuid.UUID | None
    provider: Provider
    access: CalendarAccess
    zone: str
    address: str


class CalendarBusy(NamedTuple):
    """A busy time span of a resource in one calendar."""

    calendar_id: uuid.UUID
    resource_id: uuid.UUID
    uid: str
    span: TimeSpan


@freebusy_sources.register
def fetch_calendar_busy(
    resource_ids: Collection[uuid.UUID], span: TimeSpan, *, ignore_all_day: bool = False
) -> dict[uuid.UUID, list[TimeSpan]]:
    """Return resource id -> busy spans in its connected calendars within `span`.

    Mirrored events are left out. At most four queries, and at least three more for each account. A
    calendar with an unknown event is synced soon.
    """
    busy_times = _without_own(
        _query_calendars(list(_freebusy_requests(resource_ids)), span, ignore_all_day)
    )
    _request_sync_of_new_events(busy_times, span)
    answers: dict[uuid.UUID, list[TimeSpan]] = {}
    for busy in busy_times:
        answers.setdefault(busy.resource_id, []).append(busy.span)
    return answers


def _freebusy_requests(resource_ids: Collection[uuid.UUID]) -> Iterable[FreebusyRequest]:
    now = time.monotonic()
    connections = Connection.objects.filter(
        calendar__resource__in=resource_ids,
        calendar__deleted_at=None,
        calendar__provider__in=[name for name, provider in PROVIDERS.items() if provider.can_write],
    ).exclude(problem__in=NOT_ASKED)
    for connection in connections.select_related("calendar__resource", "grant"):
        calendar, resource = connection.calendar, connection.calendar.resource
        if _silent_until.get(calendar.id, now) > now:
            continue
        try:
            access = credentials_of(connection)
        except ProviderError:
            continue  # the next sync records the problem
        yield FreebusyRequest(
            calendar.id,
            resource.id,
            connection.grant_id,
            PROVIDERS[calendar.provider],
            access,
            resource.timezone,
            resource.email or "",
        )


def _query_calendars(
    requests: Sequence[FreebusyRequest], span: TimeSpan, ignore_all_day: bool
) -> list[CalendarBusy]:
    """Return the busy times of the calendars that answer in time; abandon threads that hang."""
    if not requests:
        return []
    ends = time.monotonic() + SECONDS
    threads = ThreadPoolExecutor(min(len(requests), MAX_CONCURRENT), "ask-calendars")
    questions = {
        threads.submit(_query_account, account, span, ignore_all_day, ends): account
        for account in _accounts(requests, ends)
    }
    wait(questions, max(0.0, ends - time.monotonic()))
    threads.shutdown(wait=False, cancel_futures=True)
    busy_times: list[CalendarBusy] = []
    for question, account in questions.items():
        answers = _answers_of(question, account)
        for request, answer in zip(account, answers, strict=True):
            if answer is None:
                _pause_calendar(request.calendar_id)
            else:
                busy_times += answer
        if question.done():
            _end_check(account[0].grant_id)
    return busy_times


def _accounts(
    requests: Sequence[FreebusyRequest], ends: float
) -> Iterator[Sequence[FreebusyRequest]]:
    """Yield the calendars of one account together, as soon as no other check asks the account.

    Calendars that are reached with a password are yielded one by one. Ends in time, without the
    accounts that others ask until then.
    """
    accounts: dict[uuid.UUID, list[FreebusyRequest]] = {}
    for request in requests:
        if request.grant_id is None:
            yield [request]
        else:
            accounts.setdefault(request.grant_id, []).append(request)
    while accounts:
        for grant_id in list(accounts):
            if _begin_check(grant_id):
                yield accounts.pop(grant_id)
        if accounts and time.monotonic() > ends - CHECK_PAUSE:
            logger.info("%s accounts were being asked by other checks", len(accounts))
            return
        if accounts:
            time.sleep(CHECK_PAUSE)


def _begin_check(grant_id: uuid.UUID) -> bool:
    """Take the lease of a check of the account; return whether nobody else has it."""
    now = database_now()
    free = Grant.objects.filter(Q(checked_until=None) | Q(checked_until__lte=now), pk=grant_id)
    return bool(free.update(checked_until=now + CHECK_LEASE))


def _end_check(grant_id: uuid.UUID | None) -> None:
    if grant_id is not None:
        Grant.objects.filter(pk=grant_id).update(checked_until=None)


def _query_account(
    account: Sequence[FreebusyRequest], span: TimeSpan, ignore_all_day: bool, ends: float
) -> list[list[CalendarBusy] | None]:
    """Query calendars one after another; None for those that could not be queried."""
    return [_answer_of(request, span, ignore_all_day, ends) for request in account]


def _answer_of(
    request: FreebusyRequest, span: TimeSpan, ignore_all_day: bool, ends: float
) -> list[CalendarBusy] | None:
    try:
        return _query_calendar(request, span, ignore_all_day, ends)
    except (ProviderError, UnreadableCalendar) as error:
        logger.info("calendar %s could not be asked: %s", request.calendar_id, error)
    except Exception:
        logger.exception("calendar %s could not be asked", request.calendar_id)
    return None


def _query_calendar(
    request: FreebusyRequest, span: TimeSpan, ignore_all_day: bool, ends: float
) -> list[CalendarBusy]:
    """Query one calendar. Raises ProviderError, UnreadableCalendar."""
    window = to_datetime(span.start), to_datetime(span.end)
    objects = request.provider.objects_between(
        request.access, *window, deadline=max(0.0, ends - time.monotonic())
    )
    return [
        CalendarBusy(
            request.calendar_id,
            request.resource_id,
            occurrence.uid,
            TimeSpan(int(occurrence.start.timestamp()), int(occurrence.end.timestamp())),
        )
        for remote_object in objects
        for occurrence in request.provider.event_format.read_object(
            remote_object.text, zone=request.zone, window=window, address=request.address
        ).occurrences
        if occurrence.busy and not (ignore_all_day and occurrence.all_day)
    ]


def _answers_of(
    question: "Future[list[list[CalendarBusy] | None]]", account: Sequence[FreebusyRequest]
) -> list[list[CalendarBusy] | None]:
    if question.done() and not question.cancelled():
        return question.result()
    for request in account:
        logger.info("calendar %s did not answer in time", request.calendar_id)
    return [None] * len(account)


def _pause_calendar(calendar_id: uuid.UUID) -> None:
    now = time.monotonic()
    for other_calendar_id, until in list(_silent_until.items()):
        if until <= now:
            _silent_until.pop(other_calendar_id, None)
    _silent_until[calendar_id] = now + PAUSE


def _without_own(busy_times: Sequence[CalendarBusy]) -> list[CalendarBusy]:
    """Leave out mirrored events: their bookings are known here.

    The mirrored event of a cancelled booking may exist for a little longer.
    """
    if not busy_times:
        return []
    own = set(
        WrittenEvent.objects.filter(
            calendar__in={busy.calendar_id for busy in busy_times},
            uid__in={busy.uid for busy in busy_times},
        ).values_list("calendar_id", "uid")
    )
    return [busy for busy in busy_times if (busy.calendar_id, busy.uid) not in own]


def _request_sync_of_new_events(live_busy: Sequence[CalendarBusy], span: TimeSpan) -> None:
    """Make calendars with unknown events due, except those being synced or stopped by a problem."""
    if not live_busy:
        return
    events = Event.objects.filter(
        calendar__in={busy.calendar_id for busy in live_busy}, busy=True
    ).overlapping(to_datetime(span.start), to_datetime(span.end))
    known = set(events.values_list("calendar_id", "provider_id"))
    news = {busy.calendar_id for busy in live_busy if (busy.calendar_id, busy.uid) not in known}
    if news:
        # The database's clock, without a query.
        now = TransactionStart()
        Connection.objects.filter(calendar__in=news, lease_token=None, next_at__gt=now).update(
            next_at=now
        )
        wake_up_after_commit(SYNC_WAKEUP)
