"""Whatever a server answers, a provider says what is wrong, soon, and with little memory."""

import gzip
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from functools import cache
from typing import Any

import psutil
import pytest

from external_calendars.providers import PROVIDERS, http_session
from external_calendars.providers.base import CalendarAccess, PreconditionFailed, ProviderError
from tests.external_calendars.front import Answer, Front
from tests.external_calendars.stored_objects import NOTHING_STORED
from tests.external_calendars.texts import NINE, event_text

DAV = PROVIDERS["caldav"]
FEED = PROVIDERS["ics"]
DEADLINE = 5.0
SOON = 4 * DEADLINE  # where the answer itself has no end
SYNC = {"way": "sync", "token": "t"}
HOUR = (NINE, NINE + timedelta(hours=1))

DEEDS: dict[str, Callable[[CalendarAccess], Any]] = {
    "find": lambda access: DAV.find_calendar(access, deadline=DEADLINE),
    "look": lambda access: DAV.list_changes(access, SYNC, NOTHING_STORED, deadline=DEADLINE),
    "first look": lambda access: DAV.list_changes(access, {}, NOTHING_STORED, deadline=DEADLINE),
    "fetch": lambda access: list(DAV.fetch(access, ["/cal/a.ics"], deadline=DEADLINE)),
    "read": lambda access: DAV.read_object(access, "/cal/a.ics", deadline=DEADLINE),
    "put": lambda access: DAV.put(access, "/cal/a.ics", event_text("a"), "", deadline=DEADLINE),
    "delete": lambda access: DAV.delete(access, "/cal/a.ics", '"1"', deadline=DEADLINE),
    "between": lambda access: DAV.objects_between(access, *HOUR, deadline=DEADLINE),
    "find a feed": lambda access: FEED.find_calendar(access, deadline=DEADLINE),
    "look at a feed": lambda access: FEED.list_changes(
        access, {}, NOTHING_STORED, deadline=DEADLINE
    ),
    "between of a feed": lambda access: FEED.objects_between(access, *HOUR, deadline=DEADLINE),
}
FINDS = {"find", "find a feed"}
WRITES = {"put", "delete"}


def outcome(front: Front, deed: str) -> tuple[str, int | None]:
    """The code of the trouble and how long to wait, or what else it came to."""
    try:
        came = DEEDS[deed](CalendarAccess(f"{front.url}/cal/", "ada", "x"))
    except ProviderError as trouble:
        return trouble.code, trouble.retry_after
    except PreconditionFailed:
        return "changed", None
    return repr(came), None


@pytest.mark.matrix
@pytest.mark.parametrize("deed", DEEDS)
@pytest.mark.parametrize(
    ("answer", "code", "pause"),
    [
        (Answer(401), "unauthorized", None),
        (Answer(401, b"x" * 1000), "unauthorized", None),
        (Answer(429), "rate_limited", None),
        (Answer(429, headers={"Retry-After": "7"}), "rate_limited", 7),
        (Answer(503, headers={"Retry-After": "7"}), "rate_limited", 7),
        (Answer(500, b"<html>Oops"), "server_error", None),
        (Answer(502), "server_error", None),
        (Answer(503), "server_error", None),
    ],
)
def test_error_of_each_refusal(fake, answer, code, pause, deed):
    fake.answer = lambda call: answer

    assert outcome(fake, deed) == (code, pause)


@pytest.mark.parametrize("deed", DEEDS)
def test_forbidden_response(fake, deed):
    fake.answer = lambda call: Answer(403)

    assert outcome(fake, deed)[0] == ("no_write_access" if deed in WRITES else "unauthorized")


@pytest.mark.parametrize(
    ("deed", "came"),
    [
        *((deed, "not_a_calendar") for deed in DEEDS),
        ("read", "None"),
        ("delete", "None"),
    ],
)
def test_not_found_response(fake, deed, came):
    if came == "not_a_calendar" and deed in ("read", "delete"):
        return
    fake.answer = lambda call: Answer(404)

    assert outcome(fake, deed)[0] == came


