"""Strict filters of listings (django-filter): an invalid value is a 422, never ignored."""

import uuid
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any, TypeVar

import django_filters
from django import forms
from django.db.models import Model, QuerySet

from common.api.fields import CANONICAL_ID
from common.api.ordering import BOUND
from common.api.query import BOOLEANS, LOST_PLUS
from common.errors import Invalid
from common.openapi.component_registry import Json
from common.time.durations import resolve_bound
from common.time.instants import InstantError

Row = TypeVar("Row", bound=Model)


class BoundFormField(forms.Field):
    """An instant, a date, or a time relative to now; wall time in the zone of `apply_filters`."""

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
    """An unknown id, or one of another app's object, matches nothing."""

    field_class = IdFormField


class ChoicesFormField(forms.ChoiceField):
    """One of the choices, or several separated by commas."""

    def to_python(self, value: Any) -> list[str] | None:
        return None if value in self.empty_values else value.split(",")

    def validate(self, value: list[str] | None) -> None:
        for choice in value or [""]:
            super().validate(choice)
            if value and not choice:
                raise forms.ValidationError("May not contain an empty value.")


def choice_options(names: Collection[str]) -> Json:
    """Return the options of a filter with these choices, which its error names."""
    return {
        "choices": [(name, name) for name in names],
        "error_messages": {"invalid_choice": f"Must be one of {', '.join(names)}."},
    }


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


def filter_schema(each: django_filters.Filter, example: str | None = None) -> Json:
    """Return the schema of a filter's query parameter; `help_text` is its description."""
    words = each.extra.get("help_text")
    choices = [value for value, _ in each.extra.get("choices", ())]
    schema: Json = {"type": "string"}
    if isinstance(each, BoundFilter):
        schema = BOUND
    elif isinstance(each, IdFilter):
        schema = {"type": "string", "format": "uuid"}
    elif isinstance(each, StrictBooleanFilter):
        schema = {"type": "boolean"}
    elif isinstance(each, ChoicesFilter):
        one = "|".join(choices)
        schema |= {"pattern": f"^({one})(,({one}))*$"}
    elif choices:
        schema |= {"enum": choices}
    described = {"description": words} if words else {}
    return schema | described | ({"examples": [example]} if example else {})


def apply_filters(
    filters: type[django_filters.FilterSet],
    values: Mapping[str, str],
    rows: QuerySet[Row],
    *,
    zone: str,
    now: datetime,
) -> QuerySet[Row]:
    """Filter `rows` by the query parameters that the filter set has. Raises Invalid."""
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
