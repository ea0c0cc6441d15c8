"""Plans of every listing and filter at a million bookings and customers, 3,000,000 deliveries."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psycopg
import pytest

from benchmarks.listing_request_urls import filter_requests, page_requests
from tests.description import description
from tests.listing_plans import faults
from tests.services import ROOT, own_database

TOTAL = 1_000_000
# Parameters that are no filters.
OTHERS = {"limit", "page", "cursor", "include", "orderBy", "sortedBy"}
NAMES = ("resource", "calendar", "project", "webhook")
IDS = {name: name for name in (*NAMES, *(f"rare_{name}" for name in NAMES))}
IDS |= {name: name for name in ("series", "bulk", "group")}
IDS |= {"total": "1000", "filled_at": "2026-11-20T09:30:00+00:00"}


def documented_filters() -> set[tuple[str, str]]:
    """Return path and filter of each listing; of `search`, each field."""
    found = set()
    for operation in description().operations:
        resolved = map(description().resolve, operation.content.get("parameters", []))
        parameters = {one["name"]: one for one in resolved if one["in"] == "query"}
        if operation.method != "GET" or "page" not in parameters:
            continue
        found.add((operation.path, ""))
        for name in parameters.keys() - OTHERS:
            fields = [""]
            if name == "search":
                text = parameters[name]["description"]
                fields = re.search(r"Fields: (.+)\.", text)[1].split(", ")
            found |= {(operation.path, f"{name} {field}".strip()) for field in fields}
    return found


def test_every_listing_and_filter_has_a_request() -> None:
    requests = [*page_requests(IDS), *filter_requests(IDS)]

    members = {("/v2/apps/{slug}/members", "")}  # a few in each app
    assert {(request.path, request.filter) for request in requests} | members == (
        documented_filters()
    )


# --- What a fault is ------------------------------------------------------------------------------
def node(kind: str, rows: int, *parts: Any, **given: Any) -> dict[str, Any]:
    found = {"Node Type": kind, "Actual Rows": rows, "Actual Loops": 1, "Plans": list(parts)}
    return found | {name.replace("_", " ").title(): value for name, value in given.items()}


LARGE = {"large": 1_000_000}
SCAN = node("Seq Scan", 50, relation_name="large") | {"Rows Removed by Filter": 999_950}


@pytest.mark.parametrize(
    ("plan", "total", "expected"),
    [
        (SCAN, 50, ["Seq Scan large: 1,000,000 rows"]),
        (node("Limit", 50, node("Sort", 50, SCAN)), 50, ["Seq Scan large: 1,000,000 rows"]),
        (SCAN, 100_000, []),
        (node("Seq Scan", 50, relation_name="small"), 50, []),
        (node("Index Scan", 50, relation_name="large"), 50, []),
        (node("Index Scan", 400_000, relation_name="large"), 50,
         ["Index Scan large: 400,000 rows"]),
        (node("Sort", 50, node("Index Scan", 50)), 50, []),
        (node("Sort", 400_000), 50, ["Sort : 400,000 rows"]),
        (node("Index Scan", 1, relation_name="large", actual_loops=400_000), 50,
         ["Index Scan large: 400,000 rows"]),
    ],
)  # fmt: skip
def test_plans_that_read_too_many_rows_are_faults(
    plan: Mapping[str, Any], total: int, expected: list[str]
) -> None:
    assert faults(plan, LARGE, total) == expected


# --- The plans ------------------------------------------------------------------------------------
def run_module(url: str, module: str, argument: str) -> Any:
    env = os.environ | {"DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "scheduling.settings"}
    env |= {"ALLOWED_HOSTS": "testserver", "RATE_LIMIT_PER_MINUTE": "0"}
    done = subprocess.run(
        [sys.executable, "-m", module, argument],
        cwd=ROOT,
        env=env,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.deep
@pytest.mark.postgresql
def test_listings_use_indexes(tmp_path: Path) -> None:
    """With a control: without one of the indexes, its filter is found."""
    with own_database(tmp_path) as url:
        ids = json.dumps(run_module(url, "benchmarks.listing_rows", str(TOTAL)))
        plans = run_module(url, "tests.listing_plans", ids)
        with psycopg.connect(url, autocommit=True) as database:
            database.execute("DROP INDEX event_range")
        without_index = run_module(url, "tests.listing_plans", ids)

    assert {name: found for name, (_, found) in plans.items() if found} == {}
    assert plans["/v2/bookings "][0] == TOTAL
    assert {name for name, (_, found) in without_index.items() if found} >= {"/v2/bookings start"}
