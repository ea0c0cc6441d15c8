"""Every module with SQL written by hand is tested on both databases."""

import ast

import pytest

from tests.services import ROOT

OURS = (
    *("access", "apps_config", "availability", "bookings", "booking_pages", "common"),
    *("external_calendars", "notifications", "office", "ops", "scheduling"),
)
# A module that writes SQL, or asks which database it is on -> the modules that test it on both.
SQL_BY_HAND = {
    "apps_config/changes.py": ("notifications/test_change_feed",),
    "apps_config/idempotency.py": (
        "apps_config/test_idempotency",
        "bookings/test_idempotency_races",
    ),
    "common/api/search_conditions.py": ("availability/test_resources",),
    "common/db/indexed_values.py": ("office/test_customers_page",),
    "availability/reserve/events.py": ("bookings/test_races", "bookings/test_holds"),
    "availability/search/queries.py": (
        "availability/test_availability",
        "availability/test_explain",
    ),
    "external_calendars/mirror/delivery_planning.py": ("external_calendars/test_mirror",),
    "ops/doctor.py": ("ops/test_doctor",),
    "ops/management/commands/migrate.py": ("setup/test_migrate_command",),
    "notifications/planning.py": ("notifications/test_deliveries_api",),
    "common/observability/opentelemetry_tracer.py": ("notifications/test_attempt_tracing",),
    "ops/metrics.py": ("ops/test_metrics",),
    "ops/server_metrics.py": ("ops/test_metrics",),
    "ops/stored_metrics.py": ("ops/test_metrics",),
    "notifications/outbox/lanes.py": ("notifications/test_lanes",),
    "notifications/outbox/leases.py": (
        "notifications/test_dispatcher",
        "notifications/test_delivery_races",
    ),
    "notifications/outbox/retention.py": ("notifications/test_retention",),
    "notifications/outbox/results.py": (
        "notifications/test_dispatcher",
        "notifications/test_bad_rows",
    ),
    "availability/models.py": ("apps_config/test_pagination",),
    "bookings/filters.py": ("bookings/test_list", "apps_config/test_pagination"),
    "common/db/updated_at.py": ("bookings/test_changes", "ops/test_doctor"),
    # PostgreSQL only: tests/test_pooler.py, tests/test_read_replica.py.
    "common/db/connections.py": (),
    "common/db/last_writes.py": (),
    "common/db/replica.py": (),
    "common/db/concurrent_index.py": ("bookings/test_list",),
    "common/db/compiled_query.py": (
        "bookings/test_find_booking",
        "apps_config/test_authentication",
    ),
    "common/db/migration_operations.py": ("setup/test_app_columns",),
    "common/db/sql.py": (
        "common/test_sql",
        "bookings/test_series",
        "notifications/test_delivery_check",
        "apps_config/test_rates",
        "apps_config/test_public_limits",
        "bookings/test_hold_races",
    ),
}
CALLS = {"cursor", "execute", "executemany", "extra", "raw", "RawSQL", "RunSQL"}


def writes_sql(source: str) -> bool:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in CALLS:
                return True
        if isinstance(node, ast.Attribute) and node.attr == "vendor":
            return True
    return False


def marks_of(test_module: str) -> str:
    """The value of its `pytestmark`, as it stands there."""
    for node in ast.parse((ROOT / "tests" / f"{test_module}.py").read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark":
            return ast.unparse(node.value)
    return ""


def test_every_module_with_sql_is_listed_here() -> None:
    files = [file for app in OURS for file in (ROOT / app).rglob("*.py")]
    found = {str(file.relative_to(ROOT)) for file in files if writes_sql(file.read_text())}

    assert found == set(SQL_BY_HAND)


@pytest.mark.parametrize("module", SQL_BY_HAND)
def test_sql_modules_are_tested_on_both_databases(module: str) -> None:
    unmarked = [name for name in SQL_BY_HAND[module] if "both_databases" not in marks_of(name)]

    assert unmarked == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("cursor.execute('SELECT 1')", True),
        ("Booking.objects.raw(statement)", True),
        ("expression = RawSQL('1', [])", True),
        ("migrations.RunSQL('SELECT 1')", True),
        ("is_sqlite = connection.vendor == 'sqlite'", True),
        ("Booking.objects.filter(vendor='sqlite').update(raw=1)", False),
    ],
)
def test_sql_is_recognised(source: str, expected: bool) -> None:
    assert writes_sql(source) is expected
