"""One e-mail about several bookings that one request creates, confirms or declines.

E-mails of one kind to one address become one. The delivery of the first booking carries the further
ones: `others` in its content, without texts, which an erasure would have to find. A bulk request
plans its bookings in several transactions. Its e-mails are therefore held until it ends, or for
HELD_FOR if its process is lost.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from bookings.graphs import CUSTOMER
from bookings.services import Transition
from bookings.services.bulk_request import BulkRequest, current_bulk_request, on_bulk_request_end
from bookings.services.transition_log import TIMER
from common.db.updated_at import transaction_start
from common.email_address import canonical_address
from notifications.awaited_links import AWAITS_LINKS
from notifications.models import Delivery
from notifications.outbox.wakeup import wake_dispatchers_after_commit

# Not moves and cancellations: a calendar takes these from one entry for each UID.
MERGED_KINDS = frozenset({"tentative", "confirmed", "paid", "declined"})
HELD_FOR = timedelta(minutes=1)
# Facts of a booking that the e-mail of another one carries.
CARRIED_FACTS = ("start", "end", "from_state", "times", "until", "occurrences")


class MergedMails:
    """Merges the e-mails of one call of planning, and those of earlier calls of its request."""

    def __init__(self, transitions: Sequence[Transition]) -> None:
        self.request = current_bulk_request()
        self.is_needed = self.request is not None or len(transitions) > 1
        self.carriers: dict[Hashable, Delivery] = {}
        self.stored: list[Delivery] = []

    def merge(self, mails: Iterable[Delivery], transition: Transition) -> Iterator[Delivery]:
        """Yield the e-mails that no earlier one carries."""
        for mail in mails:
            key = self._key(mail, transition) if self.is_needed else None
            if key is None:
                yield mail
            elif carrier := self._find_open_mail(key):
                if _is_about(carrier, mail):
                    yield mail  # two customers of a booking with one address
                else:
                    # A new dict: the e-mails to several customers share theirs.
                    others = [*carrier.content.get("others", ()), _facts_of_mail(mail)]
                    carrier.content = carrier.content | {"others": others}
            else:
                self.carriers[key] = mail
                if self.request:
                    mail.next_at = mail.due_at = mail.due_at + HELD_FOR
                    self.request.open_mails[key] = mail.id
                yield mail

    def save(self) -> None:
        """Store the changed contents of e-mails that earlier calls have planned."""
        if self.stored:
            Delivery.objects.bulk_update(self.stored, ["content"])

    def _key(self, mail: Delivery, transition: Transition) -> Hashable | None:
        """Return what e-mails have in common that become one; None: it stays alone."""
        is_open = mail.state == Delivery.SCHEDULED
        if AWAITS_LINKS in mail.content:  # a link concerns one booking
            return None
        if mail.kind not in MERGED_KINDS or not is_open or transition.change.source == TIMER.source:
            return None
        if mail.recipient == CUSTOMER:
            address = mail.customer.email if mail.customer else ""
        else:
            address = transition.booking.resource.email or ""
        message = mail.content["message"]
        return mail.app_id, mail.kind, mail.recipient, canonical_address(address), message

    def _find_open_mail(self, key: Hashable) -> Delivery | None:
        if key not in self.carriers and self.request and key in self.request.open_mails:
            carrier = _unsent_mails([self.request.open_mails[key]]).first()
            if carrier:  # else its booking was rolled back, or it is being sent
                self.carriers[key] = carrier
                self.stored.append(carrier)
        return self.carriers.get(key)


def _is_about(carrier: Delivery, mail: Delivery) -> bool:
    others = carrier.content.get("others", ())
    ids = {str(carrier.booking_id), *(other["booking_id"] for other in others)}
    return str(mail.booking_id) in ids


def _facts_of_mail(mail: Delivery) -> dict[str, Any]:
    facts = {name: mail.content[name] for name in CARRIED_FACTS if name in mail.content}
    return facts | {
        "booking_id": str(mail.booking_id),
        "change_id": str(mail.change_id),
        "version": mail.version,
    }


def _unsent_mails(ids: Iterable[UUID]) -> QuerySet[Delivery]:
    """Return those of the e-mails that no worker has taken, locked."""
    rows = Delivery.objects.filter(id__in=ids, state=Delivery.SCHEDULED, tries=0)
    return rows.select_for_update(of=("self",), no_key=True).order_by("id")


@on_bulk_request_end.register
def release_mails(request: BulkRequest) -> None:
    """Make the e-mails of the request due."""
    if not request.open_mails:
        return
    with transaction.atomic():
        mails = list(_unsent_mails(request.open_mails.values()))
        for mail in mails:
            mail.due_at = mail.next_at = transaction_start()
        Delivery.objects.bulk_update(mails, ["due_at", "next_at"])
        wake_dispatchers_after_commit(mails)
