"""Count the bookings of all apps: python -m benchmarks.count_reports

Prints how many seconds it took.
"""

import time

import django

django.setup()

from django.utils import timezone  # noqa: E402

from bookings.reports.counting import count_reports  # noqa: E402

if __name__ == "__main__":
    start = time.perf_counter()
    for _ in count_reports(now=timezone.now()):
        pass
    print(time.perf_counter() - start)
