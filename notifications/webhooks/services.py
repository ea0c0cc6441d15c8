"""Change webhooks and deliveries: lock, check, write."""

import contextlib
import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Any

from django.db import transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Coalesce

from apps_config.history import record_history
from apps_config.models import App
from bookings.models import Booking
from common.db.updated_at import transaction_start
from common.encryption import SecretUnreadable, decrypt_text, encrypt_text
from common.errors import Invalid, NotFound, Refusal
from common.messages import Message
from notifications.models import Delivery, Webhook
from notifications.outbox.circuit_breaker import (
    MAX_FAILING_SERVERS,
    TOO_MANY_FAILING,
    endpoint_of,
    has_max_failing_servers,
)
from notifications.outbox.queueing import queue_delivery
from notifications.webhooks.bodies import body_of_test_call
from notifications.webhooks.disabling_reasons import ANSWERED_GONE, NEVER_SUCCEEDED
from notifications.webhooks.signing import new_secret

MAX_WEBHOOKS = 100  # per app
# Both secrets sign for this long after a rotation.
ROTATION = timedelta(hours=24)
# A webhook is disabled after this time and this number of failures in a row.
FAILS_FOR = timedelta(days=5)
FAILS_TIMES = 20
GONE = 410
WEBHOOK_DISABLED = "webhook_disabled"
TEST_CALL = "test"
EXPIRES_AFTER = timedelta(hours=76)


class TooManyFailingServers(Refusal):
    """The app's calls go to so many failing servers that no further server is accepted."""

    code = "policy"

    def __init__(self) -> None:
        super().__init__(TOO_MANY_FAILING, policy="failing_servers", limit=MAX_FAILING_SERVERS)


def create_webhook(*, app: App, given: Mapping[str, Any]) -> tuple[Webhook, str]:
    """Create a webhook; return it and its secret.

    Raises Invalid above MAX_WEBHOOKS, TooManyFailingServers.
    """
    secret = new_secret()
    with transaction.atomic():
        # Serialise, so that concurrent requests can't exceed the limit.
        App.objects.select_for_update(no_key=True).get(id=app.id)
        if Webhook.objects.for_app(app).count() >= MAX_WEBHOOKS:
            raise Invalid.at(
                "body", Message("An app has at most %(count)s webhooks.", count=MAX_WEBHOOKS)
            )
        _refuse_new_server_if_too_many_fail(app, given)
        webhook = Webhook.objects.create(app=app, secret=encrypt_text(secret), **given)
    return webhook, secret


def _refuse_new_server_if_too_many_fail(app: App, given: Mapping[str, Any]) -> None:
    """Raise TooManyFailingServers for a URL on a server that no webhook of the app calls yet."""
    if "url" not in given or not has_max_failing_servers(app.id):
        return
    urls = Webhook.objects.for_app(app).values_list("url", flat=True)
    if endpoint_of(given["url"]) not in {endpoint_of(url) for url in urls}:
        raise TooManyFailingServers


def _lock(webhook: Webhook) -> Webhook:
    """Lock and return the row. Raises NotFound if it was deleted meanwhile."""
    rows = Webhook.objects.select_for_update(no_key=True)
    locked = rows.filter(id=webhook.id, deleted_at=None).first()
    if locked is None:
        raise NotFound("Webhook")
    return locked


def change_webhook(webhook: Webhook, given: Mapping[str, Any]) -> Webhook:
    """Change the given fields; `active` clears the failures.

    Raises NotFound, TooManyFailingServers.
    """
    with transaction.atomic():
        webhook = _lock(webhook)
        _refuse_new_server_if_too_many_fail(webhook.app, given)
        for name, value in given.items():
            setattr(webhook, name, value)
        if given.get("active"):
            webhook.disabled_reason = ""
            webhook.failures, webhook.failing_since = 0, None
        webhook.save()
        if "url" in given:
            _waiting_calls(webhook).update(endpoint=endpoint_of(webhook.url))
    return webhook


def _waiting_calls(webhook: Webhook) -> QuerySet[Delivery]:
    """Return the unclaimed calls; workers lock claimed calls before the webhook (deadlock)."""
    return webhook.deliveries.filter(type=Delivery.WEBHOOK, state=Delivery.SCHEDULED)


