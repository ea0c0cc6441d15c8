"""Whatever becomes of a delivery, its `updated_at` tells (api.md section 2)."""

import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db.models import QuerySet
from django.utils import timezone

from bookings.privacy import erase_person
from notifications.models import Attempt, Delivery, Webhook
from notifications.outbox.leases import MAX_LOST_LEASES, claim_due
from notifications.outbox.redeliver import redeliver
from notifications.outbox.results import (
    FinalState,
    SendResult,
    finish_unsent,
    record_results,
    release_unsent,
)
from notifications.webhooks.services import change_webhook, create_webhook, delete_webhook
from tests.world import Tenant

pytestmark = [pytest.mark.both_databases, pytest.mark.usefixtures("expanded_calls")]

BEFORE = datetime(2020, 1, 1, tzinfo=UTC)
URL = "https://example.com/hook"
Change = Callable[[Tenant, Webhook, Delivery], Any]


def unstamped(row: Delivery, **values: Any) -> None:
    """Change the row as if it had been so before."""
    QuerySet(Delivery).filter(id=row.id).update(updated_at=BEFORE, **values)


def claimed(row: Delivery) -> Delivery:
    unstamped(row, next_at=timezone.now() - timedelta(minutes=1))
    (found,) = claim_due(row.type, 1)
    unstamped(row)
    return found


def lose_lease(tenant: Tenant, webhook: Webhook, row: Delivery) -> None:
    taken = claimed(row)
    unstamped(taken, next_at=timezone.now() - timedelta(minutes=1))
    claim_due(row.type, 1)


def lose_lease_too_often(tenant: Tenant, webhook: Webhook, row: Delivery) -> None:
    unstamped(row, lapses=MAX_LOST_LEASES)
    lose_lease(tenant, webhook, row)


def expire_before_claim(tenant: Tenant, webhook: Webhook, row: Delivery) -> None:
    long_ago = timezone.now() - timedelta(days=1)
    unstamped(row, next_at=long_ago, expires_at=long_ago)
    claim_due(row.type, 1)


def finish_under_a_lapsed_lease(tenant: Tenant, webhook: Webhook, row: Delivery) -> None:
    taken = claimed(row)
    unstamped(row, lease_token=uuid.uuid4())
    record_results([(taken, SendResult(ok=True))])


def erase_an_answer(tenant: Tenant, webhook: Webhook, row: Delivery) -> None:
    unstamped(row, body="", state="delivered", next_at=None, finished_at=timezone.now())
    Attempt.objects.create(
        app=row.app, delivery=row, at=timezone.now(), seconds=0.1, excerpt="Marty"
    )
    erase_person(app=tenant.app, email="marty@example.com", now=timezone.now())


CHANGES: dict[str, Change] = {
    "claimed": lambda tenant, webhook, row: claim_due(row.type, 1),
    "delivered": lambda tenant, webhook, row: record_results([(claimed(row), SendResult(ok=True))]),
    "to be tried again": lambda tenant, webhook, row: record_results(
        [(claimed(row), SendResult(ok=False))]
    ),
    "a try too late": finish_under_a_lapsed_lease,
    "given back": lambda tenant, webhook, row: release_unsent([claimed(row)]),
    "not sent": lambda tenant, webhook, row: finish_unsent(
        [(claimed(row), FinalState("skipped", "No."))]
    ),
    "its worker lost": lose_lease,
    "its worker lost too often": lose_lease_too_often,
    "expired": expire_before_claim,
    "its webhook moved": lambda tenant, webhook, row: change_webhook(webhook, {"url": f"{URL}/2"}),
    "its webhook deleted": lambda tenant, webhook, row: delete_webhook(webhook, now=timezone.now()),
    "sent at once": lambda tenant, webhook, row: redeliver(row, now=timezone.now()),
    "an answer erased": erase_an_answer,
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_of_a_delivery_sets_updated_at(tenant: Tenant, change: str) -> None:
    webhook = create_webhook(app=tenant.app, given={"url": URL})[0]
    start = timezone.now() + timedelta(days=2)
    end = start + timedelta(hours=1)
    times = {"start": start.isoformat(), "end": end.isoformat()}
    tenant.book(resource_id=tenant.make_resource()["id"], **times)
    row = Delivery.objects.get(type="webhook")
    QuerySet(Delivery).update(updated_at=BEFORE)

    CHANGES[change](tenant, webhook, row)

    (found,) = tenant.get("/deliveries?updated_since=2021-01-01&type=webhook").data
    assert found["id"] == str(row.id)
