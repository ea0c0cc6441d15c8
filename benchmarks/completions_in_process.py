"""The in-process half of benchmarks.completions: python -m benchmarks.completions_in_process COUNT

Makes bookings, completes them, and prints how many it completes per second.
"""

import sys
import time
from datetime import timedelta

from benchmarks.create_booking_vs_inserts import HOUR, START, make_with_service
from benchmarks.fill import make_app
from bookings.services import complete_ended


def main(count: int) -> None:
    _, (resource,) = make_app("complete", 1)
    calendar = resource.calendars.get()
    for number in range(count):
        make_with_service(calendar, resource.app, number)
    began = time.perf_counter()
    done = complete_ended(now=START + HOUR * count + timedelta(days=1))
    seconds = time.perf_counter() - began
    assert done == count
    print(done / seconds)


if __name__ == "__main__":
    main(int(sys.argv[1]))
