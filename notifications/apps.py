from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules


class NotificationsConfig(AppConfig):
    name = "notifications"
    verbose_name = "Notifications"

    def ready(self) -> None:
        # Importing these modules registers how deliveries are planned and sent, and their personal
        # data.
        autodiscover_modules("planning", "mails_and_calls", "personal_data", "security_mails")