@pytest.mark.parametrize(
    ("status", "body", "put", "delete"),
    [
        (412, b"", "changed", "changed"),
        (409, b'<error xmlns="DAV:"><no-uid-conflict/></error>', "changed", "changed"),
        (412, b'<error xmlns="DAV:"><valid-calendar-data/></error>', "server_error", None),
        (403, b'<error xmlns="DAV:"><max-resource-size/></error>', "server_error", None),
        (403, b'<error xmlns="DAV:"><need-privileges/></error>', "no_write_access", None),
        (409, b"", "server_error", "server_error"),
        (413, b"", "server_error", "server_error"),
        (423, b"", "server_error", "server_error"),
        (507, b"", "server_error", "server_error"),
        (302, b"", "bad_answer", "bad_answer"),
    ],
)
def test_error_of_each_refused_write(fake, status, body, put, delete):
    fake.answer = lambda call: Answer(status, body)

    assert outcome(fake, "put")[0] == put
    assert outcome(fake, "delete")[0] == (delete or put)


GARBAGE = {
    "nothing": b"",
    "noise": bytes(range(256)) * 20,
    "a page": b"<html><body>Please sign in</body></html>",
    "other XML": b"<a/>",
    "laughs": b'<!DOCTYPE a [<!ENTITY l "ha"><!ENTITY m "&l;&l;&l;">]><a>&m;</a>',
}


@pytest.mark.matrix
@pytest.mark.parametrize("deed", [deed for deed in DEEDS if deed not in WRITES])
@pytest.mark.parametrize("garbage", GARBAGE)
@pytest.mark.parametrize("status", [200, 207])
def test_malformed_responses(fake, status, garbage, deed):
    fake.answer = lambda call: Answer(status, GARBAGE[garbage])

    is_first = deed in FINDS and not (deed == "find a feed" and status == 207)
    assert outcome(fake, deed)[0] == ("not_a_calendar" if is_first else "bad_answer")


PAGE = Answer(200, b"<html><body>Please sign in</body></html>")


@pytest.mark.parametrize(
    ("after", "put", "delete"),
    [
        (PAGE, "bad_answer", "bad_answer"),
        (Answer(404), "bad_answer", "None"),
        (Answer(200, event_text("a").encode()), "bad_answer", "bad_answer"),
        (Answer(500), "server_error", "server_error"),
    ],
)
def test_html_page_with_200_is_no_successful_write(fake, after, put, delete):
    """As a gateway says it, before a server that has or has not the object."""
    fake.answer = lambda call: PAGE if call.method in ("PUT", "DELETE") else after

    assert (outcome(fake, "put")[0], outcome(fake, "delete")[0]) == (put, delete)


@pytest.mark.matrix
@pytest.mark.parametrize("deed", [deed for deed in DEEDS if deed not in FINDS])
@pytest.mark.parametrize("to", ["http://10.0.0.1/", "http://127.0.0.1:1/", "/cal/", "https://["])
def test_unexpected_redirects_are_not_followed(fake, deed, to):
    fake.answer = lambda call: Answer(302, headers={"Location": to})

    code, _ = outcome(fake, deed)

    expected = {"http://10.0.0.1/": "address_refused", "http://127.0.0.1:1/": "unreachable"}
    assert code == (expected.get(to, "bad_answer") if "feed" in deed else "bad_answer")
    assert {call.path for call in fake.calls} <= {"/cal/", "/cal/a.ics"}


@pytest.mark.parametrize("deed", DEEDS)
def test_unreachable_server(deed):
    class Nobody:
        url = "http://127.0.0.1:1"

    assert outcome(Nobody, deed)[0] == "unreachable"


@pytest.mark.parametrize("deed", DEEDS)
def test_private_address_is_not_called(settings, fake, deed):
    settings.WEBHOOK_ALLOWED_NETWORKS = []

    assert outcome(fake, deed)[0] == "address_refused"
    assert fake.calls == []


# --- Time and memory ------------------------------------------------------------------------------
def test_slow_responses_are_cut_off(fake, monkeypatch):
    """All at a time: each takes its whole deadline."""
    monkeypatch.setitem(globals(), "DEADLINE", 0.7)
    fake.answer = lambda call: Answer(
        207 if call.method != "GET" else 200, fake.drip(b" ", b"BEGIN:VCALENDAR\r\n")
    )
    came: dict[str, str] = {}

    def run(deed: str) -> None:
        came[deed] = outcome(fake, deed)[0]

    threads = [threading.Thread(target=run, args=(deed,), daemon=True) for deed in DEEDS]
    begin = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SOON)

    assert came == dict.fromkeys(DEEDS, "unreachable")
    assert time.monotonic() - begin < SOON


