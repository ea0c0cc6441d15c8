"""Filters of the delivery list (api.md section 8)."""

import django_filters

from common.api.filters import IdFilter
from notifications.models import Delivery


class DeliveryFilter(django_filters.FilterSet):
    """Unknown ids, and ids of other apps, match nothing."""

    booking = IdFilter(field_name="booking_id")
    webhook = IdFilter(field_name="webhook_id")
    type = django_filters.ChoiceFilter(choices=[(kind, kind) for kind in Delivery.TYPES])
    state = django_filters.ChoiceFilter(choices=[(state, state) for state in Delivery.STATES])

    class Meta:
        model = Delivery
        fields: list[str] = []


FILTER_NAMES = tuple(DeliveryFilter.base_filters)
