"""PostgreSQL's plans of queries, with the rows that each node reads."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from django.db import connection


def explain(sql: str, params: Any) -> Mapping[str, Any]:
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {sql}", params)
        plan = cursor.fetchone()[0]
    return (json.loads(plan) if isinstance(plan, str) else plan)[0]["Plan"]


def nodes_of(plan: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield plan
    for part in plan.get("Plans", ()):
        yield from nodes_of(part)
