"""Filters of listings (django-filter), strict: a wrong value is 422, never ignored."""

import uuid
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import django_filters
from django import forms
from django.db.models import QuerySet

from scheduling.api.durations import resolve_bound
from scheduling.api.errors import Invalid
from scheduling.api.fields import CANONICAL_ID
from scheduling.api.instants import InstantError
from scheduling.api.query import BOOLEANS, LOST_PLUS


class BoundFormField(forms.Field):
    """An instant, a date, or a time relative to now; wall time is read in the zone that the filter
    set was given."""

    zone = "UTC"
    now: datetime

    def to_python(self, value: Any) -> Any:
        if value in self.empty_values:
            return None
        try:
            return resolve_bound(LOST_PLUS.sub(r"\1+\2", value), self.now, self.zone)
        except InstantError as error:
            raise forms.ValidationError(str(error)) from None


class BoundFilter(django_filters.Filter):
    field_class = BoundFormField


class IdFormField(forms.Field):
    """A UUID with its hyphens."""

    def to_python(self, value: Any) -> uuid.UUID | None:
        if value in self.empty_values:
            return None
        if not CANONICAL_ID.fullmatch(value):
            raise forms.ValidationError("Must be a UUID.")
        return uuid.UUID(value)


class IdFilter(django_filters.Filter):
    """An id of nothing, or of another app's object, finds nothing."""

    field_class = IdFormField


class ChoicesFormField(forms.ChoiceField):
    """One of the choices, or several separated by commas."""

    def to_python(self, value: Any) -> list[str] | None:
        return None if value in self.empty_values else value.split(",")

    def validate(self, value: list[str] | None) -> None:
        for choice in value or [""]:
            super().validate(choice)
            if value and not choice:
                raise forms.ValidationError("May not have an empty place.")


class ChoicesFilter(django_filters.Filter):
    field_class = ChoicesFormField

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, lookup_expr="in", **kwargs)


class StrictBooleanFormField(forms.Field):
    """true, false, 1 or 0."""

    def to_python(self, value: Any) -> bool | None:
        if value in self.empty_values:
            return None
        if value not in BOOLEANS:
            raise forms.ValidationError("Must be true or false.")
        return BOOLEANS[value]


class StrictBooleanFilter(django_filters.Filter):
    field_class = StrictBooleanFormField


def apply_filters(
    filters: type[django_filters.FilterSet],
    values: Mapping[str, str],
    rows: QuerySet,
    *,
    zone: str,
    now: datetime,
) -> QuerySet:
    """`rows` narrowed by the query parameters that the filter set knows. Raises Invalid."""
    given = {name: value for name, value in values.items() if name in filters.base_filters}
    if not given:
        return rows
    empty = {name: ["May not be empty."] for name, value in given.items() if not value}
    if empty:
        raise Invalid(empty)
    filter_set = filters(given, rows)
    for field in filter_set.form.fields.values():
        if isinstance(field, BoundFormField):
            field.zone, field.now = zone, now
    if not filter_set.is_valid():
        raise Invalid({name: list(found) for name, found in filter_set.form.errors.items()})
    return filter_set.qs
