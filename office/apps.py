from django.apps import AppConfig
from django.contrib.admin import apps as admin_apps


class SiteConfig(admin_apps.AdminConfig):
    """Django's admin, on our site."""

    default = False
    default_site = "office.site.OfficeSite"


class OfficeConfig(AppConfig):
    """The pages of the back office that belong to no single model."""

    name = "office"
    verbose_name = "Back office"
    default = True
