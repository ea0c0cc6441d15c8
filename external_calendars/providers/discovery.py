"""From what a person gave to the calendar's own address (RFC 6764, 4791, 6638).

A person may give a server, a principal, a home of calendars or a calendar. The DNS records of
RFC 6764 (SRV and TXT) are not asked for: they would need a resolver of our own, and every server
that has them answers at /.well-known/caldav too.
"""

import contextlib
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import unquote

from external_calendars.providers import dav
from external_calendars.providers.base import Found, Trouble
from external_calendars.providers.dav import CALDAV, DAV, Member, depth
from external_calendars.providers.paths import (
    as_collection,
    joined,
    origin_of,
    path_of,
)
from external_calendars.providers.visit import Visit, multistatus
from notifications.safe_http import Fetched

WELL_KNOWN = "/.well-known/caldav"
MOST_HOMES = 5
MOST_NAMED = 10
NAME_LENGTH = 200

RESOURCE_TYPE, NAME = f"{DAV}resourcetype", f"{DAV}displayname"
PRINCIPAL, HOMES = f"{DAV}current-user-principal", f"{CALDAV}calendar-home-set"
PRIVILEGES, KINDS = f"{DAV}current-user-privilege-set", f"{CALDAV}supported-calendar-component-set"
INBOX = f"{CALDAV}schedule-inbox-URL"
DEFAULT_CALENDAR = f"{CALDAV}schedule-default-calendar-URL"

ABOUT = dav.propfind((RESOURCE_TYPE, NAME, PRINCIPAL, HOMES, PRIVILEGES, KINDS, INBOX))
ABOUT_INBOX = dav.propfind((DEFAULT_CALENDAR,))

WRITING = {f"{DAV}{name}" for name in ("all", "write", "write-content", "bind")}


class Place(NamedTuple):
    """What a server says of one of its addresses."""

    url: str
    member: Member
    features: str  # its DAV header

    @property
    def is_calendar(self) -> bool:
        return f"{CALDAV}calendar" in (self.member.names(RESOURCE_TYPE) or ())

    @property
    def holds_events(self) -> bool:
        """A calendar that does not say what it holds may hold anything (RFC 4791 5.2.3)."""
        kinds = self.member.props.get(KINDS)
        named = {kind.get("name", "").upper() for kind in kinds} if kinds is not None else set()
        return self.is_calendar and (not named or "VEVENT" in named)

    @property
    def name(self) -> str:
        shown = self.member.text(NAME) or unquote(path_of(self.url).rstrip("/").rpartition("/")[2])
        return " ".join(shown.split())[:NAME_LENGTH]

    @property
    def may_write(self) -> bool:
        """A server that does not say what one may do is asked by doing it."""
        privileges = self.member.names(PRIVILEGES)
        return privileges is None or bool(privileges & WRITING)


def find_calendar(visit: Visit) -> Found:
    """The calendar behind the visit's address. Raises Trouble."""
    start = first_place(visit, visit.access.address)
    if start.is_calendar:
        if not start.holds_events:
            raise Trouble("not_a_calendar", detail="This calendar holds no events.")
        return found(visit, start)
    calendars = calendars_around(visit, start)
    if not calendars:
        raise Trouble("not_a_calendar", detail="This user has no calendar that holds events.")
    if len(calendars) == 1:
        return found(visit, calendars[0])
    chosen = default_calendar(visit, start)
    for calendar in calendars:
        if calendar.url == chosen:
            return found(visit, calendar)
    named = [f"{calendar.name} ({calendar.url})" for calendar in calendars[:MOST_NAMED]]
    more = ", …" if len(calendars) > MOST_NAMED else ""
    detail = f"There are several calendars: give the address of one. {', '.join(named)}{more}"
    raise Trouble("several_calendars", detail=detail)


