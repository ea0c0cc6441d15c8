"""The metrics that the service has, from a scrape after a request and a task; promtool."""

import functools
import re
import shutil

import pytest
from django.test import Client
from prometheus_client import generate_latest

from common.observability import metrics
from notifications.tasks import check_deliveries
from ops.metrics import DatabaseCollector
from ops.stored_metrics import refresh_stored_metrics

needs_promtool = pytest.mark.skipif(
    not shutil.which("promtool"), reason="promtool is not installed (Debian: prometheus)"
)

# Words of PromQL, and labels.
NOT_METRICS = frozenset(
    {
        *("by", "on", "or", "and", "sum", "max", "min", "rate", "increase", "deriv", "absent"),
        *("histogram_quantile", "offset", "le", "ignoring", "topk", "clamp_min", "without"),
        *("group_left", "irate", "time", "unless", "min", "label_replace", "count"),
        "last_over_time",
    }
)
# Only with a replica, a pooler, an archive of WAL, a broker, Redis: ops/metrics.py.
OPTIONAL = frozenset(
    {
        *("replica_lag_seconds", "pooler_clients_waiting", "wal_archiving_fails"),
        *("broker_up", "redis_up"),
    }
)


# Each process may report its threads once.
report_threads_once = functools.cache(lambda: metrics.report_threads(8))


def count_in_this_process() -> None:
    """Give every metric of processes a value; needs a database."""
    Client().get("/healthz")
    metrics.task_seconds("task", "success").observe(0.1)
    metrics.task_last_failure("task").set_to_current_time()
    report_threads_once()


def existing_metrics() -> dict[str, str]:
    """Name -> type; needs a database. Those of OPTIONAL if they are there."""
    count_in_this_process()
    refresh_stored_metrics()
    check_deliveries()
    texts = [generate_latest(DatabaseCollector()), generate_latest(metrics.process_registry())]
    text = b"".join(texts).decode()
    return dict(re.findall(r"^# TYPE (\w+) (\w+)$", text, re.MULTILINE))


def used_metrics(expression: str) -> set[str]:
    """The metrics of a PromQL expression, histograms without their suffix."""
    bare = re.sub(r'"[^"]*"', "", expression)
    bare = re.sub(r"\w+(:\w+)+", "", bare)  # recorded by a rule
    bare = re.sub(r"\{[^}]*\}|\[[^\]]*\]", "", bare)
    bare = re.sub(r"\b(by|on|without)\s*\([^)]*\)", "", bare)
    words = set(re.findall(r"\b[a-z_]+[a-z]\b", bare)) - NOT_METRICS
    return {re.sub(r"_(bucket|count|sum)$", "", word) for word in words}
