from django.apps import AppConfig


class OpsConfig(AppConfig):
    """Installed so that Django finds its commands; it has no models."""

    name = "ops"
