from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules


class ExternalCalendarsConfig(AppConfig):
    name = "external_calendars"
    verbose_name = "External calendars"

    def ready(self) -> None:
        # Importing these modules registers the free/busy check and the mirroring of bookings.
        # A module that does not exist is ignored: tests/external_calendars/test_mirror.py notices.
        mirror = ("mirror.delivery_planning", "mirror.writer", "mirror.records")
        autodiscover_modules("freebusy", *mirror, "personal_data")
