"""Change webhooks and deliveries: lock, check, write."""

import contextlib
import json
import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Any

from django.db import transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Coalesce

from apps_config.history import record_changes
from apps_config.models import App
from availability.log_ins import with_email
from availability.models import Resource
from bookings.models import Booking
from bookings.schemas import WHOLE_BOOKING_EXAMPLE
from notifications.breaker import endpoint_of
from notifications.models import Delivery, Webhook
from notifications.password_links import LINK_LASTS
from notifications.planning import REMINDER_GRACE, render_bodies
from notifications.relevance import outdated_reason
from notifications.signing import new_secret
from notifications.waking import wake_after_commit
from scheduling.api.changes import transaction_start
from scheduling.api.errors import Invalid, NotFound, Outdated
from scheduling.api.ids import least_id, new_id
from scheduling.api.secrets import SecretUnreadable, decrypt_text, encrypt_text

MOST_WEBHOOKS = 100  # of an app
# For so long after a rotation both secrets sign.
ROTATION = timedelta(hours=24)
# A webhook that has failed for so long, and so often, is disabled.
FAILS_FOR = timedelta(days=5)
FAILS_TIMES = 20
GONE = 410
DISABLED = "webhook_disabled"
TEST = "test"
FORGOTTEN = "password_reset"
MOST_PASSWORD_MAILS = 3  # an hour and resource
EXPIRES_AFTER = timedelta(hours=76)


def create_webhook(*, app: App, given: Mapping[str, Any]) -> tuple[Webhook, str]:
    """A webhook and its secret, which is shown this once. Raises Invalid past the app's most."""
    secret = new_secret()
    with transaction.atomic():
        # One at a time: two at once would both be the last that there is room for.
        App.objects.select_for_update(no_key=True).get(id=app.id)
        if Webhook.objects.for_app(app).count() >= MOST_WEBHOOKS:
            raise Invalid.at("body", f"An app has at most {MOST_WEBHOOKS} webhooks.")
        webhook = Webhook.objects.create(app=app, secret=encrypt_text(secret), **given)
    return webhook, secret


def _lock(webhook: Webhook) -> Webhook:
    """The row as it is under its lock. Raises NotFound where it was deleted meanwhile."""
    rows = Webhook.objects.select_for_update(no_key=True)
    locked = rows.filter(id=webhook.id, deleted_at=None).first()
    if locked is None:
        raise NotFound("Webhook")
    return locked


def change_webhook(webhook: Webhook, given: Mapping[str, Any]) -> Webhook:
    """A partial change; switched on again it starts with a clean slate. Raises NotFound."""
    with transaction.atomic():
        webhook = _lock(webhook)
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
    """Not those in a worker's hands: it locks them first and the webhook then."""
    return webhook.deliveries.filter(type=Delivery.WEBHOOK, state=Delivery.SCHEDULED)


def delete_webhook(webhook: Webhook, *, now: datetime) -> None:
    """Hide it; what it has not been told yet is skipped, its log stays. Raises NotFound."""
    with transaction.atomic():
        webhook = _lock(webhook)
        webhook.deleted_at, webhook.active = now, False
        webhook.save()
        _waiting_calls(webhook).update(
            state=Delivery.SKIPPED,
            reason="The webhook was deleted.",
            next_at=None,
            finished_at=now,
        )


def rotate_secret(webhook: Webhook, *, now: datetime) -> tuple[Webhook, str]:
    """A fresh secret; for a day the one before signs too. Raises NotFound."""
    secret = new_secret()
    with transaction.atomic():
        webhook = _lock(webhook)
        webhook.previous_secret, webhook.previous_until = webhook.secret, now + ROTATION
        webhook.secret = encrypt_text(secret)
        webhook.save()
    return webhook, secret


def secrets_of(webhook: Webhook, *, now: datetime) -> list[str]:
    """Those that sign a call made now, the current one first.

    Raises SecretUnreadable for the current one; another secret mends that at once, so that the one
    before is left out where it can't be read.
    """
    live = [decrypt_text(webhook.secret)]
    if webhook.previous_until and webhook.previous_until > now:
        with contextlib.suppress(SecretUnreadable):
            live.append(decrypt_text(webhook.previous_secret))
    return live


def send_test(webhook: Webhook, *, now: datetime) -> Delivery:
    """Call the webhook, through the queue, with the app's newest booking or a made-up one."""
    with transaction.atomic():
        bookings = Booking.objects.for_app(webhook.app_id).order_by("-created_at", "-id")
        # Its lock is held until the body is written: an erasure meanwhile would not find it.
        newest = bookings.select_for_update(no_key=True).first()
        delivery = Delivery(
            app_id=webhook.app_id,
            booking=newest,
            webhook=webhook,
            type=Delivery.WEBHOOK,
            kind=TEST,
            body=render_bodies([newest.id])[newest.id]
            if newest
            else json.dumps(WHOLE_BOOKING_EXAMPLE),
            endpoint=endpoint_of(webhook.url),
            due_at=now,
            next_at=now,
            expires_at=now + EXPIRES_AFTER,
            created_at=now,
        )
        delivery.save(force_insert=True)
        wake_after_commit([delivery], now=now)
    return delivery


