from django.apps import AppConfig
from django.contrib.admin import apps as admin_apps


class SiteConfig(admin_apps.AdminConfig):
    """Django's admin with the back office's site."""

    default = False
    default_site = "office.site.OfficeSite"


class OfficeConfig(AppConfig):
    """The back office."""

    name = "office"
    verbose_name = "Back office"
    default = True
