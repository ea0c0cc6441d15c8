"""The record of security events: log-ins, keys, members, staff, exports and erasures.

`record_event` is called in the transaction of the change. Layers above register what else follows
an event with `on_security_event`, such as an e-mail.
"""

import logging
import uuid
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import F

from apps_config.history import current_actor
from apps_config.models import Account, Membership, SecurityEvent
from common.db.batching import delete_in_batches
from common.db.ids import least_id
from common.errors import ignore_database_outage
from common.hooks import Hook
from common.middleware import request_origin

logger = logging.getLogger("security")

KEPT = timedelta(days=400)
PURGE_SLICE = 5000
PLATFORM_RIGHTS = ("is_staff", "is_superuser")
COMMAND = "command"  # the actor outside of requests

on_security_event = Hook[Callable[[SecurityEvent], None]]()


def record_event(
    kind: str,
    *,
    app_id: uuid.UUID | None = None,
    account_id: uuid.UUID | None = None,
    actor: str | None = None,
    about: Mapping[str, Any] | None = None,
) -> SecurityEvent:
    """Store and log an event of the present request or command.

    actor: by default the account or key that sends the request. about: values without personal
    data of customers, because an erasure does not change events.
    """
    origin = request_origin()
    event = SecurityEvent(
        app_id=app_id,
        account_id=account_id,
        actor=(current_actor() or ("" if origin else COMMAND)) if actor is None else actor,
        kind=kind,
        network=origin.network if origin else "",
        user_agent=origin.user_agent if origin else "",
        about=dict(about or {}),
    )
    with transaction.atomic(savepoint=False):
        event.save(force_insert=True)
        for listener in on_security_event:
            listener(event)
        transaction.on_commit(partial(log_event, event))
    return event


def count_event(
    kind: str,
    *,
    app_id: uuid.UUID | None = None,
    account_id: uuid.UUID | None = None,
    about: Mapping[str, Any] | None = None,
    now: datetime,
) -> None:
    """Record an event that strangers can repeat: those of an hour are one row, with their number.

    The row has the network of the first one; each has its log line.
    """
    hour = now.replace(minute=0, second=0, microsecond=0)
    rows = SecurityEvent.objects.filter(
        kind=kind, app=app_id, account=account_id, about=dict(about or {}), id__gte=least_id(hour)
    )
    with transaction.atomic():
        event = rows.select_for_update(no_key=True).order_by("id").first()
        if event is None:
            record_event(kind, app_id=app_id, account_id=account_id, about=about)
            return
        SecurityEvent.objects.filter(pk=event.pk).update(count=F("count") + 1)
        origin = request_origin()
        event.network = origin.network if origin else ""
        transaction.on_commit(partial(log_event, event))


def record_export(kind: str, *, app_id: uuid.UUID, about: Mapping[str, Any] | None = None) -> None:
    """Record that data was read. A database that accepts no writes still answers reads."""
    with ignore_database_outage():
        record_event(kind, app_id=app_id, about=about)


def log_event(event: SecurityEvent) -> None:
    """Write the event's line: without `about`, which can name other people."""
    fields = {
        "event": event.kind,
        "actor": event.actor,
        "account": event.account_id or "",
        "app": event.app_id or "",
        "network": event.network,
    }
    logger.info("security", extra={"fields": fields})


def record_role(member: Membership, *, before: str = "", actor: str | None = None) -> None:
    """Record that a member got a role. before: the earlier role, "" for a new member."""
    kind = SecurityEvent.MEMBER_CHANGED if before else SecurityEvent.MEMBER_ADDED
    if member.role == Membership.OWNER:
        kind = SecurityEvent.OWNER_ADDED
    about = {"member": member.account.email, "role": member.role}
    about |= {"before": before} if before else {}
    record_event(kind, app_id=member.app_id, actor=actor, about=about)


def platform_rights(account: Account) -> frozenset[str]:
    return frozenset(name for name in PLATFORM_RIGHTS if getattr(account, name))


def record_staff(account: Account, *, before: frozenset[str]) -> None:
    """Record what an account got or lost of `platform_rights`. before: the earlier ones."""
    rights = platform_rights(account)
    changes = {
        SecurityEvent.STAFF_ADDED: rights - before,
        SecurityEvent.STAFF_REMOVED: before - rights,
    }
    for kind, names in changes.items():
        if names:
            record_event(kind, account_id=account.pk, about={"rights": sorted(names)})


def purge_security_events(*, now: datetime) -> Iterator[int]:
    """Delete events older than KEPT; yields the size of each batch."""
    old = SecurityEvent.objects.filter(id__lt=least_id(now - KEPT))
    yield from delete_in_batches(old, "id", PURGE_SLICE)
