import os

from django.apps import AppConfig
from django.contrib.admin import apps as admin_apps
from django.contrib.admin import autodiscover


class SiteConfig(admin_apps.SimpleAdminConfig):
    """Django's admin with the back office's site.

    A worker that starts with --skip-checks (Celery sets CELERY_SKIP_CHECKS) loads no admin page.
    """

    default_site = "office.site.OfficeSite"

    def ready(self) -> None:
        super().ready()
        if not os.environ.get("CELERY_SKIP_CHECKS"):
            autodiscover()


class OfficeConfig(AppConfig):
    """The back office."""

    name = "office"
    verbose_name = "Back office"
    default = True
