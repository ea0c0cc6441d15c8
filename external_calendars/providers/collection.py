"""What stands in one CalDAV collection, as its server tells it."""

from external_calendars.providers import dav
from external_calendars.providers.base import Access, Look, Object, Trouble
from external_calendars.providers.dav import CALDAV, CALENDARSERVER, DAV, Multistatus, depth
from external_calendars.providers.paths import (
    as_collection,
    normal_etag,
    path_within,
)
from external_calendars.providers.visit import ANSWER_BYTES, Visit, multistatus
from notifications.safe_http import Fetched

BATCH_BYTES = 8 << 20  # of an answer with the objects themselves
MOST_PAGES = 1000  # of one look
TOKEN_LENGTH = 2000
NOT_THERE = "The server said that it is written, and it is not there."

ETAG, TEXT = f"{DAV}getetag", f"{CALDAV}calendar-data"
REPORTS, CTAG = f"{DAV}supported-report-set", f"{CALENDARSERVER}getctag"
WAYS = dav.propfind((REPORTS, CTAG))
ETAGS = dav.propfind((ETAG,))
# What different servers answer to a sync-token that they know no more, or to the whole report.
NO_SYNC = (400, 405, 409, 410, 412, 415, 422, 501, 507)


class Collection:
    """Asks about the collection at the address, within `deadline` seconds in all. All that it tells
    of are paths in that collection. Raises Trouble."""

    def __init__(self, access: Access, deadline: float) -> None:
        self.url = as_collection(access.address)
        self.visit = Visit(access, deadline)

    def ways(self) -> tuple[bool, str]:
        """Whether it can tell what changed since a token, and its ctag, "" where it has none."""
        for member in self.ask("PROPFIND", WAYS, 0).members:
            if member.status in (None, 200):
                return f"{DAV}sync-collection" in (member.names(REPORTS) or ()), member.text(CTAG)
        raise Trouble("not_a_calendar", status=207)

    def synced(self, token: str) -> Look | None:
        """What changed since the token, "" for all that is there; None where it can't tell."""
        begun, changed, gone = token, dict[str, str](), dict[str, None]()
        for _ in range(MOST_PAGES):
            answer = self.answer("REPORT", dav.sync_collection(token), 0)
            if is_no_sync(answer):
                return None
            page = multistatus(answer)
            is_cut_off = False
            for member in page.members:
                path = path_within(self.url, member.href)
                if path is None:
                    is_cut_off |= member.status == 507  # of the collection itself
                elif member.status in (404, 410):
                    changed.pop(path, None)
                    gone[path] = None
                elif member.status in (None, 200, 201):
                    gone.pop(path, None)
                    changed[path] = normal_etag(member.text(ETAG))
            if not 0 < len(page.sync_token) <= TOKEN_LENGTH:
                return None
            if not is_cut_off:
                mark = {"way": "sync", "token": page.sync_token}
                return Look(changed, list(gone) if begun else [], not begun, mark)
            if page.sync_token == token:
                break
            token = page.sync_token
        raise Trouble("bad_answer", detail="The server's list of changes has no end.")

    def etags(self) -> dict[str, str]:
        """href -> etag of all objects."""
        found = {}
        for member in self.ask("PROPFIND", ETAGS, 1).members:
            path = path_within(self.url, member.href)
            if path is not None and member.status in (None, 200):
                found[path] = normal_etag(member.text(ETAG))
        return found

    def objects(self, report: bytes) -> list[Object]:
        """Those that a report tells of, with their texts."""
        found = []
        for member in self.ask("REPORT", report, 1, BATCH_BYTES).members:
            path, text = path_within(self.url, member.href), member.props.get(TEXT)
            if path is not None and text is not None and text.text:
                found.append(Object(path, normal_etag(member.text(ETAG)), text.text))
        return found

    def ask(self, method: str, body: bytes, levels: int, most: int = ANSWER_BYTES) -> Multistatus:
        return multistatus(self.answer(method, body, levels, most))

    def answer(self, method: str, body: bytes, levels: int, most: int = ANSWER_BYTES) -> Fetched:
        return self.visit.ask(method, self.url, headers=depth(levels), body=body, most_bytes=most)


def etag_at(visit: Visit, url: str) -> str:
    """Of an object that was just written; "" where the server tells none.

    Raises Trouble, also where nothing stands there: then whoever said that it is written was not
    the server, but a gateway before it that says 200 to everything.
    """
    answer = visit.ask("PROPFIND", url, headers=depth(0), body=ETAGS)
    is_gone = answer.status in (404, 410)
    members = [] if is_gone else multistatus(answer).members
    there = [member for member in members if member.status in (None, 200)]
    if not there:
        raise Trouble("bad_answer", detail=NOT_THERE, status=answer.status)
    return normal_etag(there[0].text(ETAG))


def is_no_sync(answer: Fetched) -> bool:
    """A 403 says so only with its reason: without, it is about the password."""
    conditions = ("valid-sync-token", "supported-report", "number-of-matches-within-limits")
    return answer.status in NO_SYNC or (
        answer.status == 403 and dav.condition_of(answer.body) in conditions
    )
