from django.apps import AppConfig


class ApplicationsConfig(AppConfig):
    name = "apps_config"
    verbose_name = "Apps and accounts"
