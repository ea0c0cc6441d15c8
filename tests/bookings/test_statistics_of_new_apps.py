"""An app with many rows that PostgreSQL's statistics don't know yet.

For the planner, the app has no rows: an index on the app seems cheaper than any other.
"""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection
from django.db.models import QuerySet
from django.test.utils import CaptureQueriesContext

from apps_config.models import App
from availability.models import Event
from bookings.models import AppCustomer, Booking, Customer
from bookings.privacy.customer_list import customer_records
from bookings.public_booking_checks import check_open_bookings
from bookings.services import customer_limits
from tests.query_plans import explain, nodes_of
from tests.world import NOW, Tenant

pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.postgresql]

MANY = 600
EMAIL = "person7@example.com"


@pytest.fixture
def new_app(make_tenant: Callable[..., Tenant]) -> App:
    add_bookings(make_tenant())
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE bookings_booking, bookings_customer, availability_event")
    tenant = make_tenant()
    add_bookings(tenant)
    return tenant.app


def add_bookings(tenant: Tenant) -> None:
    """A booking for each of many people, tomorrow."""
    resource, project = tenant.make_resource("Ada"), tenant.make_project()
    events = Event.objects.bulk_create(
        Event(
            app=tenant.app,
            calendar_id=resource["calendars"][0]["id"],
            resource_id=resource["id"],
            start=NOW + timedelta(days=1, seconds=number),
            end=NOW + timedelta(days=1, seconds=number + 1),
            busy=False,
        )
        for number in range(MANY)
    )
    bookings = Booking.objects.bulk_create(
        Booking(
            app=tenant.app,
            project_id=project["id"],
            resource_id=resource["id"],
            event=event,
            graph="instant",
            state="confirmed",
            created_at=NOW,
            updated_at=NOW,
        )
        for event in events
    )
    Customer.objects.bulk_create(
        Customer(app=tenant.app, booking=booking, name="Ann", email=f"person{number}@example.com")
        for number, booking in enumerate(bookings)
    )


def rows_read(call: Callable[[], object]) -> int:
    """The rows that the call's statements read from tables."""
    with CaptureQueriesContext(connection) as context:
        call()
    plans = [explain(query["sql"], None) for query in context.captured_queries]
    return sum(
        (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
        for plan in plans
        for node in nodes_of(plan)
        if "Relation Name" in node
    )


def test_records_of_customers(new_app: App) -> None:
    people = list(AppCustomer.objects.filter(app=new_app, address=EMAIL))

    records: list[dict] = []
    read = rows_read(lambda: records.extend(customer_records(people, NOW)))

    assert [(record["email"], record["upcoming"]) for record in records] == [(EMAIL, 1)]
    assert read < 20


def test_open_bookings_of_an_address(new_app: App) -> None:
    assert rows_read(lambda: check_open_bookings(new_app, [EMAIL], now=NOW)) < 20


def test_limit_of_a_project(new_app: App) -> None:
    project = Booking.objects.filter(app=new_app)[0].project

    def count() -> int:
        return customer_limits._customer_rows(project, {EMAIL}).count()

    assert (count(), rows_read(count) < 20) == (1, True)


def test_control_join_condition_on_the_app_reads_all_rows(new_app: App) -> None:
    rows: QuerySet = Customer.objects.filter(booking__app=new_app, booking__deleted_at=None)

    assert rows_read(rows.filter(address=EMAIL).count) > MANY


def test_large_tables_are_analyzed_after_a_thousand_changes(db: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname FROM pg_class WHERE reloptions @>"
            " '{autovacuum_analyze_scale_factor=0,autovacuum_analyze_threshold=1000}'"
        )
        tables = {row[0] for row in cursor.fetchall()}

    assert tables == {
        "apps_config_change",
        "availability_event",
        "bookings_appcustomer",
        "bookings_booking",
        "bookings_customer",
        "bookings_statechange",
        "notifications_attempt",
        "notifications_delivery",
        "notifications_sentemail",
    }
