from django.apps import AppConfig

from common.observability import error_reports, task_log, tracing  # noqa: F401  # task_log: signals


class CommonConfig(AppConfig):
    name = "common"

    def ready(self) -> None:
        tracing.tracer.install()
        error_reports.install()
