"""Tokens and secrets of accounts are in nothing that the service writes or answers: not in logs,
error reports, histories, exports, pages and responses, whatever goes wrong.
"""

import json
import logging
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.utils import timezone

from apps_config.models import SecurityEvent
from availability.models import Calendar
from common.encryption import decrypt_text
from common.observability.log_format import JsonFormatter
from external_calendars.grants import claim_renewals, renew_grant
from external_calendars.models import ConsentRequest, Grant
from external_calendars.sync.run import FAILED, SYNCED
from notifications.models import Delivery
from tests.common.test_error_reports import reports
from tests.external_calendars.fakes.google import FakeGoogle
from tests.external_calendars.fakes.server import Gateway
from tests.external_calendars.memory import look
from tests.external_calendars.mirrored import make_due, write
from tests.external_calendars.test_mirror import book
from tests.office.calendar_pages import LIST, page_of
from tests.office.staff import member
from tests.office.test_connect_account_page import ADA, agree, begin, come_back
from tests.world import Tenant

__all__ = ["reports"]
pytestmark = pytest.mark.django_db(transaction=True)

OWN_SECRET = "own-client-secret-5ecret"
SHOWN = "Fault that is logged"


class Written:
    """All that was written, by its place; `find` says where a text is."""

    def __init__(self) -> None:
        self.texts: list[tuple[str, str]] = []

    def add(self, place: str, text: str) -> None:
        self.texts.append((place, text))

    def find(self, text: str) -> list[str]:
        return [place for place, written in self.texts if text in written]


@pytest.fixture
def written(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> Written:
    """With every answer to a client of the tests, of the API and of the back office."""
    found = Written()
    caplog.set_level(logging.DEBUG)
    caplog.handler.setFormatter(JsonFormatter())
    request = Client.request

    def note(client: Client, **given: Any) -> Any:
        answer = request(client, **given)
        content = b"".join(answer) if answer.streaming else answer.content
        head = "".join(f"{name}: {value}\n" for name, value in answer.items())
        place = f"{answer.status_code} {given['REQUEST_METHOD']} {given['PATH_INFO']}"
        found.add(place, head.partition("Location: ")[0] + content.decode(errors="replace"))
        return answer

    monkeypatch.setattr(Client, "request", note)
    return found


def collect(google: FakeGoogle, secrets: set[str]) -> None:
    """Add everything that Google has given out, and what the service has made for it."""
    oauth = google.oauth
    secrets.update(grant.refresh_token for grant in oauth.grants)
    secrets.update(oauth.access_tokens, oauth.codes)
    secrets.update(decrypt_text(row.verifier) for row in ConsentRequest.objects.all())
    for grant in Grant.objects.all():
        secrets.update((decrypt_text(grant.refresh_token), decrypt_text(grant.access_token)))


def renew() -> None:
    Grant.objects.update(renew_at=timezone.now())
    for grant in claim_renewals(10):
        renew_grant(grant)


def test_tokens_are_in_nothing_that_is_written(
    tenant: Tenant,
    google: FakeGoogle,
    gateway: Gateway,
    settings: Any,
    caplog: pytest.LogCaptureFixture,
    reports: list[dict[str, Any]],
    written: Written,
) -> None:
    secrets = {OWN_SECRET}
    google.add_account(ADA)
    google.add_client(f"{settings.PUBLIC_URL}/v2/calendars/callback", "own-client", OWN_SECRET)
    owner = member(tenant.app, "owner")
    ada = tenant.make_resource("Ada", email=ADA)

    # Connect, with a client of the app's own; first not at all.
    body = {"client_id": "own-client", "client_secret": OWN_SECRET}
    assert tenant.put("/calendars/clients/google", body).status == 200
    assert tenant.put("/calendars/clients/google", body | {"more": 1}).status == 422
    url = begin(owner, ada)
    collect(google, secrets)
    come_back(owner, google.consent(url, ADA, allow=False))
    page = agree(owner, google, ada)
    collect(google, secrets)
    owner.post(page.redirect_chain[-1][0], page.context["form"].initial)
    calendar = Calendar.objects.select_related("connection").get(provider="google")
    connection = calendar.connection

    # Sync and write, renew, and all that goes wrong.
    assert look(connection) == SYNCED
    book(tenant, ada)
    write()
    renew()
    collect(google, secrets)
    gateway.fail("/events", status=200, body={"items": [SHOWN], "nextSyncToken": "x"})
    assert look(connection) == FAILED
    gateway.fail("/events", status=500, body={"error": {"code": 500, "message": "?"}})
    assert look(connection) == FAILED
    gateway.hang_up("/events", times=9)  # also for further attempts
    assert look(connection) == FAILED
    gateway.stop_faults()
    google.oauth.expire_access_tokens()
    assert look(connection) == FAILED
    gateway.fail("oauth2.googleapis.com", status=200, body={"access_token": 7})
    renew()
    google.oauth.revoke(ADA)
    renew()
    make_due()
    write()
    collect(google, secrets)
    google.oauth.revoke(ADA)

    # What people and programs read.
    for address in ("/calendars", f"/calendars/{calendar.pk}", "/calendars/clients", "/deliveries"):
        assert tenant.get(address).status == 200
    tenant.post(f"/calendars/{calendar.pk}/test")
    tenant.get("/customers/export", email="marty@example.com")
    for path in (LIST, page_of(calendar), page_of(calendar, "history"), "/admin/"):
        assert owner.get(path).status_code == 200
    owner.get("/admin/apps_config/securityevent/")
    owner.get("/admin/external_calendars/providerclient/")
    written.add("logs", caplog.text)
    written.add("error reports", json.dumps(reports))
    written.add("admin history", str(list(LogEntry.objects.values())))
    written.add("security events", str(list(SecurityEvent.objects.values())))
    written.add("deliveries", str(list(Delivery.objects.values())))

    # The search finds what is there: the fault was logged and reported, the client's id is shown.
    assert len(reports) == 1
    assert written.find("can't be read")[-2:] == ["logs", "error reports"]
    assert "200 GET /v2/calendars/clients" in written.find("own-client")
    assert len(secrets) >= 6
    assert {secret: places for secret in secrets if (places := written.find(secret))} == {}
