from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules


class OpsConfig(AppConfig):
    name = "ops"

    def ready(self) -> None:
        # Importing them connects them to the start of workers.
        autodiscover_modules("worker_metrics_server", "worker_start", "stored_metrics")
