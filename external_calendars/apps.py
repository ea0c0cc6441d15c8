from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules


class ExternalCalendarsConfig(AppConfig):
    name = "external_calendars"
    verbose_name = "External calendars"

    def ready(self) -> None:
        # Importing these modules registers the free/busy check, the mirroring of bookings, and whom
        # calendar servers invite.
        autodiscover_modules("live_provider_freebusy", "personal_data")
        autodiscover_modules(
            "mirror.delivery_planning",
            "mirror.server_invitations",
            "mirror.provider_event_include",
            "mirror.writer",
        )
