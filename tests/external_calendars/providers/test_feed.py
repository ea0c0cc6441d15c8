"""A feed at its server: what is new in it, and by how many requests."""

import hashlib
from datetime import timedelta

import pytest

from external_calendars.providers.base import (
    CalendarAccess,
    ChangeSet,
    DiscoveredCalendar,
    ProviderError,
)
from external_calendars.providers.ics import IcsFeed
from tests.external_calendars.front import Answer, Front
from tests.external_calendars.stored_objects import NOTHING_STORED, Stored
from tests.external_calendars.texts import NINE, calendar_text, event_lines, event_text

FEED = IcsFeed()


class Publisher:
    """Publishes `self.text` at `url`, with what it says of its age in `self.headers`."""

    def __init__(self, front: Front) -> None:
        self.front, self.url = front, f"{front.url}/ada.ics"
        self.text, self.headers = calendar_text(), {}
        front.answer = self.answer

    def answer(self, call) -> Answer:
        asked = call.headers.get("if-none-match"), call.headers.get("if-modified-since")
        told = self.headers.get("ETag"), self.headers.get("Last-Modified")
        if any(asked) and asked == told:
            return Answer(304, headers=self.headers)
        return Answer(200, self.text.encode(), self.headers)

    def publish(self, *events: tuple[str, ...]) -> None:
        self.text = calendar_text(*events)
        self.headers = {"ETag": f'W/"{hashlib.sha256(self.text.encode()).hexdigest()}"'}


@pytest.fixture
def publisher(fake: Front) -> Publisher:
    return Publisher(fake)


def look(publisher: Publisher, mark, known=None) -> ChangeSet:
    access = CalendarAccess(publisher.url)
    return FEED.list_changes(access, mark, Stored(known or {}), deadline=10)


def test_changes_list_new_and_deleted_objects(publisher):
    publisher.publish(event_lines("a"), event_lines("b"))
    first = look(publisher, {})
    publisher.publish(event_lines("a", what="Other"), event_lines("c"))
    second = look(publisher, first.mark, first.changed)

    assert first.is_whole
    assert first.texts == {"a": event_text("a"), "b": event_text("b")}
    assert second.texts == {"a": event_text("a", what="Other"), "c": event_text("c")}
    assert (second.gone, second.is_whole) == (["b"], False)
    assert (set(first.changed), set(second.changed)) == ({"a", "b"}, {"a", "c"})
    assert second.changed["a"] != first.changed["a"]


@pytest.mark.parametrize(
    "headers",
    [
        {"ETag": '"1"'},
        {"ETag": 'W/"1"'},
        {"Last-Modified": "Sat, 21 Nov 2026 10:00:00 GMT"},
        {"ETag": '"1"', "Last-Modified": "Sat, 21 Nov 2026 10:00:00 GMT"},
    ],
)
def test_unchanged_feed_is_not_downloaded_again(publisher, headers):
    publisher.text, publisher.headers = event_text("a"), headers
    mark = look(publisher, {}).mark
    publisher.text = "not to be read"

    with publisher.front.counted() as lines:
        again = look(publisher, mark)

    assert again == ChangeSet({}, [], False, mark)
    assert lines == ["GET /ada.ics"]


def test_feed_without_etag_is_compared(publisher):
    publisher.text = event_text("a")
    first = look(publisher, {})
    publisher.text = event_text("a").replace("DTSTAMP:20261101", "DTSTAMP:20261102")

    with publisher.front.counted() as lines:
        second = look(publisher, first.mark, first.changed)

    assert (first.mark, second) == ({"way": "feed"}, ChangeSet({}, [], False, {"way": "feed"}))
    assert lines == ["GET /ada.ics"]


def test_find_calendar_returns_the_name(publisher):
    publisher.text = calendar_text(("X-WR-CALNAME:Ada\\, at work",), event_lines("a"))

    found = FEED.find_calendar(CalendarAccess(f" {publisher.url}#x"), deadline=10)

    assert found == DiscoveredCalendar(publisher.url, "Ada, at work", False, False)


