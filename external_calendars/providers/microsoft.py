"""Calendars of Microsoft 365 and Outlook.com, by Microsoft Graph v1.0 (learn.microsoft.com/graph).

Hrefs are immutable ids of events. Changes are those of a calendar view: a window of time, which the
mark's link encodes, with the series expanded. Every night, a new round with a later window begins;
the mark of the former one stays until all of it is stored.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

from common.messages import Message
from external_calendars.event_formats import graph_json
from external_calendars.event_formats.base import EventFormat
from external_calendars.event_formats.graph_json import (
    SERIES,
    TEAMS,
    UID_PROPERTY,
    occurrence_text,
    series_occurrences,
    series_text,
)
from external_calendars.event_formats.json_text import Json, read_json, write_json
from external_calendars.providers.base import (
    CalendarAccess,
    ChangeSet,
    ChannelEnded,
    DiscoveredCalendar,
    OAuthEndpoints,
    PreconditionFailed,
    ProviderError,
    RemoteObject,
    StoredObjects,
    WatchedChannel,
)
from external_calendars.providers.calendar_choice import choose_calendar
from external_calendars.providers.json_session import JsonAnswer, JsonSession

API = "https://graph.microsoft.com/v1.0"
SIGN_IN = "https://login.microsoftonline.com/common/oauth2/v2.0"
PAGE = 200  # events
MAX_PAGES = 500
# Without it, ids change when an event moves to another folder.
PREFERENCES = 'IdType="ImmutableId", outlook.timezone="UTC", outlook.body-content-type="text"'
HEADERS = {"Prefer": PREFERENCES}
PAGED = {"Prefer": f"{PREFERENCES}, odata.maxpagesize={PAGE}"}
TOKEN_ENDED = frozenset({"syncstatenotfound", "resyncrequired", "syncstateinvalid"})
CHANGED_MEANWHILE = frozenset({"errorirresolvableconflict", "erroritemsave"})
# Of the calendar view that is read: what is stored, and a day more for the next night.
PAST, AHEAD = timedelta(days=31), timedelta(days=402)
ROUND = timedelta(days=1)
# Of a subscription to events; the documented limit is 4,230 minutes.
WATCH_LIFETIME = timedelta(minutes=4200)


class MicrosoftCalendar:
    name = "microsoft"
    label = "Microsoft 365"
    can_write = True
    event_format: EventFormat = graph_json
    oauth = OAuthEndpoints(
        authorize_url=f"{SIGN_IN}/authorize",
        token_url=f"{SIGN_IN}/token",
        revoke_url="",  # there is none: the person ends the permission in the account
        issuers=("https://login.microsoftonline.com/",),
        scopes=("openid", "email", "profile", "offline_access", "Calendars.ReadWrite", "User.Read"),
        needed=frozenset({"Calendars.ReadWrite"}),
        extra={"prompt": "select_account", "response_mode": "query"},
    )

    def account_of(self, claims: Mapping[str, Any]) -> tuple[str, str]:
        # `sub` is another one for each client; `oid` and the tenant name the account.
        subject = f"{claims.get('tid', '')}/{claims.get('oid') or claims['sub']}"
        return subject, str(claims.get("email") or claims.get("preferred_username") or "")

    def new_uid(self, uid: str) -> str:
        return uid

    # --- Calendars --------------------------------------------------------------------------------
    def list_calendars(
        self, access: CalendarAccess, *, deadline: float
    ) -> Sequence[DiscoveredCalendar]:
        session = JsonSession(access, API, deadline)
        rows = [
            row
            for page in _pages(session, "/me/calendars", {"$top": "100"})
            for row in page.get("value", ())
        ]
        rows.sort(key=lambda row: not row.get("isDefaultCalendar"))
        return [
            DiscoveredCalendar(
                calendar_address(str(row["id"])),
                str(row.get("name") or ""),
                may_write=bool(row.get("canEdit")),
                invites=True,
                user_addresses=[access.username] if access.username else [],
                makes_links=_makes_links(row),
            )
            for row in rows
        ]

    def find_calendar(self, access: CalendarAccess, *, deadline: float) -> DiscoveredCalendar:
        """`access.address`: an address, id or name of a calendar; "": the main one."""
        return choose_calendar(self.list_calendars(access, deadline=deadline), access.address)

    # --- Reading ----------------------------------------------------------------------------------
    def list_changes(
        self,
        access: CalendarAccess,
        mark: Mapping[str, Any],
        stored: StoredObjects,
        *,
        deadline: float,
    ) -> ChangeSet:
        session, now = JsonSession(access, API, deadline), datetime.now(UTC)
        if mark.get("link") and datetime.fromisoformat(mark["begun"]) > now - ROUND:
            try:
                pages = list(_pages(session, mark["link"], {}, headers=PAGED))
                return self._change_set(session, access, pages, stored, mark, is_whole=False)
            except DeltaEnded:
                pass
        window = {
            "startDateTime": _stamp(now - PAST),
            "endDateTime": _stamp(now + AHEAD),
        }
        path = f"{calendar_path(access)}/calendarView/delta"
        pages = list(_pages(session, path, window, headers=PAGED))
        new_mark = {"begun": _stamp(now)}
        return self._change_set(session, access, pages, stored, new_mark, is_whole=True)

    def _change_set(
        self,
        session: JsonSession,
        access: CalendarAccess,
        pages: Sequence[Json],
        stored: StoredObjects,
        mark: Mapping[str, Any],
        *,
        is_whole: bool,
    ) -> ChangeSet:
        delta_link = pages[-1].get("@odata.deltaLink")
        if not isinstance(delta_link, str):
            raise ProviderError("bad_answer", status=200)
        # An item may come twice: the last one counts.
        items = {str(item["id"]): item for page in pages for item in page.get("value", ())}
        gone = [href for href, item in items.items() if "@removed" in item]
        here = {href: item for href, item in items.items() if "@removed" not in item}
        series = self._series_of(session, access, here, stored)
        occurrences = _occurrences_of(here)
        gone += _missing_occurrences(here, gone, occurrences, stored)
        changed = {href: _etag_of(item, series) for href, item in here.items()}
        texts = {
            href: series_text(item, occurrences[href])
            if href in occurrences
            else occurrence_text(item, series.get(str(item.get("seriesMasterId"))))
            for href, item in here.items()
        }
        return ChangeSet(changed, gone, is_whole, {**mark, "link": delta_link}, texts)

    def _series_of(
        self,
        session: JsonSession,
        access: CalendarAccess,
        items: Mapping[str, Json],
        stored: StoredObjects,
    ) -> dict[str, Json]:
        """Return id -> item of the series of the occurrences: of this answer, stored, or fetched.

        An occurrence has its times only.
        """
        found = {href: item for href, item in items.items() if item.get("type") == SERIES}
        needed = {str(i["seriesMasterId"]) for i in items.values() if i.get("seriesMasterId")}
        kept = stored.texts(sorted(needed - found.keys()))
        found |= {href: read_json(text) for href, text in kept.items()}
        for href in sorted(needed - found.keys()):
            answer = session.ask("GET", event_path(access, href), headers=HEADERS)
            if answer.status not in (404, 410):
                found[href] = _checked(answer)
        return found

    def fetch(
        self, access: CalendarAccess, hrefs: Sequence[str], *, deadline: float
    ) -> Iterator[Sequence[RemoteObject]]:
        for href in hrefs:
            found = self.read_object(access, href, deadline=deadline)
            if found is not None:
                yield [found]

    def read_object(
        self, access: CalendarAccess, href: str, *, deadline: float
    ) -> RemoteObject | None:
        if not href:
            return None
        session = JsonSession(access, API, deadline)
        params = {"$expand": f"singleValueExtendedProperties($filter=id eq '{UID_PROPERTY}')"}
        answer = session.ask("GET", event_path(access, href), params=params, headers=HEADERS)
        return None if answer.status in (404, 410) else _object(_checked(answer))

    def objects_between(
        self, access: CalendarAccess, start: datetime, end: datetime, *, deadline: float
    ) -> Sequence[RemoteObject]:
        session = JsonSession(access, API, deadline)
        window = {"startDateTime": _stamp(start), "endDateTime": _stamp(end)}
        pages = _pages(session, f"{calendar_path(access)}/calendarView", window, headers=PAGED)
        return [_object(item) for page in pages for item in page.get("value", ())]

    # --- Writing ----------------------------------------------------------------------------------
    def locate(self, access: CalendarAccess, uid: str, *, deadline: float) -> str:
        """Return the id of the event that was created before its answer was lost; "" if none."""
        session = JsonSession(access, API, deadline)
        value = uid.replace("'", "''")
        condition = f"ep/id eq '{UID_PROPERTY}' and ep/value eq '{value}'"
        params = {"$filter": f"singleValueExtendedProperties/Any(ep: {condition})"}
        answer = session.ask(
            "GET", f"{calendar_path(access)}/events", params=params, headers=HEADERS
        )
        found = _checked(answer).get("value") or ()
        return str(found[0]["id"]) if found else ""

    def put(
        self, access: CalendarAccess, href: str, text: str, etag: str, *, deadline: float
    ) -> RemoteObject:
        session, body = JsonSession(access, API, deadline), read_json(text)
        if etag:
            answer = session.ask(
                "PATCH",
                event_path(access, href),
                body=body,
                headers=HEADERS | {"If-Match": etag},
            )
            return _object(_written(answer))
        if href:
            raise PreconditionFailed
        answer = session.ask("POST", f"{calendar_path(access)}/events", body=body, headers=HEADERS)
        return _object(_written(answer))

    def delete(self, access: CalendarAccess, href: str, etag: str, *, deadline: float) -> None:
        answer = JsonSession(access, API, deadline).ask(
            "DELETE",
            event_path(access, href),
            headers=HEADERS | ({"If-Match": etag} if etag else {}),
        )
        if answer.status not in (200, 204, 404, 410):
            _written(answer)

    # --- Push -------------------------------------------------------------------------------------
    def watch(
        self, access: CalendarAccess, channel_id: str, token: str, address: str, *, deadline: float
    ) -> WatchedChannel:
        """Graph calls the address, twice, before it answers."""
        subscription = {
            "changeType": "created,updated,deleted",
            "resource": f"{calendar_path(access).lstrip('/')}/events",
            "notificationUrl": address,
            "lifecycleNotificationUrl": address,
            "clientState": token,
            "expirationDateTime": _stamp(datetime.now(UTC) + WATCH_LIFETIME),
        }
        session = JsonSession(access, API, deadline)
        answer = session.ask("POST", "/subscriptions", body=subscription, headers=HEADERS)
        if answer.status != 201:
            raise graph_error(answer)
        return WatchedChannel(str(answer.data.get("id", "")), "", _end_of(answer), True)

    def extend_watch(
        self, access: CalendarAccess, channel_id: str, *, deadline: float
    ) -> datetime | None:
        """Also reauthorizes the subscription, if Graph has asked for it."""
        body = {"expirationDateTime": _stamp(datetime.now(UTC) + WATCH_LIFETIME)}
        session = JsonSession(access, API, deadline)
        path = f"/subscriptions/{quote(channel_id, safe='')}"
        answer = session.ask("PATCH", path, body=body, headers=HEADERS)
        if answer.status in (404, 410):
            raise ChannelEnded
        if answer.status != 200:
            raise graph_error(answer)
        return _end_of(answer)

    def stop_watching(
        self, access: CalendarAccess, channel_id: str, resource_id: str, *, deadline: float
    ) -> None:
        session = JsonSession(access, API, deadline)
        path = f"/subscriptions/{quote(channel_id, safe='')}"
        answer = session.ask("DELETE", path, headers=HEADERS)
        if answer.status not in (200, 204, 404, 410):
            raise graph_error(answer)


class DeltaEnded(Exception):
    """The link of the last round can't be used any more: a new one begins."""


