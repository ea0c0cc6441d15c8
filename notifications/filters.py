"""How a listing of deliveries is narrowed (api.md section 8)."""

import django_filters

from notifications.models import Delivery
from scheduling.api.filters import IdFilter


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
