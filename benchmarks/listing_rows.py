"""Rows for the listings of one app: python -m benchmarks.listing_rows 1000000

Each booking has a customer and three deliveries. About 80 rows match each narrow filter, however
many rows there are. Prints the key and the requests as JSON: see `requests_of`.
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

import django

django.setup()

from django.db import connection  # noqa: E402
from django.utils import timezone  # noqa: E402

from availability.models import Project, ProjectResource  # noqa: E402
from benchmarks.fill import make_app  # noqa: E402
from bookings.models import Bulk, Series  # noqa: E402
from notifications.webhooks.services import create_webhook  # noqa: E402

MATCHES = 80
EACH = """i, i %% %(step)s AS kind FROM generate_series(1, %(total)s) AS i"""
EVENT_ID = "('00000000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid"
BOOKING_ID = EVENT_ID.replace("-8000-", "-9000-")
CUSTOMER_ID = EVENT_ID.replace("-8000-", "-a000-")
# Version 7: milliseconds, and a number that keeps ids apart.
DELIVERY_ID = """(lpad(to_hex((date_part('epoch', made_at) * 1000)::bigint), 12, '0')
    || '70008000' || lpad(to_hex(i * 4 + n), 12, '0'))::uuid"""
# A booking every 20 seconds, a day of deliveries for every thirtieth of them.
MADE_AT = "now() - (%(total)s - i) * interval '20 seconds'"
SENT_AT = "now() - (%(total)s - i) * (interval '30 days' / %(total)s)"

FILLS = {
    "availability_event": f"""
INSERT INTO availability_event (id, app_id, created_at, updated_at, calendar_id, resource_id,
    start, "end", all_day, what, "where", description, participants, rsvp, invite, busy, exclusive,
    provider_id)
SELECT {EVENT_ID}, %(app)s::uuid, {MADE_AT}, {MADE_AT},
    CASE kind WHEN 3 THEN %(rare_calendar)s::uuid ELSE %(calendar)s::uuid END,
    CASE kind WHEN 3 THEN %(rare_resource)s::uuid ELSE %(resource)s::uuid END,
    now() - (%(total)s - i) * interval '1 minute',
    now() - (%(total)s - i) * interval '1 minute' + interval '30 minutes',
    false, 'Filled', '', '', '[]', '', true, false, false, ''
FROM (SELECT {EACH}) AS each_one
""",
    "bookings_booking": f"""
INSERT INTO bookings_booking (id, created_at, updated_at, app_id, resource_id, event_id, graph,
    state, completed, allow_double_bookings, enforce_availability, reschedules, meta, policies,
    outcome, project_id, series_id, bulk_id, max_seats, owner_booking_id, calendar_uid,
    external_id)
SELECT {BOOKING_ID}, {MADE_AT}, {MADE_AT}, %(app)s::uuid,
    CASE kind WHEN 3 THEN %(rare_resource)s::uuid ELSE %(resource)s::uuid END,
    ('00000000-0000-7000-8000-'
        || lpad(to_hex(CASE kind WHEN 7 THEN 6 ELSE i END), 12, '0'))::uuid,
    CASE kind WHEN 1 THEN 'confirm_decline' WHEN 6 THEN 'group_owner'
        WHEN 7 THEN 'group_customer' ELSE 'instant' END,
    CASE WHEN kind = 1 THEN 'tentative' WHEN kind = 6 THEN 'confirmed'
        ELSE (ARRAY['completed', 'cancelled', 'cancelled_by_customer'])[i %% 3 + 1] END,
    kind NOT IN (1, 6), false, false, 0,
    CASE kind WHEN 9 THEN '{{"ward": "rare"}}' ELSE '{{"ward": "usual"}}' END::jsonb, '{{}}',
    CASE kind WHEN 2 THEN 'no_show' END,
    CASE WHEN kind = 4 THEN %(rare_project)s::uuid WHEN i %% 2 = 0 THEN %(project)s::uuid END,
    CASE kind WHEN 5 THEN %(series)s::uuid END, CASE kind WHEN 8 THEN %(bulk)s::uuid END,
    CASE kind WHEN 6 THEN 200 END, CASE kind WHEN 7 THEN %(group)s::uuid END,
    {BOOKING_ID}, 'booking-' || i
FROM (SELECT {EACH}) AS each_one
""",
    "bookings_customer": f"""
INSERT INTO bookings_customer (id, app_id, booking_id, position, name, email, address, limit_key,
    phone, voip, timezone, meta, external_id)
SELECT {CUSTOMER_ID}, %(app)s::uuid, {BOOKING_ID}, 0,
    CASE kind WHEN 10 THEN 'Rare Person' ELSE 'Customer' END, email, email, email,
    CASE kind WHEN 10 THEN '+1 555 ' ELSE '+49 40 ' END || i, '', '', '{{}}',
    CASE kind WHEN 10 THEN 'rare' END
FROM (SELECT {EACH}) AS each_one, LATERAL (
    SELECT CASE kind WHEN 10 THEN 'rare' || i || '@example.net' WHEN 0 THEN 'shared@example.org'
        ELSE 'customer' || i || '@example.com' END AS email
) AS named
""",
    "notifications_delivery": f"""
INSERT INTO notifications_delivery (id, app_id, booking_id, webhook_id, number, type, kind,
    recipient, version, content, body, endpoint, state, reason, due_at, next_at, expires_at, tries,
    lapses, created_at, updated_at, finished_at)
