from django.apps import AppConfig

from common.observability import error_reports, observe, tracing  # noqa: F401  # observe: signals


class CommonConfig(AppConfig):
    name = "common"

    def ready(self) -> None:
        tracing.install()
        error_reports.install()
