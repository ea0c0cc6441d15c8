"""/metrics of a worker, on WORKER_METRICS_ADDRESS: only what its own processes count."""

import threading
from collections.abc import Callable, Iterable
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from celery import signals
from django.conf import settings
from prometheus_client import make_wsgi_app

from common.observability.metrics import process_registry
from ops.metrics_token import is_authorized


class MetricsServer(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class QuietHandler(WSGIRequestHandler):
    timeout = 10  # seconds: of one slow client

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: a scrape every few seconds."""


def answer_scrape(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    if not is_authorized(environ.get("HTTP_AUTHORIZATION", "")):
        start_response("401 Unauthorized", [("WWW-Authenticate", 'Bearer realm="metrics"')])
        return [b""]
    return make_wsgi_app(process_registry())(environ, start_response)


@signals.worker_ready.connect
def serve_metrics(**_: Any) -> None:
    """Serve in a thread of the main process until it ends."""
    if settings.WORKER_METRICS_ADDRESS:
        host, port = settings.WORKER_METRICS_ADDRESS
        server = make_server(host, port, answer_scrape, MetricsServer, QuietHandler)
        threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
