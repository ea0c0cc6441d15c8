"""Reports of a million bookings: counting them, a recount by plain SQL, and each report against a
page with a thousand bookings.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from datetime import date, timedelta
from functools import partial

import psycopg

from benchmarks import stage
from benchmarks.listings import FEW, Filled
from benchmarks.stage import Goal, milliseconds, time_each

NUMBERS = (
    *("bookings", "kept", "cancelled", "cancelled_by_customer", "declined", "unpaid", "attended"),
    *("no_show", "booked_seconds", "lead_seconds", "lead_1_day", "lead_3_days", "lead_1_week"),
    *("lead_2_weeks", "lead_4_weeks", "new_customers", "returning_customers"),
)
NAMES = ("utilisation", "outcomes", "lead-time", "sources", "customers")
# What a report says of all days, from the bookings. The filling writes no drafts.
RECOUNT = """
SELECT count(*), count(*) FILTER (WHERE booking.outcome = 'no_show'),
    count(*) FILTER (WHERE booking.state IN ('cancelled', 'cancelled_by_owner'))
FROM bookings_booking AS booking
WHERE booking.deleted_at IS NULL AND booking.max_seats IS NULL
"""
# The numbers of 200 resources more.
SPREAD = """
WITH other AS MATERIALIZED (SELECT gen_random_uuid() AS id FROM generate_series(1, 200))
INSERT INTO bookings_dailytotal (app_id, day, resource_id, project_id, source, {columns})
SELECT app_id, day, other.id, project_id, source, {columns} FROM bookings_dailytotal, other
WHERE resource_id = (
    SELECT resource_id FROM bookings_dailytotal GROUP BY 1 ORDER BY count(*) DESC LIMIT 1
)
"""
TOTALS = "SELECT sum(bookings), sum(no_show), sum(cancelled) FROM bookings_dailytotal"


def measure() -> Iterator[Goal]:
    with ExitStack() as stack:
        few, many = (Filled(total, stack) for total in (FEW, stage.million()))
        seconds = many.stage.script("benchmarks.count_reports")
        yield Goal("counting all days of all bookings", "reported", seconds, "seconds")
        with psycopg.connect(many.url, autocommit=True) as connection:
            recount = connection.execute(RECOUNT).fetchone()
            totals = connection.execute(TOTALS).fetchone()
            is_equal = recount == totals
            yield Goal("numbers equal a recount", "equal", is_equal, f"{totals}", is_equal)
            connection.execute(SPREAD.format(columns=", ".join(NUMBERS)))
            connection.execute("VACUUM ANALYZE bookings_dailytotal")
        for name in NAMES:
            for by in ("resource,week", "month"):
                path = f"/reports/{name}?{_year(many)}&by={by}"
                runs = {
                    "report": partial(many.get, path),
                    "list": partial(few.get, "/bookings?limit=1000"),
                }
                times = time_each(runs, rounds=5, seconds=0.1)
                ratio = times["report"] / times["list"]
                yield Goal(
                    f"GET /reports/{name}?by={by} of 53 weeks, {many.ids['total']:,} bookings",
                    "at most 20x a list of 1,000 bookings",
                    ratio,
                    f"{milliseconds(times['report'])} against {milliseconds(times['list'])}",
                    ratio <= 20,
                )


def _year(many: Filled) -> str:
    end = date.fromisoformat(many.ids["filled_at"][:10]) + timedelta(days=1)
    return f"from={end - timedelta(weeks=53)}&to={end}"
