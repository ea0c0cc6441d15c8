"""The fake of Microsoft Graph: what it refuses, events, series, delta, throttling."""

import threading
from datetime import date
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from tests.external_calendars.fakes.graph import HANDLERS, FakeGraph
from tests.external_calendars.fakes.graph_client import ADA, GraphClient, event
from tests.external_calendars.fakes.microsoft.events import Item, occurrence_id
from tests.external_calendars.fakes.microsoft.recurrence import recurrence_dates
from tests.external_calendars.fakes.microsoft.schema import FIELDS, properties_of
from tests.external_calendars.fakes.server import Gateway

GUEST = "guest@example.com"
PROPERTY = "String {66f5a359-4659-4830-9070-00047ec6ac6e} Name Booking"
WINDOW = {"startDateTime": "2026-01-01T00:00:00Z", "endDateTime": "2027-01-01T00:00:00Z"}


def attendee(address: str = GUEST) -> dict[str, Any]:
    return {"emailAddress": {"address": address, "name": "Guest"}, "type": "required"}


def weekly(*days: str, start: str, **limits: Any) -> dict[str, Any]:
    limits = {"type": "noEnd", "startDate": start} | limits
    pattern = {"type": "weekly", "interval": 1, "daysOfWeek": list(days)}
    return {"pattern": pattern, "range": limits}


def add_series(graph: FakeGraph, **more: Any) -> Item:
    """Tuesdays at ten in Berlin, four times, over the change of the clocks in October."""
    recurrence = weekly("tuesday", start="2026-10-13", type="numbered", numberOfOccurrences=4)
    body = event("2026-10-13T10:00:00", "W. Europe Standard Time", recurrence=recurrence, **more)
    return graph.create(ADA, body)


# --- What is refused ------------------------------------------------------------------------------
def test_paths_of_the_fake_are_those_of_the_published_package() -> None:
    known = {
        (method, template)
        for template, facts in FIELDS["paths"].items()
        for method in facts["methods"]
    }

    assert HANDLERS.keys() <= known


@pytest.mark.parametrize(
    ("method", "path", "options", "sentence"),
    [
        ("GET", "/me/kalender", {}, "Unknown path."),
        ("PUT", "/me/calendars/x", {}, "/me/calendars/{calendar-id} has no method PUT."),
        ("GET", "/me/calendars", {"params": {"$to": "1"}}, "No query parameter $to here."),
        ("GET", "/me/calendars", {"params": {"$select": "nmae"}}, "calendar has no nmae."),
        ("GET", "/me", {"headers": {"Prefer": 'outlook.timezone="UTC"'}}, 'IdType="ImmutableId"'),
        ("GET", "/me", {"headers": {"Prefer": 'IdType="ImmutableId", a=1'}}, "Prefer has no a."),
        ("POST", "E", {"data": "{}"}, "The body's Content-Type is ''."),
        ("POST", "E", {"json": event(sujbect="x")}, "event: event has no sujbect."),
        ("POST", "E", {"json": event(iCalUId="x")}, "event: iCalUId can't be written."),
        ("POST", "E", {"json": event(showAs="away")}, "event.showAs is 'away'"),
        ("POST", "E", {"json": event(isAllDay="yes")}, "event.isAllDay is 'yes'"),
        ("POST", "E", {"json": {"subject": "x"}}, "event lacks end, start."),
        ("POST", "E", {"json": event("2026-12-01T10:00:00+01:00")}, "no local time"),
        (
            "POST",
            "E",
            {"json": event(singleValueExtendedProperties=[{"id": "Booking", "value": "1"}])},
            "is no id of an extended property",
        ),
        (
            "POST",
            "E",
            {"json": event(recurrence=weekly(start="2026-12-01"))},
            "recurrence.pattern lacks daysOfWeek.",
        ),
        ("GET", "V", {"params": {"startDateTime": "2026-01-01"}}, "lacks endDateTime"),
        ("GET", "V/delta", {"params": WINDOW | {"$top": "5"}}, "No query parameter $top here."),
        (
            "POST",
            "/subscriptions",
            {"json": {"resource": "/me/events"}},
            "subscription lacks changeType, expirationDateTime, notificationUrl.",
        ),
    ],
)
def test_request_that_graph_does_not_have_is_a_violation(
    gateway: Gateway,
    client: GraphClient,
    calendar: str,
    method: str,
    path: str,
    options: dict[str, Any],
    sentence: str,
) -> None:
    path = path.replace("E", f"{calendar}/events").replace("V", f"{calendar}/calendarView")

    error = client.error(method, path, **options)

    assert error == (400, "ErrorInvalidRequest")
    [violation] = gateway.violations
    assert sentence in violation
    gateway.violations.clear()


