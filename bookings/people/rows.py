"""Whose rows they are: an address in an app, in whatever case it was written."""

import uuid
from functools import reduce
from operator import or_
from typing import NamedTuple

from django.db.models import OuterRef, Q, QuerySet, Subquery, TextField
from django.db.models.functions import Cast, Coalesce

from apps_config.models import App
from availability.filters import by_text
from availability.models import Event
from bookings.models import Booking, Customer
from bookings.people.marks import Marks
from scheduling.api.query import SearchTerm

EVENT_TEXTS = ("what", "where", "description")


class Person(NamedTuple):
    app: App
    email: str

    def is_of(self, customer: Customer) -> bool:
        return customer.email.lower() == self.email.lower()

    def customers(self) -> QuerySet[Customer]:
        """Every booking's snapshot of them; hidden bookings hold theirs too."""
        is_theirs = by_text("email")(SearchTerm("email", self.email, False, False))
        return Customer.objects.filter(is_theirs, booking__app=self.app)

    def booking_ids(self) -> set[uuid.UUID]:
        return set(self.customers().values_list("booking", flat=True))

    def events(self) -> QuerySet[Event]:
        """Those whose texts may hold the address: a longer one that ends alike is found too.

        `booked` is the id of the booking that an event, or its main event, belongs to.
        """
        owner = Coalesce(OuterRef("main"), OuterRef("id"))
        bookings = Booking.objects.filter(event=owner, owner_booking=None)
        rows = Event.objects.filter(resource__app=self.app).annotate(
            invited=Cast("participants", TextField()),
            booked=Subquery(bookings.values("id")[:1]),
        )
        holds = [Q(**{f"{name}__icontains": self.email}) for name in (*EVENT_TEXTS, "invited")]
        return rows.filter(reduce(or_, holds))

    @property
    def marks(self) -> Marks:
        return Marks([self.email])