def first_place(visit: Visit, url: str) -> Place:
    """What stands at the address itself; where no DAV is spoken there, or only a server was named,
    what its well-known address leads to, and then its root."""
    well_known, root = joined(url, WELL_KNOWN), joined(url, "/")
    for address in (well_known, root) if url == root else (url, well_known):
        try:
            return described(visit, address)
        except Trouble as trouble:
            # A path that is not there is a mistake, and no reason to take something else. The
            # well-known one may be closed because it begins with a dot.
            is_closed = trouble.code == "not_a_calendar" or trouble.status == 403
            if not speaks_no_dav(trouble) and not (address == well_known and is_closed):
                raise
    raise Trouble("not_a_calendar")


def speaks_no_dav(trouble: Trouble) -> bool:
    return trouble.code == "bad_answer" or trouble.status in (400, 405, 415, 501)


def described(visit: Visit, url: str) -> Place:
    """What stands at `url`, or where it leads. Raises Trouble."""
    url, answer = visit.follow(
        "PROPFIND", url, headers=depth(0), body=ABOUT, lead=visit.led_on_signed
    )
    place = next(places(url, answer), None)
    if place is None:
        raise Trouble("bad_answer", status=answer.status)
    return place


def places(url: str, answer: Fetched) -> Iterator[Place]:
    """All that an answer to a PROPFIND tells of, on its own server. Raises Trouble."""
    members = multistatus(answer).members
    there = [member for member in members if member.status in (None, 200)]
    if not there:
        raise Trouble("not_a_calendar", status=207)
    for member in there:
        with contextlib.suppress(Trouble):
            there_url = as_collection(joined(url, member.href))
            if origin_of(there_url) == origin_of(url):
                yield Place(there_url, member, answer.headers.get("DAV", ""))


def calendars_around(visit: Visit, start: Place) -> list[Place]:
    """The calendars that hold events: in the homes that `start` names, or right in `start`, or in
    the homes that its principal names; each once."""
    principals = start.member.hrefs(PRINCIPAL)
    homes = start.member.hrefs(HOMES)
    if not homes and path_of(start.url) != "/":
        try:
            inside = listed(visit, start.url)
        except Trouble:  # some do not list what is no home
            if not principals:
                raise
            inside = []
        if inside:
            return inside
    if not homes and principals:
        start = described(visit, visit.led_on_signed(start.url, principals[0]))
        homes = start.member.hrefs(HOMES)
    calendars: dict[str, Place] = {}
    for home in homes[:MOST_HOMES]:
        for calendar in listed(visit, visit.led_on_signed(start.url, home)):
            calendars[calendar.url] = calendar
    return list(calendars.values())


def listed(visit: Visit, home: str) -> list[Place]:
    """The calendars in a collection that hold events."""
    answer = visit.ask("PROPFIND", as_collection(home), headers=depth(1), body=ABOUT)
    return [place for place in places(home, answer) if place.holds_events]


def default_calendar(visit: Visit, start: Place) -> str:
    """Which one the server takes for new meetings (RFC 6638 9.2); "" where it does not say."""
    inboxes, principals = start.member.hrefs(INBOX), start.member.hrefs(PRINCIPAL)
    with contextlib.suppress(Trouble):
        if not inboxes and principals:
            start = described(visit, visit.led_on_signed(start.url, principals[0]))
            inboxes = start.member.hrefs(INBOX)
        if inboxes:
            inbox = visit.led_on_signed(start.url, inboxes[0])
            answer = visit.ask("PROPFIND", inbox, headers=depth(0), body=ABOUT_INBOX)
            for place in places(inbox, answer):
                for href in place.member.hrefs(DEFAULT_CALENDAR):
                    return as_collection(joined(inbox, href))
    return ""


def found(visit: Visit, place: Place) -> Found:
    """A server may name its features with every answer, but has to only here (RFC 4791 5.1)."""
    answer = visit.ask("OPTIONS", place.url)
    told = answer.headers.get("DAV", "") if answer.status in (200, 204) else place.features
    features = {word.strip().lower() for word in told.split(",")}
    return Found(
        place.url, place.name, place.may_write, invites="calendar-auto-schedule" in features
    )
