"""XML of WebDAV and CalDAV (RFC 4918, 4791, 6578): request bodies and answers."""

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

MAX_ELEMENTS = 500_000  # 60,000 objects with their etags in one answer
MAX_DEPTH = 50
MAX_ERROR_BYTES = 50_000
CONDITION = re.compile(r"[A-Za-z-]{1,60}")
# Control characters are invalid in XML, but events contain them: a server that copies one into its
# answer would make the whole answer unreadable.
CONTROL = bytes(code for code in range(32) if code not in b"\t\n\r")
CONTROL_REFERENCE = re.compile(
    rb"&#(x0*(?:[0-8bcef]|1[0-9a-f])|0*(?:[0-8]|1[124-9]|2\d|3[01]));", re.I
)


class UnreadableXml(ValueError):
    """The answer is not the XML that was asked for."""


class MultistatusMember(NamedTuple):
    """One response: its href as sent, the resource's status if given, and its properties."""

    href: str
    status: int | None
    props: Mapping[str, Element]

    def text(self, name: str) -> str:
        found = self.props.get(name)
        return (found.text or "").strip() if found is not None else ""

    def hrefs(self, name: str) -> list[str]:
        found = self.props.get(name)
        return [] if found is None else [element_text(href) for href in found.iter(f"{DAV}href")]

    def names(self, name: str) -> set[str] | None:
        """Return the names of all elements within a property; None without the property."""
        found = self.props.get(name)
        return None if found is None else {element.tag for element in found.iter()} - {name}


class Multistatus(NamedTuple):
    members: list[MultistatusMember]
    sync_token: str


# --- Requests -------------------------------------------------------------------------------------
def prop_xml(names: Iterable[str]) -> str:
    parts = (name.partition("}") for name in names)
    return "".join(f"<{PREFIXES[space + brace]}{name}/>" for space, brace, name in parts)


def propfind(names: Iterable[str]) -> bytes:
    """Return the body of a PROPFIND for properties such as "{DAV:}getetag"."""
    return f"{DECLARATION}<propfind {NAMESPACES}><prop>{prop_xml(names)}</prop></propfind>".encode()


def xml_request_headers(levels: int) -> dict[str, str]:
    """Return the headers of a request with an XML body."""
    return {"Depth": str(levels), "Content-Type": "application/xml; charset=utf-8"}


def sync_collection(token: str) -> bytes:
    """Return the body of a REPORT on changes since `token`; "" for all objects (RFC 6578 3.2)."""
    return (
        f"{DECLARATION}<sync-collection {NAMESPACES}><sync-token>{escape(token)}</sync-token>"
        f"<sync-level>1</sync-level><prop><getetag/></prop></sync-collection>"
    ).encode()


def calendar_multiget(hrefs: Iterable[str]) -> bytes:
    """Return the body of a REPORT that fetches objects by path (RFC 4791 7.9)."""
    wanted = "".join(f"<href>{escape(href)}</href>" for href in hrefs)
    return (
        f"{DECLARATION}<C:calendar-multiget {NAMESPACES}><prop><getetag/><C:calendar-data/></prop>"
        f"{wanted}</C:calendar-multiget>"
    ).encode()


def calendar_query(start: datetime, end: datetime) -> bytes:
    """Return the body of a REPORT on events, including recurring ones, that overlap the range.

    The range is widened to whole seconds of UTC (RFC 4791 7.8, 9.9).
    """
    begin = start.astimezone(UTC).replace(microsecond=0)
    over = (end + timedelta(microseconds=999_999)).astimezone(UTC).replace(microsecond=0)
    return (
        f"{DECLARATION}<C:calendar-query {NAMESPACES}><prop><getetag/><C:calendar-data/></prop>"
        '<C:filter><C:comp-filter name="VCALENDAR"><C:comp-filter name="VEVENT">'
        f'<C:time-range start="{begin:%Y%m%dT%H%M%SZ}" end="{over:%Y%m%dT%H%M%SZ}"/>'
        "</C:comp-filter></C:comp-filter></C:filter></C:calendar-query>"
    ).encode()


# --- Answers --------------------------------------------------------------------------------------
class BoundedBuilder(TreeBuilder):
    """Tree builder that limits the number of elements and the depth."""

    def __init__(self) -> None:
        super().__init__()
        self.count = self.depth = 0

    def start(self, tag: str, attrs: Mapping[str, str]) -> Element:
        self.count, self.depth = self.count + 1, self.depth + 1
        if self.count > MAX_ELEMENTS or self.depth > MAX_DEPTH:
            raise UnreadableXml("too many elements")
        return super().start(tag, dict(attrs))

    def end(self, tag: str) -> Element:
        self.depth -= 1
        return super().end(tag)


def read_xml(body: bytes) -> Element:
    """Parse XML. Raises UnreadableXml, also for entities and document types: WebDAV has neither."""
    cleaned = CONTROL_REFERENCE.sub(b"", body.translate(None, CONTROL))
    parser = DefusedXMLParser(target=BoundedBuilder(), forbid_dtd=True)
    try:
        parser.feed(cleaned)
        return parser.close()
    except (ParseError, DefusedXmlException, LookupError, ValueError) as fault:
        raise UnreadableXml(str(fault)) from fault


def read_multistatus(body: bytes) -> Multistatus:
    """Parse a multistatus. Raises UnreadableXml."""
    root = read_xml(body)
    if root.tag != f"{DAV}multistatus":
        raise UnreadableXml(root.tag)
    members = [read_member(response) for response in root.findall(f"{DAV}response")]
    return Multistatus(
        [member for member in members if member.href], element_text(root.find(f"{DAV}sync-token"))
    )


def is_multistatus(body: bytes) -> bool:
    try:
        read_multistatus(body)
    except UnreadableXml:
        return False
    return True


def read_member(response: Element) -> MultistatusMember:
    props = {
        element.tag: element
        for propstat in response.findall(f"{DAV}propstat")
        if element_status(propstat) in (200, None)
        for element in propstat.iterfind(f"{DAV}prop/*")
    }
    return MultistatusMember(
        element_text(response.find(f"{DAV}href")), element_status(response), props
    )


def element_status(element: Element) -> int | None:
    """Return the status code: 404 for <status>HTTP/1.1 404 Not Found</status>."""
    parts = element_text(element.find(f"{DAV}status")).split(None, 2)
    return int(parts[1]) if len(parts) > 1 and re.fullmatch("[1-9][0-9]{2}", parts[1]) else None


def element_text(element: Element | None) -> str:
    return "" if element is None else (element.text or "").strip()


def failed_condition(body: bytes) -> str:
    """Return the failed precondition (RFC 4918 16), such as "valid-sync-token", or ""."""
    if len(body) > MAX_ERROR_BYTES:
        return ""
    try:
        root = read_xml(body)
    except UnreadableXml:
        return ""
    inner = list(root) if root.tag == f"{DAV}error" else []
    name = inner[0].tag.rpartition("}")[2] if inner else ""
    return name if CONDITION.fullmatch(name) else ""
