"""Google Calendar, API v3 (developers.google.com/workspace/calendar/api).

Hrefs are ids of events; of a series, the master's. The mark is a sync token, which belongs to a
list without a window: everything is read, and the window is kept here.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

from common.messages import Message
from external_calendars.event_formats import google_json
from external_calendars.event_formats.base import EventFormat
from external_calendars.event_formats.google_json import CANCELLED, MEET, event_id
from external_calendars.event_formats.json_text import Json, read_json, write_json
from external_calendars.providers.base import (
    CalendarAccess,
    ChangeSet,
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

API = "https://www.googleapis.com/calendar/v3"
PAGE = "2500"  # events
SCOPE = "https://www.googleapis.com/auth/calendar"
RATE_REASONS = frozenset(
    {"rateLimitExceeded", "userRateLimitExceeded", "quotaExceeded", "dailyLimitExceeded"}
)
SCOPE_REASONS = frozenset({"insufficientPermissions", "accessNotConfigured"})
GENERATIONS = 5
# Of the freebusy check: the library's limit, so that a day full of events is whole.
MAX_PAGES = 200


# Of a channel: what is asked for, and what it has if the answer does not say; the answer decides.
WATCH_TTL, DEFAULT_TTL = timedelta(days=30), timedelta(days=7)


class GoogleCalendar:
    name = "google"
    label = "Google Calendar"
    can_write = True
    event_format: EventFormat = google_json
    oauth = OAuthEndpoints(
        authorize_url="https://accounts.google.com/o/oauth2/v2/auth",
        token_url="https://oauth2.googleapis.com/token",  # noqa: S106  # nosec B106
        revoke_url="https://oauth2.googleapis.com/revoke",
        issuers=("https://accounts.google.com", "accounts.google.com"),
        scopes=("openid", "email", f"{SCOPE}.events", f"{SCOPE}.calendarlist.readonly"),
        needed=frozenset({f"{SCOPE}.events", f"{SCOPE}.calendarlist.readonly"}),
        # `consent`: without it, a person who has agreed before gets no refresh token.
        extra={"access_type": "offline", "prompt": "consent select_account"},
    )

    def account_of(self, claims: Mapping[str, Any]) -> tuple[str, str]:
        """Return (subject, e-mail address) of an ID token."""
        return str(claims["sub"]), str(claims.get("email", ""))

    def new_uid(self, uid: str) -> str:
        return google_json.google_uid(uid)

    # --- Calendars --------------------------------------------------------------------------------
    def list_calendars(
        self, access: CalendarAccess, *, deadline: float
    ) -> Sequence[DiscoveredCalendar]:
        session = JsonSession(access, API, deadline)
        params = {"minAccessRole": "reader", "maxResults": "250"}
        rows = [
            row
            for page in _pages(session, "/users/me/calendarList", params)
            for row in page.get("items", ())
        ]
        rows.sort(key=lambda row: not row.get("primary"))
        return [
            DiscoveredCalendar(
                calendar_address(row["id"]),
                str(row.get("summaryOverride") or row.get("summary") or row["id"]),
                may_write=row.get("accessRole") in ("owner", "writer"),
                invites=True,
                user_addresses=[access.username] if access.username else [],
                makes_links=_makes_links(row),
            )
            for row in rows
        ]

    def find_calendar(self, access: CalendarAccess, *, deadline: float) -> DiscoveredCalendar:
        """`access.address`: an address, id or name of a calendar; "": the primary one."""
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
        session = JsonSession(access, API, deadline)
        path, token = f"{calendar_path(access)}/events", mark.get("token", "")
        pages = list(self._changed_pages(session, path, token)) if token else None
        is_whole = not pages or pages[-1] is None
        if is_whole:
            pages = list(_pages(session, path, {"maxResults": PAGE}))
        answers = [page for page in pages or () if page is not None]
        new_token = str(answers[-1].get("nextSyncToken", ""))
        if not new_token:
            raise ProviderError("bad_answer", status=200)
        events = [event for page in answers for event in page.get("items", ())]
        return _change_set(events, stored, is_whole=is_whole, mark={"token": new_token})

    def _changed_pages(self, session: JsonSession, path: str, token: str) -> Iterator[Json | None]:
        """Yield the pages since the token; None at the end if the token has ended (410)."""
        try:
            yield from _pages(session, path, {"maxResults": PAGE, "syncToken": token})
        except ProviderError as error:
            if error.status != 410:
                raise
            yield None

    def fetch(
        self, access: CalendarAccess, hrefs: Sequence[str], *, deadline: float
    ) -> Iterator[Sequence[RemoteObject]]:
        for href in hrefs:
            found = self.read_object(access, href, deadline=deadline)
            if found is not None and not google_json.is_cancelled(found.text):
                yield [found]

    def read_object(
        self, access: CalendarAccess, href: str, *, deadline: float
    ) -> RemoteObject | None:
        """Return an event, also a cancelled one: its id can't be used for a new event.

        Of a series, with its exceptions.
        """
        session = JsonSession(access, API, deadline)
        answer = session.ask("GET", event_path(access, href))
        if answer.status in (404, 410):
            return None
        event = _checked(answer)
        if not event.get("recurrence"):
            return _single(event)
        params = {"iCalUID": str(event["iCalUID"]), "showDeleted": "true", "maxResults": PAGE}
        exceptions = {
            str(each["id"]): each
            for page in _pages(session, f"{calendar_path(access)}/events", params)
            for each in page.get("items", ())
            if each.get("recurringEventId") == href
        }
        return _series(event, exceptions)

    def objects_between(
        self, access: CalendarAccess, start: datetime, end: datetime, *, deadline: float
    ) -> Sequence[RemoteObject]:
        session = JsonSession(access, API, deadline)
        params = {
            "timeMin": start.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "timeMax": end.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "singleEvents": "true",
            "maxResults": PAGE,
        }
        return [
            _single(event)
            for page in _pages(session, f"{calendar_path(access)}/events", params)
            for event in page.get("items", ())
        ]

    # --- Writing ----------------------------------------------------------------------------------
    def locate(self, access: CalendarAccess, uid: str, *, deadline: float) -> str:
        return event_id(uid)

    def put(
        self, access: CalendarAccess, href: str, text: str, etag: str, *, deadline: float
    ) -> RemoteObject:
        session, event = JsonSession(access, API, deadline), read_json(text)
        # Always sent: without it, Google drops the conference of an event that is written whole.
        params = {"conferenceDataVersion": "1"}
        if event.get("attendees"):
            params["sendUpdates"] = "all"
        if etag:
            answer = session.ask(
                "PUT",
                event_path(access, href),
                params=params,
                body=event,
                headers={"If-Match": etag},
            )
            return _single(_written(answer))
        for generation in range(GENERATIONS):
            new_id = f"{href}g{generation}" if generation else href
            answer = session.ask(
                "POST",
                f"{calendar_path(access)}/events",
                params=params,
                body=event | {"id": new_id},
            )
            if answer.status != 409 or self.read_object(access, new_id, deadline=deadline):
                break
            # The event with this id was deleted for good.
        return _single(_written(answer))

    def delete(self, access: CalendarAccess, href: str, etag: str, *, deadline: float) -> None:
        answer = JsonSession(access, API, deadline).ask(
            "DELETE",
            event_path(access, href),
            params={"sendUpdates": "all"},
            headers={"If-Match": etag} if etag else {},
        )
        if answer.status not in (200, 204, 404, 410):
            _written(answer)

    # --- Push -------------------------------------------------------------------------------------
    def watch(
        self, access: CalendarAccess, channel_id: str, token: str, address: str, *, deadline: float
    ) -> WatchedChannel:
        """The first message, which says that the channel exists, may come before the answer."""
        channel = {
            "id": channel_id,
            "type": "web_hook",
            "address": address,
            "token": token,
            "params": {"ttl": str(int(WATCH_TTL.total_seconds()))},
        }
        path = f"{calendar_path(access)}/events/watch"
        answer = _checked(JsonSession(access, API, deadline).ask("POST", path, body=channel))
        ends_at = datetime.now(UTC) + DEFAULT_TTL
        if answer.get("expiration"):
            ends_at = _instant_of(answer["expiration"])
        return WatchedChannel(channel_id, str(answer.get("resourceId", "")), ends_at, False)

    def extend_watch(
        self, access: CalendarAccess, channel_id: str, *, deadline: float
    ) -> datetime | None:
        return None  # Google can't

    def stop_watching(
        self, access: CalendarAccess, channel_id: str, resource_id: str, *, deadline: float
    ) -> None:
        channel = {"id": channel_id, "resourceId": resource_id}
        session = JsonSession(access, API, deadline)
        answer = session.ask("POST", "/channels/stop", body=channel)
        if answer.status not in (200, 204, 404):
            raise google_error(answer)


# --- Addresses ------------------------------------------------------------------------------------
def calendar_address(calendar_id: str) -> str:
    return f"{API}/calendars/{quote(calendar_id, safe='')}"


def calendar_path(access: CalendarAccess) -> str:
    return access.address.removeprefix(API)


def event_path(access: CalendarAccess, href: str) -> str:
    return f"{calendar_path(access)}/events/{quote(href, safe='')}"


# --- Answers --------------------------------------------------------------------------------------
def _makes_links(calendar: Json) -> bool | None:
    allowed = (calendar.get("conferenceProperties") or {}).get("allowedConferenceSolutionTypes")
    return None if allowed is None else MEET in allowed


def _pages(session: JsonSession, path: str, params: Mapping[str, str]) -> Iterator[Json]:
    asked = dict(params)
    for _ in range(MAX_PAGES):
        page = _checked(session.ask("GET", path, params=asked))
        yield page
        if not page.get("nextPageToken"):
            return
        asked["pageToken"] = str(page["nextPageToken"])
    raise ProviderError("too_large")


def _change_set(
    events: Sequence[Json], stored: StoredObjects, *, is_whole: bool, mark: Json
) -> ChangeSet:
    """Sort events into singles, series and what is gone.

    A changed exception comes without its master. Exceptions are merged into the stored series, and
    a cancelled one is kept as long as the series exists, because Google tells of it only once.
    """
    singles: dict[str, Json] = {}
    masters: dict[str, Json] = {}
    exceptions: dict[str, dict[str, Json]] = {}
    gone = []
    for event in events:
        master_id = event.get("recurringEventId")
        if master_id:
            exceptions.setdefault(str(master_id), {})[str(event["id"])] = event
        elif event.get("status") == CANCELLED:
            gone.append(str(event["id"]))
        elif event.get("recurrence"):
            masters[str(event["id"])] = event
        else:
            singles[str(event["id"])] = event
    changed = {href: str(event.get("etag", "")) for href, event in singles.items()}
    texts = {href: write_json(event) for href, event in singles.items()}
    touched = (masters.keys() | exceptions.keys()) - set(gone)
    known = {} if is_whole else stored.texts(sorted(touched))
    for href in sorted(touched):
        master, before = google_json.read_series(known[href]) if href in known else (None, {})
        master = masters.get(href, master)
        if master is None:
            changed[href] = ""  # to be fetched
            continue
        series = _series(master, before | exceptions.get(href, {}))
        changed[href], texts[href] = series.etag, series.text
    # An event that became a series, or the other way round, keeps its id.
    return ChangeSet(changed, [href for href in gone if href not in changed], is_whole, mark, texts)


def _single(event: Json) -> RemoteObject:
    return RemoteObject(str(event["id"]), str(event.get("etag", "")), write_json(event))


def _series(master: Json, exceptions: Mapping[str, Json]) -> RemoteObject:
    """Return a series; its etag changes with each of its exceptions."""
    text = google_json.series_text(master, exceptions)
    etag = hashlib.sha256(text.encode()).hexdigest()
    return RemoteObject(str(master["id"]), etag, text)


def _checked(answer: JsonAnswer) -> Json:
    if answer.status == 200:
        return answer.data
    raise google_error(answer)


def _instant_of(milliseconds: object) -> datetime:
    """Return the end of a channel, which Google writes as the text of an integer."""
    try:
        return datetime.fromtimestamp(int(str(milliseconds)) / 1000, UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise ProviderError("bad_answer", status=200) from error


def _written(answer: JsonAnswer) -> Json:
    if answer.status in (409, 412):
        raise PreconditionFailed
    if answer.status == 200:
        return answer.data
    raise google_error(answer, denied="no_write_access")


def google_error(answer: JsonAnswer, *, denied: str = "not_a_calendar") -> ProviderError:
    """Return the error of an answer. `denied`: the code of a 403 about this calendar only.

    Google sends 403 for limits, too; the reason tells them apart.
    """
    error = answer.data.get("error")
    error = error if isinstance(error, dict) else {}
    reasons = {str(each.get("reason", "")) for each in error.get("errors") or () if each}
    status = answer.status
    if status == 401:
        code = "token_refused"
    elif status == 429 or reasons & RATE_REASONS:
        code = "rate_limited"
    elif status == 403:
        code = "not_permitted" if reasons & SCOPE_REASONS else denied
    elif status in (404, 410):
        code = "not_a_calendar"
    else:
        code = "server_error" if status >= 500 else "bad_answer"
    named = f"{status} ({', '.join(sorted(reasons))[:60]})" if reasons else status
    detail = Message("The server returned %(status)s.", status=named)
    return ProviderError(code, detail=detail, status=status, retry_after=answer.retry_after)
