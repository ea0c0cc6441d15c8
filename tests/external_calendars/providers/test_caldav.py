"""CalDAV on two real servers: what is new, what stands there, what we write."""

import hashlib
from datetime import UTC, datetime, timedelta

import pytest

from external_calendars.providers import caldav_collection_reader
from external_calendars.providers.base import (
    ChangeSet,
    PreconditionFailed,
    ProviderError,
    RemoteObject,
)
from external_calendars.providers.caldav import CalDav
from tests.external_calendars.front import Answer
from tests.external_calendars.servers import PASSWORD, READER
from tests.external_calendars.stored_objects import Stored
from tests.external_calendars.texts import NINE, event_text

CALDAV = CalDav()


class NotAsked(Stored):
    def etags(self) -> dict[str, str]:
        raise AssertionError("This server can tell by itself what is new.")


NOT_ASKED = NotAsked()


def look(calendar, mark, stored=NOT_ASKED) -> ChangeSet:
    return CALDAV.list_changes(calendar.access, mark, stored, deadline=30)


def fetch(calendar, hrefs) -> dict[str, RemoteObject]:
    batches = CALDAV.fetch(calendar.access, hrefs, deadline=30)
    return {element.href: element for batch in batches for element in batch}


# --- Looking --------------------------------------------------------------------------------------
def test_changes_list_new_and_deleted_objects(server):
    calendar = server.make_calendar()
    etag_a = calendar.put("a.ics", event_text("a"))
    etag_b = calendar.put("b.ics", event_text("b"))
    a, b, c = (f"{calendar.path}{name}.ics" for name in "abc")

    first = look(calendar, {})
    etag_a2 = calendar.put("a.ics", event_text("a", what="Other"), etag_a)
    etag_c = calendar.put("c.ics", event_text("c"))
    calendar.delete("b.ics")
    second = look(calendar, first.mark)
    third = look(calendar, second.mark)

    assert first == ChangeSet({a: etag_a, b: etag_b}, [], True, first.mark)
    assert second == ChangeSet({a: etag_a2, c: etag_c}, [b], False, second.mark)
    assert third == ChangeSet({}, [], False, second.mark)
    assert {first.mark["way"], second.mark["way"]} == {"sync"}


def test_unchanged_calendar_takes_one_request(server):
    calendar = server.make_calendar()
    calendar.fill({f"{number}.ics": event_text(str(number)) for number in range(20)})
    mark = look(calendar, {}).mark

    with server.front.counted() as lines:
        again = look(calendar, mark)

    assert again == ChangeSet({}, [], False, mark)
    assert lines == [f"REPORT {calendar.path}"]


def test_changes_of_an_empty_calendar(server):
    calendar = server.make_calendar()

    first = look(calendar, {})

    assert first == ChangeSet({}, [], True, first.mark)
    assert look(calendar, first.mark) == ChangeSet({}, [], False, first.mark)


@pytest.mark.parametrize("token", ["http://radicale.org/ns/sync/" + "0" * 64, "f" * 40, "?", "<"])
def test_unknown_sync_token_restarts_the_sync(server, token):
    calendar = server.make_calendar()
    etag = calendar.put("a.ics", event_text("a"))

    anew = look(calendar, {"way": "sync", "token": token})

    assert anew == ChangeSet({f"{calendar.path}a.ics": etag}, [], True, anew.mark)
    assert look(calendar, anew.mark) == ChangeSet({}, [], False, anew.mark)


def without_sync(call):
    """A server that does not know RFC 6578."""
    if call.method == "REPORT" and b"sync-collection" in call.body:
        return Answer(403, b'<error xmlns="DAV:"><supported-report/></error>')
    return None


