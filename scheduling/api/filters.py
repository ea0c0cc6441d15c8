"""Filters of listings (django-filter), strict: a wrong value is 422, never ignored."""

from collections.abc import Mapping
from typing import Any

import django_filters
from django import forms
from django.db.models import QuerySet

from scheduling.api.errors import Invalid
from scheduling.api.instants import InstantError, parse_instant
from scheduling.api.query import BOOLEANS, LOST_PLUS


class InstantFormField(forms.Field):
    """An instant; wall time is read in the zone that the filter set was given."""

    zone = "UTC"

    def to_python(self, value: Any) -> Any:
        if value in self.empty_values:
            return None
        try:
            return parse_instant(LOST_PLUS.sub(r"\1+\2", value), self.zone)
        except InstantError as error:
            raise forms.ValidationError(str(error)) from None


class InstantFilter(django_filters.Filter):
    field_class = InstantFormField


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
        if isinstance(field, InstantFormField):
            field.zone = zone
    if not filter_set.is_valid():
        raise Invalid({name: list(found) for name, found in filter_set.form.errors.items()})
    return filter_set.qs
