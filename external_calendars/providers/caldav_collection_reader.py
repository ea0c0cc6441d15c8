"""Read one CalDAV collection."""

from common.net.safe_http import FetchResult
from external_calendars.providers import webdav_xml
from external_calendars.providers.base import CalendarAccess, ChangeSet, ProviderError, RemoteObject
from external_calendars.providers.http_session import ANSWER_BYTES, HttpSession, require_multistatus
from external_calendars.providers.urls import normal_etag, path_in_collection, to_collection_url
from external_calendars.providers.webdav_xml import (
    CALDAV,
    CALENDARSERVER,
    DAV,
    Multistatus,
    xml_request_headers,
)

BATCH_BYTES = 8 << 20  # of an answer with the objects' texts
MAX_PAGES = 1000  # per sync
TOKEN_LENGTH = 2000
NOT_THERE = "The server confirmed the write, but the event does not exist."

ETAG, TEXT = f"{DAV}getetag", f"{CALDAV}calendar-data"
REPORTS, CTAG = f"{DAV}supported-report-set", f"{CALENDARSERVER}getctag"
WAYS = webdav_xml.propfind((REPORTS, CTAG))
ETAGS = webdav_xml.propfind((ETAG,))
# Statuses of different servers for an unknown sync token, or for an unsupported report.
NO_SYNC = (400, 405, 409, 410, 412, 415, 422, 501, 507)


class CalDavCollection:
    """Reads the collection at the address, within `deadline` seconds in total.

    Returns only paths within the collection. Raises ProviderError.
    """

    def __init__(self, access: CalendarAccess, deadline: float) -> None:
        self.url = to_collection_url(access.address)
        self.visit = HttpSession(access, deadline)

    def ways(self) -> tuple[bool, str]:
        """Return whether the collection supports sync-collection, and its ctag or ""."""
        for member in self.ask("PROPFIND", WAYS, 0).members:
            if member.status in (None, 200):
                return f"{DAV}sync-collection" in (member.names(REPORTS) or ()), member.text(CTAG)
        raise ProviderError("not_a_calendar", status=207)

    def synced(self, token: str) -> ChangeSet | None:
        """Return the changes since the token ("": all objects); None if the server can't tell."""
        begun, changed, deleted = token, dict[str, str](), dict[str, None]()
        for _ in range(MAX_PAGES):
            answer = self.answer("REPORT", webdav_xml.sync_collection(token), 0)
            if is_no_sync(answer):
                return None
            page = require_multistatus(answer)
            is_cut_off = False
            for member in page.members:
                path = path_in_collection(self.url, member.href)
                if path is None:
                    is_cut_off |= member.status == 507  # about the collection itself
                elif member.status in (404, 410):
                    changed.pop(path, None)
                    deleted[path] = None
                elif member.status in (None, 200, 201):
                    deleted.pop(path, None)
                    changed[path] = normal_etag(member.text(ETAG))
            if not 0 < len(page.sync_token) <= TOKEN_LENGTH:
                return None
            if not is_cut_off:
                mark = {"way": "sync", "token": page.sync_token}
                return ChangeSet(changed, list(deleted) if begun else [], not begun, mark)
            if page.sync_token == token:
                break
            token = page.sync_token
        raise ProviderError("bad_answer", detail="The server's list of changes does not end.")

    def etags(self) -> dict[str, str]:
        etags_by_href = {}
        for member in self.ask("PROPFIND", ETAGS, 1).members:
            path = path_in_collection(self.url, member.href)
            if path is not None and member.status in (None, 200):
                etags_by_href[path] = normal_etag(member.text(ETAG))
        return etags_by_href

    def objects(self, report: bytes) -> list[RemoteObject]:
        """Return the objects, with their texts, that a REPORT finds."""
        remote_objects = []
        for member in self.ask("REPORT", report, 1, BATCH_BYTES).members:
            path, text = path_in_collection(self.url, member.href), member.props.get(TEXT)
            if path is not None and text is not None and text.text:
                remote_objects.append(RemoteObject(path, normal_etag(member.text(ETAG)), text.text))
        return remote_objects

    def ask(self, method: str, body: bytes, levels: int, most: int = ANSWER_BYTES) -> Multistatus:
        return require_multistatus(self.answer(method, body, levels, most))

    def answer(
        self, method: str, body: bytes, levels: int, most: int = ANSWER_BYTES
    ) -> FetchResult:
        return self.visit.ask(
            method, self.url, headers=xml_request_headers(levels), body=body, most_bytes=most
        )


def etag_at(visit: HttpSession, url: str) -> str:
    """Return the etag of an object that was just written; "" if the server names none.

    Raises ProviderError, also if the object does not exist: a gateway that answers 200 to
    everything has confirmed the write.
    """
    answer = visit.ask("PROPFIND", url, headers=xml_request_headers(0), body=ETAGS)
    is_gone = answer.status in (404, 410)
    members = [] if is_gone else require_multistatus(answer).members
    present = [member for member in members if member.status in (None, 200)]
    if not present:
        raise ProviderError("bad_answer", detail=NOT_THERE, status=answer.status)
    return normal_etag(present[0].text(ETAG))


def is_no_sync(answer: FetchResult) -> bool:
    """Return whether the answer refuses sync-collection; a plain 403 is about the password."""
    conditions = ("valid-sync-token", "supported-report", "number-of-matches-within-limits")
    return answer.status in NO_SYNC or (
        answer.status == 403 and webdav_xml.failed_condition(answer.body) in conditions
    )
