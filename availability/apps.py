from django.apps import AppConfig


class AvailabilityConfig(AppConfig):
    name = "availability"
    verbose_name = "Availability"