def test_changes_by_ctag_without_sync_collection(server):
    calendar = server.make_calendar()
    etag_a = calendar.put("a.ics", event_text("a"))
    etag_b = calendar.put("b.ics", event_text("b"))
    a, b, c = (f"{calendar.path}{name}.ics" for name in "abc")
    server.front.answer = without_sync

    first = look(calendar, {})
    with server.front.counted() as lines:
        same = look(calendar, first.mark)
    etag_a2 = calendar.put("a.ics", event_text("a", what="Other"), etag_a)
    etag_c = calendar.put("c.ics", event_text("c"))
    calendar.delete("b.ics")
    second = look(calendar, first.mark, Stored(first.changed))

    assert first == ChangeSet({a: etag_a, b: etag_b}, [], True, first.mark)
    assert first.mark["way"] == "ctag"
    assert same == ChangeSet({}, [], False, first.mark)
    assert lines == [f"PROPFIND {calendar.path}"]
    assert second == ChangeSet({a: etag_a2, c: etag_c}, [b], False, second.mark)
    assert second.mark != first.mark
    assert look(calendar, second.mark) == ChangeSet({}, [], False, second.mark)


def test_changes_by_etags_without_ctag(server):
    calendar = server.make_calendar()
    etag_a = calendar.put("a.ics", event_text("a"))
    calendar.put("b.ics", event_text("b"))
    a, b = (f"{calendar.path}{name}.ics" for name in "ab")
    member = f"<response><href>{calendar.path}</href></response>"
    bare = f'<multistatus xmlns="DAV:">{member}</multistatus>'

    def answer(call):
        if call.method == "PROPFIND" and b"getctag" in call.body:
            return Answer(207, bare.encode())
        return None

    server.front.answer = answer
    first = look(calendar, {})
    etag_a2 = calendar.put("a.ics", event_text("a", what="Other"), etag_a)
    calendar.delete("b.ics")
    with server.front.counted() as lines:
        second = look(calendar, first.mark, Stored(first.changed))

    assert (first.is_whole, set(first.changed), first.mark) == (True, {a, b}, {"way": "etags"})
    assert second == ChangeSet({a: etag_a2}, [b], False, {"way": "etags"})
    assert lines == [f"PROPFIND {calendar.path}"]


def test_deleted_collection_is_not_a_calendar(server):
    calendar = server.make_calendar()
    mark = look(calendar, {}).mark
    calendar.delete("")

    for known_mark in (mark, {}):
        with pytest.raises(ProviderError) as trouble:
            look(calendar, known_mark)
        assert trouble.value.code == "not_a_calendar"


def test_wrong_password_is_unauthorized(server):
    calendar = server.make_calendar()
    wrong = calendar.access._replace(password="wrong")
    mark = look(calendar, {}).mark

    for known_mark in (mark, {}):
        with pytest.raises(ProviderError) as trouble:
            CALDAV.list_changes(wrong, known_mark, NOT_ASKED, deadline=30)
        assert (trouble.value.code, trouble.value.status) == ("unauthorized", 401)


def test_encoded_names_are_normalised(server):
    calendar = server.make_calendar()
    for name in ("a%20b", "%C3%BC", "x%2By%40z"):
        calendar.put(f"{name}.ics", event_text(name))
    hrefs = [f"{calendar.path}{name}.ics" for name in ("%C3%BC", "a%20b", "x%2By%40z")]

    seen = look(calendar, {})

    assert sorted(seen.changed) == hrefs
    assert fetch(calendar, hrefs).keys() == set(hrefs)
    assert {href: one.etag for href, one in fetch(calendar, hrefs).items()} == seen.changed
    for href in hrefs:
        CALDAV.delete(calendar.access, href, seen.changed[href], deadline=30)
    assert calendar.names() == []


# --- Fetching -------------------------------------------------------------------------------------
def test_objects_are_fetched_in_batches(server):
    calendar = server.make_calendar()
    calendar.fill({f"{number}.ics": event_text(f"u{number}") for number in range(230)})
    hrefs = [f"{calendar.path}{number}.ics" for number in range(231)]

    with server.front.counted() as lines:
        batches = list(CALDAV.fetch(calendar.access, hrefs, deadline=30))

    assert [len(batch) for batch in batches] == [100, 100, 30]
    assert lines == [f"REPORT {calendar.path}"] * 3
    found = {element.href: element for batch in batches for element in batch}
    assert set(found) == set(hrefs[:230])
    assert "UID:u229" in found[hrefs[229]].text
    assert found[hrefs[229]].etag == calendar.etag("229.ics")


