"""Is the process up, and can it serve? For load balancers, containers and `manage.py up`."""

from typing import Any

from django.db import Error as DatabaseTrouble
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, OpenApiResponse
from rest_framework.response import Response

from notifications.lateness import oldest_late, oldest_uncompleted, seconds_since
from notifications.models import Delivery
from scheduling.api.errors import is_stale_plan, retry_header
from scheduling.api.schema import component, described
from scheduling.api.sql import accepts_writes
from scheduling.api.views import ApiView

HEALTH = component(
    "Health",
    {
        "type": "object",
        "required": ["status"],
        "properties": {"status": {"type": "string", "enum": ["ok"]}},
    },
    {"status": "ok"},
)
READINESS = component(
    "Readiness",
    {
        "type": "object",
        "required": ["status", "database", "migrations", "oldest_overdue_seconds"],
        "properties": {
            "status": {"type": "string", "enum": ["ok", "unavailable"]},
            "database": {"type": "string", "enum": ["ok", "read-only", "unreachable"]},
            "migrations": {"type": "string", "enum": ["ok", "not applied", "unknown"]},
            "oldest_overdue_seconds": {
                "type": ["integer", "null"],
                "minimum": 0,
                "description": "How long the oldest overdue delivery has waited to be sent, or the"
                " oldest booking to be completed; a figure that keeps growing says that no worker"
                " runs. Null where it can't be told.",
            },
        },
    },
    {"status": "ok", "database": "ok", "migrations": "ok", "oldest_overdue_seconds": 0},
)
UNREACHABLE = {
    "status": "unavailable",
    "database": "unreachable",
    "migrations": "unknown",
    "oldest_overdue_seconds": None,
}


class HealthView(ApiView):
    public = True
    json_only = False
    tag = "service"

    @described(
        summary="Is the process up?",
        description="Looks at nothing else: an outage of the database does not restart it.",
        response=HEALTH,
    )
    def get(self, request: Any) -> Response:
        return Response({"status": "ok"})


class ReadinessView(ApiView):
    public = True
    json_only = False
    tag = "service"

    @described(
        summary="Can it serve?",
        description="200 when the database answers, takes writes, and all migrations are applied.",
        response=READINESS,
        others={
            503: OpenApiResponse(
                READINESS,
                "Something is missing: its field says what.",
                [OpenApiExample("no database", UNREACHABLE)],
            )
        },
    )
    def get(self, request: Any) -> Response:
        found = look_at_database()
        ready = found["database"] == found["migrations"] == "ok"
        return Response(
            {"status": "ok" if ready else "unavailable", **found},
            status=200 if ready else 503,
            headers={} if ready else retry_header(5),
        )


def look_at_database() -> dict[str, Any]:
    try:
        executor = MigrationExecutor(connection)
        if executor.migration_plan(executor.loader.graph.leaf_nodes()):
            return {"database": "ok", "migrations": "not applied", "oldest_overdue_seconds": None}
        database = "ok" if accepts_writes() else "read-only"
        overdue = oldest_overdue_seconds()
    except DatabaseTrouble as error:
        if is_stale_plan(error):
            raise  # the view is tried again on a new connection
        return {key: UNREACHABLE[key] for key in UNREACHABLE if key != "status"}
    return {"database": database, "migrations": "ok", "oldest_overdue_seconds": overdue}


def oldest_overdue_seconds() -> int:
    now = timezone.now()
    since = [oldest_uncompleted(now), *(oldest_late(kind, now) for kind in Delivery.TYPES)]
    return int(max(seconds_since(moment, now) for moment in since))
