"""An app's own clients at Google and Microsoft, in the back office: for owners."""

from typing import Any

import pytest
from django.urls import reverse

from common.encryption import decrypt_text
from external_calendars.models import Grant, ProviderClient
from tests.external_calendars.conftest import _loopback_allowed, gateway, google
from tests.external_calendars.fakes.google import FakeGoogle
from tests.office.staff import form_of, member, messages_of, superuser
from tests.office.test_connect_account_page import ADA, connect
from tests.world import Tenant

__all__ = ["_loopback_allowed", "gateway", "google"]

pytestmark = pytest.mark.django_db(transaction=True)

LIST = reverse("admin:external_calendars_providerclient_changelist")
ADD = reverse("admin:external_calendars_providerclient_add")
SECRET = "5ecret of the client"


def page_of(client: ProviderClient, part: str = "change") -> str:
    return reverse(f"admin:external_calendars_providerclient_{part}", args=[client.pk])


def stored(tenant: Tenant, provider: str = "google") -> ProviderClient:
    body = {"client_id": "own-client", "client_secret": SECRET}
    assert tenant.put(f"/calendars/clients/{provider}", body).status == 200
    return ProviderClient.objects.get(app=tenant.app, provider=provider)


def test_owner_adds_a_client(tenant: Tenant, settings: Any) -> None:
    owner = member(tenant.app, "owner")
    page = owner.get(ADD)
    form = form_of(owner, ADD) | {"client_id": "own-client", "secret": SECRET}

    answer = owner.post(ADD, form, follow=True)

    assert page.context["redirect_uri"] == f"{settings.PUBLIC_URL}/v2/calendars/callback"
    client = ProviderClient.objects.get()
    assert (client.app, client.provider, client.client_id, decrypt_text(client.client_secret)) == (
        tenant.app,
        "google",
        "own-client",
        SECRET,
    )
    assert answer.redirect_chain == [(LIST, 302)]
    shown = [answer, owner.get(page_of(client)), owner.get(page_of(client, "history"))]
    assert [SECRET in page.content.decode() for page in shown] == [False] * 3


def test_second_client_at_a_provider_is_refused(tenant: Tenant) -> None:
    stored(tenant)
    owner = member(tenant.app, "owner")
    form = form_of(owner, ADD) | {"client_id": "other", "secret": SECRET}

    answer = owner.post(ADD, form)

    faults = answer.context["adminform"].form.errors
    assert {name: list(found) for name, found in faults.items()} == {
        "provider": ["The app has a client at this provider: change it."]
    }
    assert SECRET not in answer.content.decode()


def test_change_says_what_stops(tenant: Tenant, google: FakeGoogle) -> None:
    google.add_account(ADA)
    editor = member(tenant.app, "editor")
    body = {"client_id": "demo-google", "client_secret": "demo-secret"}
    tenant.put("/calendars/clients/google", body)
    calendar = connect(editor, google, tenant.make_resource("Ada"))
    client = ProviderClient.objects.get()
    owner = member(tenant.app, "owner")

    page = owner.get(page_of(client))
    owner.post(page_of(client), {"client_id": "other", "secret": SECRET})

    assert page.context["effect"] == (
        "Calendars connected with this client: 1. With another client ID, they stop until they are"
        " connected again."
    )
    calendar.connection.refresh_from_db()
    assert (calendar.connection.problem, Grant.objects.get().renew_at) == ("grant_ended", None)
    client.refresh_from_db()
    assert (client.client_id, decrypt_text(client.client_secret)) == ("other", SECRET)


def test_client_is_deleted_after_a_confirmation(tenant: Tenant) -> None:
    client = stored(tenant)
    owner = member(tenant.app, "owner")

    asked = owner.get(page_of(client, "delete"))
    answer = owner.post(page_of(client, "delete"), follow=True)

    assert asked.context["title"] == "Delete Client at Google Calendar?"
    assert messages_of(answer) == ["Client at Google Calendar was deleted."]
    assert not ProviderClient.objects.exists()


def test_late_form_is_not_stored(tenant: Tenant) -> None:
    """It has a secret, which would wait in the session for the password."""
    owner = member(tenant.app, "owner")
    session = owner.session
    [record] = session["account_authentication_methods"]
    session["account_authentication_methods"] = [record | {"at": record["at"] - 3600}]
    session.save()

    answer = owner.post(ADD, {"client_id": "own-client", "secret": SECRET})

    assert (answer.status_code, answer["Location"]) == (302, ADD)
    assert owner.get(ADD).status_code == 302
    assert SECRET not in str(dict(owner.session))
    assert not ProviderClient.objects.exists()


@pytest.mark.parametrize(("role", "status"), [("owner", 200), ("editor", 403), ("viewer", 403)])
def test_only_owners_see_clients(tenant: Tenant, role: str, status: int) -> None:
    client = stored(tenant)
    person = member(tenant.app, role)

    statuses = [person.get(path).status_code for path in (LIST, ADD, page_of(client))]

    assert statuses == [status] * 3
    assert superuser().get(page_of(client)).status_code == 200