def test_too_large_batch_is_split(server, monkeypatch):
    monkeypatch.setattr(caldav_collection_reader, "BATCH_BYTES", 4000)
    calendar = server.make_calendar()
    calendar.fill({f"{number}.ics": event_text(f"u{number}") for number in range(8)})
    calendar.put("3.ics", event_text("u3", what="x" * 5000))
    hrefs = [f"{calendar.path}{number}.ics" for number in range(8)]

    found = fetch(calendar, hrefs)

    assert set(found) == set(hrefs)
    assert found[hrefs[3]] == RemoteObject(hrefs[3], "", "")
    assert [f"UID:u{number}" in found[hrefs[number]].text for number in range(8)] == [
        number != 3 for number in range(8)
    ]


def test_read_object(server):
    calendar = server.make_calendar()
    etag = calendar.put("a.ics", event_text("a", what="Grüße"))

    found = CALDAV.read_object(calendar.access, f"{calendar.path}a.ics", deadline=30)
    gone = CALDAV.read_object(calendar.access, f"{calendar.path}b.ics", deadline=30)

    assert (found.href, found.etag, gone) == (f"{calendar.path}a.ics", etag, None)
    assert "SUMMARY:Grüße" in found.text


@pytest.mark.parametrize(
    ("start", "minutes", "uids"),
    [
        (NINE, 60, {"a", "daily"}),
        (NINE + timedelta(days=1, minutes=59), 1, {"a", "daily"}),
        (NINE + timedelta(days=1, minutes=60), 30, {"daily"}),
        (NINE - timedelta(days=1), 0.001, {"a", "daily"}),
        (NINE - timedelta(days=1, minutes=30), 30, set()),
        (NINE + timedelta(days=9), 60, {"daily"}),
        (NINE + timedelta(days=10, minutes=60), 60, set()),
        (datetime(2026, 11, 28, tzinfo=UTC), 24 * 60, {"daily", "day"}),
        (datetime(2026, 11, 27, 10, tzinfo=UTC), 15, {"daily", "day"}),
        (datetime(2026, 11, 29, 14, tzinfo=UTC), 15, {"daily", "day"}),
        (datetime(2026, 11, 30, tzinfo=UTC), 15, {"daily"}),
    ],
)
@pytest.mark.matrix
def test_objects_between_two_times(server, start, minutes, uids):
    calendar = server.make_calendar()
    daily = ("RRULE:FREQ=DAILY;COUNT=10",)
    day = event_text("day").replace("DTSTART:20261123T090000Z", "DTSTART;VALUE=DATE:20261128")
    day = day.replace("DTEND:20261123T100000Z", "DTEND;VALUE=DATE:20261129")
    calendar.put("a.ics", event_text("a"))
    calendar.put("daily.ics", event_text("daily", lines=daily))
    calendar.put("day.ics", day)

    found = CALDAV.objects_between(
        calendar.access, start, start + timedelta(minutes=minutes), deadline=30
    )

    assert {one.href for one in found} == {f"{calendar.path}{uid}.ics" for uid in uids}
    assert all("BEGIN:VEVENT" in one.text and one.etag for one in found)


# --- Writing --------------------------------------------------------------------------------------
def test_write_move_and_remove(server):
    calendar = server.make_calendar()
    href = CALDAV.locate(calendar.access, "bkg-1@example.com", deadline=30)

    with server.front.counted() as lines:
        new = event_text("bkg-1@example.com")
        etag = CALDAV.put(calendar.access, href, new, "", deadline=30).etag
        moved = event_text("bkg-1@example.com", NINE + timedelta(hours=1))
        etag2 = CALDAV.put(calendar.access, href, moved, etag, deadline=30).etag
    stands = calendar.get("bkg-1%40example.com.ics")
    CALDAV.delete(calendar.access, href, etag2, deadline=30)
    CALDAV.delete(calendar.access, href, etag2, deadline=30)

    assert href == f"{calendar.path}bkg-1%40example.com.ics"
    assert lines == [f"PUT {href}"] * 2
    assert "DTSTART:20261123T100000Z" in stands
    assert calendar.names() == []


