from django.apps import AppConfig


class AccessConfig(AppConfig):
    """Installed so that Django finds its command `issue_key` and its template; it has no models."""

    name = "access"
