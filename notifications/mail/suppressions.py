"""Addresses that an app sends no e-mails, or no reminders, to."""

import uuid
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime

from apps_config.models import App
from bookings.privacy import Person
from common.db.sql import database_now
from common.email_address import canonical_address
from common.messages import Message
from common.openapi.component_registry import Json
from common.time.instants import format_stamp
from notifications.models import Suppression


class Suppressions:
    """The suppressions of some apps' addresses, read at once."""

    def __init__(self, app_ids: Collection[uuid.UUID], addresses: Collection[str]) -> None:
        canonical = {canonical_address(address) for address in addresses if address}
        rows = Suppression.objects.filter(app__in=app_ids, address__in=canonical)
        found = rows.values_list("app", "address", "reason", "detail") if canonical else ()
        self._reasons = {(app, address, reason): detail for app, address, reason, detail in found}

    def reason(self, app: App, address: str, *, is_reminder: bool) -> str:
        """Why the address gets no e-mail; "" if it gets it."""
        key = (app.id, canonical_address(address))
        if (*key, Suppression.BOUNCED) in self._reasons:
            detail = self._reasons[*key, Suppression.BOUNCED]
            return f"E-mails to this address bounced: {detail}".rstrip(": ")
        if is_reminder and (*key, Suppression.UNSUBSCRIBED) in self._reasons:
            return Message("The customer has unsubscribed from reminders.")
        return ""


def suppress(app: App, email: str, reason: str, *, now: datetime, detail: str = "") -> None:
    """Send no more e-mails (or reminders) of the app to the address. Repeats change nothing."""
    Suppression.objects.get_or_create(
        app=app,
        address=canonical_address(email),
        reason=reason,
        defaults={"detail": detail[:300], "created_at": now},
    )


def is_address_failure(status: str) -> bool:
    """Return whether the status of a failed delivery says that the address is unusable for good.

    RFC 3463: 5.1 is about the address, 5.2 about the mailbox, 5.0 undefined. Others are about the
    network, the e-mail or a policy; 5.1.7 and 5.1.8 are about the sender's address.
    """
    return status.startswith(("5.0.", "5.1.", "5.2.")) and status not in ("5.1.7", "5.1.8")


def suppress_bounced(app: App, details: Mapping[str, str]) -> None:
    """Suppress addresses that a mail server has refused; details: its answer by address."""
    now = database_now()
    for address in sorted(details):
        suppress(app, address, Suppression.BOUNCED, now=now, detail=details[address])


# --- Personal data --------------------------------------------------------------------------------
def suppressions_of(person: Person) -> Iterator[Suppression]:
    """At most one for each reason."""
    rows = Suppression.objects.filter(app=person.app, address=person.address)
    return iter(rows.order_by("id"))


def export_suppressions(person: Person, booking_ids: Collection[uuid.UUID]) -> Iterator[Json]:
    for row in suppressions_of(person):
        yield {
            "reason": row.reason,
            "detail": row.detail,
            "created_at": format_stamp(row.created_at),
        }


def erase_suppressions(person: Person, now: datetime) -> int:
    rows = Suppression.objects.filter(app=person.app, address=person.address)
    return rows.delete()[0]
