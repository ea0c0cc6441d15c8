"""Search of customers by what they say on the phone."""

import re

from django.db.models import Q, QuerySet

from bookings.models import Customer
from common.email_address import canonical_address

MAX_BY_ID = 1000  # bookings of the customers with an external id


def search_customers(term: str) -> QuerySet[Customer]:
    """Return the bookings' customers by their id in another system, by an e-mail address or its
    start (with the @), by the digits of a phone number, or by all words of a name.
    """
    term = term.strip()
    if "\0" in term:
        return Customer.objects.none()
    found = _search_contacts(term)
    # Found beforehand: an OR of two columns would use neither index.
    ids = list(Customer.objects.filter(external_id=term).values_list("pk", flat=True)[:MAX_BY_ID])
    return Customer.objects.filter(Q(pk__in=ids) | Q(pk__in=found.values("pk"))) if ids else found


def _search_contacts(term: str) -> QuerySet[Customer]:
    customers = Customer.objects.all()
    if "@" in term:
        # A whole address finds its person alone, however it was typed.
        person = customers.filter(address=canonical_address(term))
        if person.exists():
            return person
        return customers.filter(Q(email__istartswith=term))
    if re.fullmatch(r"[+\d][\d\s()/.-]{3,}", term):
        # As typed, or by its last digits: people write numbers in many ways.
        return customers.filter(Q(phone__icontains=term) | Q(phone__iregex=_digits_pattern(term)))
    for word in term.split():
        customers = customers.filter(Q(name__icontains=word) | Q(email__icontains=word))
    return customers


def _digits_pattern(term: str) -> str:
    """Return a pattern of the number's digits with any separators."""
    return r"\D*".join(re.sub(r"\D", "", term)[-12:])