def delete_webhook(webhook: Webhook, *, now: datetime) -> None:
    """Hide the webhook, skip its pending calls, and keep its log. Raises NotFound."""
    with transaction.atomic():
        webhook = _lock(webhook)
        webhook.deleted_at, webhook.active = now, False
        webhook.save()
        _waiting_calls(webhook).update(
            state=Delivery.SKIPPED,
            reason=Message("The webhook was deleted."),
            next_at=None,
            finished_at=now,
        )


def rotate_secret(webhook: Webhook, *, now: datetime) -> tuple[Webhook, str]:
    """Create a new secret; the previous one also signs for a day. Raises NotFound."""
    secret = new_secret()
    with transaction.atomic():
        webhook = _lock(webhook)
        webhook.previous_secret, webhook.previous_until = webhook.secret, now + ROTATION
        webhook.secret = encrypt_text(secret)
        webhook.save()
    return webhook, secret


def signing_secrets(webhook: Webhook, *, now: datetime) -> list[str]:
    """Return the secrets that sign a call made now, the current one first.

    Raises SecretUnreadable for the current one. An unreadable previous one is left out: rotating
    again replaces it.
    """
    live = [decrypt_text(webhook.secret)]
    if webhook.previous_until and webhook.previous_until > now:
        with contextlib.suppress(SecretUnreadable):
            live.append(decrypt_text(webhook.previous_secret))
    return live


def send_test(webhook: Webhook, *, now: datetime) -> Delivery:
    """Queue a test call with the app's newest booking, or an example booking."""
    with transaction.atomic():
        bookings = Booking.objects.for_app(webhook.app_id).order_by("-created_at", "-id")
        # Locked until the body is stored: a concurrent erasure would not find the body.
        newest = bookings.select_for_update(no_key=True).first()
        return queue_delivery(
            app_id=webhook.app_id,
            booking=newest,
            webhook=webhook,
            type=Delivery.WEBHOOK,
            kind=TEST_CALL,
            body=body_of_test_call(newest),
            endpoint=endpoint_of(webhook.url),
            expires_at=now + EXPIRES_AFTER,
            now=now,
        )


def record_webhook_results(
    results: Mapping[uuid.UUID, Sequence[tuple[bool, int | None]]], *, now: datetime
) -> None:
    """Count consecutive failures from (success, HTTP status) of each webhook's calls, in order.

    Disables webhooks that answer 410 Gone or have failed for days.
    """
    well = [webhook_id for webhook_id, tries in results.items() if any(ok for ok, _ in tries)]
    Webhook.objects.filter(id__in=well).exclude(failures=0).update(failures=0, failing_since=None)
    for webhook_id, tries in results.items():
        failed = list(takewhile(lambda attempt: not attempt[0], reversed(tries)))
        if failed:
            is_gone = any(code == GONE for _, code in failed)
            _record_failures(webhook_id, len(failed), gone=is_gone, now=now)


def _record_failures(webhook_id: uuid.UUID, count: int, *, gone: bool, now: datetime) -> None:
    rows = Webhook.objects.filter(id=webhook_id)
    rows.update(failures=F("failures") + count, failing_since=Coalesce("failing_since", now))
    webhook = rows.get()
    if gone:
        disable_webhook(webhook, ANSWERED_GONE, now=now)
    elif webhook.failures >= FAILS_TIMES and (webhook.failing_since or now) <= now - FAILS_FOR:
        disable_webhook(webhook, NEVER_SUCCEEDED, now=now)


def disable_webhook(webhook: Webhook, reason: str, *, now: datetime) -> None:
    """Disable the webhook and mail the owner the reason; no effect if it is disabled already."""
    with transaction.atomic():
        switched_off = Webhook.objects.filter(id=webhook.id, active=True, deleted_at=None).update(
            active=False, disabled_reason=reason, updated_at=transaction_start()
        )
        if not switched_off:
            return
        record_history(Webhook.objects.filter(id=webhook.id), "~")
        queue_delivery(
            app_id=webhook.app_id,
            webhook=webhook,
            type=Delivery.EMAIL,
            kind=WEBHOOK_DISABLED,
            recipient="owner",
            content={"url": webhook.url, "reason": reason},
            expires_at=now + EXPIRES_AFTER,
            now=now,
        )
