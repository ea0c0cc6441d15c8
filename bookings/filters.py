"""Filters, search and order of booking lists (api.md section 2)."""

import json
import re
from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import Any

import django_filters
from django.db import connection
from django.db.models import BooleanField, Func, Q, QuerySet, TextField, Value
from django.db.models.functions import Cast
from django.db.models.lookups import Exact

from availability.models import overlap
from bookings.graphs import GRAPHS, STATES
from bookings.models import OUTCOMES, Booking, Customer
from common.api.filters import (
    BoundFilter,
    ChoicesFilter,
    IdFilter,
    StrictBooleanFilter,
    choice_options,
)
from common.api.query import BOOLEANS, SearchTerm
from common.api.search_conditions import (
    Condition,
    address_with_wildcards,
    exact_id,
    exact_text,
    text_with_wildcards,
)
from common.errors import Invalid


class GroupFilter(django_filters.FilterSet):
    """`start` and `end`: bookings whose event overlaps the range; an absent bound is open."""

    start = BoundFilter(method="ignore_value")
    end = BoundFilter(method="ignore_value")

    class Meta:
        model = Booking
        fields: list[str] = []

    def ignore_value(self, rows: QuerySet, name: str, value: Any) -> QuerySet:
        """Keep all rows: `filter_queryset` applies both bounds at once."""
        return rows

    def filter_queryset(self, rows: QuerySet) -> QuerySet:
        start, end = self.form.cleaned_data["start"], self.form.cleaned_data["end"]
        return super().filter_queryset(rows).filter(overlap(start, end, "event__"))


class BookingFilter(GroupFilter):
    examples = {"state": "tentative,confirmed", "customer_email": "marty@example.com"}

    state = ChoicesFilter(
        help_text="Only bookings in this state, or in several states separated by commas.",
        **choice_options(STATES),
    )
    graph = django_filters.ChoiceFilter(
        help_text="Only bookings of this graph.", **choice_options(GRAPHS)
    )
    completed = StrictBooleanFilter(
        help_text="Only completed bookings (no possible action), or only others."
    )
    outcome = django_filters.ChoiceFilter(
        help_text="Only bookings with this outcome.", **choice_options(OUTCOMES)
    )
    resource_id = IdFilter(help_text="Only bookings of this resource.")
    project_id = IdFilter(help_text="Only bookings of this project.")
    calendar_id = IdFilter(
        field_name="event__calendar_id", help_text="Only bookings in this calendar."
    )
    series_id = IdFilter(help_text="Only bookings of this series.")
    owner_booking_id = IdFilter(help_text="Only seats of this group.")
    external_id = django_filters.CharFilter(help_text="Only the booking with this external id.")
    customer_external_id = django_filters.CharFilter(
        method="filter_customer_external_id",
        help_text="Only bookings of a customer with this external id.",
    )
    customer_email = django_filters.CharFilter(
        method="filter_customer_email",
        help_text="Only bookings of a customer with this e-mail address, however it is typed.",
    )

    def filter_customer_email(self, rows: QuerySet, name: str, value: str) -> QuerySet:
        """Filter by a customer's address, however it is typed."""
        return rows.filter(by_address(SearchTerm(name, value, False, False)))

    def filter_customer_external_id(self, rows: QuerySet, name: str, value: str) -> QuerySet:
        return rows.filter(by_customer_id(SearchTerm(name, value, False, False)))


FILTER_NAMES = tuple(BookingFilter.base_filters)


def _one_of(column: str, choices: Any) -> Condition:
    def condition(term: SearchTerm) -> Q:
        if term.wildcard_left or term.wildcard_right or term.value not in choices:
            raise Invalid.at("search", f"{term.field} must be one of {', '.join(choices)}.")
        return Q(**{column: term.value})

    return condition


def _by_completed(term: SearchTerm) -> Q:
    if term.value not in BOOLEANS:
        raise Invalid.at("search", "completed must be true or false.")
    return Q(completed=BOOLEANS[term.value])


def _by_customer(matches: Condition) -> Condition:
    """Match any customer of the booking; a subquery, so that no booking appears twice."""

    def condition(term: SearchTerm) -> Q:
        customers = Customer.objects.filter(matches(term))
        return Q(id__in=customers.values("booking_id"))

    return condition


by_address = _by_customer(address_with_wildcards("email"))
by_customer_id = _by_customer(exact_text("external_id"))


class MetaText(Func):
    """The value of a top-level key of `meta` as text: 5 as "5", true as "true".

    The key is a parameter, never part of a path: it may contain quotes, dots and digits.
    """

    output_field = TextField()
    # With the table's name: joined tables have a `meta` too.
    template = "(bookings_booking.meta ->> %(expressions)s)"

    def as_sqlite(self, compiler: Any, connection: Any, **extra: Any) -> tuple[str, Any]:
        template = (
            "(SELECT CASE type WHEN 'true' THEN 'true' WHEN 'false' THEN 'false'"
            " ELSE CAST(value AS TEXT) END"
            " FROM json_each(bookings_booking.meta) WHERE key = %(expressions)s)"
        )
        return self.as_sql(compiler, connection, template=template, **extra)


META = "meta."


def by_meta(term: SearchTerm) -> Q:
    """Match the text of a key exactly. Raises Invalid on `search` for a wildcard."""
    if term.wildcard_left or term.wildcard_right:
        text = f"{term.field:.80} does not support wildcards; write \\* for a star."
        raise Invalid.at("search", text)
    key = term.field.removeprefix(META)
    equal = Q(Exact(MetaText(Cast(Value(key), TextField())), Value(term.value)))
    if connection.vendor != "postgresql" or OBJECT_OR_LONG.match(term.value):
        return equal
    # What the index finds: the text itself, or the number or boolean of that text.
    values = [json.dumps(term.value), *SCALAR.findall(term.value)]
    pairs = (MetaContains(Value(f"{{{json.dumps(key)}:{value}}}")) for value in values)
    return equal & reduce(or_, map(Q, pairs))


OBJECT_OR_LONG = re.compile(r"[\[{]|.{200}", re.DOTALL)
SCALAR = re.compile(r"\A(?:-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?|true|false)\Z")


class MetaContains(Func):
    """Whether `meta` has the pairs of a JSON object, by the index `booking_meta`."""

    output_field = BooleanField()
    template = "(bookings_booking.meta @> (%(expressions)s)::jsonb)"


SEARCH: Mapping[str, Condition] = {
    "bulk.id": exact_id("bulk_id"),
    "calendar.id": exact_id("event__calendar_id"),
    "completed": _by_completed,
    "customer.email": by_address,
    "customer.external_id": by_customer_id,
    "customer.name": _by_customer(text_with_wildcards("name")),
    "customer.phone": _by_customer(text_with_wildcards("phone")),
    "external_id": exact_text("external_id"),
    "graph": _one_of("graph", GRAPHS),
    META: by_meta,
    "owner_booking.id": exact_id("owner_booking_id"),
    "project.id": exact_id("project_id"),
    "resource.id": exact_id("resource_id"),
    "series.id": exact_id("series_id"),
    "state": _one_of("state", STATES),
}


def is_about_person(field: str) -> bool:
    """Whether a term of `search` asks for what only keys with `people:read` see."""
    about = ("customer.email", "customer.external_id", "customer.phone")
    return field in about or field.startswith(META)


ORDERS = {
    **{name: name for name in ("created_at", "updated_at", "completed", "graph", "state")},
    **{name: f"event__{name}" for name in ("start", "end")},  # as in POST
    **{f"event.{name}": f"event__{name}" for name in ("start", "end")},
}
