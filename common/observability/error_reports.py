"""Reports of errors to Sentry. Without SENTRY_DSN nothing is sent and nothing imported."""

from django.conf import settings

if settings.SENTRY_DSN:
    from common.observability.sentry_reports import start_sentry


def install() -> None:
    """Report every log line of the level ERROR from now on, if SENTRY_DSN is set."""
    if settings.SENTRY_DSN:
        start_sentry(settings.SENTRY_DSN)