def test_transaction_id_in_a_patch_is_a_violation(
    gateway: Gateway, graph: FakeGraph, client: GraphClient
) -> None:
    item = graph.create(ADA, event())

    client.send("PATCH", f"/me/events/{item.id}", json={"transactionId": "1"})

    [violation] = gateway.violations
    assert "transactionId can't be changed" in violation
    gateway.violations.clear()


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (event("2026-12-01T10:00:00", isAllDay=True), "ErrorPropertyValidationFailure"),
        (event("2026-12-01T10:00:00", "Mars Standard Time"), "TimeZoneNotSupportedException"),
        (
            event() | {"end": {"dateTime": "2026-12-01T09:00:00", "timeZone": "UTC"}},
            "ErrorCalendarEndDateIsEarlierThanStartDate",
        ),
        (
            event(attendees=[attendee(f"{number}@example.com") for number in range(501)]),
            "ErrorInvalidRequest",
        ),
    ],
)
def test_event_against_a_rule_of_exchange_gets_its_error(
    client: GraphClient, calendar: str, body: dict[str, Any], code: str
) -> None:
    assert client.error("POST", f"{calendar}/events", json=body) == (400, code)


def test_token_and_scopes_decide_what_may_be_asked(
    gateway: Gateway, graph: FakeGraph, client: GraphClient, calendar: str
) -> None:
    reader = GraphClient(gateway, graph.access_token(ADA, "Calendars.Read"))
    shared = graph.mailboxes[ADA].add_calendar("Team", can_edit=False, owner="bob@harbour.example")
    stranger = GraphClient(gateway, "no token")
    team = f"/me/calendars/{quote(shared.id)}/events"

    assert stranger.error("GET", "/me") == (401, "InvalidAuthenticationToken")
    assert reader.error("GET", "/me") == (403, "Authorization_RequestDenied")
    assert reader.get(f"{calendar}/events")["value"] == []
    refused = reader.error("POST", f"{calendar}/events", json=event())
    assert refused == (403, "ErrorAccessDenied")
    assert client.error("POST", team, json=event()) == (403, "ErrorAccessDenied")
    graph.clock.advance(seconds=3600)
    assert client.error("GET", "/me") == (401, "InvalidAuthenticationToken")


