"""Liveness and readiness, for load balancers, containers and `manage.py up`."""

from collections.abc import Set
from functools import cache

from django.db import Error as DatabaseTrouble
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from drf_spectacular.utils import OpenApiExample, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from common.api.serializers import ObjectSerializer
from common.api.views import PublicApiView
from common.db.sql import accepts_writes
from common.errors import is_stale_plan, retry_header


class HealthSerializer(ObjectSerializer):
    examples = {}

    status = serializers.ChoiceField(["ok"])


class ReadinessSerializer(ObjectSerializer):
    examples = {}

    status = serializers.ChoiceField(["ok", "unavailable"])
    database = serializers.ChoiceField(["ok", "read-only", "unreachable"])
    migrations = serializers.ChoiceField(["ok", "not applied", "unknown"])


UNREACHABLE = {
    "status": "unavailable",
    "database": "unreachable",
    "migrations": "unknown",
}


class HealthView(PublicApiView):
    operation_ids = {"GET": "checkHealth"}
    json_only = False
    tag = "service"

    @extend_schema(
        summary="Liveness",
        description="Answers 200 while the process works, also without a database.",
        responses={200: HealthSerializer.schema},
    )
    def get(self, request: Request) -> Response:
        return Response({"status": "ok"})


class ReadinessView(PublicApiView):
    operation_ids = {"GET": "checkReadiness"}
    json_only = False
    tag = "service"

    @extend_schema(
        summary="Readiness",
        description="200 if the database is reachable, accepts writes and has all migrations.",
        responses={
            200: ReadinessSerializer.schema,
            503: OpenApiResponse(
                ReadinessSerializer.schema,
                "Not ready: the fields say why.",
                [OpenApiExample("no database", UNREACHABLE)],
            ),
        },
    )
    def get(self, request: Request) -> Response:
        report = readiness_report()
        ready = report["database"] == report["migrations"] == "ok"
        return Response(
            {"status": "ok" if ready else "unavailable", **report},
            status=200 if ready else 503,
            headers={} if ready else retry_header(5),
        )


def readiness_report() -> dict[str, str]:
    """The state of the database and its migrations; never of the queue, which may be long."""
    try:
        if code_migrations() - MigrationRecorder(connection).applied_migrations().keys():
            return {"database": "ok", "migrations": "not applied"}
        database = "ok" if accepts_writes() else "read-only"
    except DatabaseTrouble as error:
        if is_stale_plan(error):
            raise  # the view is retried on a new connection
        return {key: UNREACHABLE[key] for key in UNREACHABLE if key != "status"}
    return {"database": database, "migrations": "ok"}


@cache
def code_migrations() -> Set[tuple[str, str]]:
    """(app, name) of each migration of this process's code: 40 ms to read."""
    return MigrationLoader(None, ignore_no_migrations=True).disk_migrations.keys()
