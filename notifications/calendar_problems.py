"""What is sent when a connected calendar is no longer synced: an e-mail to the owner of the
resource, and calls to the webhooks that want them.
"""

import json
from collections.abc import Sequence
from datetime import datetime, timedelta

from rest_framework import serializers

from apps_config.changes import present_cursor
from availability.models import Calendar
from availability.serializers.calendars import CalendarSerializer, ProblemSerializer
from common.api.response_schemas import example_id
from common.api.serializers import ObjectSerializer
from notifications.models import Delivery, Webhook
from notifications.outbox.circuit_breaker import endpoint_of
from notifications.outbox.queueing import queue_delivery

CALENDAR_PROBLEM = "calendar_problem"
CALENDAR_PROBLEM_EVENT = "calendar.problem"
MAIL_EXPIRES_AFTER = timedelta(days=3)
CALL_EXPIRES_AFTER = timedelta(hours=76)

_PROBLEM = {
    "code": "grant_ended",
    "text": "The permission to use the calendar has ended at the provider: connect the calendar"
    " again.",
    "since": "2026-11-20T09:30:00+0000",
}


class CalendarCallSerializer(ObjectSerializer):
    """A connected calendar whose syncs have stopped."""

    examples = {
        "kind": CALENDAR_PROBLEM_EVENT,
        "calendar": CalendarSerializer.example()
        | {
            "name": "ada@example.com",
            "provider": "google",
            "provider_id": "https://www.googleapis.com/calendar/v3/calendars/ada%40example.com",
            "provider_access": Calendar.WRITER,
            "grant_id": example_id(62),
            "account": "ada@example.com",
            "problem": _PROBLEM,
        },
        "problem": _PROBLEM,
        "cursor": "10481-5d0c7a19e2f44b83",
    }

    kind = serializers.CharField(help_text="The value of `Service-Event`.")
    calendar = CalendarSerializer(help_text="The calendar of GET /v2/calendars/:id; times in UTC.")
    problem = ProblemSerializer(help_text="Why it is no longer synced: `calendar.problem`.")
    cursor = serializers.CharField(help_text="GET /v2/changes lists later changes after it.")


def announce_calendar_problem(calendars: Sequence[Calendar], *, now: datetime) -> None:
    """Queue an e-mail to each owner, and the calls for each calendar, in the stop's transaction.

    calendars: of one app and one account, all with the same new problem; read with resource and
    connection (and its grant).
    """
    by_address: dict[str | None, list[Calendar]] = {}
    for calendar in calendars:
        by_address.setdefault(calendar.resource.email, []).append(calendar)
    for of_owner in by_address.values():
        _queue_mail(of_owner, now)
    for calendar in calendars:
        _queue_calls(calendar, now)


def _queue_mail(calendars: Sequence[Calendar], now: datetime) -> None:
    first = calendars[0]
    record = CalendarSerializer.render(first)
    queue_delivery(
        app_id=first.app_id,
        type=Delivery.EMAIL,
        kind=CALENDAR_PROBLEM,
        recipient="owner",
        content={
            "resource_id": str(first.resource_id),
            "calendar_id": str(first.pk),
            "calendars": [calendar.name for calendar in calendars],
            "account": record["account"] or "",
            "reason": record["problem"]["text"],
        },
        expires_at=now + MAIL_EXPIRES_AFTER,
        now=now,
    )


def _queue_calls(calendar: Calendar, now: datetime) -> None:
    webhooks = Webhook.objects.filter(app=calendar.app_id, deleted_at=None, active=True)
    wanted = [row for row in webhooks.order_by("id") if CALENDAR_PROBLEM_EVENT in row.kinds]
    body = _body_of(calendar) if wanted else ""
    for webhook in wanted:
        queue_delivery(
            app_id=calendar.app_id,
            webhook=webhook,
            type=Delivery.WEBHOOK,
            kind=CALENDAR_PROBLEM,
            body=body,
            endpoint=endpoint_of(webhook.url),
            expires_at=now + CALL_EXPIRES_AFTER,
            now=now,
        )


def _body_of(calendar: Calendar) -> str:
    record = CalendarSerializer.render(calendar)
    body = {
        "kind": CALENDAR_PROBLEM_EVENT,
        "calendar": record,
        "problem": record["problem"],
        "cursor": present_cursor(calendar.app_id),
    }
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))
