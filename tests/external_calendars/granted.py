"""Calendars of people who have agreed at a fake provider, connected as by the consent page."""

from datetime import timedelta
from typing import Any

from django.utils import timezone

from apps_config.models import App
from availability.models import Calendar, Resource
from common.encryption import encrypt_text
from external_calendars.models import Connection, Grant
from external_calendars.services import connect_calendar, grant_access
from tests.external_calendars.fakes.google import FakeGoogle
from tests.external_calendars.fakes.graph import FakeGraph


def make_grant(app: App, fake: FakeGoogle | FakeGraph, email: str) -> Grant:
    """The person's grant, with an access token of one hour."""
    provider, given = "google", fake.allow(email)
    token = fake.oauth.make_access_token(given) if isinstance(fake, FakeGoogle) else ""
    if isinstance(fake, FakeGraph):
        provider, token = "microsoft", fake.login.make_access_token(given)
    now = timezone.now()
    return Grant.objects.create(
        app=app,
        provider=provider,
        subject=email,
        email=email,
        client_id=f"demo-{provider}",
        refresh_token=encrypt_text(given.refresh_token),
        access_token=encrypt_text(token),
        access_ends_at=now + timedelta(hours=1),
        renew_at=now + timedelta(minutes=45),
    )


def connect_granted(resource: dict[str, Any], grant: Grant, wanted: str = "") -> Connection:
    """The connection of the account's main calendar, or of the wanted one, which is due."""
    calendar = connect_calendar(
        resource=Resource.objects.get(id=resource["id"]),
        provider=grant.provider,
        access=grant_access(grant, wanted),
        grant=grant,
        given={},
        now=timezone.now(),
    )
    return Connection.objects.get(pk=calendar.pk)


def calendar_of(connection: Connection) -> Calendar:
    return Calendar.objects.get(pk=connection.pk)