FLOOD = b"x" * (1 << 20)


def flood() -> Answer:
    return Answer(207, (FLOOD for _ in range(200)))


@cache
def bomb() -> Answer:
    return Answer(207, gzip.compress(bytes(200 << 20)), {"Content-Encoding": "gzip"})


@pytest.mark.parametrize("say", [flood, bomb])
def test_response_of_200_megabytes_is_refused_with_little_memory(fake, say):
    say()  # packed before the first visit, whose time is limited
    fake.answer = lambda call: say()._replace(status=207 if call.method != "GET" else 200)
    deeds = [deed for deed in DEEDS if deed not in WRITES]
    process, before = psutil.Process(), psutil.Process().memory_info().rss

    came = {deed: outcome(fake, deed)[0] for deed in deeds}

    too_large = dict.fromkeys(deeds, "too_large")
    # An object that is too large alone is named, and hinders no other.
    assert came == too_large | {"fetch": "[[RemoteObject(href='/cal/a.ics', etag='', text='')]]"}
    assert process.memory_info().rss - before < 4 * http_session.ANSWER_BYTES


def test_endless_changes_are_refused(fake, monkeypatch):
    numbers = iter(range(10**9))
    cut_off = "<response><href>/cal/</href><status>HTTP/1.1 507 More</status></response>"

    def answer(call) -> Answer:
        body = f'<multistatus xmlns="DAV:">{cut_off}<sync-token>{next(numbers)}</sync-token>'
        return Answer(207, f"{body}</multistatus>".encode())

    fake.answer = answer
    monkeypatch.setattr("external_calendars.providers.caldav_collection_reader.MAX_PAGES", 20)

    assert outcome(fake, "look")[0] == "bad_answer"
    assert len(fake.calls) == 20


def test_paginated_changes(fake):
    def member(name: str, status: int = 0) -> str:
        etag = f'<propstat><prop><getetag>"{name}"</getetag></prop></propstat>'
        said = f"<status>HTTP/1.1 {status} x</status>" if status else etag
        return f"<response><href>{name}</href>{said}</response>"

    cut_off = member("/cal/", 507)
    pages = {
        b"<sync-token>t<": (cut_off, member("/cal/a.ics"), member("b.ics"), "1"),
        b"<sync-token>1<": (member("c.ics", 404), member("a.ics", 404), cut_off, "2"),
        b"<sync-token>2<": (member("/cal/c.ics"), member("/other/d.ics"), "3"),
    }

    def answer(call) -> Answer:
        *members, token = next(page for known, page in pages.items() if known in call.body)
        body = f'<multistatus xmlns="DAV:">{"".join(members)}<sync-token>{token}</sync-token>'
        return Answer(207, f"{body}</multistatus>".encode())

    fake.answer = answer

    found = DAV.list_changes(
        CalendarAccess(f"{fake.url}/cal/"), SYNC, NOTHING_STORED, deadline=DEADLINE
    )

    assert found.changed == {"/cal/b.ics": '"b.ics"', "/cal/c.ics": '"/cal/c.ics"'}
    assert (found.gone, found.is_whole) == (["/cal/a.ics"], False)
    assert found.mark == {"way": "sync", "token": "3"}


def test_unrequested_objects_are_ignored(fake):
    names = 'xmlns="DAV:" xmlns:C="urn:ietf:params:xml:ns:caldav"'
    member = "<response><href>{}</href><propstat><prop><C:calendar-data>x</C:calendar-data></prop>"
    member += "</propstat></response>"
    hrefs = ("/cal/a.ics", "/cal/b.ics", "/etc/a.ics", f"{fake.url}/cal/c%2e.ics")
    body = f"<multistatus {names}>{''.join(map(member.format, hrefs))}</multistatus>"
    fake.answer = lambda call: Answer(207, body.encode())

    batches = DAV.fetch(
        CalendarAccess(f"{fake.url}/cal/"), ["/cal/a.ics", "/cal/c..ics"], deadline=DEADLINE
    )

    assert [[element.href for element in batch] for batch in batches] == [
        ["/cal/a.ics", "/cal/c..ics"]
    ]
