"""The fake of Google Calendar does what Google's documents say, and refuses everything else."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
import requests

from tests.external_calendars.fakes.google import SCOPE, Account, FakeGoogle
from tests.external_calendars.fakes.google.events import Invitation
from tests.sinks import HookSink, hook_sink

NOW = datetime(2026, 12, 1, 8, tzinfo=UTC)
EVENTS = "calendars/primary/events"
LUNCH = {
    "summary": "Lunch",
    "start": {"dateTime": "2026-12-02T12:00:00+01:00"},
    "end": {"dateTime": "2026-12-02T13:00:00+01:00"},
}
GUESTS = [{"email": "zoe@example.com"}, {"email": "max@example.com", "displayName": "Max"}]


class ApiClient:
    """Calls the Calendar API as one account: `api("GET", path, **query)` -> the answer."""

    def __init__(self, google: FakeGoogle, email: str, *scopes: str) -> None:
        self.url = google.gateway.address("https://www.googleapis.com/calendar/v3/")
        self.headers = {"Authorization": f"Bearer {google.access_token(email, *scopes)}"}

    def __call__(
        self, method: str, path: str, json: Any = None, match: str = "", **query: Any
    ) -> requests.Response:
        headers = self.headers | ({"If-Match": match} if match else {})
        return requests.request(
            method, self.url + path, params=query, json=json, headers=headers, timeout=5
        )

    def list(self, path: str = EVENTS, **query: Any) -> Any:
        answer = self("GET", path, **query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def insert(self, body: Any, **query: Any) -> Any:
        answer = self("POST", EVENTS, body, **query)
        assert answer.status_code == 200, answer.text
        return answer.json()


def reason_of(answer: requests.Response) -> tuple[int, str]:
    error = answer.json()["error"]
    assert error["code"] == answer.status_code
    return answer.status_code, error["errors"][0]["reason"]


def take_violations(google: FakeGoogle) -> list[str]:
    """Return the sentences of the violations, which the test expects."""
    found = [sentence.partition(": ")[2] for sentence in google.gateway.violations]
    google.gateway.violations.clear()
    return found


@pytest.fixture
def ada(google: FakeGoogle) -> Account:
    google.clock.set(NOW)
    return google.add_account("ada@example.com")


@pytest.fixture
def api(google: FakeGoogle, ada: Account) -> ApiClient:
    return ApiClient(google, "ada@example.com")


@pytest.fixture
def hooks() -> Iterator[HookSink]:
    with hook_sink() as sink:
        yield sink


# --- Validation -----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("method", "path", "query", "body", "sentence"),
    [
        ("GET", "calendars/primary/meetings", {}, None, "the discovery document has no such path"),
        ("POST", f"{EVENTS}/quickAdd", {"text": "x"}, None, "the discovery document has no such"),
        ("GET", EVENTS, {"since": "1"}, None, "calendar.events.list has no parameter since."),
        ("GET", EVENTS, {"orderBy": "title"}, None, "orderBy has no value title."),
        ("GET", EVENTS, {"singleEvents": "yes"}, None, "singleEvents=yes is no boolean."),
        ("GET", EVENTS, {"maxResults": "0"}, None, "maxResults=0 is no such number."),
        ("GET", EVENTS, {"timeMin": "2026-12-01"}, None, "timeMin is no date-time: 2026-12-01."),
        ("GET", EVENTS, {"q": ["a", "b"]}, None, "the parameter q does not repeat."),
        ("GET", EVENTS, {"fields": "items"}, None, "calendar.events.list has no parameter fields."),
        ("POST", EVENTS, {}, LUNCH | {"title": "x"}, "body has no field title."),
        ("POST", EVENTS, {}, LUNCH | {"status": "busy"}, "body.status has no value busy."),
        ("POST", EVENTS, {}, LUNCH | {"summary": None}, "body.summary is no text."),
        ("POST", EVENTS, {}, LUNCH | {"attendees": {}}, "body.attendees is no list."),
        (
            "POST",
            EVENTS,
            {},
            LUNCH | {"attendees": [{"mail": "x"}]},
            "body.attendees[0] has no field mail.",
        ),
        ("POST", EVENTS, {}, LUNCH | {"sequence": "1"}, "body.sequence is no number."),
        (
            "POST",
            EVENTS,
            {},
            {"start": LUNCH["start"]},
            "calendar.events.insert needs the field end.",
        ),
        ("POST", EVENTS, {}, LUNCH | {"id": "abcde", "iCalUID": "x@y"}, "an event is created with"),
        ("POST", EVENTS, {"sendUpdates": "some"}, LUNCH, "sendUpdates has no value some."),
        ("DELETE", f"{EVENTS}/abcde", {}, {"id": "abcde"}, "calendar.events.delete has no body."),
    ],
)
def test_request_that_the_api_does_not_have_is_a_violation(
    google: FakeGoogle,
    api: ApiClient,
    method: str,
    path: str,
    query: dict[str, Any],
    body: Any,
    sentence: str,
) -> None:
    answer = api(method, path, body, **query)

    assert reason_of(answer) == (400, "badRequest")
    [violation] = take_violations(google)
    assert violation.startswith(sentence)


def test_missing_headers_are_violations(google: FakeGoogle, api: ApiClient) -> None:
    requests.get(api.url + EVENTS, timeout=5)
    requests.post(api.url + EVENTS, b"{}", headers=api.headers, timeout=5)

    assert take_violations(google) == [
        "there is no Authorization with a Bearer token.",
        "the body's Content-Type is not application/json.",
    ]


def test_scopes_and_roles_are_checked_per_method(google: FakeGoogle, ada: Account) -> None:
    google.add_account("bob@example.com")
    team = google.add_calendar("Team", "bob@example.com")
    hidden = team.add(
        "Secret", NOW, NOW + timedelta(hours=1), visibility="private", description="Plans"
    )
    google.share(team, "ada@example.com", "reader")
    api = ApiClient(google, "ada@example.com")
    only_list = ApiClient(google, "ada@example.com", f"{SCOPE}.calendarlist.readonly")
    only_owned = ApiClient(google, "ada@example.com", f"{SCOPE}.events.owned")

    assert reason_of(only_list("GET", EVENTS)) == (403, "insufficientPermissions")
    assert reason_of(api("POST", "freeBusy", {})) == (403, "insufficientPermissions")
    assert reason_of(only_owned("GET", f"calendars/{team.id}/events")) == (
        403,
        "insufficientPermissions",
    )
    assert reason_of(api("POST", f"calendars/{team.id}/events", LUNCH)) == (
        403,
        "requiredAccessLevel",
    )
    assert reason_of(api("GET", "calendars/nobody@example.com/events")) == (404, "notFound")
    seen = api("GET", f"calendars/{team.id}/events/{hidden}").json()
    assert ("summary" in seen, "description" in seen, seen["visibility"]) == (
        False,
        False,
        "private",
    )
    google.share(team, "ada@example.com", "writer")
    assert api("GET", f"calendars/{team.id}/events/{hidden}").json()["description"] == "Plans"


def test_free_busy_reader_sees_times_only(google: FakeGoogle, ada: Account) -> None:
    google.add_account("bob@example.com").calendar.add("Doctor", NOW, NOW + timedelta(hours=1))
    google.share(google.calendars["bob@example.com"], "ada@example.com", "freeBusyReader")

    [item] = ApiClient(google, "ada@example.com").list("calendars/bob@example.com/events")["items"]

    assert "summary" not in item and "creator" not in item
    assert item["start"] == {"dateTime": "2026-12-01T09:00:00+01:00", "timeZone": "Europe/Berlin"}


# --- Events ---------------------------------------------------------------------------------------
def test_insert_answers_the_whole_event(google: FakeGoogle, api: ApiClient) -> None:
    event = api.insert(
        LUNCH | {"id": "lunch00001", "attendees": GUESTS, "transparency": "opaque"},
        sendUpdates="all",
    )

    etag = event.pop("etag")
    assert etag.startswith('"') and etag.endswith('"')
    assert event == {
        "kind": "calendar#event",
        "id": "lunch00001",
        "status": "confirmed",
        "htmlLink": "https://www.google.com/calendar/event?eid=lunch00001",
        "created": "2026-12-01T08:00:00.000Z",
        "updated": "2026-12-01T08:00:00.000Z",
        "summary": "Lunch",
        "creator": {"email": "ada@example.com", "self": True},
        "organizer": {"email": "ada@example.com", "self": True},
        "start": {"dateTime": "2026-12-02T12:00:00+01:00", "timeZone": "Europe/Berlin"},
        "end": {"dateTime": "2026-12-02T13:00:00+01:00", "timeZone": "Europe/Berlin"},
        "iCalUID": "lunch00001@google.com",
        "sequence": 0,
        "attendees": [
            {"email": "zoe@example.com", "responseStatus": "needsAction"},
            {"email": "max@example.com", "displayName": "Max", "responseStatus": "needsAction"},
        ],
        "reminders": {"useDefault": True},
        "eventType": "default",
    }
    assert google.invitations == [
        Invitation(
            "insert",
            "lunch00001",
            "lunch00001@google.com",
            ("max@example.com", "zoe@example.com"),
        )
    ]


def test_insert_with_a_taken_id_is_a_duplicate_also_after_deletion(
    google: FakeGoogle, ada: Account, api: ApiClient
) -> None:
    body = LUNCH | {"id": "lunch00001"}
    api.insert(body)

    assert reason_of(api("POST", EVENTS, body)) == (409, "duplicate")
    assert api("DELETE", f"{EVENTS}/lunch00001").status_code == 204
    assert reason_of(api("POST", EVENTS, body)) == (409, "duplicate")
    assert reason_of(api("DELETE", f"{EVENTS}/lunch00001")) == (410, "deleted")
    deleted = api("GET", f"{EVENTS}/lunch00001").json()
    assert (deleted["status"], deleted["summary"]) == ("cancelled", "Lunch")

    restored = api("PUT", f"{EVENTS}/lunch00001", body | {"status": "confirmed"}).json()
    assert restored["status"] == "confirmed"

    ada.calendar.purge("lunch00001")
    assert reason_of(api("GET", f"{EVENTS}/lunch00001")) == (404, "notFound")
    assert reason_of(api("PUT", f"{EVENTS}/lunch00001", body)) == (403, "forbidden")
    assert reason_of(api("POST", EVENTS, body)) == (409, "duplicate")


@pytest.mark.parametrize("event_id", ["abcd", "lunch-0001", "LUNCH00001", "zoo00001"])
def test_insert_with_an_id_that_is_no_base32hex_is_invalid(api: ApiClient, event_id: str) -> None:
    assert reason_of(api("POST", EVENTS, LUNCH | {"id": event_id})) == (400, "invalid")


def test_write_with_an_old_etag_fails(api: ApiClient) -> None:
    event = api.insert(LUNCH)
    path = f"{EVENTS}/{event['id']}"
    changed = api("PATCH", path, {"summary": "Late lunch"}, match=event["etag"]).json()

    assert changed["etag"] != event["etag"]
    for method, body in (("PATCH", {"summary": "x"}), ("PUT", LUNCH), ("DELETE", None)):
        assert reason_of(api(method, path, body, match=event["etag"])) == (412, "conditionNotMet")
    assert api("GET", path).json() == changed
    assert api("DELETE", path, match=changed["etag"]).status_code == 204


def test_get_with_a_known_etag_is_not_modified(api: ApiClient) -> None:
    event = api.insert(LUNCH)

    answer = requests.get(
        f"{api.url}{EVENTS}/{event['id']}",
        headers=api.headers | {"If-None-Match": event["etag"]},
        timeout=5,
    )

    assert (answer.status_code, answer.content) == (304, b"")


def test_update_replaces_and_patch_merges(api: ApiClient) -> None:
    event = api.insert(
        LUNCH
        | {
            "location": "Harbour",
            "extendedProperties": {"private": {"booking": "1"}, "shared": {"a": "b"}},
        }
    )
    path = f"{EVENTS}/{event['id']}"

    patched = api(
        "PATCH",
        path,
        {
            "location": None,
            "extendedProperties": {"private": {"room": "2"}},
            "start": {"dateTime": "2026-12-02T12:30:00+01:00"},
        },
    ).json()
    assert "location" not in patched
    assert patched["extendedProperties"] == {
        "private": {"booking": "1", "room": "2"},
        "shared": {"a": "b"},
    }
    assert patched["start"]["dateTime"] == "2026-12-02T12:30:00+01:00"
    assert patched["sequence"] == 1

    updated = api("PUT", path, LUNCH).json()
    assert "extendedProperties" not in updated
    assert (updated["sequence"], updated["iCalUID"]) == (2, event["iCalUID"])
    assert reason_of(api("PUT", path, LUNCH | {"sequence": 1})) == (400, "invalid")
    all_day = api("PATCH", path, {"start": {"date": "2026-12-02"}, "end": {"date": "2026-12-04"}})
    assert all_day.json()["end"] == {"date": "2026-12-04"}


def test_write_that_changes_nothing_keeps_the_etag_and_sends_no_mail(
    google: FakeGoogle, api: ApiClient
) -> None:
    event = api.insert(LUNCH | {"attendees": GUESTS})

    again = api("PUT", f"{EVENTS}/{event['id']}", event, sendUpdates="all").json()

    assert again == event
    assert google.invitations == []


def test_update_without_the_answer_of_a_guest_resets_it(google: FakeGoogle, api: ApiClient) -> None:
    event = api.insert(LUNCH | {"attendees": GUESTS})
    google.answer_invitation(event["id"], "zoe@example.com", "declined", "Ill")
    path = f"{EVENTS}/{event['id']}"
    answered = api("GET", path).json()
    assert answered["attendees"][0] == {
        "email": "zoe@example.com",
        "responseStatus": "declined",
        "comment": "Ill",
    }
    assert answered["etag"] != event["etag"]

    kept = api("PUT", path, answered | {"summary": "Late lunch"}).json()
    reset = api("PUT", path, LUNCH | {"attendees": GUESTS}).json()

    assert kept["attendees"][0]["responseStatus"] == "declined"
    assert reset["attendees"][0]["responseStatus"] == "needsAction"


def test_mails_to_guests_go_by_send_updates(google: FakeGoogle, api: ApiClient) -> None:
    silent = api.insert(LUNCH | {"attendees": GUESTS}, sendUpdates="none")
    event = api.insert(LUNCH | {"attendees": GUESTS}, sendUpdates="all")
    path = f"{EVENTS}/{event['id']}"
    api("PATCH", path, {"attendees": GUESTS[:1]}, sendUpdates="all")
    api("PATCH", path, {"summary": "Late lunch"})
    api("DELETE", path, sendUpdates="all")
    api("DELETE", f"{EVENTS}/{silent['id']}")

    assert google.mails_to("zoe@example.com") == ["insert", "update", "delete"]
    assert google.mails_to("max@example.com") == ["insert", "delete"]


def test_event_of_the_calendar_owner_as_guest_is_marked(ada: Account, api: ApiClient) -> None:
    event_id = ada.calendar.add(
        "Interview",
        NOW,
        NOW + timedelta(hours=1),
        organizer={"email": "boss@example.com"},
        attendees=[{"email": "ada@example.com", "responseStatus": "declined"}],
    )

    event = api("GET", f"{EVENTS}/{event_id}").json()

    assert event["organizer"] == {"email": "boss@example.com"}
    assert event["attendees"] == [
        {"email": "ada@example.com", "responseStatus": "declined", "self": True}
    ]


def test_import_keeps_the_uid_and_never_invites(google: FakeGoogle, api: ApiClient) -> None:
    body = LUNCH | {"iCalUID": "x@elsewhere.example", "attendees": GUESTS}

    event = api("POST", f"{EVENTS}/import", body).json()
    again = api("POST", f"{EVENTS}/import", body | {"summary": "Late lunch"}).json()

    assert event["iCalUID"] == "x@elsewhere.example"
    assert (again["id"], again["summary"]) == (event["id"], "Late lunch")
    assert google.invitations == []


# --- Lists ----------------------------------------------------------------------------------------
def test_list_has_a_sync_token_on_its_last_page_only(
    google: FakeGoogle, ada: Account, api: ApiClient
) -> None:
    for number in range(5):
        ada.calendar.add(f"Event {number}", NOW, NOW + timedelta(hours=1))

    first = api.list(maxResults=2)
    second = api.list(maxResults=2, pageToken=first["nextPageToken"])
    third = api.list(maxResults=2, pageToken=second["nextPageToken"])

    pages = (first, second, third)
    assert [[item["summary"] for item in page["items"]] for page in pages] == [
        ["Event 0", "Event 1"],
        ["Event 2", "Event 3"],
        ["Event 4"],
    ]
    assert ["nextSyncToken" in page for page in pages] == [False, False, True]
    assert ["nextPageToken" in page for page in pages] == [True, True, False]
    google.expire_page_tokens()
    assert reason_of(api("GET", EVENTS, maxResults=2, pageToken=first["nextPageToken"])) == (
        400,
        "invalid",
    )


def test_list_with_a_sync_token_has_what_changed_since_the_first_page(
    ada: Account, api: ApiClient
) -> None:
    kept, gone = (ada.calendar.add(name, NOW, NOW + timedelta(hours=1)) for name in ("a", "b"))
    first = api.list(maxResults=1)
    ada.calendar.change(kept, summary="a2")  # between two pages
    last = api.list(maxResults=1, pageToken=first["nextPageToken"])
    ada.calendar.cancel(gone)

    changes = api.list(maxResults=1, syncToken=last["nextSyncToken"])
    rest = api.list(
        maxResults=1, syncToken=last["nextSyncToken"], pageToken=changes["nextPageToken"]
    )
    nothing = api.list(maxResults=1, syncToken=rest["nextSyncToken"])

    assert changes["items"][0]["summary"] == "a2"
    [deleted] = rest["items"]
    assert deleted == {
        "kind": "calendar#event",
        "etag": deleted["etag"],
        "id": gone,
        "status": "cancelled",
    }
    assert nothing["items"] == []
    assert [item["id"] for item in api.list()["items"]] == [kept]
    assert [item["id"] for item in api.list(showDeleted="true")["items"]] == [kept, gone]


def test_unknown_or_ended_sync_token_needs_a_full_synchronization(
    google: FakeGoogle, ada: Account, api: ApiClient
) -> None:
    token = api.list()["nextSyncToken"]
    other = google.add_calendar("Team", "ada@example.com")

    unknown = api("GET", EVENTS, syncToken="made-up")
    elsewhere = api("GET", f"calendars/{other.id}/events", syncToken=token)
    assert api("GET", EVENTS, syncToken=token).status_code == 200
    google.expire_sync_tokens()
    ended = api("GET", EVENTS, syncToken=token)

    assert [reason_of(answer) for answer in (unknown, elsewhere, ended)] == [
        (410, "fullSyncRequired")
    ] * 3


@pytest.mark.parametrize(
    "query",
    [
        {"timeMin": "2026-12-01T00:00:00Z"},
        {"iCalUID": "x@google.com"},
        {"privateExtendedProperty": "booking=1"},
        {"showDeleted": "false"},
        {"singleEvents": "true"},
    ],
)
def test_sync_token_with_other_parameters_is_a_violation(
    google: FakeGoogle, api: ApiClient, query: dict[str, str]
) -> None:
    token = api.list()["nextSyncToken"]

    answer = api("GET", EVENTS, syncToken=token, **query)

    assert reason_of(answer) == (400, "badRequest")
    assert len(take_violations(google)) == 1


def test_list_filters(ada: Account, api: ApiClient) -> None:
    hour = timedelta(hours=1)
    ada.calendar.add("before", NOW - 2 * hour, NOW)
    ada.calendar.add("office", date(2026, 12, 1), date(2026, 12, 2), eventType="workingLocation")
    ada.calendar.add("away", NOW, NOW + hour, eventType="outOfOffice")
    booked = ada.calendar.add(
        "booked", NOW + hour, NOW + 2 * hour, extendedProperties={"private": {"booking": "7"}}
    )
    window = {"timeMin": "2026-12-01T08:00:00Z", "timeMax": "2026-12-01T09:00:00Z"}

    def titles(**query: Any) -> list[str]:
        return [item["summary"] for item in api.list(**query)["items"]]

    assert titles(**window) == ["office", "away"]
    assert titles(eventTypes=["outOfOffice", "default"]) == ["before", "away", "booked"]
    assert titles(privateExtendedProperty="booking=7") == ["booked"]
    assert titles(privateExtendedProperty=["booking=7", "x=1"]) == []
    assert titles(iCalUID=f"{booked}@google.com") == ["booked"]
    assert titles(q="OFF") == ["office"]
    assert titles(singleEvents="true", orderBy="startTime")[0] == "office"
    assert reason_of(api("GET", EVENTS, timeMin=window["timeMax"], timeMax=window["timeMin"])) == (
        400,
        "timeRangeEmpty",
    )


# --- Series ---------------------------------------------------------------------------------------
def add_weekly(ada: Account, **fields: Any) -> str:
    """Tuesdays from 1 December 2026, 10:00 in Berlin, for four weeks."""
    start = datetime(2026, 12, 1, 9, tzinfo=UTC)
    rule = ["RRULE:FREQ=WEEKLY;COUNT=4"]
    return ada.calendar.add("Weekly", start, start + timedelta(hours=1), recurrence=rule, **fields)


def starts_of(items: list[dict[str, Any]]) -> list[str]:
    return [item["start"]["dateTime"] for item in items]


def test_series_keeps_its_time_of_day_over_a_clock_change(ada: Account, api: ApiClient) -> None:
    series = ada.calendar.add(
        "Standup",
        datetime(2027, 3, 12, 14, tzinfo=UTC),
        datetime(2027, 3, 12, 15, tzinfo=UTC),
        time_zone="America/New_York",
        recurrence=["RRULE:FREQ=DAILY;COUNT=4", "EXDATE;TZID=America/New_York:20270313T090000"],
    )

    items = api.list(f"{EVENTS}/{series}/instances", timeZone="America/New_York")["items"]

    assert starts_of(items) == [
        "2027-03-12T09:00:00-05:00",
        "2027-03-14T09:00:00-04:00",
        "2027-03-15T09:00:00-04:00",
    ]
    assert [item["id"] for item in items] == [
        f"{series}_20270312T140000Z",
        f"{series}_20270314T130000Z",
        f"{series}_20270315T130000Z",
    ]


def test_changed_occurrence_arrives_without_its_series(ada: Account, api: ApiClient) -> None:
    series = add_weekly(ada)
    token = api.list()["nextSyncToken"]
    occurrence = f"{series}_20261208T090000Z"
    moved = datetime(2026, 12, 8, 13, tzinfo=UTC)
    ada.calendar.change(occurrence, start=moved, end=moved + timedelta(hours=1))

    [item] = api.list(syncToken=token)["items"]

    assert {
        name: item[name] for name in ("id", "recurringEventId", "originalStartTime", "start")
    } == {
        "id": occurrence,
        "recurringEventId": series,
        "originalStartTime": {
            "dateTime": "2026-12-08T10:00:00+01:00",
            "timeZone": "Europe/Berlin",
        },
        "start": {"dateTime": "2026-12-08T14:00:00+01:00", "timeZone": "Europe/Berlin"},
    }
    assert (item["iCalUID"], "recurrence" in item) == (f"{series}@google.com", False)


def test_cancelled_occurrence_carries_its_place_only(ada: Account, api: ApiClient) -> None:
    series = add_weekly(ada)
    token = api.list()["nextSyncToken"]
    ada.calendar.cancel(f"{series}_20261208T090000Z")

    [item] = api.list(syncToken=token)["items"]

    assert item == {
        "kind": "calendar#event",
        "etag": item["etag"],
        "id": f"{series}_20261208T090000Z",
        "status": "cancelled",
        "recurringEventId": series,
        "originalStartTime": {
            "dateTime": "2026-12-08T10:00:00+01:00",
            "timeZone": "Europe/Berlin",
        },
    }
    # A full list has it too, as long as the series is there.
    assert [one["id"] for one in api.list()["items"]] == [series, item["id"]]
    ada.calendar.cancel(series)
    assert api.list()["items"] == []


def test_single_events_are_occurrences_and_vanish_with_the_rule(
    ada: Account, api: ApiClient
) -> None:
    series = add_weekly(ada)
    ada.calendar.cancel(f"{series}_20261215T090000Z")
    first = api.list(singleEvents="true")
    ada.calendar.change(series, recurrence=["RRULE:FREQ=WEEKLY;COUNT=2"])

    changes = api.list(singleEvents="true", syncToken=first["nextSyncToken"])["items"]

    assert starts_of(first["items"]) == [
        "2026-12-01T10:00:00+01:00",
        "2026-12-08T10:00:00+01:00",
        "2026-12-22T10:00:00+01:00",
    ]
    assert {item["id"]: item["status"] for item in changes} == {
        f"{series}_20261201T090000Z": "confirmed",
        f"{series}_20261208T090000Z": "confirmed",
        f"{series}_20261222T090000Z": "cancelled",
    }


def test_all_day_series_has_dates(ada: Account, api: ApiClient) -> None:
    series = ada.calendar.add(
        "Holiday",
        date(2026, 12, 24),
        date(2026, 12, 26),
        recurrence=["RRULE:FREQ=YEARLY;COUNT=2", "RDATE;VALUE=DATE:20270501"],
    )

    items = api.list(f"{EVENTS}/{series}/instances")["items"]

    assert [(item["id"], item["start"], item["end"]) for item in items] == [
        (f"{series}_20261224", {"date": "2026-12-24"}, {"date": "2026-12-26"}),
        (f"{series}_20270501", {"date": "2027-05-01"}, {"date": "2027-05-03"}),
        (f"{series}_20271224", {"date": "2027-12-24"}, {"date": "2027-12-26"}),
    ]


@pytest.mark.parametrize(
    "lines",
    [["RRULE:FREQ=SOMETIMES"], ["DTSTART:20261201T090000Z"], ["EXDATE:20261201T090000Z"], ["x"]],
)
def test_recurrence_that_is_none_is_invalid(api: ApiClient, lines: list[str]) -> None:
    start = LUNCH["start"] | {"timeZone": "Europe/Berlin"}  # type: ignore[operator]

    answer = api("POST", EVENTS, LUNCH | {"start": start, "recurrence": lines})

    assert reason_of(answer) == (400, "invalid")


def test_series_needs_a_time_zone(api: ApiClient) -> None:
    answer = api("POST", EVENTS, LUNCH | {"recurrence": ["RRULE:FREQ=DAILY;COUNT=2"]})

    assert reason_of(answer) == (400, "required")


# --- Conferences ----------------------------------------------------------------------------------
def meet(request_id: str) -> dict[str, Any]:
    key = {"type": "hangoutsMeet"}
    return {"createRequest": {"requestId": request_id, "conferenceSolutionKey": key}}


def test_conference_is_pending_first_and_there_later(
    google: FakeGoogle, ada: Account, api: ApiClient
) -> None:
    ada.calendar.conference_delay = 5
    token = api.list()["nextSyncToken"]
    event = api.insert(LUNCH | {"conferenceData": meet("r1")}, conferenceDataVersion=1)
    path = f"{EVENTS}/{event['id']}"
    request = event["conferenceData"]["createRequest"]
    assert (request["status"], "hangoutLink" in event) == ({"statusCode": "pending"}, False)

    google.clock.advance(seconds=5)
    ready = api("GET", path).json()

    assert ready["conferenceData"]["createRequest"]["status"] == {"statusCode": "success"}
    [entry] = ready["conferenceData"]["entryPoints"]
    assert entry["uri"] == ready["hangoutLink"]
    assert [item["hangoutLink"] for item in api.list(syncToken=token)["items"]] == [entry["uri"]]
    # The same request again changes nothing, and version 0 neither reads nor clears it.
    body = LUNCH | {"conferenceData": meet("r1")}
    assert api("PUT", path, body, conferenceDataVersion=1).json() == ready
    assert api("PUT", path, LUNCH).json()["hangoutLink"] == entry["uri"]
    assert "hangoutLink" not in api("PUT", path, LUNCH, conferenceDataVersion=1).json()


def test_conference_is_ignored_without_its_version(api: ApiClient) -> None:
    event = api.insert(LUNCH | {"conferenceData": meet("r1")})

    assert "conferenceData" not in event


def test_conference_that_the_calendar_does_not_allow_is_invalid(
    ada: Account, api: ApiClient
) -> None:
    ada.calendar.allowed_conferences = ()

    answer = api("POST", EVENTS, LUNCH | {"conferenceData": meet("r1")}, conferenceDataVersion=1)

    assert reason_of(answer) == (400, "invalid")


def test_conference_fails(ada: Account, api: ApiClient) -> None:
    ada.calendar.conference_delay, ada.calendar.conference_fails = 0, True

    event = api.insert(LUNCH | {"conferenceData": meet("r1")}, conferenceDataVersion=1)

    assert event["conferenceData"]["createRequest"]["status"] == {"statusCode": "failure"}


# --- Lists of calendars, free/busy ----------------------------------------------------------------
def test_calendar_list_has_pages_and_a_least_role(google: FakeGoogle, api: ApiClient) -> None:
    google.add_account("bob@example.com")
    google.share(google.add_calendar("Shared", "bob@example.com"), "ada@example.com", "reader")
    google.add_calendar("Team", "ada@example.com", "Asia/Tokyo")

    first = api.list("users/me/calendarList", maxResults=2)
    second = api.list("users/me/calendarList", maxResults=2, pageToken=first["nextPageToken"])
    writable = api.list("users/me/calendarList", minAccessRole="writer")["items"]

    entries = first["items"] + second["items"]
    assert [(entry["summary"], entry["accessRole"], entry.get("primary")) for entry in entries] == [
        ("ada@example.com", "owner", True),
        ("Shared", "reader", None),
        ("Team", "owner", None),
    ]
    assert [entry["summary"] for entry in writable] == ["ada@example.com", "Team"]
    assert writable[1]["timeZone"] == "Asia/Tokyo"
    google.share(google.calendars[entries[1]["id"]], "ada@example.com", "")
    changed = api.list("users/me/calendarList", syncToken=second["nextSyncToken"], maxResults=2)
    assert [(entry["id"], entry["deleted"]) for entry in changed["items"]] == [
        (entries[1]["id"], True)
    ]
    assert reason_of(api("GET", f"users/me/calendarList/{entries[1]['id']}")) == (404, "notFound")


def test_free_busy_counts_what_blocks(google: FakeGoogle, ada: Account) -> None:
    hour = timedelta(hours=1)
    calendar = ada.calendar
    calendar.add("one", NOW, NOW + hour)
    calendar.add("overlaps", NOW + hour / 2, NOW + 2 * hour)
    calendar.add("free", NOW + 3 * hour, NOW + 4 * hour, transparency="transparent")
    calendar.add("office", date(2026, 12, 1), date(2026, 12, 2), eventType="workingLocation")
    calendar.add("away", NOW + 5 * hour, NOW + 6 * hour, eventType="outOfOffice")
    api = ApiClient(google, "ada@example.com", f"{SCOPE}.freebusy")
    body = {
        "timeMin": "2026-12-01T08:30:00Z",
        "timeMax": "2026-12-02T00:00:00Z",
        "items": [{"id": "ada@example.com"}, {"id": "nobody@example.com"}],
    }

    assert api("POST", "freeBusy", body).json()["calendars"] == {
        "ada@example.com": {
            "busy": [
                {"start": "2026-12-01T08:30:00Z", "end": "2026-12-01T10:00:00Z"},
                {"start": "2026-12-01T13:00:00Z", "end": "2026-12-01T14:00:00Z"},
            ]
        },
        "nobody@example.com": {
            "errors": [{"domain": "global", "reason": "notFound"}],
            "busy": [],
        },
    }


# --- Channels -------------------------------------------------------------------------------------
def test_watch_tells_of_each_change_until_it_is_stopped(
    google: FakeGoogle, ada: Account, api: ApiClient, hooks: HookSink
) -> None:
    body = {
        "id": "channel-1",
        "type": "web_hook",
        "address": hooks.url("/n"),
        "token": "secret",
        "params": {"ttl": "3600"},
    }
    answer = api("POST", f"{EVENTS}/watch", body).json()
    ada.calendar.add("x", NOW, NOW + timedelta(hours=1))
    google.sender.wait()

    assert answer == {
        "kind": "api#channel",
        "id": "channel-1",
        "resourceId": answer["resourceId"],
        "resourceUri": answer["resourceUri"],
        "token": "secret",
        "expiration": str(int((NOW + timedelta(hours=1)).timestamp() * 1000)),
    }
    sent = [
        {name: call.headers[f"x-goog-{name}"] for name in ("resource-state", "message-number")}
        for call in hooks.calls
    ]
    assert sent == [
        {"resource-state": "sync", "message-number": "1"},
        {"resource-state": "exists", "message-number": "2"},
    ]
    last = hooks.calls[-1]
    assert (last.method, last.path, last.body) == ("POST", "/n", b"")
    assert (
        last.headers["x-goog-channel-id"],
        last.headers["x-goog-channel-token"],
        last.headers["x-goog-resource-id"],
        last.headers["x-goog-channel-expiration"],
    ) == ("channel-1", "secret", answer["resourceId"], "Tue, 01 Dec 2026 09:00:00 GMT")

    stop = {"id": "channel-1", "resourceId": answer["resourceId"]}
    assert reason_of(api("POST", "channels/stop", stop | {"resourceId": "x"})) == (404, "notFound")
    assert api("POST", "channels/stop", stop).status_code == 204
    ada.calendar.add("y", NOW, NOW + timedelta(hours=1))
    google.sender.wait()
    assert len(hooks.calls) == 2
    assert reason_of(api("POST", f"{EVENTS}/watch", body)) == (400, "channelIdNotUnique")


def test_channel_ends_by_the_clock_of_the_fake(
    google: FakeGoogle, ada: Account, api: ApiClient
) -> None:
    google.channels.most_seconds = 1000
    body = {"id": "c1", "type": "web_hook", "address": "https://booking.example/n"}
    answer = api("POST", f"{EVENTS}/watch", body).json()

    assert int(answer["expiration"]) == int((NOW + timedelta(seconds=1000)).timestamp() * 1000)
    google.clock.advance(seconds=999)
    assert [channel.id for channel in google.channels.live(ada.calendar.id)] == ["c1"]
    google.clock.advance(seconds=1)
    assert google.channels.live() == []


def test_watch_with_an_address_that_is_not_https_is_refused(api: ApiClient) -> None:
    body = {"id": "c1", "type": "web_hook", "address": "http://booking.example/n"}

    assert reason_of(api("POST", f"{EVENTS}/watch", body)) == (400, "push.webhookUrlNotHttps")


# --- Faults ---------------------------------------------------------------------------------------
def test_faults_have_the_shape_of_google(google: FakeGoogle, api: ApiClient) -> None:
    google.fail("userRateLimitExceeded", "/events", Retry_After="3")
    google.throttle(seconds=9)
    google.fail("forbidden")

    answers = [api("GET", EVENTS) for _ in range(4)]

    assert [answer.status_code for answer in answers] == [403, 429, 403, 200]
    assert [reason_of(answer)[1] for answer in answers[:3]] == [
        "userRateLimitExceeded",
        "rateLimitExceeded",
        "forbidden",
    ]
    assert [answer.headers.get("Retry-After") for answer in answers] == ["3", "9", None, None]


def test_lost_answer_leaves_the_event(google: FakeGoogle, ada: Account, api: ApiClient) -> None:
    google.gateway.lose_answer("/events$", method="POST")

    with pytest.raises(requests.ConnectionError):
        api("POST", EVENTS, LUNCH | {"id": "lunch00001"})

    assert ada.calendar.titles() == ["Lunch"]
    assert reason_of(api("POST", EVENTS, LUNCH | {"id": "lunch00001"})) == (409, "duplicate")


def test_access_token_ends_after_an_hour_by_the_clock(google: FakeGoogle, api: ApiClient) -> None:
    google.clock.advance(seconds=3598)
    assert api("GET", EVENTS).status_code == 200
    google.clock.advance(seconds=1)

    answer = api("GET", EVENTS)

    assert reason_of(answer) == (401, "authError")
    assert "invalid_token" in answer.headers["WWW-Authenticate"]
