"""Rows for the back office, with progress: python -m benchmarks.office_rows 1000000

Prints two log-ins and the addresses of the lists as JSON.
"""

import json
import sys
import time
from typing import Any

import django

django.setup()

from django.contrib import admin  # noqa: E402
from django.db import connection  # noqa: E402
from django.test import Client  # noqa: E402
from django.urls import reverse  # noqa: E402

from apps_config.models import Account, App, Membership  # noqa: E402
from benchmarks.fill import make_app  # noqa: E402
from benchmarks.listing_rows import count_app  # noqa: E402

BATCH = 50_000
FILLS = {
    "events": """
INSERT INTO availability_event (id, app_id, created_at, updated_at, calendar_id, resource_id,
    start, "end", all_day, what, "where", description, participants, rsvp, invite, busy, exclusive,
    provider_id)
SELECT ('00000000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid, %(app)s::uuid, now(), now(),
    %(calendar)s::uuid, %(resource)s::uuid, now() + (i - %(half)s::int) * interval '30 seconds',
    now() + (i - %(half)s::int) * interval '30 seconds' + interval '30 minutes',
    false, 'Filled', '', '', '[]', '', true, false, false, ''
FROM generate_series(%(first)s::int, %(last)s::int) AS i
""",
    "bookings": """
INSERT INTO bookings_booking (id, created_at, updated_at, app_id, resource_id, event_id, graph,
    state, completed, allow_double_bookings, enforce_availability, reschedules, meta, policies)
SELECT ('00000000-0000-7000-9000-' || lpad(to_hex(i), 12, '0'))::uuid,
    now() - (%(total)s::int - i) * interval '20 seconds', now(), %(app)s::uuid, %(resource)s::uuid,
    ('00000000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid, 'confirm_decline',
    (ARRAY['confirmed', 'completed', 'tentative', 'cancelled', 'cancelled_by_customer'])
        [i %% 5 + 1],
    i %% 5 in (1, 3, 4), false, false, 0, '{}', '{}'
FROM generate_series(%(first)s::int, %(last)s::int) AS i
""",
    "customers": """
INSERT INTO bookings_customer (id, app_id, booking_id, position, name, email, address, limit_key,
    phone, voip, timezone, meta)
SELECT ('00000000-0000-7000-a000-' || lpad(to_hex(i), 12, '0'))::uuid, %(app)s::uuid,
    ('00000000-0000-7000-9000-' || lpad(to_hex(i), 12, '0'))::uuid, 0, 'Customer ' || i,
    email, email, email, '+49 40 ' || i, '', '', '{}'
FROM generate_series(%(first)s::int, %(last)s::int) AS i,
    LATERAL (SELECT 'customer' || i || '@example.com' AS email) AS named
""",
    "changes": """
INSERT INTO bookings_statechange (uuid, app_id, booking_id, from_state, to_state, action, actor,
    source, message, created_at)
SELECT ('00000000-0000-7000-c000-' || lpad(to_hex(i), 12, '0'))::uuid, %(app)s::uuid,
    ('00000000-0000-7000-9000-' || lpad(to_hex(i), 12, '0'))::uuid, 'initialized', 'tentative',
    'create', 'server key', 'api', '', now() - (%(total)s::int - i) * interval '20 seconds'
FROM generate_series(%(first)s::int, %(last)s::int) AS i
""",
    "deliveries": """
INSERT INTO notifications_delivery (id, app_id, booking_id, number, type, kind, recipient, version,
    content, body, endpoint, state, reason, due_at, next_at, expires_at, tries, lapses, created_at,
    finished_at)
SELECT ('00000000-0000-7000-b' || n || '00-' || lpad(to_hex(i), 12, '0'))::uuid, %(app)s::uuid,
    ('00000000-0000-7000-9000-' || lpad(to_hex(i), 12, '0'))::uuid, n, 'email', 'confirmed',
    'customer', 0, '{}', '', '', CASE WHEN i %% 1000 = 0 THEN 'failed' ELSE 'delivered' END, '',
    now() - (%(total)s::int - i) * interval '2 seconds', NULL, now(), 1, 0, now(),
    now() - (%(total)s::int - i) * interval '2 seconds' + interval '1 second'
FROM generate_series(%(first)s::int, %(last)s::int) AS i, generate_series(0, 2) AS n
""",
}


class Progress:
    """Prints `bookings 300,000 of 1,000,000, 41,000 a second, 17 s left` to standard error."""

    def __init__(self, name: str, total: int) -> None:
        self.name, self.total, self.began = name, total, time.monotonic()

    def tell(self, done: int) -> None:
        rate = done / max(time.monotonic() - self.began, 1e-6)
        left = (self.total - done) / rate
        line = f"{self.name} {done:,} of {self.total:,}, {rate:,.0f} a second, {left:.0f} s left"
        print(line, file=sys.stderr, flush=True)


def main() -> None:
    print(json.dumps(_fill(int(sys.argv[1]))))


def _fill(total: int) -> dict[str, Any]:
    made, (resource,) = make_app("filled", 1)
    params = {
        "app": made["app"],
        "resource": resource.id,
        "calendar": resource.calendars.get().id,
        "total": total,
        "half": total // 2,
    }
    with connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = 0")
        # Without triggers, each of which would count one row.
        cursor.execute("SET session_replication_role = replica")
        for name, statement in FILLS.items():
            progress = Progress(name, total)
            for first in range(1, total + 1, BATCH):
                last = min(first + BATCH - 1, total)
                cursor.execute(statement, params | {"first": first, "last": last})
                progress.tell(last)
        count_app(cursor, made["app"])
        cursor.execute("SET session_replication_role = DEFAULT")
        cursor.execute("VACUUM ANALYZE")
    staff = Account.objects.create_superuser("staff@example.com", "not used at all")
    member = Account.objects.create_user("member@example.com")
    app = App.objects.get(id=made["app"])
    Membership.objects.create(account=member, app=app, role=Membership.OWNER)
    log_ins = {"staff": log_in(staff), "member": log_in(member)}
    lists = [
        reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
        for model, page in admin.site._registry.items()
        if page.app_paths
    ]
    return {"log_ins": log_ins, "paths": [reverse("admin:index"), *lists]}


def log_in(account: Account) -> str:
    """Return the cookie of a new session."""
    client = Client()
    client.force_login(account)
    return client.cookies["sessionid"].value


if __name__ == "__main__":
    main()