# --- Events ---------------------------------------------------------------------------------------
def test_event_answer_has_only_properties_of_the_type(
    graph: FakeGraph, client: GraphClient, calendar: str
) -> None:
    options: dict[str, Any] = {
        "allowNewTimeProposals": False,
        "hideAttendees": True,
        "responseRequested": False,
        "sensitivity": "private",
        "showAs": "oof",
    }
    body = event(
        body={"contentType": "text", "content": "Fish & chips"},
        location={"displayName": "Pier 3"},
        attendees=[attendee()],
        singleValueExtendedProperties=[{"id": PROPERTY, "value": "b1"}],
        transactionId="t1",
        **options,
    )

    answer = client.post(f"{calendar}/events", body)

    names = {name for name in answer if not name.startswith("@odata")}
    assert names <= properties_of("event").keys()
    assert answer["start"] == {"dateTime": "2026-12-01T10:00:00.0000000", "timeZone": "UTC"}
    content = "<html><head></head><body>Fish &amp; chips</body></html>"
    assert answer["body"] == {"contentType": "html", "content": content}
    assert answer["bodyPreview"] == "Fish & chips"
    assert answer["location"] == {"displayName": "Pier 3", "locationType": "default"}
    assert answer["attendees"] == [
        {
            "type": "required",
            "status": {"response": "none", "time": "0001-01-01T00:00:00Z"},
            "emailAddress": {"name": "Guest", "address": GUEST},
        }
    ]
    assert {name: answer[name] for name in options} == options
    assert (answer["type"], answer["transactionId"]) == ("singleInstance", "t1")
    assert "singleValueExtendedProperties" not in answer
    expand = f"singleValueExtendedProperties($filter=id eq '{PROPERTY}')"
    expanded = client.get(f"/me/events/{answer['id']}", **{"$expand": expand})
    assert expanded["singleValueExtendedProperties"] == [{"id": PROPERTY, "value": "b1"}]


def test_preferences_select_zone_and_body(graph: FakeGraph, client: GraphClient) -> None:
    content = "<p>One</p><p>Two</p>"
    item = graph.create(ADA, event(body={"contentType": "html", "content": content}))

    client.prefer = 'IdType="ImmutableId"'
    unasked = client.get(f"/me/events/{item.id}")
    client.prefer += ', outlook.timezone="Tokyo Standard Time", outlook.body-content-type="text"'
    asked = client.get(f"/me/events/{item.id}")

    berlin = {"dateTime": "2026-12-01T11:00:00.0000000", "timeZone": "W. Europe Standard Time"}
    tokyo = {"dateTime": "2026-12-01T19:00:00.0000000", "timeZone": "Tokyo Standard Time"}
    assert (unasked["start"], asked["start"]) == (berlin, tokyo)
    assert asked["body"] == {"contentType": "text", "content": "One\nTwo"}
    assert asked["originalStartTimeZone"] == "UTC"


def test_all_day_event_keeps_its_dates_in_every_zone(graph: FakeGraph, client: GraphClient) -> None:
    zone = "Pacific Standard Time"
    body = event("2026-12-01T00:00:00", zone, isAllDay=True)
    body["end"]["dateTime"] = "2026-12-02T00:00:00"
    item = graph.create(ADA, body)

    answer = client.get(f"/me/events/{item.id}", **{"$select": "start,end"})

    assert (answer["start"]["dateTime"], answer["end"]["dateTime"]) == (
        "2026-12-01T00:00:00.0000000",
        "2026-12-02T00:00:00.0000000",
    )
    assert answer.keys() == {"@odata.context", "@odata.etag", "id", "start", "end"}


def test_ids_differ_in_case_only_for_some_events(graph: FakeGraph) -> None:
    ids = [graph.create(ADA, event()).id for _ in range(4)]

    assert len(set(ids)) == 4
    assert ids[0] != ids[1]
    assert ids[0].lower() == ids[1].lower()
    assert len({each.lower() for each in ids}) == 2


def test_repeated_transaction_id_answers_the_existing_event(
    graph: FakeGraph, client: GraphClient, calendar: str
) -> None:
    body = event(transactionId="t1", attendees=[attendee()])

    first, second = (client.post(f"{calendar}/events", body) for _ in range(2))
    other = client.error("POST", f"{calendar}/events", json=body | {"subject": "Dinner"})

    assert first["id"] == second["id"]
    assert len(graph.events(ADA)) == 1
    assert graph.mails_to(GUEST) == ["request"]
    assert other == (409, "ErrorDuplicateTransactionId")
    graph.remove(first["id"])
    again = client.error("POST", f"{calendar}/events", json=body)
    assert again == (409, "ErrorDuplicateTransactionId")


