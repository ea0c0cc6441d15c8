from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules


class NotificationsConfig(AppConfig):
    name = "notifications"
    verbose_name = "Notifications"

    def ready(self) -> None:
        # From their import on planning listens to the steps of bookings, and people's data in
        # deliveries is a part of theirs.
        autodiscover_modules("planning", "people")