@pytest.mark.parametrize("text", ["", "<html>Please sign in</html>", event_text("a")[:-20]])
def test_text_that_is_no_feed_is_refused(publisher, text):
    publisher.text = event_text("a")
    mark = look(publisher, {}).mark
    publisher.text = text

    with pytest.raises(ProviderError) as at_first:
        FEED.find_calendar(CalendarAccess(publisher.url), deadline=10)
    with pytest.raises(ProviderError) as later:
        look(publisher, mark)

    # What was a calendar once may be one again, so that is not final.
    assert (at_first.value.code, later.value.code) == ("not_a_calendar", "bad_answer")


def test_password_is_sent_only_with_a_user(publisher):
    FEED.find_calendar(CalendarAccess(publisher.url), deadline=10)
    FEED.find_calendar(CalendarAccess(publisher.url, "ada", "x"), deadline=10)

    signatures = [call.headers.get("authorization") for call in publisher.front.calls]
    assert signatures == [None, "Basic YWRhOng="]


def test_redirects_are_followed_without_the_password(publisher):
    publisher.text = event_text("a")
    door = Front()
    door.answer = lambda call: Answer(302, headers={"Location": publisher.url})
    try:
        access = CalendarAccess(f"{door.url}/f", "ada", "x")
        found = FEED.find_calendar(access, deadline=10)
        seen = FEED.list_changes(access, {}, NOTHING_STORED, deadline=10)
    finally:
        door.stop()

    assert found == DiscoveredCalendar(f"{door.url}/f", "", False, False)
    assert list(seen.changed) == ["a"]
    assert [call.headers.get("authorization") for call in publisher.front.calls] == [None, None]
    assert [call.headers.get("authorization") for call in door.calls] == ["Basic YWRhOng="] * 2


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (Answer(302, headers={"Location": "http://10.0.0.1/"}), "address_refused"),
        (Answer(302, headers={"Location": "/ada.ics"}), "bad_answer"),
        (Answer(302), "bad_answer"),
        (Answer(304), "bad_answer"),
        (Answer(401), "unauthorized"),
        (Answer(403), "unauthorized"),
        (Answer(404), "not_a_calendar"),
        (Answer(410), "not_a_calendar"),
        (Answer(429, headers={"Retry-After": "60"}), "rate_limited"),
        (Answer(500), "server_error"),
        (Answer(503, headers={"Retry-After": "60"}), "rate_limited"),
        (Answer(503), "server_error"),
    ],
)
def test_error_responses_of_a_feed(publisher, answer, code):
    publisher.front.answer = lambda call: answer

    with pytest.raises(ProviderError) as trouble:
        look(publisher, {})

    assert trouble.value.code == code
    assert trouble.value.retry_after == (60 if "Retry-After" in answer.headers else None)


def test_objects_are_read_from_the_feed(publisher):
    publisher.publish(event_lines("a"), event_lines("b", NINE + timedelta(days=9)))
    access = CalendarAccess(publisher.url)

    between = FEED.objects_between(access, NINE, NINE + timedelta(hours=1), deadline=10)
    fetched = list(FEED.fetch(access, ["b", "gone"], deadline=10))

    assert [one.text for one in between] == [event_text("a")]
    assert [[element.href for element in batch] for batch in fetched] == [["b"]]
    assert FEED.read_object(access, "a", deadline=10) == between[0]
    assert FEED.read_object(access, "gone", deadline=10) is None


def test_writes_are_refused(publisher):
    access = CalendarAccess(publisher.url)

    for write in (
        lambda: FEED.put(access, "a", event_text("a"), "", deadline=10),
        lambda: FEED.delete(access, "a", "", deadline=10),
        lambda: FEED.locate(access, "a", deadline=5),
    ):
        with pytest.raises(ProviderError) as trouble:
            write()
        assert trouble.value.code == "no_write_access"
    assert publisher.front.calls == []
