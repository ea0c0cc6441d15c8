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
    "apps_config/idempotency.py": (
        "apps_config/test_idempotency",
        "bookings/test_idempotency_races",
    ),
    "common/api/search_conditions.py": ("availability/test_resources",),
    "common/indexed_values.py": ("office/test_customers_page",),
    "apps_config/migrations/0013_security_event.py": ("access/test_security_events",),
    "availability/migrations/0002_overlap_guard.py": ("bookings/test_guard",),
    "availability/migrations/0006_external.py": ("bookings/test_guard",),
    "availability/event_reservations.py": ("bookings/test_races", "bookings/test_holds"),
    "availability/search_queries.py": (
        "availability/test_availability",
        "availability/test_explain",
    ),
    "bookings/migrations/0002_booking_tally.py": ("bookings/test_list", "bookings/test_guard"),
    "bookings/migrations/0003_groups_and_series.py": (
        "bookings/test_groups",
        "bookings/test_guard",
    ),
    "bookings/migrations/0004_append_only_log.py": ("bookings/test_random_operations",),
    "external_calendars/mirror/delivery_planning.py": ("external_calendars/test_mirror",),
    "ops/doctor.py": ("ops/test_doctor",),
    "notifications/planning.py": ("notifications/test_deliveries_api",),
    "common/observability/opentelemetry_tracer.py": ("notifications/test_attempt_tracing",),
    "ops/metrics.py": ("ops/test_metrics",),
    "notifications/migrations/0025_attempt_outcome.py": ("bookings/test_guard",),
    "notifications/migrations/0016_check_open_lanes.py": ("notifications/test_lanes",),
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
    "apps_config/listing_tally_triggers.py": (
        "bookings/test_listing_pages",
        "bookings/test_random_operations",
    ),
    "availability/models.py": ("bookings/test_listing_pages",),
    "bookings/filters.py": ("bookings/test_list", "bookings/test_listing_pages"),
    "bookings/migrations/0015_app_customer.py": (
        "bookings/test_listing_pages",
        "bookings/test_random_operations",
    ),
    "bookings/migrations/0016_listing_tallies.py": ("bookings/test_listing_migration",),
    "bookings/migrations/0023a_fill_customer_address.py": (
        "bookings/test_address_migrations",
        "bookings/test_listing_pages",
    ),
    "common/updated_at.py": ("bookings/test_changes", "ops/test_doctor"),
    # PostgreSQL only: tests/test_pooler.py, tests/test_read_replica.py.
    "common/direct_and_replica_connections.py": (),
    "common/last_writes.py": (),
    "common/read_replica.py": (),
    "common/concurrent_index.py": ("bookings/test_list",),
    "common/compiled_query.py": (
        "bookings/test_find_booking",
        "apps_config/test_authentication",
    ),
    "common/migration_sql.py": ("setup/test_app_columns",),
    "notifications/migrations/0013_fill_app.py": ("setup/test_app_columns",),
    "common/sql.py": (
        "common/test_sql",
        "bookings/test_series",
        "ops/test_delivery_audit",
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
def test_its_tests_run_on_both_databases(module: str) -> None:
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