def test_if_match_of_an_old_version_is_refused(graph: FakeGraph, client: GraphClient) -> None:
    item = graph.create(ADA, event())
    path = f"/me/events/{item.id}"
    etag = client.get(path)["@odata.etag"]
    graph.change(item.id, {"subject": "Dinner"})

    stale = {"headers": {"If-Match": etag}}
    patched = client.error("PATCH", path, json={"subject": "Tea"}, **stale)
    deleted = client.error("DELETE", path, **stale)

    assert patched == deleted == (412, "ErrorIrresolvableConflict")
    fresh = {"headers": {"If-Match": client.get(path)["@odata.etag"]}}
    assert client.send("PATCH", path, json={"subject": "Tea"}, **fresh).json()["subject"] == "Tea"
    assert client.send("DELETE", path).status_code == 204
    assert client.error("GET", path) == (404, "ErrorItemNotFound")


def test_extended_property_finds_its_event(client: GraphClient, calendar: str) -> None:
    upper = PROPERTY.replace("66f5a359", "66F5A359")
    ids = [
        client.post(
            f"{calendar}/events",
            event(singleValueExtendedProperties=[{"id": upper, "value": value}]),
        )["id"]
        for value in ("b1", "O'Hara")
    ]

    def found(value: str, name: str = PROPERTY) -> list[str]:
        condition = f"ep/id eq '{name}' and ep/value eq '{value}'"
        query = {"$filter": f"singleValueExtendedProperties/Any(ep: {condition})"}
        return [each["id"] for each in client.get(f"{calendar}/events", **query)["value"]]

    assert found("B1") == [ids[0]]
    assert found("O''Hara") == [ids[1]]
    assert found("b1", PROPERTY.replace("Booking", "booking")) == []
    assert found("b2") == []


def test_lists_go_over_pages(graph: FakeGraph, client: GraphClient, calendar: str) -> None:
    for number in range(12):
        graph.mailboxes[ADA].add_calendar(f"Room {number}")
        graph.create(ADA, event(subject=str(number)))

    calendars = client.get("/me/calendars")
    rest = client.get(calendars["@odata.nextLink"])
    client.prefer += ", odata.maxpagesize=5"
    view = client.get(f"{calendar}/calendarView", **WINDOW)

    names = [each["name"] for each in calendars["value"] + rest["value"]]
    assert names == ["Calendar", *(f"Room {number}" for number in range(12))]
    assert (len(calendars["value"]), "@odata.nextLink" in rest) == (10, False)
    sizes = [len(view["value"])]
    while "@odata.nextLink" in view:
        view = client.get(view["@odata.nextLink"])
        sizes.append(len(view["value"]))
    assert sizes == [5, 5, 2]


def test_calendars_say_who_may_write_and_meet(
    gateway: Gateway, graph: FakeGraph, client: GraphClient
) -> None:
    graph.add_account("eve@outlook.example", "Eve", is_personal=True)
    personal = GraphClient(gateway, graph.access_token("eve@outlook.example"))
    graph.mailboxes[ADA].add_calendar("Team", can_edit=False, owner="bob@harbour.example")

    own, team = client.get("/me/calendars")["value"]
    [eves] = personal.get("/me/calendars")["value"]

    assert own.keys() <= properties_of("calendar").keys()
    assert (own["isDefaultCalendar"], own["canEdit"]) == (True, True)
    assert own["allowedOnlineMeetingProviders"] == ["teamsForBusiness"]
    assert own["owner"] == {"name": "Ada Lovelace", "address": ADA}
    assert (team["canEdit"], team["owner"]["address"]) == (False, "bob@harbour.example")
    assert (eves["allowedOnlineMeetingProviders"], eves["defaultOnlineMeetingProvider"]) == (
        [],
        "unknown",
    )
    assert client.get("/me", **{"$select": "mail,userPrincipalName"}) == {
        "@odata.context": "https://graph.microsoft.com/v1.0/$metadata#users/$entity",
        "id": graph.mailboxes[ADA].id,
        "mail": ADA,
        "userPrincipalName": ADA,
    }


