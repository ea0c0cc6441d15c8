"""Calendars that are published as one iCalendar text at an address: read-only feeds."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from external_calendars.providers.base import Access, Found, Look, Object, Trouble, differing
from external_calendars.providers.paths import full_address
from external_calendars.providers.splitting import (
    Entry,
    NotWhole,
    Swollen,
    calendar_name,
    split_feed,
)
from external_calendars.providers.visit import Visit, refusal
from notifications.safe_http import Fetched

ACCEPTED = {"Accept": "text/calendar, */*;q=0.1"}
HEADER_LENGTH = 500  # of an ETag or a date that is worth being kept
READ_ONLY = "A feed can only be read."


class Feed:
    """Its hrefs are the UIDs of its events; an etag is a hash of what is said under one UID.

    The whole feed comes with each answer, but a look at one that has not changed (ETag,
    Last-Modified) is answered without it. A redirect is followed each time anew, because it often
    leads to an address for this once; a password goes with it only where Visit lets it.
    """

    name = "ics"
    label = "iCalendar feed"
    can_write = False

    def find(self, access: Access, *, deadline: float) -> Found:
        access = access._replace(address=full_address(access.address))
        answer = whole_feed(access, {}, deadline)
        try:
            entries_of(answer)
        except Trouble as trouble:
            code = "not_a_calendar" if trouble.code == "bad_answer" else trouble.code
            raise Trouble(code, status=answer.status) from None
        return Found(access.address, calendar_name(answer.body), may_write=False, invites=False)

    def look(
        self,
        access: Access,
        mark: Mapping[str, Any],
        known: Callable[[], Mapping[str, str]],
        *,
        deadline: float,
    ) -> Look:
        answer = whole_feed(access, mark, deadline)
        if answer.status == 304:
            return Look({}, [], False, mark)
        entries = {entry.href: entry for entry in entries_of(answer)}
        seen = {href: entry.etag for href, entry in entries.items()}
        # Never empty, so that {} means "the first look" here too.
        new_mark = {"way": "feed", **kept_headers(answer)}
        look = differing(seen, known(), new_mark) if mark else Look(seen, [], True, new_mark)
        return look._replace(texts={href: entries[href].text for href in look.changed})

    def fetch(
        self, access: Access, hrefs: Sequence[str], *, deadline: float
    ) -> Iterator[Sequence[Object]]:
        wanted = set(hrefs)
        entries = entries_of(whole_feed(access, {}, deadline))
        yield [entry.as_object() for entry in entries if entry.href in wanted]

    def read(self, access: Access, href: str, *, deadline: float) -> Object | None:
        found = [one for batch in self.fetch(access, [href], deadline=deadline) for one in batch]
        return found[0] if found else None

    def put(self, access: Access, href: str, text: str, etag: str, *, deadline: float) -> str:
        raise Trouble("no_write_access", detail=READ_ONLY)

    def delete(self, access: Access, href: str, etag: str, *, deadline: float) -> None:
        raise Trouble("no_write_access", detail=READ_ONLY)

    def objects_between(
        self, access: Access, start: datetime, end: datetime, *, deadline: float
    ) -> Sequence[Object]:
        """Those too whose dates do not tell plainly that they lie elsewhere."""
        entries = entries_of(whole_feed(access, {}, deadline))
        return [entry.as_object() for entry in entries if entry.may_touch(start, end)]

    def new_href(self, access: Access, uid: str) -> str:
        raise Trouble("no_write_access", detail=READ_ONLY)


def whole_feed(access: Access, mark: Mapping[str, Any], deadline: float) -> Fetched:
    """The answer with the feed, or a 304 where the mark allows it. Raises Trouble."""
    known = {"If-None-Match": mark.get("etag"), "If-Modified-Since": mark.get("modified")}
    headers = ACCEPTED | {name: value for name, value in known.items() if value}
    _, answer = Visit(access, deadline).follow("GET", access.address, headers=headers)
    is_same = answer.status == 304 and len(headers) > len(ACCEPTED)
    if answer.status != 200 and not is_same:
        raise refusal(answer)
    return answer


def entries_of(answer: Fetched) -> list[Entry]:
    """Raises Trouble: what is no feed now was one when it was connected, and may be again."""
    try:
        return split_feed(answer.body)
    except NotWhole as problem:
        raise Trouble("bad_answer", detail=str(problem), status=answer.status) from None
    except Swollen:
        raise Trouble("too_large", status=answer.status) from None


def kept_headers(answer: Fetched) -> dict[str, str]:
    """What is sent back to ask only for something new; an ETag as it came, also a weak one."""
    told = {"etag": answer.headers.get("ETag"), "modified": answer.headers.get("Last-Modified")}
    return {
        name: text
        for name, text in told.items()
        if text and text.isascii() and text.isprintable() and len(text) <= HEADER_LENGTH
    }
