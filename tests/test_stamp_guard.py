"""The guard of `updated_at` itself."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction

from common.db.updated_at import transaction_start
from notifications.webhooks.services import disable_webhook
from tests.stamp_guard import StampGuard, fault_of
from tests.world import NOW, Tenant

STATED = 'UPDATE "bookings_booking" SET "state" = %s, "updated_at" = %s WHERE "id" = %s'
BY_HAND = "UPDATE notifications_delivery SET state = 'x', updated_at = transaction_timestamp()"
NO_STAMP, EARLY, FOREIGN = (
    "no stamp",
    "a stamp that was read before the transaction began",
    "a stamp that is not the start of the transaction",
)


@pytest.mark.parametrize(
    ("sql", "fault"),
    [
        ('UPDATE "bookings_booking" SET "state" = %s WHERE "updated_at" = %s', NO_STAMP),
        ('UPDATE "apps_config_credential" SET "revoked_at" = %s', NO_STAMP),
        ('UPDATE "apps_config_credential" SET "last_used_at" = %s', ""),
        ('UPDATE "bookings_customer" SET "name" = %s', ""),
        ('SELECT "updated_at" FROM "bookings_booking"', ""),
        (BY_HAND, ""),
    ],
)
def test_statements_without_a_stamp(db: None, sql: str, fault: str) -> None:
    assert fault_of(sql, ("x",)) == fault


@pytest.mark.django_db(transaction=True)
def test_stamp_must_be_the_transaction_start() -> None:
    with transaction.atomic():
        earlier = transaction_start()
    outside = fault_of(STATED, ("x", earlier, 1))
    with transaction.atomic():
        start = transaction_start()
        found = [fault_of(STATED, ("x", stamp, 1)) for stamp in (start, [start], earlier)]

    assert [outside, *found] == [EARLY, "", "", FOREIGN]


@pytest.mark.postgresql
def test_service_with_another_stamp_is_found(
    tenant: Tenant, stamp_guard: StampGuard, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant.post("/webhooks", {"url": "https://example.com/hook"})
    webhook = tenant.app.webhooks.get()
    monkeypatch.setattr("common.db.updated_at.transaction_start", lambda: NOW - timedelta(days=1))

    disable_webhook(webhook, "Gone.", now=NOW)

    faults = [fault.partition(":")[0] for fault, _ in stamp_guard.offences]
    assert faults == [FOREIGN]
    stamp_guard.offences.clear()


def test_writes_of_the_test_are_ignored(
    tenant: Tenant, stamp_guard: StampGuard, clock: Any
) -> None:
    tenant.app.webhooks.update(active=False)

    assert stamp_guard.offences == []