def redeliver(delivery: Delivery, *, now: datetime) -> Delivery:
    """Send it (again) now, with its own id and as many tries as a new one has.

    The time for them is that of a new one too; but a reminder's tries end when it is no use any
    more. Raises NotFound where retention has taken it away meanwhile, Outdated for one that has
    left or ended and says what no longer holds. What is still queued leaves anyway: in order, each
    mail before the one that takes it back.
    """
    with transaction.atomic():
        rows = Delivery.objects.select_for_update(of=("self",), no_key=True)
        rows = rows.select_related("booking", "change", "webhook")
        delivery = rows.filter(id=delivery.id).first()
        if delivery is None:
            raise NotFound("Delivery")
        if delivery.is_final and (reason := outdated_reason(delivery)):
            raise Outdated(f"This no longer holds. {reason}")
        if delivery.state != Delivery.SENDING:
            delivery.state, delivery.reason = Delivery.SCHEDULED, ""
            if delivery.webhook and delivery.type == Delivery.WEBHOOK:
                delivery.endpoint = endpoint_of(delivery.webhook.url)
            delivery.due_at = delivery.next_at = now
            delivery.expires_at = _expiry_again(delivery, now)
            delivery.finished_at, delivery.tries, delivery.lapses = None, 0, 0
            delivery.save()
            wake_after_commit([delivery], now=now)
    return delivery


def _expiry_again(delivery: Delivery, now: datetime) -> datetime:
    if delivery.kind == FORGOTTEN:
        return now + LINK_LASTS
    if delivery.kind == Delivery.REMINDER and delivery.type == Delivery.EMAIL:
        return max(delivery.expires_at, now + REMINDER_GRACE)
    return now + EXPIRES_AFTER


def note_webhook_results(
    results: Mapping[uuid.UUID, Sequence[tuple[bool, int | None]]], *, now: datetime
) -> None:
    """Count failures in a row of each webhook, from (it succeeded, the answer's status) in order.

    Disables those that are gone or have failed for days.
    """
    well = [webhook_id for webhook_id, tries in results.items() if any(ok for ok, _ in tries)]
    Webhook.objects.filter(id__in=well).exclude(failures=0).update(failures=0, failing_since=None)
    for webhook_id, tries in results.items():
        failed = list(takewhile(lambda one: not one[0], reversed(tries)))
        if failed:
            gone = any(code == GONE for _, code in failed)
            _note_failures(webhook_id, len(failed), gone=gone, now=now)


def _note_failures(webhook_id: uuid.UUID, count: int, *, gone: bool, now: datetime) -> None:
    rows = Webhook.objects.filter(id=webhook_id)
    rows.update(failures=F("failures") + count, failing_since=Coalesce("failing_since", now))
    webhook = rows.get()
    if gone:
        disable_webhook(webhook, "Its server answered 410 Gone.", now=now)
    elif webhook.failures >= FAILS_TIMES and webhook.failing_since <= now - FAILS_FOR:
        disable_webhook(webhook, "No call has succeeded for five days.", now=now)


def disable_webhook(webhook: Webhook, reason: str, *, now: datetime) -> None:
    """Switch it off, once, and mail the owner why."""
    switched_off = Webhook.objects.filter(id=webhook.id, active=True, deleted_at=None).update(
        active=False, disabled_reason=reason, updated_at=transaction_start()
    )
    if switched_off:
        record_changes(Webhook.objects.filter(id=webhook.id), "~")
        mail = Delivery(
            id=new_id(),
            app_id=webhook.app_id,
            webhook=webhook,
            type=Delivery.EMAIL,
            kind=DISABLED,
            recipient="owner",
            content={"url": webhook.url, "reason": reason},
            due_at=now,
            next_at=now,
            expires_at=now + EXPIRES_AFTER,
            created_at=now,
        )
        mail.save(force_insert=True)
        wake_after_commit([mail], now=now)


def mail_password_link(*, app: App, email: str, now: datetime) -> None:
    """Let the resource with that address have a link by which it chooses a password.

    Nothing happens where there is none, or where it has had three in the last hour. The link itself
    is made when the mail is sent, and stands in no row.
    """
    with transaction.atomic():
        rows = with_email(Resource.objects.for_app(app), email).select_for_update(no_key=True)
        resource = rows.first()
        if resource is None or _has_had_its_links(resource, now):
            return
        mail = Delivery(
            id=new_id(),
            app=app,
            type=Delivery.EMAIL,
            kind=FORGOTTEN,
            recipient="owner",
            content={"resource_id": str(resource.id)},
            due_at=now,
            next_at=now,
            expires_at=now + LINK_LASTS,
            created_at=now,
        )
        mail.save(force_insert=True)
        wake_after_commit([mail], now=now)


def _has_had_its_links(resource: Resource, now: datetime) -> bool:
    since = now - timedelta(hours=1)
    lately = Delivery.objects.filter(app=resource.app_id, id__gte=least_id(since), kind=FORGOTTEN)
    mails = lately.filter(created_at__gt=since, content__resource_id=str(resource.id))
    return mails.count() >= MOST_PASSWORD_MAILS
