"""The demo accounts of the fakes."""

from datetime import UTC, datetime
from urllib.parse import quote

from tests.external_calendars.fakes.demo import DEMOS, add_google, add_microsoft
from tests.external_calendars.fakes.graph_client import GraphClient
from tests.external_calendars.fakes.server import Gateway
from tests.external_calendars.fakes.test_fake_google import ApiClient


def test_demo_of_google_has_events_of_every_kind(gateway: Gateway) -> None:
    gateway.clock.set(datetime(2026, 10, 23, 12, tzinfo=UTC))  # before a clock change
    google = add_google(gateway, "http://127.0.0.1:8000/v2/calendars/callback")
    ada = ApiClient(google, "ada.berg@example.com")

    calendars = ada.list("users/me/calendarList")["items"]
    week = ada.list(
        singleEvents="true",
        orderBy="startTime",
        timeMin="2026-10-26T00:00:00+01:00",
        timeMax="2026-11-02T00:00:00+01:00",
    )["items"]

    assert add_google in DEMOS
    assert [(entry["summary"], entry["accessRole"]) for entry in calendars] == [
        ("ada.berg@example.com", "owner"),
        ("Workshops", "owner"),
        ("linus.holm@example.com", "reader"),
    ]
    # Of the stand-ups at 9, Wednesday's is cancelled and Friday's is moved.
    assert [(item["summary"], *item["start"].values()) for item in week] == [
        ("Standup", "2026-10-26T09:00:00+01:00", "Europe/Berlin"),
        ("Dentist", "2026-10-27T15:00:00+01:00", "Europe/Berlin"),
        ("Standup", "2026-10-30T14:00:00+01:00", "Europe/Berlin"),
    ]


def test_demo_of_microsoft_has_events_of_every_kind(gateway: Gateway) -> None:
    gateway.clock.set(datetime(2026, 10, 16, 12, tzinfo=UTC))  # before a clock change
    graph = add_microsoft(gateway, "http://127.0.0.1:8000/v2/calendars/callback")
    ada, linus = (
        GraphClient(gateway, graph.access_token(email))
        for email in ("ada.berg@example.com", "linus.holm@example.com")
    )

    calendars = ada.get("/me/calendars")["value"]
    week = ada.get(
        f"/me/calendars/{quote(calendars[0]['id'])}/calendarView",
        startDateTime="2026-10-19T00:00:00Z",
        endDateTime="2026-10-25T00:00:00Z",
    )["value"]

    assert add_microsoft in DEMOS
    assert [(each["name"], each["canEdit"]) for each in calendars] == [
        ("Calendar", True),
        ("Workshops", True),
        ("Holidays of the team", False),
    ]
    # Of the stand-ups at 9, Wednesday's is cancelled and Friday's is moved.
    assert [(each["subject"], each["start"]["dateTime"][:16]) for each in week] == [
        ("Standup", "2026-10-19T07:00"),
        ("Dentist", "2026-10-20T13:00"),
        ("Standup", "2026-10-23T12:00"),
    ]
    [own] = linus.get("/me/calendars")["value"]
    assert own["allowedOnlineMeetingProviders"] == []