# --- Mails to attendees ---------------------------------------------------------------------------
def test_every_write_with_attendees_sends_mails(
    graph: FakeGraph, client: GraphClient, calendar: str
) -> None:
    made = client.post(f"{calendar}/events", event(attendees=[attendee(), attendee(ADA)]))
    path = f"/me/events/{made['id']}"

    client.send("PATCH", path, json={"showAs": "free"})
    client.send("PATCH", path, json={"subject": "Dinner"})
    client.send("PATCH", path, json={"attendees": [attendee(), attendee("bo@example.com")]})
    client.send("PATCH", path, json={"attendees": [attendee("bo@example.com")]})
    client.send("DELETE", path)

    assert [(mail.kind, mail.to, mail.by) for mail in graph.invitations] == [
        ("request", GUEST, "api"),
        ("update", GUEST, "api"),
        ("request", "bo@example.com", "api"),
        ("cancellation", GUEST, "api"),
        ("cancellation", "bo@example.com", "api"),
    ]


def test_same_times_in_another_zone_send_no_mail(graph: FakeGraph, client: GraphClient) -> None:
    item = graph.create(ADA, event("2026-12-01T11:00:00", "W. Europe Standard Time"))
    graph.change(item.id, {"attendees": [attendee()]})

    client.send("PATCH", f"/me/events/{item.id}", json=event("2026-12-01T10:00:00"))

    assert graph.mails_to(GUEST) == ["request"]


def test_answer_of_an_attendee_stays_until_the_event_moves(
    graph: FakeGraph, client: GraphClient, calendar: str
) -> None:
    made = client.post(f"{calendar}/events", event(attendees=[attendee()]))
    path = f"/me/events/{made['id']}"

    graph.answer_invitation(made["id"], GUEST, "declined")
    declined = client.get(path)
    client.send("PATCH", path, json={"attendees": [attendee(), attendee("bo@example.com")]})
    kept = client.get(path)
    client.send("PATCH", path, json=event("2026-12-01T12:00:00"))
    moved = client.get(path)

    status = {"response": "declined", "time": "2026-11-27T09:00:00Z"}
    assert [each["status"] for each in declined["attendees"]] == [status]
    assert kept["attendees"][0]["status"] == status
    assert {each["status"]["response"] for each in moved["attendees"]} == {"none"}
    assert declined["@odata.etag"] != made["@odata.etag"]


# --- Online meetings ------------------------------------------------------------------------------
TEAMS: dict[str, Any] = {"isOnlineMeeting": True, "onlineMeetingProvider": "teamsForBusiness"}


def test_online_meeting_has_its_address_at_once_or_later(
    graph: FakeGraph, client: GraphClient, calendar: str
) -> None:
    at_once = client.post(f"{calendar}/events", event(**TEAMS))
    graph.writer.reads_until_join_url = 2
    later = client.post(f"{calendar}/events", event(**TEAMS))
    reads = [client.get(f"/me/events/{later['id']}")["onlineMeeting"] for _ in range(3)]

    assert at_once["onlineMeeting"]["joinUrl"].startswith("https://teams.microsoft.com/l/meetup")
    assert at_once["onlineMeetingProvider"] == "teamsForBusiness"
    assert later["onlineMeeting"] is None
    assert reads[:2] == [None, None]
    assert reads[2]["joinUrl"] in client.get(f"/me/events/{later['id']}")["body"]["content"]


def test_personal_account_has_no_online_meeting(gateway: Gateway, graph: FakeGraph) -> None:
    eve = graph.add_account("eve@outlook.example", is_personal=True)
    client = GraphClient(gateway, graph.access_token("eve@outlook.example"))

    made = client.post(f"/me/calendars/{quote(eve.default_calendar.id)}/events", event(**TEAMS))

    assert (made["isOnlineMeeting"], made["onlineMeeting"]) == (False, None)


