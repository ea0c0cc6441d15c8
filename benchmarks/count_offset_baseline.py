"""A page by count and OFFSET: python -m benchmarks.count_offset_baseline APP STATE PAGE."""

import json
import sys
import time
from statistics import median

import django

django.setup()

from django.db import connection  # noqa: E402

from bookings.models import Booking  # noqa: E402


def plain_page(app: str, state: str, page: int) -> None:
    rows = Booking.objects.filter(app_id=app, state=state, deleted_at=None)
    rows.count()
    list(rows.order_by("-created_at", "-id")[(page - 1) * 50 : page * 50])


def main() -> None:
    app, state, page = sys.argv[1:]
    connection.ensure_connection()
    times = []
    for _ in range(9):
        start = time.perf_counter()
        plain_page(app, state, int(page))
        times.append(time.perf_counter() - start)
    print(json.dumps({"seconds": median(times)}))


if __name__ == "__main__":
    main()
