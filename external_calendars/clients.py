"""Store and delete an app's own OAuth clients at calendar providers.

Tokens belong to the client that they were given to (RFC 6749 6). With another client, the app's
calendars at the provider stop until their people connect them again.
"""

import uuid
from datetime import datetime

from django.db import transaction

from apps_config.models import App, SecurityEvent
from apps_config.security_events import record_event
from common.encryption import encrypt_text
from external_calendars.grants import settings_client
from external_calendars.models import Connection, Grant, ProviderClient

GRANT_ENDED = "grant_ended"


def store_client(
    *, app: App, provider: str, client_id: str, client_secret: str, now: datetime
) -> ProviderClient:
    """Create or replace the app's client; grants that were given to another one end."""
    with transaction.atomic():
        client, _ = ProviderClient.objects.update_or_create(
            app=app,
            provider=provider,
            defaults={"client_id": client_id, "client_secret": encrypt_text(client_secret)},
        )
        _end_other_grants(app.id, provider, client_id, now=now)
        _record(SecurityEvent.CALENDAR_CLIENT_STORED, client)
    return client


def delete_client(client: ProviderClient, *, now: datetime) -> None:
    """Delete the app's client: the app uses that of the settings. Grants given to another one end.

    No error if it was just deleted.
    """
    with transaction.atomic():
        if not ProviderClient.objects.filter(pk=client.pk).delete()[0]:
            return
        other = settings_client(client.provider)
        other_id = other.client_id if other else ""
        _end_other_grants(client.app_id, client.provider, other_id, now=now)
        _record(SecurityEvent.CALENDAR_CLIENT_DELETED, client)


def count_calendars(client: ProviderClient) -> int:
    """Return how many calendars are reached with grants that were given to the client."""
    connections = Connection.objects.filter(
        grant__app=client.app_id,
        grant__provider=client.provider,
        grant__client_id=client.client_id,
    )
    return connections.count()


def _end_other_grants(app_id: uuid.UUID, provider: str, client_id: str, *, now: datetime) -> None:
    ended = Grant.objects.filter(app=app_id, provider=provider).exclude(client_id=client_id)
    ended.update(renew_at=None, lease_token=None)
    connections = Connection.objects.filter(grant__in=ended).exclude(problem=GRANT_ENDED)
    connections.update(problem=GRANT_ENDED, problem_since=now, next_at=None, lease_token=None)


def _record(kind: str, client: ProviderClient) -> None:
    about = {"provider": client.provider, "client_id": client.client_id}
    record_event(kind, app_id=client.app_id, about=about)
