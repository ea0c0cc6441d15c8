from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules


class AccessConfig(AppConfig):
    """Installed so that Django finds its command `issue_key` and its template; it has no models."""

    name = "access"

    def ready(self) -> None:
        # Importing this module registers its signal handlers.
        autodiscover_modules("second_factor")
