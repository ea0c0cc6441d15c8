"""Internal notes on customers: one per app and e-mail address."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef

from apps_config.models import App
from bookings.models import MAX_NOTE, AppCustomer, Customer, CustomerNote
from common.email_address import canonical_address
from common.errors import NotFound


def notes_of(people: Sequence[AppCustomer]) -> Mapping[tuple[UUID, str], str]:
    """Return (app, address) -> note of the customers who have one. One query."""
    rows = CustomerNote.objects.filter(
        app__in={person.app_id for person in people},
        address__in={person.address for person in people},
    )
    return {(row.app_id, row.address): row.note for row in rows}


def set_customer_note(*, app: App, email: str, note: str | None) -> None:
    """Store the note on the customer with the address; an empty one removes it.

    Raises NotFound for an address without a booking.
    """
    key: dict[str, Any] = {"app": app, "address": canonical_address(email)}
    with transaction.atomic():
        # An erasure of the customer deletes the locked row: it comes before, or deletes the note.
        people = AppCustomer.objects.select_for_update().filter(**key)
        if not list(people.values_list("pk")):
            raise NotFound("Customer")
        if note:
            CustomerNote.objects.update_or_create(**key, defaults={"note": note})
        else:
            CustomerNote.objects.filter(**key).delete()


def move_notes(app_id: UUID, addresses: Mapping[str, str]) -> None:
    """Move the notes after customers have new addresses (old -> new): of a customer whose last
    address was the old one, so that a corrected letter does not lose the note.
    """
    for old, new in addresses.items():
        row = notes_without_customer({(app_id, old)}).first()
        if row is None:
            continue
        there = CustomerNote.objects.filter(app=app_id, address=new).first()
        texts = [there.note, row.note] if there else [row.note]
        row.delete()
        defaults = {"note": "\n\n".join(texts)[:MAX_NOTE]}
        CustomerNote.objects.update_or_create(app_id=app_id, address=new, defaults=defaults)


def notes_without_customer(people: Collection[tuple[UUID, str]]) -> Any:
    """Return the notes on these customers (app, address) of whom no booking has data any more."""
    theirs = Customer.objects.filter(app=OuterRef("app"), address=OuterRef("address"))
    rows = CustomerNote.objects.filter(
        app__in={app_id for app_id, _ in people}, address__in={address for _, address in people}
    )
    return rows.exclude(Exists(theirs.order_by()))
