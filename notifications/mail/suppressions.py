"""Addresses that an app sends no e-mails, or no reminders, to."""

import uuid
from collections.abc import Collection, Iterator
from datetime import datetime

from apps_config.models import App
from bookings.privacy import Person
from common.api.response_records import Json
from common.email_address import canonical_address
from common.instants import format_stamp
from notifications.models import Suppression


class Suppressions:
    """The suppressions of some apps' addresses, read at once."""

    def __init__(self, app_ids: Collection[uuid.UUID], addresses: Collection[str]) -> None:
        wanted = {canonical_address(address) for address in addresses if address}
        rows = Suppression.objects.filter(app__in=app_ids, address__in=wanted)
        found = rows.values_list("app", "address", "reason", "detail") if wanted else ()
        self._reasons = {(app, address, reason): detail for app, address, reason, detail in found}

    def reason(self, app: App, address: str, *, is_reminder: bool) -> str:
        """Why the address gets no e-mail; "" if it gets it."""
        key = (app.id, canonical_address(address))
        if (*key, Suppression.BOUNCED) in self._reasons:
            detail = self._reasons[*key, Suppression.BOUNCED]
            return f"E-mails to this address bounced: {detail}".rstrip(": ")
        if is_reminder and (*key, Suppression.UNSUBSCRIBED) in self._reasons:
            return "The customer has unsubscribed from reminders."
        return ""


def suppress(app: App, email: str, reason: str, *, now: datetime, detail: str = "") -> None:
    """Send no more e-mails (or reminders) of the app to the address. Repeats change nothing."""
    Suppression.objects.get_or_create(
        app=app,
        address=canonical_address(email),
        reason=reason,
        defaults={"detail": detail[:300], "created_at": now},
    )


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
