"""E-mails about bookings whose video call has no link yet.

A connected calendar makes the link when the booking is written to it. So the first e-mails wait for
it, at most LINK_WAIT. What was sent without it is followed by one e-mail with it.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.models import Q

from bookings.conferences import MissingLinks, lacks_link
from bookings.graphs import GRAPHS, OWNER
from bookings.models import Booking
from bookings.services import CONFERENCE, Transition
from common.db.updated_at import transaction_start
from notifications.models import Delivery
from notifications.outbox.wakeup import wake_dispatchers_after_commit

LINK_WAIT = timedelta(seconds=10)
# In the content of a first e-mail: the events without a link, and whether it was sent so.
AWAITS_LINKS, SENT_WITHOUT_LINK = "awaits_links", "sent_without_link"
# In the content of an e-mail with the link: the first e-mails that it follows.
FOLLOWS = "follows"

Recipient = tuple[str, UUID | None]  # "customer" or "owner", and the customer's id


def becomes_live(transition: Transition) -> bool:
    graph, change = GRAPHS[transition.booking.graph], transition.change
    return graph.is_live(change.to_state) and not graph.is_live(change.from_state)


def adds_link(transition: Transition) -> bool:
    return transition.edit is not None and CONFERENCE in transition.edit.names


class AwaitedLinks:
    """The links that the first e-mails of one call of planning wait for."""

    def __init__(self, transitions: Sequence[Transition]) -> None:
        self.missing = MissingLinks(each.booking for each in transitions if becomes_live(each))

    def content(self, mailed_together: Sequence[Transition]) -> dict[str, list[str]]:
        """Return what the content of an e-mail about these transitions says of missing links."""
        events = [str(booking.event_id) for booking in _lacking(mailed_together)]
        return {AWAITS_LINKS: events} if events else {}

    def due_times(self, mailed_together: Sequence[Transition]) -> dict[str, Any]:
        """Return the columns of an e-mail that waits; {} if no link is on its way."""
        if not any(map(self.missing.is_coming, _lacking(mailed_together))):
            return {}
        due_at = transaction_start() + LINK_WAIT
        return {"due_at": due_at, "next_at": due_at}


def _lacking(transitions: Iterable[Transition]) -> list[Booking]:
    return [each.booking for each in transitions if becomes_live(each) and lacks_link(each.booking)]


class FirstMails:
    """The first e-mails about bookings whose link was just stored, once no awaited link is missing.

    Those that still wait become due. The others may have been sent without the link.
    """

    def __init__(self, transitions: Sequence[Transition]) -> None:
        bookings = [transition.booking for transition in transitions if adds_link(transition)]
        self._sent: dict[UUID, dict[Recipient, list[Delivery]]] = {}
        if bookings:
            mails = _complete_mails(bookings)
            waiting = _make_due(mails)
            self._add_sent([mail for mail in mails if mail.id not in waiting], bookings)

    def _add_sent(self, mails: Iterable[Delivery], bookings: Sequence[Booking]) -> None:
        """Assign the e-mails to bookings: those of a series to the one with the new link, all to
        the owner of a group to the same seat, so that the owner gets one e-mail.
        """
        ids = {booking.id for booking in bookings}
        owners_booking = None
        for mail in mails:
            booking_id = mail.booking_id if mail.booking_id in ids else bookings[0].id
            if mail.recipient == OWNER:
                booking_id = owners_booking = owners_booking or booking_id
            by_recipient = self._sent.setdefault(booking_id, defaultdict(list))
            by_recipient[mail.recipient, mail.customer_id].append(mail)

    def sent(self, transition: Transition) -> Mapping[Recipient, list[Delivery]]:
        return self._sent.get(transition.booking.id, {})


def _complete_mails(bookings: Sequence[Booking]) -> list[Delivery]:
    """Return the first e-mails that await a link of the bookings, which are of one event, and no
    link that is missing still; an e-mail about a series awaits several.
    """
    event, series = str(bookings[0].event_id), bookings[0].series_id
    about = Q(booking__series=series) if series else Q(booking__in=bookings)
    states = [*Delivery.OPEN, Delivery.DELIVERED]
    rows = Delivery.objects.filter(about, type=Delivery.EMAIL, state__in=states).order_by("id")
    awaited = {mail: set(mail.content.get(AWAITS_LINKS, ())) for mail in rows}
    mails = [mail for mail, events in awaited.items() if event in events]
    lacking = _events_without_link(set[str]().union(*(awaited[mail] for mail in mails)))
    return [mail for mail in mails if not awaited[mail] & lacking]


def _events_without_link(event_ids: Iterable[str]) -> set[str]:
    rows = Booking.objects.filter(event__in=list(event_ids), deleted_at=None)
    bookings = rows.select_related("event")
    return {str(booking.event_id) for booking in bookings if lacks_link(booking)}


def _make_due(mails: Sequence[Delivery]) -> set[UUID]:
    """Make the e-mails due that no worker has taken; return their ids.

    Until the commit no worker takes them, and then it reads the link.
    """
    unsent = Delivery.objects.filter(
        id__in=[mail.id for mail in mails], state=Delivery.SCHEDULED, tries=0
    )
    waiting = list(unsent.select_for_update(of=("self",), no_key=True, skip_locked=True))
    now = transaction_start()
    for mail in waiting:
        mail.due_at = mail.next_at = now
    Delivery.objects.bulk_update(waiting, ["due_at", "next_at"])
    wake_dispatchers_after_commit(waiting)
    return {mail.id for mail in waiting}


def mark_sent_without_link(delivery_id: UUID) -> None:
    """Call it with the row locked: an erasure may have changed the content."""
    row = Delivery.objects.only("content").get(id=delivery_id)
    Delivery.objects.filter(id=delivery_id).update(content=row.content | {SENT_WITHOUT_LINK: True})
