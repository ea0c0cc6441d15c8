"""Plans of the statements of listings, on the rows of `benchmarks.listing_rows`.

python -m tests.listing_plans <ids as JSON>: prints the faults of each request, asked by page and
by cursor, as JSON.
"""

import json
import sys
from base64 import b64encode
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import django

django.setup()

from django.db import connection  # noqa: E402
from django.test import Client  # noqa: E402

from benchmarks.listing_request_urls import filter_requests, page_requests  # noqa: E402
from common.api.pagination import MAX_LIMIT  # noqa: E402
from tests.query_plans import explain, nodes_of  # noqa: E402

# The rows from which a table is large.
LARGE = 100_000


class Statements:
    """Records the queries of a request, as an execute wrapper."""

    def __init__(self) -> None:
        self.found: list[tuple[str, Any]] = []

    def __call__(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.lstrip().startswith("SELECT"):
            self.found.append((sql, params))
        return execute(sql, params, many, context)


def main() -> None:
    ids = json.loads(sys.argv[1])
    login = "Basic " + b64encode(f":{ids['key']}".encode()).decode()
    client = Client(headers={"authorization": login})
    sizes = table_sizes()
    report = {}
    for request in [*page_requests(ids), *filter_requests(ids)]:
        name = f"{request.path} {request.filter}"
        answer, statements = ask(client, request.address)
        total = answer["total"]
        report[name] = [total, faults_of(statements, sizes, total)]
        for place, cursor in cursors(client, request.address, total).items():
            answer, statements = ask(client, with_parameters(request.address, cursor=cursor))
            found = len(answer["data"])
            report[f"{name} {place}"] = [found, faults_of(statements, sizes, found)]
    print(json.dumps(report))


def cursors(client: Client, address: str, total: int) -> dict[str, str]:
    """Return the cursor of the start, and one before the last row or the thousandth."""
    skipped = min(total - 1, MAX_LIMIT)
    if skipped < 1:
        return {"by cursor": ""}
    answer, _ = ask(client, with_parameters(address, cursor="", limit=str(skipped)))
    return {"by cursor": "", "after a cursor": answer["next_cursor"]}


def with_parameters(address: str, **given: str) -> str:
    return f"{address}{'&' if '?' in address else '?'}{urlencode(given)}"


def ask(client: Client, address: str) -> tuple[Any, Statements]:
    statements = Statements()
    with connection.execute_wrapper(statements):
        answer = client.get(address)
    if answer.status_code != 200:
        raise RuntimeError(f"{address}: {answer.status_code} {answer.content!r}")
    return answer.json(), statements


def faults_of(statements: Statements, sizes: Mapping[str, int], total: int) -> list[str]:
    return [
        fault
        for sql, params in statements.found
        for fault in faults(explain(sql, params), sizes, total)
    ]


def table_sizes() -> dict[str, int]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT relname, reltuples::bigint FROM pg_class WHERE relkind = 'r'")
        return {name: rows for name, rows in cursor.fetchall() if rows >= LARGE}


def faults(plan: Mapping[str, Any], sizes: Mapping[str, int], total: int) -> list[str]:
    """Describe what reads or sorts a tenth of a large table, where less than that is found."""
    found = []
    for node in nodes_of(plan):
        size = sizes.get(node.get("Relation Name", ""), LARGE * 10)
        removed = sum(node.get(name, 0) for name in REMOVED)
        rows = (node["Actual Rows"] + removed) * node["Actual Loops"]
        is_read = "Relation Name" in node or node["Node Type"] == "Sort"
        if is_read and rows >= size / 10 and total < size / 10:
            found.append(f"{node['Node Type']} {node.get('Relation Name', '')}: {rows:,.0f} rows")
    return found


REMOVED = ("Rows Removed by Filter", "Rows Removed by Index Recheck")


if __name__ == "__main__":
    main()
