"""Calls about resources, projects and failed deliveries, queued from the feed of changes.

A worker reads the feed of each app once: the position up to which it has read is stored in the
transaction that queues the calls.
"""

import json
from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import F
from rest_framework import serializers

from apps_config.models import App, Change, ChangeFeed
from common.db.sql import database_now
from notifications.changes.records import ListedChange, listed_changes
from notifications.changes.serializers import ListedChangeSerializer
from notifications.models import FAILURES, Delivery, Webhook, WebhookQuerySet
from notifications.outbox.circuit_breaker import endpoint_of
from notifications.outbox.queueing import queue_delivery
from notifications.outbox.serializers import DeliverySerializer
from notifications.webhooks.object_kinds import DELIVERY_FAILED, OBJECT_KINDS, TOLD_TYPES

AT_ONCE = 200  # changes
CALL_EXPIRES_AFTER = timedelta(hours=76)


class ObjectCallSerializer(ListedChangeSerializer):
    """A change of a resource or a project, or a delivery that failed or expired."""

    examples = {
        "kind": DELIVERY_FAILED,
        "type": "delivery",
        "action": "failed",
        "actor": None,
        "source": None,
        "object_id": DeliverySerializer.example()["id"],
        "object": DeliverySerializer.example(state="failed"),
    }

    kind = serializers.CharField(help_text="The value of `Service-Event`.")


def kind_of(change: Change) -> str:
    """Return the kind of call about the change; "" if none is."""
    if change.type == "delivery":
        return DELIVERY_FAILED if change.action in FAILURES else ""
    return f"{change.type}.{change.action}" if change.type in TOLD_TYPES else ""


def queue_object_calls() -> None:
    """Queue the calls about the changes that were numbered since the last time."""
    behind = ChangeFeed.objects.filter(called_number__lt=F("last_number"))
    feeds = list(behind)
    wanting = _apps_with_wanting_webhooks([feed.app_id for feed in feeds])
    idle = [feed for feed in feeds if feed.app_id not in wanting]
    for feed in idle:
        feed.called_number = feed.last_number
    ChangeFeed.objects.bulk_update(idle, ["called_number"], batch_size=AT_ONCE)
    for app_id in wanting:
        while _queue_next(app_id):
            pass


def _apps_with_wanting_webhooks(apps: Sequence[UUID]) -> set[UUID]:
    rows = _active_webhooks().filter(app__in=apps).exclude(kinds=[])
    return {row.app_id for row in rows if {*OBJECT_KINDS} & {*row.kinds}}


def _active_webhooks() -> WebhookQuerySet:
    return Webhook.objects.filter(deleted_at=None, active=True)


def _queue_next(app_id: UUID) -> bool:
    """Queue the calls of the next changes; return whether more may follow."""
    with transaction.atomic():
        locked = ChangeFeed.objects.select_for_update(skip_locked=True)
        feed = locked.filter(app=app_id, called_number__lt=F("last_number")).first()
        if feed is None:
            return False
        until = min(feed.called_number + AT_ONCE, feed.last_number)
        rows = Change.objects.filter(app=app_id, number__range=(feed.called_number + 1, until))
        changes = [row for row in rows.order_by("number") if kind_of(row)]
        if changes:
            _queue_calls(App.objects.get(id=app_id), changes)
        feed.called_number = until
        feed.save(update_fields=["called_number"])
        return True


def _queue_calls(app: App, changes: Sequence[Change]) -> None:
    webhooks = list(_active_webhooks().filter(app=app).order_by("id"))
    now = database_now()
    for change, listed in zip(
        changes, listed_changes(app, changes, "UTC", people=True, links=True), strict=True
    ):
        kind = kind_of(change)
        called = [
            webhook
            for webhook in webhooks
            # A new webhook is told nothing that was before it.
            if kind in webhook.kinds and webhook.created_at <= change.at
        ]
        if not called or _is_about_such_a_call(listed):
            continue
        body = _body_of(listed, kind)
        for webhook in called:
            queue_delivery(
                app_id=app.id,
                webhook=webhook,
                type=Delivery.WEBHOOK,
                kind=kind,
                body=body,
                endpoint=endpoint_of(webhook.url),
                expires_at=now + CALL_EXPIRES_AFTER,
                now=now,
            )


def _is_about_such_a_call(listed: ListedChange) -> bool:
    """Whether a call about a failed delivery failed itself: it would be told for ever."""
    return bool(listed.object and listed.object.get("kind") == DELIVERY_FAILED)


def _body_of(listed: ListedChange, kind: str) -> str:
    body = {"kind": kind, **ListedChangeSerializer.render(listed)}
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))