# --- Addresses ------------------------------------------------------------------------------------
def calendar_address(calendar_id: str) -> str:
    return f"{API}/me/calendars/{quote(calendar_id, safe='')}"


def calendar_path(access: CalendarAccess) -> str:
    return access.address.removeprefix(API)


def event_path(access: CalendarAccess, href: str) -> str:
    return f"{calendar_path(access)}/events/{quote(href, safe='')}"


def _stamp(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


# --- Answers --------------------------------------------------------------------------------------
def _makes_links(calendar: Json) -> bool | None:
    """Personal accounts have no Teams for business."""
    allowed = calendar.get("allowedOnlineMeetingProviders")
    return None if allowed is None else TEAMS in allowed


def _pages(
    session: JsonSession,
    path: str,
    params: Mapping[str, str],
    *,
    headers: Mapping[str, str] = HEADERS,
) -> Iterator[Json]:
    for _ in range(MAX_PAGES):
        page = _checked(session.ask("GET", path, params=params, headers=headers))
        yield page
        path, params = str(page.get("@odata.nextLink") or ""), {}
        if not path:
            return
    raise ProviderError("too_large")


def _object(event: Json) -> RemoteObject:
    return RemoteObject(str(event["id"]), str(event.get("@odata.etag", "")), write_json(event))


def _occurrences_of(items: Mapping[str, Json]) -> dict[str, list[str]]:
    """Return the ids of the occurrences of each series among the items."""
    found: dict[str, list[str]] = {
        href: [] for href, item in items.items() if item.get("type") == SERIES
    }
    for href, item in items.items():
        if item.get("seriesMasterId") in found:
            found[item["seriesMasterId"]].append(href)
    return found


def _missing_occurrences(
    items: Mapping[str, Json],
    gone: Sequence[str],
    occurrences: Mapping[str, Sequence[str]],
    stored: StoredObjects,
) -> list[str]:
    """Return the ids of stored occurrences that no longer exist.

    After a change of a series, all of it comes again, and what is missing is gone; of a deleted
    series, only the series itself may be named.
    """
    texts = stored.texts(sorted({*occurrences, *gone}))
    former = {href: series_occurrences(text) for href, text in texts.items()}
    return sorted(
        {each for ids in former.values() for each in ids}
        - {each for ids in occurrences.values() for each in ids}
        - items.keys()
    )


def _etag_of(item: Json, series: Mapping[str, Json]) -> str:
    """Return the item's etag; of an occurrence, with that of its series, whose texts it has."""
    own = str(item.get("@odata.etag", ""))
    master = series.get(str(item.get("seriesMasterId")))
    return f"{own} {master.get('@odata.etag', '')}" if own and master else own


def _checked(answer: JsonAnswer) -> Json:
    if answer.status == 200:
        return answer.data
    if answer.status == 410 or _error_code(answer) in TOKEN_ENDED:
        raise DeltaEnded
    raise graph_error(answer)


def _written(answer: JsonAnswer) -> Json:
    if answer.status in (409, 412) or _error_code(answer) in CHANGED_MEANWHILE:
        raise PreconditionFailed
    if answer.status in (200, 201):
        return answer.data
    raise graph_error(answer, denied="no_write_access")


def _end_of(answer: JsonAnswer) -> datetime:
    """Return the end of the subscription of an answer."""
    try:
        return datetime.fromisoformat(str(answer.data.get("expirationDateTime"))).astimezone(UTC)
    except ValueError as error:
        raise ProviderError("bad_answer", status=answer.status) from error


def _error_code(answer: JsonAnswer) -> str:
    error = answer.data.get("error")
    return str(error.get("code", "")).casefold() if isinstance(error, dict) else ""


def graph_error(answer: JsonAnswer, *, denied: str = "not_permitted") -> ProviderError:
    """Return the error of an answer. `denied`: the code of a 403."""
    status, named = answer.status, _error_code(answer)
    if status == 401:
        code = "token_refused"
    elif status == 429 or (status == 503 and answer.retry_after is not None):
        code = "rate_limited"
    elif status == 403:
        code = denied
    elif status in (404, 410):
        code = "not_a_calendar"
    else:
        code = "server_error" if status >= 500 else "bad_answer"
    shown = f"{status} ({named[:60]})" if named else status
    detail = Message("The server returned %(status)s.", status=shown)
    return ProviderError(code, detail=detail, status=status, retry_after=answer.retry_after)
