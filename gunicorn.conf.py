"""Read by every gunicorn that is started in this folder. The command line overrides it.

Processes, threads and keep-alive are settings: docs/operations.md. The access log is the service's
own (common/observability/observe.py), with route, app and request id.
"""

from typing import Any

from scheduling import settings  # first: it sets what prometheus_client reads when it is imported

# isort: split
from common.observability import metrics
from scheduling import request_deadlines
from scheduling.garbage_collection import freeze_loaded_service

workers = settings.WEB_PROCESSES
threads = settings.WEB_THREADS
keepalive = settings.WEB_KEEPALIVE
worker_class = "gthread"
logconfig_dict = settings.LOGGING

# gunicorn's own access log is off. Whoever switches it on gets no query and no referrer, which
# contain feeds' tokens and signatures of links.
access_log_format = '%(h)s %(t)s "%(m)s %(U)s %(H)s" %(s)s %(b)s "%(a)s"'

# The most that it takes: a listing may be asked for with many names at once. Beyond it answers 414.
limit_request_line = 8190


def when_ready(server: Any) -> None:
    """Before the workers are forked."""
    freeze_loaded_service()


def on_starting(server: Any) -> None:
    metrics.remove_old_files()


def post_worker_init(worker: Any) -> None:
    request_deadlines.install()
    metrics.report_threads(worker.cfg.threads)


def child_exit(server: Any, worker: Any) -> None:
    metrics.forget_process(worker.pid)
