"""Filters of the delivery list (api.md section 8)."""

import django_filters

from common.api.filters import IdFilter, choice_options
from notifications.models import Delivery


class DeliveryFilter(django_filters.FilterSet):
    """Unknown ids, and ids of other apps, match nothing."""

    booking = IdFilter(field_name="booking_id", help_text="Only deliveries of this booking.")
    webhook = IdFilter(field_name="webhook_id", help_text="Only deliveries of this webhook.")
    type = django_filters.ChoiceFilter(
        help_text="Only e-mails, only calls, or only calendar writes.",
        **choice_options(Delivery.TYPES),
    )
    state = django_filters.ChoiceFilter(
        help_text="Only deliveries in this state.", **choice_options(Delivery.STATES)
    )

    class Meta:
        model = Delivery
        fields: list[str] = []
