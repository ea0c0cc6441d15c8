"""A person: an e-mail address in an app, however it is typed."""

import uuid
from functools import reduce
from operator import or_
from typing import Any, NamedTuple

from django.db.models import OuterRef, Q, QuerySet, Subquery, TextField
from django.db.models.functions import Cast, Coalesce

from apps_config.models import App
from availability.models import Event
from bookings.models import Booking, Customer, CustomerNote
from bookings.privacy.text_redactor import Redactor
from common.email_address import canonical_address, unicode_address

EVENT_TEXTS = ("what", "where", "description")


class Person(NamedTuple):
    app: App
    email: str

    @property
    def address(self) -> str:
        return canonical_address(self.email)

    def is_of(self, customer: Customer) -> bool:
        return customer.address == self.address

    def customers(self) -> QuerySet[Customer]:
        """The customer rows of the person in all bookings, including deleted ones."""
        return Customer.objects.filter(app=self.app, address=self.address)

    def booking_ids(self) -> set[uuid.UUID]:
        return set(self.customers().values_list("booking", flat=True))

    @property
    def note(self) -> str | None:
        """The internal note on the person."""
        rows = CustomerNote.objects.filter(app=self.app, address=self.address)
        return rows.values_list("note", flat=True).first()

    def with_address_in_note(self, rows: QuerySet[Any]) -> list[Any]:
        """Return the rows, of bookings or of notes on customers, whose note has the address."""
        holds = reduce(or_, [Q(note__icontains=form) for form in self._forms])
        return [row for row in rows.filter(holds, app=self.app) if self.marks.are_in(row.note)]

    def events_with_address(self) -> QuerySet:
        """Events whose texts may contain the address, a longer one with the same end, or one that
        the database takes for equal. `marks` decides.

        `booked` is the id of the booking that an event, or its main event, belongs to.
        """
        owner = Coalesce(OuterRef("main"), OuterRef("id"))
        bookings = Booking.objects.filter(event=owner, owner_booking=None)
        rows = Event.objects.filter(resource__app=self.app).annotate(
            invited=Cast("participants", TextField()),
            booked=Subquery(bookings.values("id")[:1]),
        )
        holds = [
            Q(**{f"{name}__icontains": form})
            for name in (*EVENT_TEXTS, "invited")
            for form in self._forms
        ]
        return rows.filter(reduce(or_, holds))

    def is_in(self, event: Event) -> bool:
        """Whether the event's texts or participants contain the address."""
        texts = [getattr(event, name) for name in EVENT_TEXTS]
        return self.marks.are_in([*texts, *event.participants])

    @property
    def _forms(self) -> set[str]:
        return {self.email, self.address, unicode_address(self.address)}

    @property
    def marks(self) -> Redactor:
        return Redactor(self._forms)
