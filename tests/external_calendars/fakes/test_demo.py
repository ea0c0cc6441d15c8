"""The demo accounts of the fakes."""

from datetime import UTC, datetime

from tests.external_calendars.fakes.demo import DEMOS, add_google
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
