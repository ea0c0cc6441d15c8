"""Read-only iCalendar feeds: one text at a URL."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from common.net.safe_http import FetchResult
from external_calendars.event_formats import ical
from external_calendars.event_formats.base import EventFormat
from external_calendars.providers.base import (
    CalendarAccess,
    ChangeSet,
    DiscoveredCalendar,
    ProviderError,
    RemoteObject,
    StoredObjects,
    compare_etags,
)
from external_calendars.providers.http_session import HttpSession, provider_error
from external_calendars.providers.ics_splitter import (
    FeedEntry,
    FeedTooLarge,
    FeedTruncated,
    calendar_name,
    split_feed,
)
from external_calendars.providers.urls import full_address

ACCEPTED = {"Accept": "text/calendar, */*;q=0.1"}
HEADER_LENGTH = 500  # maximum length of an ETag or a date that is stored
READ_ONLY = "A feed can only be read."


class IcsFeed:
    """Hrefs are the events' UIDs; an etag is a hash of all that is said under one UID.

    Each answer has the whole feed, unless it is unchanged (ETag, Last-Modified). Redirects are
    followed anew each time, because many lead to one-time URLs; HttpSession decides which get the
    password.
    """

    name = "ics"
    label = "iCalendar feed"
    can_write = False
    event_format: EventFormat = ical

    def find_calendar(self, access: CalendarAccess, *, deadline: float) -> DiscoveredCalendar:
        access = access._replace(address=full_address(access.address))
        answer = fetch_feed(access, {}, deadline)
        try:
            split_answer(answer)
        except ProviderError as provider_error:
            code = "not_a_calendar" if provider_error.code == "bad_answer" else provider_error.code
            raise ProviderError(code, status=answer.status) from None
        return DiscoveredCalendar(
            access.address, calendar_name(answer.body), may_write=False, invites=False
        )

    def list_changes(
        self,
        access: CalendarAccess,
        mark: Mapping[str, Any],
        stored: StoredObjects,
        *,
        deadline: float,
    ) -> ChangeSet:
        answer = fetch_feed(access, mark, deadline)
        if answer.status == 304:
            return ChangeSet({}, [], False, mark)
        entries = {entry.href: entry for entry in split_answer(answer)}
        seen = {href: entry.etag for href, entry in entries.items()}
        # Never empty, so that {} means "first sync" here too.
        new_mark = {"way": "feed", **cache_validators(answer)}
        change_set = (
            compare_etags(seen, stored.etags(), new_mark)
            if mark
            else ChangeSet(seen, [], True, new_mark)
        )
        return change_set._replace(texts={href: entries[href].text for href in change_set.changed})

    def fetch(
        self, access: CalendarAccess, hrefs: Sequence[str], *, deadline: float
    ) -> Iterator[Sequence[RemoteObject]]:
        wanted = set(hrefs)
        entries = split_answer(fetch_feed(access, {}, deadline))
        yield [entry.as_object() for entry in entries if entry.href in wanted]

    def read_object(
        self, access: CalendarAccess, href: str, *, deadline: float
    ) -> RemoteObject | None:
        found = [
            entry for batch in self.fetch(access, [href], deadline=deadline) for entry in batch
        ]
        return found[0] if found else None

    def put(
        self, access: CalendarAccess, href: str, text: str, etag: str, *, deadline: float
    ) -> RemoteObject:
        raise ProviderError("no_write_access", detail=READ_ONLY)

    def delete(self, access: CalendarAccess, href: str, etag: str, *, deadline: float) -> None:
        raise ProviderError("no_write_access", detail=READ_ONLY)

    def objects_between(
        self, access: CalendarAccess, start: datetime, end: datetime, *, deadline: float
    ) -> Sequence[RemoteObject]:
        """Return all entries except those whose dates are clearly outside the range."""
        entries = split_answer(fetch_feed(access, {}, deadline))
        return [entry.as_object() for entry in entries if entry.may_touch(start, end)]

    def new_uid(self, uid: str) -> str:
        return uid

    def locate(self, access: CalendarAccess, uid: str, *, deadline: float) -> str:
        raise ProviderError("no_write_access", detail=READ_ONLY)


def fetch_feed(access: CalendarAccess, mark: Mapping[str, Any], deadline: float) -> FetchResult:
    """Return the answer with the feed, or a 304 if the mark is current. Raises ProviderError."""
    known = {"If-None-Match": mark.get("etag"), "If-Modified-Since": mark.get("modified")}
    headers = ACCEPTED | {name: value for name, value in known.items() if value}
    _, answer = HttpSession(access, deadline).follow("GET", access.address, headers=headers)
    is_same = answer.status == 304 and len(headers) > len(ACCEPTED)
    if answer.status != 200 and not is_same:
        raise provider_error(answer)
    return answer


def split_answer(answer: FetchResult) -> list[FeedEntry]:
    """Return the feed's entries. Raises ProviderError (bad_answer), which may be temporary."""
    try:
        return split_feed(answer.body)
    except FeedTruncated as problem:
        raise ProviderError("bad_answer", detail=str(problem), status=answer.status) from None
    except FeedTooLarge:
        raise ProviderError("too_large", status=answer.status) from None


def cache_validators(answer: FetchResult) -> dict[str, str]:
    """Return the validators for a conditional request, with ETags unchanged, also weak ones."""
    validators = {
        "etag": answer.headers.get("ETag"),
        "modified": answer.headers.get("Last-Modified"),
    }
    return {
        name: text
        for name, text in validators.items()
        if text and text.isascii() and text.isprintable() and len(text) <= HEADER_LENGTH
    }