def test_body_without_the_text_of_the_meeting_ends_it(
    graph: FakeGraph, client: GraphClient, calendar: str
) -> None:
    made = client.post(f"{calendar}/events", event(**TEAMS))
    path = f"/me/events/{made['id']}"
    kept = made["body"]["content"].replace("<body>", "<body>New words ")

    client.send("PATCH", path, json={"body": {"contentType": "html", "content": kept}})
    with_text = client.get(path)
    client.send("PATCH", path, json={"body": {"contentType": "html", "content": "New"}})
    without = client.get(path)

    assert with_text["onlineMeeting"] == made["onlineMeeting"]
    assert with_text["bodyPreview"].endswith(f"<{made['onlineMeeting']['joinUrl']}>")
    assert (without["isOnlineMeeting"], without["onlineMeeting"]) == (False, None)
    assert graph.writer.disabled_meetings == [made["id"]]


# --- Series ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("pattern", "limits", "days"),
    [
        ({"type": "daily", "interval": 10}, {}, ["01-31", "02-10", "02-20"]),
        (
            {"type": "weekly", "interval": 2, "daysOfWeek": ["sunday", "monday"]},
            {},
            ["02-08", "02-09", "02-22"],
        ),
        (
            {
                "type": "weekly",
                "interval": 2,
                "daysOfWeek": ["sunday", "monday"],
                "firstDayOfWeek": "monday",
            },
            {},
            ["02-01", "02-09", "02-15"],
        ),
        ({"type": "absoluteMonthly", "interval": 1, "dayOfMonth": 31}, {}, ["01-31", "02-28"]),
        (
            {
                "type": "relativeMonthly",
                "interval": 1,
                "daysOfWeek": ["friday"],
                "index": "last",
            },
            {},
            ["02-27", "03-27", "04-24"],
        ),
        (
            {"type": "relativeMonthly", "interval": 1, "daysOfWeek": ["monday", "friday"]},
            {},
            ["02-02", "03-02", "04-03"],
        ),
        ({"type": "absoluteYearly", "interval": 1, "dayOfMonth": 3, "month": 3}, {}, ["03-03"]),
        (
            {"type": "daily", "interval": 1},
            {"type": "numbered", "numberOfOccurrences": 2},
            ["01-31", "02-01"],
        ),
        (
            {"type": "daily", "interval": 1},
            {"type": "endDate", "endDate": "2026-02-01"},
            ["01-31", "02-01"],
        ),
    ],
)
def test_recurrence_has_its_days(
    pattern: dict[str, Any], limits: dict[str, Any], days: list[str]
) -> None:
    bounds = {"type": "noEnd", "startDate": "2026-01-31"} | limits
    recurrence = {"pattern": pattern, "range": bounds}

    found = list(recurrence_dates(recurrence, date(2026, 12, 31)))

    assert [f"{day:%m-%d}" for day in found[: len(days)]] == days
    if limits:
        assert len(found) == len(days)


def test_series_keeps_its_local_time_over_the_change_of_the_clocks(
    graph: FakeGraph, client: GraphClient, calendar: str
) -> None:
    add_series(graph)

    view = client.get(f"{calendar}/calendarView", **WINDOW)["value"]
    [master] = client.get(f"{calendar}/events")["value"]

    assert [each["start"]["dateTime"] for each in view] == [
        "2026-10-13T08:00:00.0000000",
        "2026-10-20T08:00:00.0000000",
        "2026-10-27T09:00:00.0000000",
        "2026-11-03T09:00:00.0000000",
    ]
    assert {each["type"] for each in view} == {"occurrence"}
    assert {each["seriesMasterId"] for each in view} == {master["id"]}
    assert len({each["iCalUId"] for each in [*view, master]}) == 5
    assert master["type"] == "seriesMaster"
    assert master["recurrence"] == {
        "pattern": {
            "type": "weekly",
            "interval": 1,
            "month": 0,
            "dayOfMonth": 0,
            "daysOfWeek": ["tuesday"],
            "firstDayOfWeek": "sunday",
            "index": "first",
        },
        "range": {
            "type": "numbered",
            "startDate": "2026-10-13",
            "endDate": "0001-01-01",
            "recurrenceTimeZone": "W. Europe Standard Time",
            "numberOfOccurrences": 4,
        },
    }


