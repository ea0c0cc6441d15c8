"""Find a calendar's URL from a user's input (RFC 6764, 4791, 6638).

The input may be a server, a principal, a calendar home or a calendar. The DNS records of RFC 6764
(SRV and TXT) are not used: they would need a resolver of our own, and every server that has them
also answers at /.well-known/caldav.
"""

import contextlib
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import unquote

from common.messages import Message
from common.net.safe_http import FetchResult
from external_calendars.providers import webdav_xml
from external_calendars.providers.base import DiscoveredCalendar, ProviderError
from external_calendars.providers.http_session import HttpSession, require_multistatus
from external_calendars.providers.urls import join_url, origin_of, to_collection_url, url_path
from external_calendars.providers.webdav_xml import (
    CALDAV,
    DAV,
    MultistatusMember,
    xml_request_headers,
)

WELL_KNOWN = "/.well-known/caldav"
MAILTO = "mailto:"
MAX_HOMES = 5
MAX_NAMED = 10
NAME_LENGTH = 200

RESOURCE_TYPE, NAME = f"{DAV}resourcetype", f"{DAV}displayname"
PRINCIPAL, HOMES = f"{DAV}current-user-principal", f"{CALDAV}calendar-home-set"
PRIVILEGES, KINDS = f"{DAV}current-user-privilege-set", f"{CALDAV}supported-calendar-component-set"
INBOX = f"{CALDAV}schedule-inbox-URL"
USER_ADDRESSES = f"{CALDAV}calendar-user-address-set"
DEFAULT_CALENDAR = f"{CALDAV}schedule-default-calendar-URL"

ABOUT = webdav_xml.propfind(
    (RESOURCE_TYPE, NAME, PRINCIPAL, HOMES, PRIVILEGES, KINDS, INBOX, USER_ADDRESSES)
)
ABOUT_INBOX = webdav_xml.propfind((DEFAULT_CALENDAR,))

WRITING = {f"{DAV}{name}" for name in ("all", "write", "write-content", "bind")}


class DiscoveredUrl(NamedTuple):
    """The properties of one URL, as a server returned them."""

    url: str
    member: MultistatusMember
    features: str  # its DAV header

    @property
    def is_calendar(self) -> bool:
        return f"{CALDAV}calendar" in (self.member.names(RESOURCE_TYPE) or ())

    @property
    def holds_events(self) -> bool:
        """True also if the calendar names no component types: it may hold any (RFC 4791 5.2.3)."""
        kinds = self.member.props.get(KINDS)
        named = {kind.get("name", "").upper() for kind in kinds} if kinds is not None else set()
        return self.is_calendar and (not named or "VEVENT" in named)

    @property
    def name(self) -> str:
        shown = self.member.text(NAME) or unquote(url_path(self.url).rstrip("/").rpartition("/")[2])
        return " ".join(shown.split())[:NAME_LENGTH]

    @property
    def may_write(self) -> bool:
        """True also if the server does not name the privileges: the first write will tell."""
        privileges = self.member.names(PRIVILEGES)
        return privileges is None or bool(privileges & WRITING)


def find_calendar(visit: HttpSession) -> DiscoveredCalendar:
    """Return the calendar behind the session's address. Raises ProviderError."""
    start = find_start(visit, visit.access.address)
    if start.is_calendar:
        if not start.holds_events:
            raise ProviderError(
                "not_a_calendar", detail=Message("This collection does not support events.")
            )
        return discovered_calendar(visit, start)
    calendars = calendars_around(visit, start)
    if not calendars:
        raise ProviderError(
            "not_a_calendar", detail=Message("This user has no calendar for events.")
        )
    if len(calendars) == 1:
        return discovered_calendar(visit, calendars[0])
    chosen = default_schedule_calendar(visit, start)
    for calendar in calendars:
        if calendar.url == chosen:
            return discovered_calendar(visit, calendar)
    named = [f"{calendar.name} ({calendar.url})" for calendar in calendars[:MAX_NAMED]]
    more = ", …" if len(calendars) > MAX_NAMED else ""
    detail = f"There are several calendars: enter the address of one. {', '.join(named)}{more}"
    raise ProviderError("several_calendars", detail=detail)


def find_start(visit: HttpSession, url: str) -> DiscoveredUrl:
    """Return the resource at `url`, else at the well-known URL; of a bare server the reverse."""
    well_known, root = join_url(url, WELL_KNOWN), join_url(url, "/")
    for address in (well_known, root) if url == root else (url, well_known):
        try:
            return describe_url(visit, address)
        except ProviderError as provider_error:
            # A missing path is a mistake: do not continue with another one. The well-known path may
            # be forbidden because it begins with a dot.
            is_closed = provider_error.code == "not_a_calendar" or provider_error.status == 403
            if not is_not_dav(provider_error) and not (address == well_known and is_closed):
                raise
    raise ProviderError("not_a_calendar")


