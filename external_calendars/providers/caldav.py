"""Calendars on servers that speak CalDAV (RFC 4791)."""

import hashlib
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from external_calendars.providers import dav
from external_calendars.providers.base import (
    Access,
    Changed,
    Found,
    Look,
    Object,
    Trouble,
    differing,
)
from external_calendars.providers.collection import BATCH_BYTES, Collection, etag_at
from external_calendars.providers.discovery import find_calendar
from external_calendars.providers.paths import (
    as_collection,
    full_address,
    normal_etag,
    object_url,
    path_of,
)
from external_calendars.providers.visit import Visit, refusal
from notifications.safe_http import Fetched

BATCH = 100  # objects asked for at once
MARGIN = timedelta(days=1)
STILL_THERE = "The server said that it is removed, and it still is there."
TEXT_TYPE = {"Content-Type": "text/calendar; charset=utf-8"}
PLAIN_UID = re.compile(r"[A-Za-z0-9_@-][A-Za-z0-9_.@-]{0,199}")


class CalDav:
    """The calendar is a collection, its hrefs are paths.

    A look goes one of three ways, which its mark names: `sync` (RFC 6578, a token), `ctag` (a tag
    of the whole collection, and the etags of all objects where it changed), or `etags` (those each
    time).
    """

    name = "caldav"
    label = "CalDAV"
    can_write = True

    def find(self, access: Access, *, deadline: float) -> Found:
        whole = access._replace(address=full_address(access.address))
        return find_calendar(Visit(whole, deadline))

    def look(
        self,
        access: Access,
        mark: Mapping[str, Any],
        known: Callable[[], Mapping[str, str]],
        *,
        deadline: float,
    ) -> Look:
        collection, way = Collection(access, deadline), mark.get("way")
        if way == "etags":
            return differing(collection.etags(), known(), mark)
        look = collection.synced(mark["token"]) if way == "sync" else None
        if look is not None:
            return look
        has_sync, ctag = collection.ways()
        if way == "ctag" and ctag == mark["ctag"]:
            return Look({}, [], False, mark)
        look = collection.synced("") if has_sync else None
        if look is not None:
            return look
        new_mark = {"way": "ctag", "ctag": ctag} if ctag else {"way": "etags"}
        seen = collection.etags()
        return differing(seen, known(), new_mark) if mark else Look(seen, [], True, new_mark)

    def fetch(
        self, access: Access, hrefs: Sequence[str], *, deadline: float
    ) -> Iterator[Sequence[Object]]:
        """An object too large to be read comes with the text "", and without an etag."""
        waiting = [hrefs[at : at + BATCH] for at in range(0, len(hrefs), BATCH)][::-1]
        while waiting:
            batch = waiting.pop()
            try:
                found = Collection(access, deadline).objects(dav.calendar_multiget(batch))
            except Trouble as trouble:
                if trouble.code != "too_large":
                    raise
                if len(batch) > 1:
                    middle = len(batch) // 2
                    waiting += [batch[middle:], batch[:middle]]
                    continue
                found = [Object(batch[0], "", "")]
            yield [one for one in found if one.href in batch]

    def read(self, access: Access, href: str, *, deadline: float) -> Object | None:
        visit = Visit(access, deadline)
        answer = visit.ask("GET", object_url(access.address, href), most_bytes=BATCH_BYTES)
        if answer.status in (404, 410):
            return None
        if answer.status != 200:
            raise refusal(answer)
        text = answer.body.decode("utf-8-sig", errors="replace").replace("\0", "")
        if "BEGIN:VCALENDAR" not in text.upper():
            raise Trouble("bad_answer", status=200)
        return Object(href, normal_etag(answer.headers.get("ETag", "")), text)

    def put(self, access: Access, href: str, text: str, etag: str, *, deadline: float) -> str:
        """Changed also where another object has this UID already (RFC 4791 5.3.2.1)."""
        visit, url = Visit(access, deadline), object_url(access.address, href)
        known = {"If-Match": etag} if etag else {"If-None-Match": "*"}
        answer = visit.ask("PUT", url, headers={**TEXT_TYPE, **known}, body=text.encode())
        if answer.status not in (200, 201, 204):
            raise write_refusal(answer)
        return normal_etag(answer.headers.get("ETag", "")) or etag_at(visit, url)

    def delete(self, access: Access, href: str, etag: str, *, deadline: float) -> None:
        visit = Visit(access, deadline)
        known = {"If-Match": etag} if etag else {}
        answer = visit.ask("DELETE", object_url(access.address, href), headers=known)
        if answer.status not in (200, 202, 204, 404, 410):
            raise write_refusal(answer)
        # 200 may also be the page of a gateway before the server, which has done nothing.
        if answer.status in (200, 202) and not dav.is_multistatus(answer.body):
            left = visit.ends - time.monotonic()
            if self.read(access, href, deadline=left) is not None:
                raise Trouble("bad_answer", detail=STILL_THERE, status=answer.status)

    def objects_between(
        self, access: Access, start: datetime, end: datetime, *, deadline: float
    ) -> Sequence[Object]:
        """And what lies within a day of it: a server takes dates and floating times for those of
        another zone than their owner's."""
        query = dav.calendar_query(start - MARGIN, end + MARGIN)
        return Collection(access, deadline).objects(query)

    def new_href(self, access: Access, uid: str) -> str:
        """Of a UID that some server may not take in a path, its hash."""
        plain = PLAIN_UID.fullmatch(uid)
        name = uid if plain else hashlib.sha256(uid.encode(errors="replace")).hexdigest()
        return path_of(object_url(as_collection(access.address), f"{name}.ics"))


def write_refusal(answer: Fetched) -> Exception:
    """Why something was not written. Servers say with the same statuses that the object is another
    one by now, and that they do not like the text: the precondition that failed tells which."""
    condition = dav.condition_of(answer.body)
    if condition == "no-uid-conflict" or (answer.status == 412 and not condition):
        return Changed()
    if answer.status == 403 and condition not in ("", "need-privileges"):
        return refusal(answer, denied="server_error")
    return refusal(answer, denied="no_write_access")