def test_occurrences_are_moved_and_deleted_by_their_ids(
    graph: FakeGraph, client: GraphClient, calendar: str
) -> None:
    item = add_series(graph)
    moved, gone = (occurrence_id(item.id, date(2026, 10, day)) for day in (20, 27))

    answer = client.send("PATCH", f"/me/events/{moved}", json=event("2026-10-21T12:00:00"))
    deleted = client.send("DELETE", f"/me/events/{gone}")
    crossing = client.error("PATCH", f"/me/events/{moved}", json=event("2026-11-04T12:00:00"))

    assert (answer.json()["type"], answer.json()["id"]) == ("exception", moved)
    assert answer.json()["originalStart"] == "2026-10-20T08:00:00Z"
    assert deleted.status_code == 204
    assert crossing == (400, "ErrorOccurrenceCrossingBoundary")
    assert client.error("GET", f"/me/events/{gone}") == (404, "ErrorItemNotFound")
    view = client.get(f"{calendar}/calendarView", **WINDOW)["value"]
    assert [(each["start"]["dateTime"][5:16], each["type"]) for each in view] == [
        ("10-13T08:00", "occurrence"),
        ("10-21T12:00", "exception"),
        ("11-03T09:00", "occurrence"),
    ]
    graph.change(item.id, event("2026-10-13T15:00:00", "W. Europe Standard Time"))
    view = client.get(f"{calendar}/calendarView", **WINDOW)["value"]
    assert [each["start"]["dateTime"][5:16] for each in view] == [
        "10-13T13:00",
        "10-20T13:00",
        "10-27T14:00",
        "11-03T14:00",
    ]


# --- Delta ----------------------------------------------------------------------------------------
def delta_path(calendar: str, **window: str) -> str:
    return f"{calendar}/calendarView/delta?{urlencode(WINDOW | window)}"


def test_delta_returns_what_changed_since_the_last_round(
    graph: FakeGraph, client: GraphClient, calendar: str
) -> None:
    kept, changed, gone = (graph.create(ADA, event()) for _ in range(3))

    first, link = client.round(delta_path(calendar))
    graph.change(changed.id, {"subject": "Dinner"})
    graph.remove(gone.id)
    outside = graph.create(ADA, event("2027-06-01T10:00:00"))
    second, link = client.round(link)
    third, _ = client.round(link)

    assert [each["id"] for each in first] == [kept.id, changed.id, gone.id]
    assert {each["@odata.type"] for each in first} == {"#microsoft.graph.event"}
    assert second[0]["subject"] == "Dinner"
    removed = {"@odata.type": "#microsoft.graph.event", "@removed": {"reason": "deleted"}}
    assert second[1:] == [removed | {"id": gone.id}, removed | {"id": outside.id}]
    assert third == []


