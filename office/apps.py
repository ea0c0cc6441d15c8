import os

from django.apps import AppConfig
from django.contrib.admin import apps as admin_apps
from django.contrib.admin import autodiscover
from django.utils.translation import gettext_lazy as _

from office.base.model_labels import translate_model_labels


class SiteConfig(admin_apps.SimpleAdminConfig):
    """Django's admin with the back office's site.

    A worker that starts with --skip-checks (Celery sets CELERY_SKIP_CHECKS) loads no admin page.
    """

    default_site = "office.site.OfficeSite"

    def ready(self) -> None:
        super().ready()
        translate_model_labels()  # before the admin pages read them
        if not os.environ.get("CELERY_SKIP_CHECKS"):
            autodiscover()


class OfficeConfig(AppConfig):
    """The back office."""

    name = "office"
    verbose_name = _("Back office")
    default = True
