"""Calendars on CalDAV servers (RFC 4791)."""

import hashlib
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from common.net.safe_http import FetchResult
from external_calendars.event_formats import ical
from external_calendars.event_formats.base import EventFormat
from external_calendars.providers import webdav_xml
from external_calendars.providers.base import (
    CalendarAccess,
    ChangeSet,
    DiscoveredCalendar,
    PreconditionFailed,
    ProviderError,
    RemoteObject,
    StoredObjects,
    compare_etags,
)
from external_calendars.providers.caldav_collection_reader import (
    BATCH_BYTES,
    CalDavCollection,
    etag_at,
)
from external_calendars.providers.caldav_discovery import find_calendar
from external_calendars.providers.http_session import HttpSession, provider_error
from external_calendars.providers.urls import (
    full_address,
    normal_etag,
    object_url,
    to_collection_url,
    url_path,
)

BATCH = 100  # objects per request
MARGIN = timedelta(days=1)
STILL_THERE = "The server confirmed the removal, but the event still exists."
TEXT_TYPE = {"Content-Type": "text/calendar; charset=utf-8"}
PLAIN_UID = re.compile(r"[A-Za-z0-9_@-][A-Za-z0-9_.@-]{0,199}")


class CalDav:
    """The calendar is a collection; hrefs are paths.

    A sync works in one of three ways, `way` in the mark: `sync` (RFC 6578, a token), `ctag` (a tag
    of the whole collection; all etags if it has changed), or `etags` (all etags each time).
    """

    name = "caldav"
    label = "CalDAV"
    can_write = True
    event_format: EventFormat = ical

    def find_calendar(self, access: CalendarAccess, *, deadline: float) -> DiscoveredCalendar:
        whole = access._replace(address=full_address(access.address))
        return find_calendar(HttpSession(whole, deadline))

    def list_changes(
        self,
        access: CalendarAccess,
        mark: Mapping[str, Any],
        stored: StoredObjects,
        *,
        deadline: float,
    ) -> ChangeSet:
        collection, way = CalDavCollection(access, deadline), mark.get("way")
        if way == "etags":
            return compare_etags(collection.etags(), stored.etags(), mark)
        change_set = collection.synced(mark["token"]) if way == "sync" else None
        if change_set is not None:
            return change_set
        has_sync, ctag = collection.ways()
        if way == "ctag" and ctag == mark["ctag"]:
            return ChangeSet({}, [], False, mark)
        change_set = collection.synced("") if has_sync else None
        if change_set is not None:
            return change_set
        new_mark = {"way": "ctag", "ctag": ctag} if ctag else {"way": "etags"}
        seen = collection.etags()
        return (
            compare_etags(seen, stored.etags(), new_mark)
            if mark
            else ChangeSet(seen, [], True, new_mark)
        )

    def fetch(
        self, access: CalendarAccess, hrefs: Sequence[str], *, deadline: float
    ) -> Iterator[Sequence[RemoteObject]]:
        """Yield objects; one that is too large has the text "" and the etag ""."""
        waiting = [hrefs[at : at + BATCH] for at in range(0, len(hrefs), BATCH)][::-1]
        while waiting:
            batch = waiting.pop()
            try:
                found = CalDavCollection(access, deadline).objects(
                    webdav_xml.calendar_multiget(batch)
                )
            except ProviderError as provider_error:
                if provider_error.code != "too_large":
                    raise
                if len(batch) > 1:
                    middle = len(batch) // 2
                    waiting += [batch[middle:], batch[:middle]]
                    continue
                found = [RemoteObject(batch[0], "", "")]
            yield [remote_object for remote_object in found if remote_object.href in batch]

    def read_object(
        self, access: CalendarAccess, href: str, *, deadline: float
    ) -> RemoteObject | None:
        visit = HttpSession(access, deadline)
        answer = visit.ask("GET", object_url(access.address, href), most_bytes=BATCH_BYTES)
        if answer.status in (404, 410):
            return None
        if answer.status != 200:
            raise provider_error(answer)
        text = answer.body.decode("utf-8-sig", errors="replace").replace("\0", "")
        if "BEGIN:VCALENDAR" not in text.upper():
            raise ProviderError("bad_answer", status=200)
        return RemoteObject(href, normal_etag(answer.headers.get("ETag", "")), text)

    def put(
        self, access: CalendarAccess, href: str, text: str, etag: str, *, deadline: float
    ) -> RemoteObject:
        """Write an object. Raises PreconditionFailed also for a taken UID (RFC 4791 5.3.2.1)."""
        visit, url = HttpSession(access, deadline), object_url(access.address, href)
        known = {"If-Match": etag} if etag else {"If-None-Match": "*"}
        answer = visit.ask("PUT", url, headers={**TEXT_TYPE, **known}, body=text.encode())
        if answer.status not in (200, 201, 204):
            raise write_refusal(answer)
        new_etag = normal_etag(answer.headers.get("ETag", "")) or etag_at(visit, url)
        return RemoteObject(href, new_etag, "")

    def delete(self, access: CalendarAccess, href: str, etag: str, *, deadline: float) -> None:
        visit = HttpSession(access, deadline)
        known = {"If-Match": etag} if etag else {}
        answer = visit.ask("DELETE", object_url(access.address, href), headers=known)
        if answer.status not in (200, 202, 204, 404, 410):
            raise write_refusal(answer)
        # 200 may also come from a gateway in front of the server that has deleted nothing.
        if answer.status in (200, 202) and not webdav_xml.is_multistatus(answer.body):
            left = visit.ends - time.monotonic()
            if self.read_object(access, href, deadline=left) is not None:
                raise ProviderError("bad_answer", detail=STILL_THERE, status=answer.status)

    def objects_between(
        self, access: CalendarAccess, start: datetime, end: datetime, *, deadline: float
    ) -> Sequence[RemoteObject]:
        """Return objects in the range and a day around it: servers read dates in other zones."""
        query = webdav_xml.calendar_query(start - MARGIN, end + MARGIN)
        return CalDavCollection(access, deadline).objects(query)

    def new_uid(self, uid: str) -> str:
        return uid

    def locate(self, access: CalendarAccess, uid: str, *, deadline: float) -> str:
        """Return a path with the UID, or with its hash if a server may refuse the UID in a path."""
        plain = PLAIN_UID.fullmatch(uid)
        name = uid if plain else hashlib.sha256(uid.encode(errors="replace")).hexdigest()
        return url_path(object_url(to_collection_url(access.address), f"{name}.ics"))


# The UID has another object: RFC 4791, 5.3.2.1; of an event with attendees, RFC 6638, 3.2.4.1.
UID_CONFLICTS = frozenset({"no-uid-conflict", "unique-scheduling-object-resource"})


def write_refusal(answer: FetchResult) -> Exception:
    """Return the exception for a refused write.

    Servers use the same statuses for a changed object and for an invalid text: the failed
    precondition tells them apart.
    """
    condition = webdav_xml.failed_condition(answer.body)
    if condition in UID_CONFLICTS or (answer.status == 412 and not condition):
        return PreconditionFailed()
    if answer.status == 403 and condition not in ("", "need-privileges"):
        return provider_error(answer, denied="server_error")
    return provider_error(answer, denied="no_write_access")
