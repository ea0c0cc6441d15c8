"""An app's own OAuth clients at providers of calendars: `/v2/calendars/clients`."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from apps_config.models import SecurityEvent
from common.encryption import decrypt_text, encrypt_text
from external_calendars.grants import client_of
from external_calendars.models import Connection, Grant, ProviderClient
from external_calendars.providers import OAUTH_PROVIDERS
from external_calendars.providers.oauth import OAuthClient
from tests.external_calendars.accounts import EMAIL, GoogleHome, connect_account
from tests.external_calendars.fakes.google import FakeGoogle
from tests.world import Tenant

pytestmark = pytest.mark.django_db(transaction=True)

PATH = "/calendars/clients"
BODY = {"client_id": "own-client", "client_secret": "5ecret"}


@pytest.fixture
def work(tenant: Tenant, google: FakeGoogle) -> Connection:
    """A calendar that was connected with the service's own client."""
    ada = tenant.make_resource("Ada", email=EMAIL)
    return connect_account(tenant, GoogleHome(google), ada)


def state(connection: Connection) -> tuple[str, bool]:
    """The problem of a connection, and whether it is stopped."""
    connection.refresh_from_db()
    return connection.problem, connection.is_stopped


def events() -> list[tuple[str, dict[str, Any]]]:
    kinds = SecurityEvent.objects.filter(kind__startswith="calendar_client").order_by("id")
    return [(event.kind, event.about) for event in kinds]


@pytest.mark.parametrize("provider", OAUTH_PROVIDERS)
def test_client_is_stored_and_shown_without_its_secret(
    tenant: Tenant, settings: Any, provider: str
) -> None:
    before = tenant.get(PATH).data
    made = tenant.put(f"{PATH}/{provider}", BODY)
    shown = tenant.get(PATH)

    record = {
        "provider": provider,
        "client_id": "own-client",
        "redirect_uri": f"{settings.PUBLIC_URL}/v2/calendars/callback",
    }
    assert (before, made.status, made.data, shown.data) == ([], 200, record, [record])
    client = ProviderClient.objects.get()
    assert decrypt_text(client.client_secret) == "5ecret"
    assert "5ecret" not in client.client_secret
    assert client_of(tenant.app.id, provider) == OAuthClient("own-client", "5ecret")
    assert events() == [
        ("calendar_client_stored", {"provider": provider, "client_id": "own-client"})
    ]


def test_client_is_replaced(tenant: Tenant) -> None:
    tenant.put(f"{PATH}/google", BODY)

    tenant.put(f"{PATH}/google", {"client_id": "other", "client_secret": "other secret"})

    client = ProviderClient.objects.get()
    assert (client.client_id, decrypt_text(client.client_secret)) == ("other", "other secret")


def test_another_client_ends_the_grants_of_the_former(
    tenant: Tenant, google: FakeGoogle, work: Connection
) -> None:
    tenant.put(f"{PATH}/google", BODY)

    assert state(work) == ("grant_ended", True)
    assert Grant.objects.get().renew_at is None
    assert tenant.get(f"/calendars/{work.pk}").data["problem"]["code"] == "grant_ended"


def test_new_secret_of_the_same_client_keeps_grants(
    tenant: Tenant, google: FakeGoogle, work: Connection
) -> None:
    tenant.put(f"{PATH}/google", {"client_id": "demo-google", "client_secret": "demo-secret"})

    assert state(work) == ("", False)
    assert Grant.objects.get().renew_at is not None


def test_client_of_another_provider_keeps_grants(
    tenant: Tenant, google: FakeGoogle, work: Connection
) -> None:
    tenant.put(f"{PATH}/microsoft", BODY)

    assert state(work) == ("", False)


def test_deleted_client_ends_its_grants(tenant: Tenant, google: FakeGoogle) -> None:
    tenant.put(f"{PATH}/google", BODY)
    google.add_client(google.oauth.clients["demo-google"].redirect_uris[0], *BODY.values())
    ada = tenant.make_resource("Ada", email=EMAIL)
    work = connect_account(tenant, GoogleHome(google), ada)
    before = state(work)

    answers = [tenant.delete(f"{PATH}/google").status for _ in range(2)]

    assert answers == [204, 404]
    assert (before, state(work)) == (("", False), ("grant_ended", True))
    assert client_of(tenant.app.id, "google") == OAuthClient("demo-google", "demo-secret")
    assert [kind for kind, _ in events()] == ["calendar_client_stored", "calendar_client_deleted"]


