"""How a listing of deliveries is narrowed (api.md section 8)."""

import uuid
from typing import Any

import django_filters
from django import forms

from notifications.models import Delivery
from scheduling.api.fields import CANONICAL_ID


class IdFormField(forms.Field):
    """A UUID with its hyphens."""

    def to_python(self, value: Any) -> uuid.UUID | None:
        if value in self.empty_values:
            return None
        if not CANONICAL_ID.fullmatch(value):
            raise forms.ValidationError("Must be a UUID.")
        return uuid.UUID(value)


class IdFilter(django_filters.Filter):
    field_class = IdFormField


class DeliveryFilter(django_filters.FilterSet):
    """An id of nothing, or of another app's object, finds nothing."""

    booking = IdFilter(field_name="booking_id")
    webhook = IdFilter(field_name="webhook_id")
    type = django_filters.ChoiceFilter(choices=[(kind, kind) for kind in Delivery.TYPES])
    state = django_filters.ChoiceFilter(choices=[(state, state) for state in Delivery.STATES])

    class Meta:
        model = Delivery
        fields: list[str] = []


FILTER_NAMES = tuple(DeliveryFilter.base_filters)
