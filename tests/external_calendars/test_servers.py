"""The servers that the other tests lean on do what is said of them."""

import requests

from tests.external_calendars.front import Answer
from tests.external_calendars.servers import PASSWORD

EVENT = """BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//tests//EN
BEGIN:VEVENT
UID:{uid}
DTSTAMP:20261101T000000Z
DTSTART:20261123T090000Z
DTEND:20261123T100000Z
SUMMARY:{what}
END:VEVENT
END:VCALENDAR
""".replace("\n", "\r\n")


def test_direct_client_writes_reads_and_removes(server):
    calendar = server.make_calendar()

    etag = calendar.put("a.ics", EVENT.format(uid="a", what="one"))
    changed = calendar.put("a.ics", EVENT.format(uid="a", what="two"), etag)

    assert changed == calendar.etag("a.ics") != etag
    assert "SUMMARY:two" in calendar.get("a.ics")
    assert calendar.names() == ["a.ics"]
    calendar.delete("a.ics")
    assert (calendar.names(), calendar.get("a.ics")) == ([], None)
    assert server.front.calls == []


def test_filled_collection(server):
    calendar = server.make_calendar()
    texts = {f"{uid}.ics": EVENT.format(uid=uid, what=uid) for uid in ("a", "b", "c")}

    calendar.fill(texts)
    calendar.put("d.ics", EVENT.format(uid="d", what="d"))
    calendar.delete("b.ics")

    assert calendar.names() == ["a.ics", "c.ics", "d.ics"]
    assert "SUMMARY:c" in calendar.get("c.ics")


def test_front_checks_password_counts_and_fakes_responses(server):
    calendar = server.make_calendar()
    calendar.put("a.ics", EVENT.format(uid="a", what="one"))
    url, signed = f"{calendar.url}a.ics", (calendar.user, PASSWORD)

    with server.front.counted() as lines:
        stranger = requests.get(url, timeout=10, auth=(calendar.user, "wrong"))
        ours = requests.get(url, timeout=10, auth=signed)
        server.front.answer = lambda call: Answer(500, b"no")
        lie = requests.get(url, timeout=10, auth=signed)

    assert [answer.status_code for answer in (stranger, ours, lie)] == [401, 200, 500]
    assert "SUMMARY:one" in ours.text
    assert lines == [f"GET {calendar.path}a.ics"] * 3


def test_restarted_server_keeps_its_data(server):
    calendar = server.make_calendar()
    calendar.put("a.ics", EVENT.format(uid="a", what="one"))
    url, signed = f"{calendar.url}a.ics", (calendar.user, PASSWORD)

    with requests.Session() as session:
        before = session.get(url, timeout=10, auth=signed)
        server.kill()
        away = session.get(url, timeout=10, auth=signed)
        server.start()
        after = session.get(url, timeout=10, auth=signed)

    assert [answer.status_code for answer in (before, away, after)] == [200, 502, 200]
    assert calendar.names() == ["a.ics"]