def test_deleted_client_of_the_same_id_as_that_of_the_settings_keeps_grants(
    tenant: Tenant, google: FakeGoogle, work: Connection
) -> None:
    tenant.put(f"{PATH}/google", {"client_id": "demo-google", "client_secret": "demo-secret"})

    tenant.delete(f"{PATH}/google")

    assert state(work) == ("", False)


def test_grant_of_an_earlier_client_is_used_with_a_new_consent(
    tenant: Tenant, google: FakeGoogle, work: Connection
) -> None:
    tenant.put(f"{PATH}/google", BODY)
    google.add_client(google.oauth.clients["demo-google"].redirect_uris[0], *BODY.values())
    body = {
        "provider": "google",
        "calendar_id": str(work.pk),
        "redirect_url": "https://app.example.com/settings",
    }

    url = tenant.post("/calendars/connect", body).data["url"]
    back = google.consent(url, EMAIL)
    tenant.client.get(f"/v2{back.partition('/v2')[2]}")

    assert state(work) == ("", False)
    assert Grant.objects.get().client_id == "own-client"


@pytest.mark.parametrize(
    ("body", "errors"),
    [
        (
            {},
            {
                "client_id": ["This field is required."],
                "client_secret": ["This field is required."],
            },
        ),
        (BODY | {"client_id": ""}, {"client_id": ["This field may not be blank."]}),
        (
            BODY | {"client_secret": "a\nb"},
            {"client_secret": ["May not contain control characters or line breaks."]},
        ),
        (BODY | {"scopes": []}, {"scopes": ["Is not a known key."]}),
    ],
)
def test_wrong_bodies_are_refused(
    tenant: Tenant, body: dict[str, Any], errors: dict[str, list[str]]
) -> None:
    answer = tenant.put(f"{PATH}/google", body)

    assert (answer.status, answer.json["errors"]) == (422, errors)
    assert not ProviderClient.objects.exists()


@pytest.mark.parametrize("provider", ["caldav", "service", "unknown"])
def test_providers_without_clients_are_unknown(tenant: Tenant, provider: str) -> None:
    assert tenant.put(f"{PATH}/{provider}", BODY).status == 404
    assert tenant.delete(f"{PATH}/{provider}").status == 404


def test_idempotency_key_is_refused(tenant: Tenant) -> None:
    answer = tenant.put(f"{PATH}/google", BODY, **{"Idempotency-Key": "k1"})

    assert (answer.status, [*answer.json["errors"]]) == (422, ["Idempotency-Key"])


def test_clients_are_the_apps_own(tenant: Tenant, make_tenant: Any) -> None:
    other = make_tenant()
    other.put(f"{PATH}/google", BODY)

    assert tenant.get(PATH).data == []
    assert tenant.delete(f"{PATH}/google").status == 404
    assert ProviderClient.objects.count() == 1


@pytest.mark.parametrize(("role", "status"), [("owner", 200), ("editor", 403), ("viewer", 403)])
def test_only_owners_may_use_clients(tenant: Tenant, role: str, status: int) -> None:
    caller = tenant.member("person@example.com", role)

    assert [caller.get(PATH).status, caller.put(f"{PATH}/google", BODY).status] == [status] * 2


def test_client_with_an_unreadable_secret_says_so(
    tenant: Tenant, google: FakeGoogle, settings: Any
) -> None:
    from_lost_key, settings.ENCRYPTION_KEYS = settings.ENCRYPTION_KEYS, ["another key, " * 3]
    secret = encrypt_text("lost")
    settings.ENCRYPTION_KEYS = from_lost_key
    ProviderClient.objects.create(
        app=tenant.app, provider="google", client_id="own", client_secret=secret
    )
    ada = tenant.make_resource("Ada")
    address = "https://app.example.com/settings"
    tenant.put(f"/apps/{tenant.app.slug}", {"settings": {"redirect_urls": [address]}})

    answer = tenant.post(
        "/calendars/connect",
        {"provider": "google", "resource_id": ada["id"], "redirect_url": address},
    )

    assert (answer.status, answer.json["errors"]) == (
        422,
        {
            "provider": [
                "The secret of the app's client at Google Calendar can't be read: enter it again."
            ]
        },
    )


def test_abandoned_grant_of_another_client_stays_ended(tenant: Tenant, google: FakeGoogle) -> None:
    now = timezone.now()
    Grant.objects.create(
        app=tenant.app,
        provider="google",
        subject="1",
        client_id="demo-google",
        refresh_token=encrypt_text("r"),
        access_token=encrypt_text("a"),
        access_ends_at=now + timedelta(hours=1),
        renew_at=now,
    )

    tenant.put(f"{PATH}/google", BODY)

    assert Grant.objects.get().renew_at is None