def test_put_over_a_changed_object_is_refused(server):
    calendar = server.make_calendar()
    href = f"{calendar.path}a.ics"
    etag = calendar.put("a.ics", event_text("a"))
    etag2 = calendar.put("a.ics", event_text("a", what="Theirs"), etag)
    ours = event_text("a", what="Ours")

    for known in ("", etag):
        with pytest.raises(PreconditionFailed):
            CALDAV.put(calendar.access, href, ours, known, deadline=30)
    with pytest.raises(PreconditionFailed):
        CALDAV.delete(calendar.access, href, etag, deadline=30)
    with pytest.raises(PreconditionFailed):
        CALDAV.put(calendar.access, f"{calendar.path}gone.ics", ours, etag, deadline=30)

    assert calendar.etag("a.ics") == etag2


def test_put_of_a_duplicate_uid_is_refused(server):
    calendar = server.make_calendar()
    calendar.put("a.ics", event_text("a"))

    with pytest.raises(PreconditionFailed):
        CALDAV.put(calendar.access, f"{calendar.path}b.ics", event_text("a"), "", deadline=30)

    assert calendar.names() == ["a.ics"]


def test_put_refused_by_the_server_changes_nothing(server):
    calendar = server.make_calendar()

    with pytest.raises(ProviderError) as trouble:
        CALDAV.put(calendar.access, f"{calendar.path}a.ics", "nonsense", "", deadline=30)

    assert trouble.value.code == "server_error"
    assert calendar.names() == []


def test_etag_is_fetched_if_the_response_has_none(server):
    calendar = server.make_calendar()
    passed_on = server.front.forward

    def without_etag(call, behind):
        answer = passed_on(call, behind)
        headers = {key: value for key, value in answer.headers.items() if key.lower() != "etag"}
        return answer._replace(headers=headers)

    server.front.forward = without_etag
    try:
        stored = CALDAV.put(
            calendar.access, f"{calendar.path}a.ics", event_text("a"), "", deadline=30
        )
    finally:
        server.front.forward = passed_on

    assert stored.etag == calendar.etag("a.ics")


def test_put_and_delete_without_write_access(radicale):
    calendar = radicale.make_calendar()
    etag = calendar.put("a.ics", event_text("a"))
    reader = calendar.access._replace(username=READER, password=PASSWORD)
    href = f"{calendar.path}a.ics"

    assert list(CALDAV.list_changes(reader, {}, NOT_ASKED, deadline=30).changed) == [href]
    with pytest.raises(ProviderError) as put:
        CALDAV.put(reader, href, event_text("a", what="Other"), etag, deadline=30)
    with pytest.raises(ProviderError) as delete:
        CALDAV.delete(reader, href, etag, deadline=30)

    assert (put.value.code, delete.value.code) == ("no_write_access", "no_write_access")
    assert calendar.etag("a.ics") == etag


@pytest.mark.parametrize(
    ("uid", "name"),
    [
        ("bkg-1", "bkg-1"),
        ("a.b_c@d", "a.b_c%40d"),
        ("a/b", hashlib.sha256(b"a/b").hexdigest()),
        ("..", hashlib.sha256(b"..").hexdigest()),
        ("x" * 201, hashlib.sha256(b"x" * 201).hexdigest()),
    ],
)
def test_href_of_a_new_object(radicale, uid, name):
    access = radicale.make_calendar().access

    assert CALDAV.locate(access, uid, deadline=30).rpartition("/")[2] == f"{name}.ics"