def is_not_dav(provider_error: ProviderError) -> bool:
    return provider_error.code == "bad_answer" or provider_error.status in (400, 405, 415, 501)


def describe_url(visit: HttpSession, url: str) -> DiscoveredUrl:
    """Return the resource at `url`, following redirects. Raises ProviderError."""
    url, answer = visit.follow(
        "PROPFIND",
        url,
        headers=xml_request_headers(0),
        body=ABOUT,
        resolve=visit.resolve_link_with_password,
    )
    place = next(parse_places(url, answer), None)
    if place is None:
        raise ProviderError("bad_answer", status=answer.status)
    return place


def parse_places(url: str, answer: FetchResult) -> Iterator[DiscoveredUrl]:
    """Yield the resources of a PROPFIND answer on the same origin. Raises ProviderError."""
    members = require_multistatus(answer).members
    present = [member for member in members if member.status in (None, 200)]
    if not present:
        raise ProviderError("not_a_calendar", status=207)
    for member in present:
        with contextlib.suppress(ProviderError):
            there_url = to_collection_url(join_url(url, member.href))
            if origin_of(there_url) == origin_of(url):
                yield DiscoveredUrl(there_url, member, answer.headers.get("DAV", ""))


def calendars_around(visit: HttpSession, start: DiscoveredUrl) -> list[DiscoveredUrl]:
    """Return the calendars for events, each once.

    Searched: the homes that `start` names, else `start` itself, else the homes of its principal.
    """
    principals = start.member.hrefs(PRINCIPAL)
    homes = start.member.hrefs(HOMES)
    if not homes and url_path(start.url) != "/":
        try:
            inside = list_calendars(visit, start.url)
        except ProviderError:  # some servers refuse to list collections that are not homes
            if not principals:
                raise
            inside = []
        if inside:
            return inside
    if not homes and principals:
        start = describe_url(visit, visit.resolve_link_with_password(start.url, principals[0]))
        homes = start.member.hrefs(HOMES)
    calendars: dict[str, DiscoveredUrl] = {}
    for home in homes[:MAX_HOMES]:
        for calendar in list_calendars(visit, visit.resolve_link_with_password(start.url, home)):
            calendars[calendar.url] = calendar
    return list(calendars.values())


def list_calendars(visit: HttpSession, home: str) -> list[DiscoveredUrl]:
    answer = visit.ask(
        "PROPFIND", to_collection_url(home), headers=xml_request_headers(1), body=ABOUT
    )
    return [place for place in parse_places(home, answer) if place.holds_events]


def default_schedule_calendar(visit: HttpSession, start: DiscoveredUrl) -> str:
    """Return the URL of the default calendar for new meetings (RFC 6638 9.2); "" if unknown."""
    inboxes, principals = start.member.hrefs(INBOX), start.member.hrefs(PRINCIPAL)
    with contextlib.suppress(ProviderError):
        if not inboxes and principals:
            start = describe_url(visit, visit.resolve_link_with_password(start.url, principals[0]))
            inboxes = start.member.hrefs(INBOX)
        if inboxes:
            inbox = visit.resolve_link_with_password(start.url, inboxes[0])
            answer = visit.ask("PROPFIND", inbox, headers=xml_request_headers(0), body=ABOUT_INBOX)
            for place in parse_places(inbox, answer):
                for href in place.member.hrefs(DEFAULT_CALENDAR):
                    return to_collection_url(join_url(inbox, href))
    return ""


def discovered_calendar(visit: HttpSession, place: DiscoveredUrl) -> DiscoveredCalendar:
    """Return the calendar with the features from OPTIONS: others may omit them (RFC 4791 5.1)."""
    answer = visit.ask("OPTIONS", place.url)
    features_header = (
        answer.headers.get("DAV", "") if answer.status in (200, 204) else place.features
    )
    features = {word.strip().lower() for word in features_header.split(",")}
    return DiscoveredCalendar(
        place.url,
        place.name,
        place.may_write,
        invites="calendar-auto-schedule" in features,
        user_addresses=user_addresses(visit, place),
    )


def user_addresses(visit: HttpSession, place: DiscoveredUrl) -> tuple[str, ...]:
    """Return the user's e-mail addresses, as the server spells them (RFC 6638 2.4.1)."""
    with contextlib.suppress(ProviderError):
        for principal in place.member.hrefs(PRINCIPAL)[:1]:
            user = describe_url(visit, visit.resolve_link_with_password(place.url, principal))
            hrefs = user.member.hrefs(USER_ADDRESSES)
            return tuple(href[len(MAILTO) :] for href in hrefs if href.lower().startswith(MAILTO))
    return ()