SELECT {DELIVERY_ID}, %(app)s::uuid, {BOOKING_ID},
    CASE WHEN n = 1 AND kind = 2 THEN %(rare_webhook)s::uuid
        WHEN n = 1 THEN %(webhook)s::uuid END,
    n, CASE WHEN n = 1 THEN 'webhook' WHEN n = 2 AND kind = 1 THEN 'calendar' ELSE 'email' END,
    'confirmed', CASE n WHEN 1 THEN '' ELSE 'customer' END, 0, '{{}}', '', '',
    CASE WHEN n = 0 AND kind = 3 THEN 'failed' ELSE 'delivered' END, '', made_at, NULL,
    made_at + interval '1 day', 1, 0, made_at, made_at, made_at + interval '1 second'
FROM (SELECT i, kind, n, {SENT_AT} AS made_at
    FROM (SELECT {EACH}) AS each_one, generate_series(0, 2) AS n) AS each_delivery
""",
}
# What the triggers would have counted.
COUNTS = (
    """
INSERT INTO bookings_appcustomer (app_id, address, bookings, first_booking_at, last_booking_at)
SELECT booking.app_id, customer.address, count(*), -- each has one customer
    min(booking.created_at), max(booking.created_at)
FROM bookings_customer AS customer JOIN bookings_booking AS booking
    ON booking.id = customer.booking_id
WHERE booking.app_id = %(app)s::uuid GROUP BY 1, 2
""",
    """
INSERT INTO apps_config_listingtally (app_id, listing, part, slot, count)
SELECT app_id, 'bookings', state, 0, count(*) FROM bookings_booking
WHERE app_id = %(app)s::uuid AND deleted_at IS NULL GROUP BY 1, 3
UNION ALL SELECT app_id, 'customers', '', 0, count(*) FROM bookings_appcustomer
WHERE app_id = %(app)s::uuid GROUP BY 1
UNION ALL SELECT app_id, 'deliveries',
    type || ':' || replace(coalesce(webhook_id::text, ''), '-', ''), 0, count(*)
FROM notifications_delivery WHERE app_id = %(app)s::uuid GROUP BY 1, 3
""",
)


def fill_listings(total: int) -> dict[str, Any]:
    """Fill an empty database; return the key, the app's id and the ids of `requests_of`."""
    made, (resource, rare_resource) = make_app("listings", 2)
    app_id, now = resource.app_id, timezone.now()
    projects = [
        Project.objects.create(app_id=app_id, slug=slug, name=slug) for slug in ("usual", "rare")
    ]
    for project in projects:
        ProjectResource.objects.create(project=project, resource=resource, position=0)
    webhooks = [
        create_webhook(app=resource.app, given={"url": f"https://example.com/{name}"})[0]
        for name in ("usual", "rare")
    ]
    ids = {
        "resource": resource.id,
        "calendar": resource.calendars.get().id,
        "rare_resource": rare_resource.id,
        "rare_calendar": rare_resource.calendars.get().id,
        "project": projects[0].id,
        "rare_project": projects[1].id,
        "webhook": webhooks[0].id,
        "rare_webhook": webhooks[1].id,
        "series": Series.objects.create(app_id=app_id, rrule="FREQ=DAILY", created_at=now).id,
        "bulk": Bulk.objects.create(app_id=app_id, created_at=now).id,
        "group": "00000000-0000-7000-9000-000000000006",
    }
    values = {**ids, "app": app_id, "total": total, "step": total // MATCHES}
    with ThreadPoolExecutor(len(FILLS)) as pool:  # the statements of a session use one core
        list(pool.map(partial(fill_table, values=values), FILLS.items()))
    with connection.cursor() as cursor, without_indexes(cursor, ["bookings_appcustomer"]):
        count_app(cursor, app_id)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
    return {
        "key": made["key"],
        "app": str(app_id),
        "total": total,
        "filled_at": now.isoformat(),
    } | {name: str(value) for name, value in ids.items()}


def fill_table(fill: tuple[str, str], *, values: Mapping[str, Any]) -> None:
    table, statement = fill
    try:
        with connection.cursor() as cursor, without_indexes(cursor, [table]):
            cursor.execute(statement, values)
    finally:
        connection.close()


def count_app(cursor: Any, app_id: str) -> None:
    """Count the rows of the only app, which were inserted without triggers."""
    for statement in COUNTS:
        cursor.execute(statement, {"app": app_id})


@contextmanager
def without_indexes(cursor: Any, tables: Sequence[str]) -> Iterator[None]:
    """Drop the indexes of the tables, and switch triggers and foreign keys off in this session."""
    cursor.execute("SET statement_timeout = 0")
    cursor.execute("SET maintenance_work_mem = '512MB'")
    cursor.execute("SET session_replication_role = replica")
    cursor.execute(
        "SELECT indexname, indexdef FROM pg_indexes WHERE tablename = ANY(%s) AND NOT EXISTS"
        " (SELECT FROM pg_constraint WHERE conname = indexname)",
        [tables],
    )
    indexes = cursor.fetchall()
    for name, _ in indexes:
        cursor.execute(f"DROP INDEX {name}")
    yield
    for _, definition in indexes:
        cursor.execute(definition)
    cursor.execute("SET session_replication_role = DEFAULT")


if __name__ == "__main__":
    print(json.dumps(fill_listings(int(sys.argv[1]))))
