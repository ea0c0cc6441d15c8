from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules


class ExternalCalendarsConfig(AppConfig):
    name = "external_calendars"
    verbose_name = "External calendars"

    def ready(self) -> None:
        # From their import on connected calendars are asked before a booking is made, bookings are
        # written to them, and `doctor` asks how they are.
        autodiscover_modules("asking", "planning", "transport", "people", "records", "health")
