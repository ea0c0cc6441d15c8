"""The XML that is asked with, and that comes back, also from those who mean harm."""

from datetime import UTC, datetime, timedelta, timezone

import psutil
import pytest
from defusedxml.ElementTree import fromstring

from external_calendars.providers import webdav_xml
from external_calendars.providers.webdav_xml import CALDAV, DAV, UnreadableXml, read_multistatus

NAMES = 'xmlns="DAV:" xmlns:C="urn:ietf:params:xml:ns:caldav"'


def test_read_multistatus():
    body = f"""<?xml version="1.0"?>
    <multistatus {NAMES}>
      <response><href> /a.ics </href>
        <propstat><prop><getetag>"1"</getetag><resourcetype><collection/><C:calendar/>
        </resourcetype></prop><status>HTTP/1.1 200 OK</status></propstat>
        <propstat><prop><displayname/></prop><status>HTTP/1.1 404 Not Found</status></propstat>
      </response>
      <response><href>/b.ics</href><status>HTTP/1.1 404 Not Found</status></response>
      <response><status>HTTP/1.1 200 OK</status></response>
      <sync-token>t</sync-token>
    </multistatus>"""

    members, token = read_multistatus(body.encode())

    assert [(member.href, member.status, set(member.props)) for member in members] == [
        ("/a.ics", None, {f"{DAV}getetag", f"{DAV}resourcetype"}),
        ("/b.ics", 404, set()),
    ]
    assert token == "t"
    assert members[0].text(f"{DAV}getetag") == '"1"'
    assert members[0].names(f"{DAV}resourcetype") == {f"{DAV}collection", f"{CALDAV}calendar"}
    assert members[0].names(f"{DAV}displayname") is None


LAUGHS = "".join(f'<!ENTITY l{number} "{f"&l{number - 1};" * 10}">' for number in range(1, 20))
DOCUMENTS = {
    "nothing": b"",
    "text": b"hello",
    "iCalendar": b"BEGIN:VCALENDAR",
    "a page": b"<html><body>Welcome</body></html>",
    "a page of HTML 5": b"<!doctype html><html><br></html>",
    "another root": f"<error {NAMES}/>".encode(),
    "no namespace": b"<multistatus/>",
    "cut off": f"<multistatus {NAMES}><response>".encode(),
    "two roots": f"<multistatus {NAMES}/><multistatus {NAMES}/>".encode(),
    "laughs": f'<!DOCTYPE a [<!ENTITY l0 "ha">{LAUGHS}]><multistatus {NAMES}>&l19;'
    "</multistatus>".encode(),
    "a file": f'<!DOCTYPE a [<!ENTITY e SYSTEM "file:///etc/passwd">]><multistatus {NAMES}>&e;'
    "</multistatus>".encode(),
    "a type": f'<!DOCTYPE a SYSTEM "http://127.0.0.1/a.dtd"><multistatus {NAMES}/>'.encode(),
    "unknown entity": f"<multistatus {NAMES}>&nbsp;</multistatus>".encode(),
    "unknown encoding": b'<?xml version="1.0" encoding="klingon"?><a/>',
    "bytes": bytes(range(256)) * 10,
    "deep": b"<a>" * 100_000,
    "many": f"<multistatus {NAMES}>".encode() + b"<a/>" * 600_000 + b"</multistatus>",
}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_malformed_multistatus_is_refused(document):
    with pytest.raises(UnreadableXml):
        read_multistatus(DOCUMENTS[document])


def test_memory_of_a_refused_document_is_limited():
    body = f"<multistatus {NAMES}>".encode() + b"<a/>" * 5_000_000
    process = psutil.Process()
    before = process.memory_info().rss

    with pytest.raises(UnreadableXml):
        read_multistatus(body)

    assert process.memory_info().rss - before < 300 << 20


@pytest.mark.parametrize(
    "letter", [b"\x00", b"\x0b", b"\x1f", b"&#11;", b"&#x0B;", b"&#0;", b"&#x1f;", b"&#031;"]
)
def test_invalid_xml_characters_are_removed(letter):
    body = f"<multistatus {NAMES}><response><href>/a%sb</href></response></multistatus>".encode()

    assert read_multistatus(body.replace(b"%s", letter)).members[0].href == "/ab"


@pytest.mark.parametrize("letter", ["&#9;", "&#10;", "&#xD;", "&#32;", "&#x20;", "&#110;"])
def test_valid_xml_characters_are_kept(letter):
    body = f"<multistatus {NAMES}><sync-token>a{letter}b</sync-token></multistatus>"

    assert len(read_multistatus(body.encode()).sync_token) == 3


@pytest.mark.parametrize(
    ("body", "condition"),
    [
        (b'<error xmlns="DAV:"><valid-sync-token/></error>', "valid-sync-token"),
        (f"<error {NAMES}><C:no-uid-conflict><href>/a</href></C:no-uid-conflict></error>".encode(),
         "no-uid-conflict"),
        (b'<error xmlns="DAV:"/>', ""),
        (b"<error><valid-sync-token/></error>", ""),
        (b"Forbidden", ""),
        (b"", ""),
    ],
)  # fmt: skip
def test_failed_condition_of_a_response(body, condition):
    assert webdav_xml.failed_condition(body) == condition


def test_requests_are_well_formed_xml():
    start = datetime(2026, 11, 23, 10, 0, 0, 1, tzinfo=timezone(timedelta(hours=1)))
    token, href = "a<b>&\"'ü", "/a&b<c>.ics"

    sync = fromstring(webdav_xml.sync_collection(token))
    multiget = fromstring(webdav_xml.calendar_multiget([href, "/d.ics"]))
    query = fromstring(webdav_xml.calendar_query(start, datetime(2026, 11, 23, 9, 30, tzinfo=UTC)))
    props = fromstring(webdav_xml.propfind([f"{DAV}getetag", f"{CALDAV}calendar-home-set"]))

    assert sync.findtext(f"{DAV}sync-token") == token
    assert [element.text for element in multiget.findall(f"{DAV}href")] == [href, "/d.ics"]
    (found,) = query.iter(f"{CALDAV}time-range")
    assert found.attrib == {"start": "20261123T090000Z", "end": "20261123T093000Z"}
    assert [element.tag for element in props[0]] == [f"{DAV}getetag", f"{CALDAV}calendar-home-set"]
