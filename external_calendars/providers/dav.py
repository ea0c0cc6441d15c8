"""The XML of WebDAV and CalDAV (RFC 4918, 4791, 6578): what is asked, and what comes back."""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from xml.etree.ElementTree import Element, ParseError, TreeBuilder  # nosec B405: its tree only
from xml.sax.saxutils import escape  # nosec B406: it writes

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser

DAV = "{DAV:}"
CALDAV = "{urn:ietf:params:xml:ns:caldav}"
CALENDARSERVER = "{http://calendarserver.org/ns/}"
NAMESPACES = (
    'xmlns="DAV:" xmlns:C="urn:ietf:params:xml:ns:caldav" xmlns:S="http://calendarserver.org/ns/"'
)
DECLARATION = '<?xml version="1.0" encoding="utf-8"?>\n'
PREFIXES = {DAV: "", CALDAV: "C:", CALENDARSERVER: "S:"}

# 60,000 objects in one answer, with their etags.
MOST_ELEMENTS = 500_000
MOST_DEPTH = 50
MOST_OF_AN_ERROR = 50_000  # bytes
CONDITION = re.compile(r"[A-Za-z-]{1,60}")
# XML has no place for them, but events have: servers that copy one into their answer would
# otherwise make the whole of it unreadable.
CONTROL = bytes(code for code in range(32) if code not in b"\t\n\r")
CONTROL_REFERENCE = re.compile(
    rb"&#(x0*(?:[0-8bcef]|1[0-9a-f])|0*(?:[0-8]|1[124-9]|2\d|3[01]));", re.I
)


class Unreadable(ValueError):
    """The answer is not the XML that was asked for."""


class Member(NamedTuple):
    """One response of a multistatus: its href as it was sent, the status where one stands for the
    whole of it, and the properties that are there."""

    href: str
    status: int | None
    props: Mapping[str, Element]

    def text(self, name: str) -> str:
        found = self.props.get(name)
        return (found.text or "").strip() if found is not None else ""

    def hrefs(self, name: str) -> list[str]:
        found = self.props.get(name)
        return [] if found is None else [text_of(href) for href in found.iter(f"{DAV}href")]

    def names(self, name: str) -> set[str] | None:
        """The names of all that lies in a property; None where it is not there."""
        found = self.props.get(name)
        return None if found is None else {element.tag for element in found.iter()} - {name}


class Multistatus(NamedTuple):
    members: list[Member]
    sync_token: str


# --- What is asked --------------------------------------------------------------------------------
def prop(names: Iterable[str]) -> str:
    found = (name.partition("}") for name in names)
    return "".join(f"<{PREFIXES[space + brace]}{name}/>" for space, brace, name in found)


def propfind(names: Iterable[str]) -> bytes:
    """The body of a PROPFIND for properties like "{DAV:}getetag"."""
    return f"{DECLARATION}<propfind {NAMESPACES}><prop>{prop(names)}</prop></propfind>".encode()


def depth(levels: int) -> dict[str, str]:
    """The headers of a request whose body is one of these."""
    return {"Depth": str(levels), "Content-Type": "application/xml; charset=utf-8"}


def sync_collection(token: str) -> bytes:
    """What changed since `token`, "" for all (RFC 6578 3.2)."""
    return (
        f"{DECLARATION}<sync-collection {NAMESPACES}><sync-token>{escape(token)}</sync-token>"
        f"<sync-level>1</sync-level><prop><getetag/></prop></sync-collection>"
    ).encode()


def calendar_multiget(hrefs: Iterable[str]) -> bytes:
    """Objects by their paths (RFC 4791 7.9)."""
    wanted = "".join(f"<href>{escape(href)}</href>" for href in hrefs)
    return (
        f"{DECLARATION}<C:calendar-multiget {NAMESPACES}><prop><getetag/><C:calendar-data/></prop>"
        f"{wanted}</C:calendar-multiget>"
    ).encode()


def calendar_query(start: datetime, end: datetime) -> bytes:
    """The events, recurring ones too, that touch the range (RFC 4791 7.8, 9.9), which is widened to
    whole seconds of UTC."""
    begin = start.astimezone(UTC).replace(microsecond=0)
    over = (end + timedelta(microseconds=999_999)).astimezone(UTC).replace(microsecond=0)
    return (
        f"{DECLARATION}<C:calendar-query {NAMESPACES}><prop><getetag/><C:calendar-data/></prop>"
        '<C:filter><C:comp-filter name="VCALENDAR"><C:comp-filter name="VEVENT">'
        f'<C:time-range start="{begin:%Y%m%dT%H%M%SZ}" end="{over:%Y%m%dT%H%M%SZ}"/>'
        "</C:comp-filter></C:comp-filter></C:filter></C:calendar-query>"
    ).encode()


# --- What comes back ------------------------------------------------------------------------------
class BoundedBuilder(TreeBuilder):
    """A tree of so many elements at most, and so deep."""

    def __init__(self) -> None:
        super().__init__()
        self.count = self.depth = 0

    def start(self, tag: str, attrs: Mapping[str, str]) -> Element:
        self.count, self.depth = self.count + 1, self.depth + 1
        if self.count > MOST_ELEMENTS or self.depth > MOST_DEPTH:
            raise Unreadable("too many elements")
        return super().start(tag, dict(attrs))

    def end(self, tag: str) -> Element:
        self.depth -= 1
        return super().end(tag)


def read_xml(body: bytes) -> Element:
    """Raises Unreadable, also for entities and document types: DAV has no use for either."""
    cleaned = CONTROL_REFERENCE.sub(b"", body.translate(None, CONTROL))
    parser = DefusedXMLParser(target=BoundedBuilder(), forbid_dtd=True)
    try:
        parser.feed(cleaned)
        return parser.close()
    except (ParseError, DefusedXmlException, LookupError, ValueError) as fault:
        raise Unreadable(str(fault)) from fault


def read_multistatus(body: bytes) -> Multistatus:
    """Raises Unreadable."""
    root = read_xml(body)
    if root.tag != f"{DAV}multistatus":
        raise Unreadable(root.tag)
    members = [read_member(response) for response in root.findall(f"{DAV}response")]
    return Multistatus(
        [member for member in members if member.href], text_of(root.find(f"{DAV}sync-token"))
    )


def is_multistatus(body: bytes) -> bool:
    try:
        read_multistatus(body)
    except Unreadable:
        return False
    return True


def read_member(response: Element) -> Member:
    props = {
        element.tag: element
        for propstat in response.findall(f"{DAV}propstat")
        if status_of(propstat) in (200, None)
        for element in propstat.iterfind(f"{DAV}prop/*")
    }
    return Member(text_of(response.find(f"{DAV}href")), status_of(response), props)


def status_of(element: Element) -> int | None:
    """404 of <status>HTTP/1.1 404 Not Found</status>."""
    parts = text_of(element.find(f"{DAV}status")).split(None, 2)
    return int(parts[1]) if len(parts) > 1 and re.fullmatch("[1-9][0-9]{2}", parts[1]) else None


def text_of(element: Element | None) -> str:
    return "" if element is None else (element.text or "").strip()


def condition_of(body: bytes) -> str:
    """Which precondition failed (RFC 4918 16), "valid-sync-token"; "" where it is not said."""
    if len(body) > MOST_OF_AN_ERROR:
        return ""
    try:
        root = read_xml(body)
    except Unreadable:
        return ""
    inner = list(root) if root.tag == f"{DAV}error" else []
    name = inner[0].tag.rpartition("}")[2] if inner else ""
    return name if CONDITION.fullmatch(name) else ""