def test_delta_expands_series_and_returns_all_of_one_that_changed(
    graph: FakeGraph, client: GraphClient, calendar: str
) -> None:
    item = add_series(graph, attendees=[attendee()])
    ids = [occurrence_id(item.id, date(2026, 10, day)) for day in (13, 20, 27)]
    window = {"endDateTime": "2026-11-01T00:00:00Z"}

    first, link = client.round(delta_path(calendar, **window))
    graph.change(ids[1], {"subject": "Special"})
    second, link = client.round(link)
    graph.remove(ids[2])
    third, link = client.round(link)
    graph.delta.reports_occurrences = True
    graph.remove(ids[0])
    fourth, link = client.round(link)
    graph.remove(item.id)
    fifth, _ = client.round(link)

    assert [(each["type"], each["id"]) for each in first] == [
        ("seriesMaster", item.id),
        *(("occurrence", each) for each in ids),
    ]
    assert first[0]["attendees"][0]["emailAddress"]["address"] == GUEST
    names = {"@odata.type", "@odata.etag", "id", "seriesMasterId", "type", "start", "end"}
    assert first[1].keys() == names
    assert [each["type"] for each in second] == [
        "seriesMaster",
        "occurrence",
        "exception",
        "occurrence",
    ]
    assert second[2].keys() == names | {"subject", "originalStart"}
    assert [each["id"] for each in third] == [item.id, *ids[:2]]
    assert [(each["id"], "@removed" in each) for each in fourth] == [
        (item.id, False),
        (ids[1], False),
        (ids[0], True),
    ]
    assert [(each["id"], "@removed" in each) for each in fifth] == [
        (item.id, True),
        (ids[1], True),
    ]


def test_delta_can_be_awkward(graph: FakeGraph, client: GraphClient, calendar: str) -> None:
    ids = [graph.create(ADA, event()).id for _ in range(3)]
    add_series(graph)
    client.prefer += ", odata.maxpagesize=2"

    def pages() -> list[int]:
        sizes, link = [], delta_path(calendar)
        while link:
            answer = client.get(link)
            sizes.append(len(answer["value"]))
            link = answer.get("@odata.nextLink")
        return sizes

    whole = pages()
    graph.delta.splits_series = True
    split = pages()
    graph.delta.empty_pages = 2
    graph.delta.repeats_items = True
    awkward = pages()
    items, link = client.round(delta_path(calendar))
    graph.delta.removed_reason = "changed"
    graph.remove(ids[0])
    removed, _ = client.round(link)

    assert (whole, split) == ([2, 1, 5], [2, 2, 2, 2])
    assert awkward == [0, 0, 2, 3, 3, 3]
    assert [each["id"] for each in items[:4]] == [ids[0], ids[1], ids[1], ids[2]]
    assert [each.get("@removed") for each in removed] == [{"reason": "changed"}]


def test_delta_token_encodes_the_window_and_ends(
    graph: FakeGraph, client: GraphClient, calendar: str
) -> None:
    other = graph.mailboxes[ADA].add_calendar("Other")
    _, link = client.round(delta_path(calendar, endDateTime="2026-12-02T00:00:00Z"))
    graph.create(ADA, event("2026-12-03T10:00:00"))
    [removed], link = client.round(link)
    foreign = link.replace(calendar, f"/me/calendars/{quote(other.id)}")

    refused = client.error("GET", foreign)
    graph.delta.end_tokens()
    ended = client.error("GET", link)
    graph.delta.ended_code = "resyncRequired"
    resync = client.error("GET", link)

    assert removed["@removed"] == {"reason": "deleted"}
    assert refused == ended == (410, "SyncStateNotFound")
    assert resync == (410, "resyncRequired")


# --- Throttling -----------------------------------------------------------------------------------
def test_fifth_request_at_a_time_is_refused_and_counted(
    gateway: Gateway, graph: FakeGraph, client: GraphClient
) -> None:
    gateway.latency = 0.5
    statuses: list[int] = []
    threads = [
        threading.Thread(target=lambda: statuses.append(client.send("GET", "/me").status_code))
        for _ in range(5)
    ]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(statuses) == [200, 200, 200, 200, 429]
    assert graph.too_many_at_once == 1


def test_throttled_request_says_when_to_come_back(graph: FakeGraph, client: GraphClient) -> None:
    graph.throttle(times=1, seconds=9)

    refused, accepted = client.send("GET", "/me"), client.send("GET", "/me")

    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "9")
    assert refused.json()["error"]["code"] == "ApplicationThrottled"
    assert accepted.status_code == 200
