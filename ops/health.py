"""Liveness and readiness, for load balancers, containers and `manage.py up`."""

from typing import Any

from django.db import Error as DatabaseTrouble
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, OpenApiResponse
from rest_framework.response import Response

from common.api.views import ApiRequest, ApiView
from common.errors import is_stale_plan, retry_header
from common.openapi.generator import describe_endpoint
from common.openapi.records import Record, field
from common.sql import accepts_writes
from notifications.models import Delivery
from notifications.outbox.overdue import oldest_overdue, oldest_uncompleted, seconds_since


class HealthRecord(Record):
    status: str = field(enum=["ok"])


class ReadinessRecord(Record):
    status: str = field(enum=["ok", "unavailable"])
    database: str = field(enum=["ok", "read-only", "unreachable"])
    migrations: str = field(enum=["ok", "not applied", "unknown"])
    oldest_overdue_seconds: int | None = field(
        "How long the oldest overdue delivery has waited to be sent, or the oldest booking to be"
        " completed; a figure that keeps growing says that no worker runs. Null where it can't be"
        " told.",
        minimum=0,
        example=0,
    )


UNREACHABLE = {
    "status": "unavailable",
    "database": "unreachable",
    "migrations": "unknown",
    "oldest_overdue_seconds": None,
}


class HealthView(ApiView):
    operation_ids = {"GET": "checkHealth"}
    public = True
    json_only = False
    tag = "service"

    @describe_endpoint(
        summary="Liveness",
        description="Answers 200 while the process works, also without a database.",
        response=HealthRecord.schema,
    )
    def get(self, request: ApiRequest) -> Response:
        return Response({"status": "ok"})


class ReadinessView(ApiView):
    operation_ids = {"GET": "checkReadiness"}
    public = True
    json_only = False
    tag = "service"

    @describe_endpoint(
        summary="Readiness",
        description="200 if the database is reachable, accepts writes and has all migrations.",
        response=ReadinessRecord.schema,
        others={
            503: OpenApiResponse(
                ReadinessRecord.schema,
                "Not ready: the fields say why.",
                [OpenApiExample("no database", UNREACHABLE)],
            )
        },
    )
    def get(self, request: ApiRequest) -> Response:
        found = readiness_report()
        ready = found["database"] == found["migrations"] == "ok"
        return Response(
            {"status": "ok" if ready else "unavailable", **found},
            status=200 if ready else 503,
            headers={} if ready else retry_header(5),
        )


def readiness_report() -> dict[str, Any]:
    try:
        executor = MigrationExecutor(connection)
        if executor.migration_plan(executor.loader.graph.leaf_nodes()):
            return {"database": "ok", "migrations": "not applied", "oldest_overdue_seconds": None}
        database = "ok" if accepts_writes() else "read-only"
        overdue = oldest_overdue_seconds()
    except DatabaseTrouble as error:
        if is_stale_plan(error):
            raise  # the view is retried on a new connection
        return {key: UNREACHABLE[key] for key in UNREACHABLE if key != "status"}
    return {"database": database, "migrations": "ok", "oldest_overdue_seconds": overdue}


def oldest_overdue_seconds() -> int:
    now = timezone.now()
    since = [oldest_uncompleted(now), *(oldest_overdue(kind, now) for kind in Delivery.TYPES)]
    return int(max(seconds_since(moment, now) for moment in since))
